"""The types of limit: each at, below and above its threshold, and what they share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.settings import Settings
from sidecar.settings.forms import fields_of
from sidecar.throttle.fill import LONGEST_S, Fill, Mark
from sidecar.throttle.limits import (
    LIMIT_TYPES,
    Limit,
    MinAvailableBytes,
    MinAvailableRatio,
    Verdict,
)
from sidecar.throttle.memory import VolumeState
from sidecar.volumes import Volume
from tests.sidecar.throttle.build import LONG_MAX

every_type = pytest.mark.parametrize("kind", LIMIT_TYPES)
sizes = st.integers(0, LONG_MAX)
values = st.integers(1, LONG_MAX) | st.floats(0.001, 0.999)
rates = st.floats(-1e12, 1e12)


def judged(limit: Limit, total: int, available: int) -> Verdict:
    """The first verdict on a volume."""
    return limit.judge(Volume(1, "/d0", total, available))


def filling(limit: Limit, total: int, available: int, rate: float) -> VolumeState:
    """A volume that fills by ``rate`` bytes/s, and by twice that at the fastest."""
    volume = Volume(1, "/d0", total, available)
    fill = Fill((Mark(0.0, volume.used_bytes),), rate, 2 * rate)
    return VolumeState(volume, 0.0, limit.judge(volume), online=True, fill=fill)


@pytest.mark.parametrize(
    ("total", "available", "by_bytes", "by_ratio"),
    [
        (1000, 99, True, True),
        (1000, 100, True, True),
        (1000, 101, False, False),
        (1000, 1001, False, False),
        (1000, 0, True, True),
        (0, 0, True, True),
        (LONG_MAX, 100, True, True),
        (LONG_MAX, 101, False, True),
        (LONG_MAX, LONG_MAX // 10, False, True),
        (LONG_MAX, LONG_MAX // 5, False, False),
        (LONG_MAX, LONG_MAX, False, False),
    ],
)
def test_boundaries(total: int, available: int, by_bytes: bool, by_ratio: bool) -> None:
    """At most 100 bytes available violate one limit at any size; at most a tenth the other."""
    assert by_bytes == judged(MinAvailableBytes(100), total, available).violates
    assert by_ratio == judged(MinAvailableRatio(0.1), total, available).violates


@pytest.mark.parametrize("limit", [MinAvailableBytes(100, 20), MinAvailableRatio(0.1, 0.02)])
def test_a_margin_is_for_the_release_alone(limit: Limit) -> None:
    """At 100 of 1,000 bytes it violates, until 121 are available; 101 begin nothing."""
    found: list[bool] = []
    for available in (101, 100, 101, 120, 121, 120, 100):
        did_violate = bool(found and found[-1])
        verdict = limit.judge(Volume(1, "/d0", 1000, available), did_violate=did_violate)
        found.append(verdict.violates)
        assert 100 == verdict.threshold_bytes
    assert [False, True, True, True, False, False, True] == found


def test_a_volume_within_the_margin_is_not_called_at_the_limit() -> None:
    """The sentence says what it still needs."""
    volume = Volume(1, "/d0", 1000, 110)
    assert "(11.0%), not yet 20 B above the limit of 100 B" in (
        MinAvailableBytes(100, 20).sentence(volume)
    )
    assert "not yet 2.0% of its size above the limit of 10.0%" in (
        MinAvailableRatio(0.1, 0.02).sentence(volume)
    )
    full = Volume(1, "/d0", 1000, 100)
    assert "at or below the limit of 100 B" in MinAvailableBytes(100, 20).sentence(full)


def test_bytes_of_long_max() -> None:
    """The greatest limit that a broker's numbers can reach still has a volume on either side."""
    limit = MinAvailableBytes(LONG_MAX - 1)
    assert judged(limit, LONG_MAX, LONG_MAX - 1).violates
    assert not judged(limit, LONG_MAX, LONG_MAX).violates


