"""What is remembered after observations."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.throttle.fold import fold_in, forget
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Computed, Memory, Override, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind, Observation, Reading
from tests.sidecar.throttle.build import TIMED_OUT, partial, reading, whole

LIMIT = MinAvailableBytes(30)
VALIDITY_S = 120.0
REFUSED = Failure(FailureKind.CONNECT, "nothing listens")


def after(*observations: Observation, limit: Limit = LIMIT, before: Memory | None = None) -> Memory:
    """Memory after some observations."""
    memory = before or Memory()
    for observation in observations:
        memory = fold_in(memory, observation, Rules(limit, VALIDITY_S))
    return memory


def only_volume(memory: Memory) -> VolumeState:
    (state,) = memory.volumes()
    return state


def failed(at: float, failure: Failure) -> Observation:
    """A partial observation in which broker 1 failed."""
    return Observation(at, "poll", None, {1: failure})


def test_starts_with_nothing() -> None:
    """Nothing is known before the first observation, which is not the same as nothing there."""
    memory = Memory()
    assert memory.membership is None
    assert memory.cluster_id is None
    assert memory.membership_at is None
    assert memory.computed is None
    assert [] == list(memory.volumes())


def test_volumes_are_reported_by_broker_and_log_dir() -> None:
    """The order does not depend on who answered first."""
    memory = after(whole(0.0, [reading(2, 0.0, {"/b": 99, "/a": 99}), reading(1, 0.0, {"/c": 99})]))
    reported = [(known.volume.broker_id, known.volume.log_dir) for known in memory.volumes()]
    assert [(1, "/c"), (2, "/a"), (2, "/b")] == reported


def test_failure_is_retained_until_the_broker_answers() -> None:
    """A failure leaves the last volumes; it begins with its kind and ends with an answer."""
    memory = after(whole(0.0, [reading(1, 0.0, {"/d0": 99})]), failed(10.0, TIMED_OUT))
    state = memory.brokers[1]
    assert (TIMED_OUT, 10.0, 0.0) == (state.failure, state.failed_since, state.read_at)
    assert ["/d0"] == [known.volume.log_dir for known in state.volumes]
    answered = fold_in(memory, partial(20.0, [reading(1, 20.0)]), Rules(LIMIT, VALIDITY_S)).brokers[
        1
    ]
    assert (None, None, 20.0) == (answered.failure, answered.failed_since, answered.read_at)


def test_failure_of_the_same_kind_continues() -> None:
    """A new message of the same kind is reported with the first's start; another kind is new."""
    again = replace(TIMED_OUT, message="no answer within 5 s")
    memory = after(whole(0.0, [reading(1, 0.0)]), failed(10.0, TIMED_OUT), failed(20.0, again))
    assert (again, 10.0) == (memory.brokers[1].failure, memory.brokers[1].failed_since)
    memory = fold_in(memory, failed(30.0, REFUSED), Rules(LIMIT, VALIDITY_S))
    assert (REFUSED, 30.0) == (memory.brokers[1].failure, memory.brokers[1].failed_since)


def test_failure_to_read_a_log_dir_begins_with_the_first_reading_without_it() -> None:
    """The broker answers each time; the log dir stays without sizes."""
    memory = after(*(whole(at, [reading(1, at, unreadable=["/d0"])]) for at in (10.0, 20.0)))
    assert 10.0 == memory.brokers[1].failed_since


def test_failure_of_a_broker_never_seen_is_reported() -> None:
    """A member that never answered has a failure and no reading."""
    state = after(whole(0.0, silent=[1])).brokers[1]
    assert (None, TIMED_OUT, 0.0) == (state.read_at, state.failure, state.failed_since)


def test_older_reading_is_passed_over() -> None:
    """A reading older than the one remembered changes nothing; one of the same time does."""
    memory = after(whole(10.0, [reading(1, 10.0, {"/d0": 99})]))
    older = partial(11.0, [reading(1, 9.0, {"/d0": 1})])
    assert memory == fold_in(memory, older, Rules(LIMIT, VALIDITY_S))
    same = fold_in(memory, partial(11.0, [reading(1, 10.0, {"/d0": 1})]), Rules(LIMIT, VALIDITY_S))
    assert only_volume(same).violates


def test_answer_of_no_member_is_passed_over() -> None:
    """Only active brokers count, and only whole observations list them."""
    memory = after(whole(0.0, [reading(1, 0.0)]))
    assert memory == fold_in(memory, partial(1.0, [reading(9, 1.0)]), Rules(LIMIT, VALIDITY_S))
    assert Memory() == after(partial(1.0, [reading(1, 1.0)]))


def test_own_broker_is_a_member_while_it_answers() -> None:
    """Other sidecars list it as fenced or not at all. It counts while its reading is valid."""
    own = {9: "host9:9092"}
    memory = after(
        whole(0.0, [reading(1, 0.0)], fenced=[9]),
        replace(partial(1.0, [reading(9, 1.0)]), own=own),
        whole(2.0, [reading(1, 2.0)], fenced=[9]),
        whole(3.0, [reading(1, 3.0)]),
    )
    assert {1, 9} == set(memory.active)
    assert {} == memory.fenced
    at = 1.0 + VALIDITY_S
    late = [whole(at + after_s, [reading(1, at)]) for after_s in (0.0, 0.5)]
    assert [{1, 9}, {1}] == [set(after(each, before=memory).active) for each in late]
    silent, gone = replace(partial(4.0, silent=[9]), own={}), whole(5.0, [reading(1, 5.0)])
    assert {1} == set(after(silent, gone, before=memory).active)


