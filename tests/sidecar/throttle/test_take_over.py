"""The memory of an earlier run that is read late, beside what was read since the start."""

from dataclasses import replace

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Contents, Memory
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, whole

LIMIT = VolumeLimit(Rules(MinAvailableBytes(30), 100.0), 1.0)


def test_newer_news_counts() -> None:
    """Broker 1 has answered since; of broker 2 only the earlier run knows."""
    old, new = Contents(frozenset(), 40.0), Contents(frozenset(), 51.0)
    past = LIMIT.fold(
        Memory(), whole(40.0, [reading(1, 40.0, {"/d": 20}), reading(2, 40.0, {"/d": 90})])
    )
    past = replace(past, contents={(1, "/d"): old, (2, "/d"): old})
    since = LIMIT.fold(Memory(), whole(50.0, [reading(1, 50.0, {"/d": 60})], silent=[2]))
    since = replace(since, contents={(1, "/d"): new})
    memory = LIMIT.take_over(past, since, {1})
    assert {1: 50.0, 2: 40.0} == {key: each.read_at for key, each in memory.brokers.items()}
    assert {(1, "/d"): new, (2, "/d"): old} == memory.contents


def test_what_capabilities_retained() -> None:
    """What the earlier run kept is read for the first time, so it counts."""
    past = Memory(retained={"ids": ["old"]})
    memory = LIMIT.take_over(past, Memory(retained={"ids": [], "resets": [1]}), set())
    assert {"ids": ["old"], "resets": [1]} == memory.retained


def test_a_broker_that_was_full_and_is_silent_since_throttles_at_once() -> None:
    """The factor does not wait for the next poll."""
    past = LIMIT.fold(Memory(), whole(40.0, [reading(1, 40.0, {"/d": 20})]))
    since = LIMIT.fold(Memory(), whole(50.0, silent=[1]))
    assert 1.0 == LIMIT.decide(since, 50.0).factor
    assert 0.0 == LIMIT.decide(LIMIT.take_over(past, since, set()), 50.0).factor


def test_a_fenced_broker_that_was_full_throttles_at_once() -> None:
    """What was computed since, without it, is replaced."""
    full = [reading(1, 40.0, {"/d": 90}), reading(2, 40.0, {"/d": 20})]
    past = LIMIT.fold(Memory(), whole(40.0, full))
    past = LIMIT.fold(past, whole(45.0, [reading(1, 45.0, {"/d": 90})], fenced=[2]))
    since = LIMIT.fold(Memory(), whole(50.0, [reading(1, 50.0, {"/d": 90})], fenced=[2]))
    assert 1.0 == LIMIT.decide(since, 50.0).factor
    assert 0.0 == LIMIT.decide(LIMIT.take_over(past, since, {1}), 50.0).factor


def test_before_any_answer_the_earlier_list_of_brokers_counts() -> None:
    """And its cluster stays known when the first list has no id."""
    past = LIMIT.fold(Memory(), whole(40.0, [reading(1, 40.0, {"/d": 20})]))
    memory = LIMIT.take_over(past, Memory(), set())
    assert past.membership == memory.membership
    since = LIMIT.fold(Memory(), whole(50.0, silent=[1], cluster_id=None))
    assert "A" == LIMIT.take_over(past, since, set()).cluster_id


def test_a_broker_that_was_missing_before_is_back() -> None:
    """If it leaves again, it is missing from then on."""
    past = LIMIT.fold(
        Memory(), whole(40.0, [reading(1, 40.0, {"/d": 90}), reading(2, 40.0, {"/d": 20})])
    )
    past = LIMIT.fold(past, whole(45.0, [reading(1, 45.0, {"/d": 90})]))
    assert 45.0 == past.brokers[2].missing_since
    since = LIMIT.fold(Memory(), whole(50.0, [reading(1, 50.0, {"/d": 90})], silent=[2]))
    assert LIMIT.take_over(past, since, {1}).brokers[2].missing_since is None
