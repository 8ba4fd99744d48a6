"""The stop line, rule by rule (docs/how-it-decides.md)."""

import math
from dataclasses import replace

import pytest

from sidecar.throttle.decision import Decision, Disabled, Source, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import TIMED_OUT, partial, reading, remembering, whole, with_rules

VALIDITY_S = 120.0

factors = VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S, MinAvailableBytes(10)), 0.0)
"""A stop line of 10 bytes is left at 12 bytes or more; the fallback is 0.0, and stops nobody."""
after = remembering(factors)


def seen(at: float, *available: int) -> Observation:
    """Volumes of brokers 1, 2 and so on, with these bytes available."""
    return whole(at, [reading(n, at, {"/d": free}) for n, free in enumerate(available, 1)])


def stopping(decision: Decision) -> list[int]:
    """The brokers whose volumes stop."""
    return [state.volume.broker_id for state in decision.at_stop_line]


def stops(memory: Memory, now: float) -> bool:
    return factors.decide(memory, now).stop_line_reached


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (MinAvailableBytes(10), [False, True]),
        (MinAvailableRatio(0.1), [False, True]),
        (MinAvailableRatio(0.1001), [False, True]),
        (MinAvailableRatio(0.0999), [False, False]),
        (None, [False, False]),
    ],
)
def test_a_stop_begins_at_the_line(line: Limit | None, expected: list[bool]) -> None:
    """At it, not above it, in bytes or as a share; without a line never."""
    rules = with_rules(factors, stop_line=line)
    decisions = [
        rules.decide(rules.fold(Memory(), seen(0.0, 99, available)), 0.0) for available in (11, 10)
    ]
    assert expected == [decision.stop_line_reached for decision in decisions]
    assert [[2] if stop else [] for stop in expected] == [*map(stopping, decisions)]
    assert [0.0, 0.0] == [decision.factor for decision in decisions]


def test_a_stop_ends_a_tenth_above_the_line() -> None:
    """11 bytes are within the margin of a line of 10, 12 are not; then 11 begin none."""
    course = [(0.0, 10), (1.0, 11), (2.0, 10), (3.0, 11), (4.0, 12), (5.0, 11), (6.0, 10)]
    memory, found = Memory(), []
    for at, available in course:
        memory = factors.fold(memory, seen(at, available))
        found.append(stops(memory, at))
    assert [True, True, True, True, False, False, True] == found


def test_while_it_lasts_each_volume_needs_the_margin() -> None:
    """Broker 2 was never at the line; while broker 1's stop lasts it needs a tenth more too."""
    memory = after(seen(0.0, 10, 11))
    assert [1, 2] == stopping(factors.decide(memory, 0.0))
    memory = after(seen(1.0, 50, 11), memory=memory)
    assert [2] == stopping(factors.decide(memory, 1.0))
    memory = after(seen(2.0, 50, 12), memory=memory)
    assert [] == stopping(factors.decide(memory, 2.0))
    assert not stops(after(seen(3.0, 50, 11), memory=memory), 3.0)


def test_no_volume_above_the_limit_stops() -> None:
    """Neither by a line that is above it on this volume, nor by the margin."""
    above = with_rules(factors, stop_line=MinAvailableRatio(0.4))
    memory = above.fold(Memory(), seen(0.0, 31))
    assert (1.0, False) == (
        above.decide(memory, 0.0).factor,
        above.decide(memory, 0.0).stop_line_reached,
    )
    assert [(30, False)] == [
        (state.stop_line_bytes, state.is_at_stop_line) for state in memory.volumes()
    ]
    memory = above.fold(memory, seen(1.0, 30))
    assert above.decide(memory, 1.0).stop_line_reached
    close = with_rules(factors, stop_line=MinAvailableBytes(29))
    memory = close.fold(Memory(), seen(0.0, 29))
    assert close.decide(memory, 0.0).stop_line_reached
    memory = close.fold(memory, seen(1.0, 31))
    assert (1.0, False) == (
        close.decide(memory, 1.0).factor,
        close.decide(memory, 1.0).stop_line_reached,
    )


def test_a_stop_ends_with_the_validity() -> None:
    """The boundary is still valid; the fallback stops nobody, and it is known when it comes."""
    memory = after(seen(60.0, 10))
    decision = factors.decide(memory, 100.0)
    assert (True, 180.0) == (decision.stop_line_reached, decision.valid_until)
    memory = fail(memory, TIMED_OUT)
    assert stops(memory, 180.0)
    expired = factors.decide(memory, math.nextafter(180.0, math.inf))
    assert (0.0, Source.FALLBACK, False) == (
        expired.factor,
        expired.source,
        expired.stop_line_reached,
    )
    assert [] == stopping(expired)


