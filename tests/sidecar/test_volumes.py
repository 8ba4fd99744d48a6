"""What follows from a volume's two numbers."""

import pytest

from sidecar.volumes import Volume


@pytest.mark.parametrize(
    ("total", "available", "used", "ratio"),
    [
        (100, 25, 75, 0.25),
        (100, 100, 0, 1.0),
        (100, 0, 100, 0.0),
        (0, 0, 0, 0.0),
        (2**63 - 1, 2**63 - 1, 0, 1.0),
    ],
)
def test_used_and_ratio(total: int, available: int, used: int, ratio: float) -> None:
    """Used is total less available; the ratio of a volume of 0 bytes is 0."""
    volume = Volume(1, "/d0", total, available)
    assert used == volume.used_bytes
    assert ratio == volume.available_ratio


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (Volume(1, "/d1", 100_000, 50_010), True),
        (Volume(1, "/d1", 100_000, 50_011), False),
        (Volume(1, "/d1", 100_001, 50_000), False),
        (Volume(2, "/d1", 100_000, 50_000), False),
    ],
)
def test_log_dirs_on_one_file_system(other: Volume, expected: bool) -> None:
    """They are of one broker and of one size, and have about the same available bytes."""
    assert expected == Volume(1, "/d0", 100_000, 50_000).may_share(other)
