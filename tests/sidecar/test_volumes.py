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