def test_a_stop_that_expired_is_over() -> None:
    """What is seen after that begins one at the line alone; up to the boundary it lasts."""
    memory = after(seen(0.0, 10))
    assert stops(after(seen(VALIDITY_S, 11), memory=memory), VALIDITY_S)
    late = math.nextafter(VALIDITY_S, math.inf)
    assert not stops(after(seen(late, 11), memory=memory), late)
    assert stops(after(seen(late, 10), memory=memory), late)


def test_an_override_lifts_it_and_does_not_hide_why() -> None:
    """Even one of 0.0; when it ends, the stop is in force again."""
    memory = replace(after(seen(0.0, 10)), override=Override(0.0, "by hand", 0.0, 60.0))
    decision = factors.decide(memory, 60.0)
    assert (0.0, Source.OVERRIDE, False) == (
        decision.factor,
        decision.source,
        decision.stop_line_reached,
    )
    assert [1] == stopping(decision)
    assert 60.0 == decision.valid_until
    assert stops(memory, math.nextafter(60.0, math.inf))


def test_disabled_stops_nobody() -> None:
    """Whatever was seen."""
    decision = Disabled().decide(after(seen(0.0, 0)), 0.0)
    assert (False, []) == (decision.stop_line_reached, stopping(decision))


def test_a_silent_broker_s_last_reading_stops_for_the_validity() -> None:
    """As it throttles; then, with a violation elsewhere, only the throttle is left."""
    memory = after(seen(0.0, 20, 10))
    for at in (60.0, VALIDITY_S):
        memory = after(whole(at, [reading(1, at, {"/d": 20})], silent=[2]), memory=memory)
        assert [2] == stopping(factors.decide(memory, at)), at
    late = VALIDITY_S + 1.0
    memory = after(whole(late, [reading(1, late, {"/d": 20})], silent=[2]), memory=memory)
    decision = factors.decide(memory, late)
    assert (0.0, Source.OBSERVATION, False) == (
        decision.factor,
        decision.source,
        decision.stop_line_reached,
    )


def test_a_fenced_broker_stops_until_it_is_forgotten() -> None:
    """As it throttles: a broker whose volume is full comes back to nobody's requests."""
    memory = after(seen(0.0, 50, 5), whole(1.0, [reading(1, 1.0, {"/d": 50})], fenced=[2]))
    memory = after(whole(900.0, [reading(1, 900.0, {"/d": 50})], fenced=[2]), memory=memory)
    assert [2] == stopping(factors.decide(memory, 900.0))
    assert [] == stopping(factors.decide(factors.forget(memory, 2), 900.0))


def test_what_is_left_after_a_forgotten_broker_needs_the_margin() -> None:
    """Broker 2 is within it and stops on; above it the stop is over."""
    memory = after(seen(0.0, 10, 11, 20))
    left = factors.forget(memory, 1)
    assert [2] == stopping(factors.decide(left, 0.0))
    assert [] == stopping(factors.decide(factors.forget(left, 2), 0.0))


def test_a_partial_observation_begins_and_ends_it() -> None:
    """As it does the throttle: the other brokers count with what they said."""
    memory = after(seen(0.0, 20, 20), partial(1.0, [reading(2, 1.0, {"/d": 10})]))
    assert [2] == stopping(factors.decide(memory, 1.0))
    memory = after(partial(2.0, [reading(2, 2.0, {"/d": 20})]), memory=memory)
    assert (False, 0.0) == (stops(memory, 2.0), factors.decide(memory, 2.0).factor)


def test_a_failed_poll_changes_nothing() -> None:
    """Neither begins nor ends it, within the validity."""
    stopped, free = after(seen(0.0, 10)), after(seen(0.0, 11))
    assert (True, False) == (
        stops(fail(stopped, TIMED_OUT), 9.0),
        stops(fail(free, TIMED_OUT), 9.0),
    )


def test_another_cluster_has_no_stop() -> None:
    """What is within the margin there was never at the line."""
    memory = factors.forget(after(seen(0.0, 10)), 1)
    other = whole(1.0, [reading(1, 1.0, {"/d": 11})], cluster_id="B")
    assert not stops(after(other, memory=memory), 1.0)


def test_a_volume_without_a_size_is_at_every_line() -> None:
    """As at every limit: nothing can be written to it."""
    for line in (MinAvailableBytes(10), MinAvailableRatio(0.1)):
        rules = with_rules(factors, stop_line=line)
        memory = rules.fold(Memory(), whole(0.0, [reading(1, 0.0, {"/d": 0}, total=0)]))
        assert rules.decide(memory, 0.0).stop_line_reached