def test_own_broker_is_a_member_after_operator_forgot_it() -> None:
    """Its last reading is gone, and its next answer counts."""
    seen = replace(partial(1.0, [reading(9, 1.0)]), own={9: "host9:9092"})
    memory = after(whole(0.0, [reading(1, 0.0)]), seen)
    memory = after(whole(2.0, [reading(1, 2.0)]), before=forget(memory, 9, None))
    assert {1} == set(memory.active)
    assert {1, 9} == set(after(seen, before=memory).active)


def test_time_to_the_limit() -> None:
    """50 bytes above the limit last 2.5 s at the window's 20 bytes/s, 1.25 s at the burst's."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d0": 120}, total=200)]),
        whole(1.0, [reading(1, 1.0, {"/d0": 120}, total=200)]),
        whole(2.0, [reading(1, 2.0, {"/d0": 80}, total=200)]),
    )
    state = only_volume(memory)
    assert (2.5, 1.25) == (state.seconds_left, state.soonest_s)


def test_time_to_the_limit_is_unknown_at_first() -> None:
    """Before a second reading no rate is known, and so no time."""
    state = only_volume(after(whole(0.0, [reading(1, 0.0, {"/d0": 99})])))
    assert (None, None) == (state.seconds_left, state.soonest_s)
    assert not state.violates


def test_violating_volume_has_no_time_left_whatever_is_rounded() -> None:
    """A ratio and the bytes that it stands for round differently on a volume of exabytes."""
    total, free = 7_520_138_011_413_494_175, 2_857_652_444_337_127_725
    limit = MinAvailableRatio(0.38)
    state = only_volume(
        after(whole(0.0, [reading(1, 0.0, {"/d0": free}, total=total)]), limit=limit)
    )
    assert free > limit.value * total
    assert state.violates
    assert 0.0 == state.seconds_left


@pytest.mark.parametrize(
    ("before", "span_s"),
    [
        (Memory(), 5.0),
        (Memory(computed=Computed(1.0, 0.0, ())), 5.0),
        (Memory(computed=Computed(0.0, 0.0, ())), 100.0),
        (Memory(override=Override(0.0, "why", 0.0, 900.0)), 100.0),
    ],
)
def test_fill_rates_over_long_are_known_while_producers_may_be_throttled(
    before: Memory, span_s: float
) -> None:
    """Otherwise a large cluster's marks would take up memory for nothing."""
    memory = before
    for second in range(101):
        seen = whole(float(second), [reading(1, float(second), {"/d": 50})])
        memory = fold_in(memory, seen, Rules(LIMIT, VALIDITY_S))
    trail = only_volume(memory).fill.trail
    assert span_s == trail[-1].read_at - trail[0].read_at


def test_fill_continues_after_offline() -> None:
    """A log dir that is online again has the rate since it was last read."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d0": 90})]),
        whole(10.0, [reading(1, 10.0, offline=["/d0"])]),
        whole(20.0, [reading(1, 20.0, {"/d0": 70})]),
    )
    state = only_volume(memory)
    assert (True, 1.0, 20.0) == (state.online, state.fill.bytes_per_second, state.read_at)


def test_nobody_knows_how_a_fenced_volume_fills() -> None:
    """Its last sizes count, but not its last rate, by which it would be at its limit long since."""
    other = [reading(2, 20.0, {"/d0": 99})]
    read = [whole(at, [reading(1, at, {"/d0": free})]) for at, free in ((0.0, 35), (10.0, 30))]
    states = list(after(*read, whole(20.0, other, fenced=[1])).volumes())
    assert [(1, 30, None), (2, 99, None)] == [
        (each.volume.broker_id, each.volume.available_bytes, each.fill.bytes_per_second)
        for each in states
    ]


def test_log_dir_that_was_gone_starts_anew() -> None:
    """A log dir that comes back after it was gone has no rate: it may be another disk."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d0": 90})]),
        whole(10.0, [reading(1, 10.0)]),
        whole(20.0, [reading(1, 20.0, {"/d0": 70})]),
    )
    assert only_volume(memory).fill.bytes_per_second is None


def test_membership_is_that_of_the_last_whole_observation() -> None:
    """A partial observation does not list the members."""
    memory = after(whole(0.0, [reading(1, 0.0)], fenced=[2]), partial(10.0, [reading(1, 10.0)]))
    assert memory.membership is not None
    assert {1} == set(memory.membership.active)
    assert {2} == set(memory.membership.fenced or ())
    assert 0.0 == memory.membership_at


sizes = st.dictionaries(st.sampled_from(["/d0", "/d1", "/d2"]), st.integers(0, 100), max_size=3)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(1, 4), st.one_of(st.none(), sizes), max_size=4),
            st.permutations([1, 2, 3, 4]),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_order_of_answers_does_not_matter(
    polls: list[tuple[dict[int, dict[str, int] | None], list[int], bool]],
) -> None:
    """Within an observation it does not matter who answered first, nor whose volume came first."""
    one, other = Memory(), Memory()
    for number, (said, order, fenced) in enumerate(polls):
        at = 10.0 * number
        readings = [reading(key, at, free) for key, free in said.items() if free is not None]
        silent = [key for key, free in said.items() if free is None]
        listed = set(order[:2]) - set(said) if fenced else None
        straight = whole(at, readings, silent=silent, fenced=listed)
        shuffled = replace(
            straight,
            answers={key: _turned(straight.answers[key]) for key in order if key in said},
        )
        one = fold_in(one, straight, Rules(LIMIT, VALIDITY_S))
        other = fold_in(other, shuffled, Rules(LIMIT, VALIDITY_S))
        assert one == other
        assert list(one.volumes()) == list(other.volumes())


def _turned(answer: Reading | Failure) -> Reading | Failure:
    """The same answer with its volumes in the other order."""
    if isinstance(answer, Failure):
        return answer
    return replace(answer, volumes=tuple(reversed(answer.volumes)))
