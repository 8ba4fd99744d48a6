"""Bytes and times in words."""

import pytest

from sidecar.throttle.sizes import duration_in_words, size
from tests.sidecar.throttle.build import LONG_MAX


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.95, "1.0 kB"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (38_200_000, "38.2 MB"),
        (64 * 10**9, "64.0 GB"),
        (10**12, "1.0 TB"),
        (LONG_MAX, "9223372.0 TB"),
    ],
)
def test_size(count: float, expected: str) -> None:
    """Units are decimal, as disks are sold; never "1000.0 kB"."""
    assert expected == size(count)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, ""),
        (0.4, "0 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7199.0, "120 min"),
        (7200.0, "2 h"),
        (172_800.0, "2 d"),
    ],
)
def test_duration(seconds: float | None, expected: str) -> None:
    """In the largest unit of which there are two."""
    assert expected == duration_in_words(seconds)
