"""Which volumes fill although producers are throttled: only readings after it took effect count."""

from dataclasses import replace

import pytest

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.throttle.throttled_fill import (
    SETTLE_S,
    throttled_fills,
    throttled_rate,
    throttled_since,
)
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import reading, remembering, whole

VALIDITY_S = 300.0
FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), VALIDITY_S), 1.0)
after = remembering(FACTORS)
THROTTLED_SINCE = 100.0


def filling(first: float, second: float, *, by: int = 10) -> Memory:
    """One volume, read twice, that took so many bytes a second between."""
    left = 1000 - round(by * (second - first))
    return after(
        whole(first, [reading(1, first, {"/d": 1000}, total=2000)]),
        whole(second, [reading(1, second, {"/d": left}, total=2000)]),
    )


def rates(memory: Memory, since: float | None, now: float) -> list[float]:
    """The rates of the volumes that fill although producers are throttled."""
    return [each.bytes_per_second for each in throttled_fills(memory, since, VALIDITY_S, now)]


def test_docstring_example() -> None:
    """For a throttle since 100 s a reading at 104 s is too early; 105 s and 112 s count."""
    assert [] == rates(filling(104.0, 110.0), THROTTLED_SINCE, 110.0)
    assert [10.0] == rates(filling(105.0, 112.0), THROTTLED_SINCE, 112.0)


def test_producers_that_pause_for_a_minute() -> None:
    """60 bytes that land in a minute's first second are 1 byte/s, and neither 12 nor none."""
    seen = [
        whole(
            float(at), [reading(1, float(at), {"/d": 9000 - 60 * (at // 60), "/e": 5}, total=9999)]
        )
        for at in range(700)
    ]
    memory = FACTORS.fold(Memory(), seen[0])
    reported = set()
    for observation in seen[1:]:
        memory = FACTORS.fold(memory, observation)
        if observation.observed_at > 400.0:
            reported.update(rates(memory, 0.0, observation.observed_at))
    assert 0.8 <= min(reported) <= max(reported) <= 1.2


def test_nobody_is_throttled() -> None:
    """A volume that fills while producers may write is no news."""
    assert [] == rates(filling(105.0, 112.0), None, 112.0)


@pytest.mark.parametrize(("factor", "since"), [(0.0, 100.0), (0.01, None), (1.0, None)])
def test_only_factor_0_stops_producers(factor: float, since: float | None) -> None:
    """With a factor above 0 producers may fill the volume."""
    assert since == throttled_since(factor, 100.0)


@pytest.mark.parametrize("by", [0, -10])
def test_what_does_not_fill(by: int) -> None:
    """The volume is steady or empties: the throttle works as it should."""
    assert [] == rates(filling(105.0, 112.0, by=by), THROTTLED_SINCE, 112.0)


def test_one_reading_shows_no_rate() -> None:
    """No rate is known after the first."""
    memory = after(whole(110.0, [reading(1, 110.0, {"/d": 5})]))
    assert [] == rates(memory, THROTTLED_SINCE, 110.0)


def test_a_reading_that_is_too_old() -> None:
    """A reading from before a broker fell silent does not show the present."""
    memory = filling(105.0, 112.0)
    assert [10.0] == rates(memory, THROTTLED_SINCE, 112.0 + VALIDITY_S)
    assert [] == rates(memory, THROTTLED_SINCE, 112.1 + VALIDITY_S)


@pytest.mark.parametrize(
    "last",
    [
        whole(113.0, [reading(1, 113.0, offline=["/d"])]),
        whole(113.0, [reading(2, 113.0, {"/e": 50})], fenced=[1]),
    ],
)
def test_what_is_not_there(last: Observation) -> None:
    """An offline log dir and a fenced broker's volume take no bytes."""
    before = [
        whole(105.0, [reading(1, 105.0, {"/d": 9}, total=50)]),
        whole(112.0, [reading(1, 112.0, {"/d": 2}, total=50)]),
    ]
    assert [1.0] == rates(after(*before), THROTTLED_SINCE, 113.0)
    assert [] == rates(after(*before, last), THROTTLED_SINCE, 113.0)


def test_an_offline_log_dir_has_no_rate() -> None:
    """Its old readings show a rate that does not apply any more."""
    memory = filling(105.0, 112.0)
    (state,) = memory.volumes()
    assert 10.0 == throttled_rate(state, THROTTLED_SINCE)
    assert throttled_rate(replace(state, online=False), THROTTLED_SINCE) is None


def test_it_settles_after_the_longest_pause() -> None:
    """The quota callback lets a client wait for up to 4 s."""
    assert SETTLE_S > 4.0
