"""The two limits, at, below and above their thresholds."""

import pytest

from sidecar.throttle.limits import MinAvailableBytes, MinAvailableRatio
from sidecar.volumes import Volume
from tests.throttle.build import LONG_MAX


@pytest.mark.parametrize(
    ("total", "available", "expected"),
    [
        (1000, 99, True),
        (1000, 100, True),
        (1000, 101, False),
        (1000, 0, True),
        (0, 0, True),
        (LONG_MAX, LONG_MAX, False),
        (LONG_MAX, 100, True),
        (LONG_MAX, 101, False),
    ],
)
def test_bytes(total: int, available: int, expected: bool) -> None:
    """A volume violates with at most 100 bytes available, whatever its size."""
    assert expected == MinAvailableBytes(100).violated_by(Volume(1, "/d0", total, available))


@pytest.mark.parametrize(
    ("total", "available", "expected"),
    [
        (1000, 99, True),
        (1000, 100, True),
        (1000, 101, False),
        (1000, 0, True),
        (0, 0, True),
        (LONG_MAX, LONG_MAX, False),
        (LONG_MAX, LONG_MAX // 10, True),
        (LONG_MAX, LONG_MAX // 5, False),
        (1000, 1001, False),
    ],
)
def test_ratio(total: int, available: int, expected: bool) -> None:
    """A volume violates with at most a tenth available; one of 0 bytes has nothing available."""
    assert expected == MinAvailableRatio(0.1).violated_by(Volume(1, "/d0", total, available))


def test_bytes_of_long_max() -> None:
    """The greatest limit that a broker's numbers can reach still has a volume on either side."""
    limit = MinAvailableBytes(LONG_MAX - 1)
    assert limit.violated_by(Volume(1, "/d0", LONG_MAX, LONG_MAX - 1))
    assert not limit.violated_by(Volume(1, "/d0", LONG_MAX, LONG_MAX))


def test_thresholds() -> None:
    """Bytes are the same for every size, a ratio is not."""
    assert 100 == MinAvailableBytes(100).threshold_bytes(1000)
    assert 100 == MinAvailableBytes(100).threshold_bytes(LONG_MAX)
    assert 250.0 == MinAvailableRatio(0.25).threshold_bytes(1000)
    assert 0.0 == MinAvailableRatio(0.25).threshold_bytes(0)