def test_thresholds() -> None:
    """A limit in bytes is the same for every size, a ratio is not."""
    assert 100 == judged(MinAvailableBytes(100), 1000, 500).threshold_bytes
    assert 100 == judged(MinAvailableBytes(100), LONG_MAX, 500).threshold_bytes
    assert 250.0 == judged(MinAvailableRatio(0.25), 1000, 500).threshold_bytes
    assert 0.0 == judged(MinAvailableRatio(0.25), 0, 0).threshold_bytes


def test_seconds_left() -> None:
    """200 bytes above the limit last 20 s at 10 bytes/s, and 10 s at the fastest, 20 bytes/s."""
    for limit in (MinAvailableBytes(100), MinAvailableRatio(0.1)):
        state = filling(limit, 1000, 300, 10.0)
        assert (20.0, 10.0) == (state.seconds_left, state.soonest_s)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (MinAvailableBytes(1), "1 B"),
        (MinAvailableBytes(5_000_000_000), "5.0 GB"),
        (MinAvailableRatio(0.1), "10.0%"),
        (MinAvailableRatio(0.125), "12.5%"),
    ],
)
def test_in_words(limit: Limit, expected: str) -> None:
    """Bytes are shown in decimal units, ratios in percent."""
    assert expected == limit.describe()


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(MinAvailableBytes(1), "25.0 kB"), (MinAvailableRatio(0.1), "25.0% (25.0 kB)")],
)
def test_what_a_volume_has_left(limit: Limit, expected: str) -> None:
    """It is shown in the limit's own unit, and always in bytes."""
    assert expected == limit.left(Volume(1, "/d0", 100_000, 25_000))


@pytest.mark.parametrize(
    ("limit", "share", "expected"),
    [
        (MinAvailableBytes(10_000_000_000), 0.5, MinAvailableBytes(5_000_000_000)),
        (MinAvailableBytes(1999), 0.5, MinAvailableBytes(990)),
        (MinAvailableBytes(3), 0.5, MinAvailableBytes(1)),
        (MinAvailableBytes(1), 0.5, None),
        (MinAvailableRatio(0.1), 0.5, MinAvailableRatio(0.05)),
        (MinAvailableRatio(0.333), 0.5, MinAvailableRatio(0.16)),
        (MinAvailableRatio(0.0001), 0.5, MinAvailableRatio(0.00005)),
    ],
)
def test_a_share_of_a_limit(limit: Limit, share: float, expected: Limit | None) -> None:
    """It has two digits, so that a person can type it, and is never rounded up."""
    assert expected == limit.scaled(share)


@every_type
class TestEveryType:
    def test_it_has_one_setting(self, kind: type[Limit]) -> None:
        """The setting is named after the type, and no setting is of another type."""
        fields = fields_of(Settings, "limit")
        assert kind is fields[f"storage_per_volume_limit_{kind.name}"]
        assert set(LIMIT_TYPES) == set(fields.values())
        assert len(LIMIT_TYPES) == len(fields)

    @given(values, sizes)
    def test_a_full_volume_violates(self, kind: type[Limit], value: float, total: int) -> None:
        """It does whatever the value is."""
        assert judged(kind(value), total, 0).violates

    @given(values, sizes, sizes, rates)
    def test_the_time_left_agrees_with_the_verdict(
        self, kind: type[Limit], value: float, total: int, available: int, rate: float
    ) -> None:
        """A volume that violates has no time left, and one that fills within ten years has some."""
        state = filling(kind(value), total, min(total, available), rate)
        if state.violates:
            assert (0.0, 0.0) == (state.seconds_left, state.soonest_s)
        elif rate > 0 and min(total, available) / rate < LONGEST_S:
            assert state.seconds_left is not None
            assert state.soonest_s is not None
            assert state.soonest_s <= state.seconds_left

    @given(values, st.lists(sizes, min_size=3, max_size=3).map(sorted))
    def test_less_room_never_ends_a_violation(
        self, kind: type[Limit], value: float, ascending: list[int]
    ) -> None:
        """The total size is the same."""
        less, more, total = ascending
        if judged(kind(value), total, more).violates:
            assert judged(kind(value), total, less).violates
