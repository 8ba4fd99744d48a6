"""What one sidecar has seen is what another receives, in its own time."""

import asyncio
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.peers.observations import MOST_PARTIAL, ObservationLog, ObservationPage, received
from sidecar.volumes import (
    Failure,
    FailureKind,
    Membership,
    Observation,
    OfflineLogDir,
    Reading,
    Volume,
)
from tests.sidecar.throttle.build import FakeClock

ids, sizes, names = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.text(max_size=9)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Of any brokers, complete at 100.0 s, asked some whole milliseconds before."""
    answers: dict[int, Reading | Failure] = {}
    for broker in draw(st.lists(ids, max_size=3, unique=True)):
        if draw(st.booleans()):
            answers[broker] = Failure(draw(st.sampled_from(FailureKind)), draw(names))
            continue
        volumes = draw(
            st.lists(st.builds(Volume, st.just(broker), names, sizes, sizes), max_size=3)
        )
        offline = draw(st.lists(st.builds(OfflineLogDir, names, names, st.booleans()), max_size=2))
        read_at = 100.0 - draw(st.integers(0, 60_000)) / 1000
        cordoned = draw(st.lists(names, max_size=2))
        answers[broker] = Reading(broker, read_at, tuple(volumes), tuple(offline), tuple(cordoned))
    addresses = st.dictionaries(ids, names, max_size=3)
    members = st.builds(Membership, st.none() | names, addresses, st.none() | addresses)
    return Observation(100.0, "poll", draw(st.none() | members), answers)


def read(log: ObservationLog, after: int | None = None) -> ObservationPage:
    return msgspec.json.decode(log.page(after), type=ObservationPage)


@given(observations(), st.integers(0, 3_600_000), st.floats(-1e9, 1e9))
def test_it_is_received_as_it_was_seen(seen: Observation, age_ms: int, now: float) -> None:
    """Whatever the receiver's clock says: ages are exact to a millisecond, and never smaller."""
    clock = FakeClock(100.0)
    log = ObservationLog("a1", clock)
    log.add(seen)
    clock.now = 100.0 + age_ms / 1000
    (sent,) = read(log).observations
    found = received(sent, "a1", now)
    assert (seen.membership, "a1") == (found.membership, found.origin)
    age_s = now - found.observed_at
    assert age_ms / 1000 - 1e-5 <= age_s <= age_ms / 1000 + 0.0011 + abs(now) * 1e-12
    assert seen.answers.keys() == found.answers.keys()
    for broker, answer in seen.answers.items():
        got = found.answers[broker]
        if isinstance(answer, Failure) or isinstance(got, Failure):
            assert answer == got
            continue
        assert (answer.volumes, answer.offline, answer.cordoned) == (
            got.volumes,
            got.offline,
            got.cordoned,
        )
        before_s = found.observed_at - got.read_at
        assert math.isclose(100.0 - answer.read_at, before_s, abs_tol=0.002 + abs(now) * 1e-12)


def whole(at: float) -> Observation:
    return Observation(at, "poll", Membership("A", {1: "h:1"}), {})


def partial(at: float) -> Observation:
    return Observation(at, "poll", None, {1: Reading(1, at, ())})


def test_a_page_has_what_is_new() -> None:
    """The last whole observation and the partial ones since, or those after a place."""
    clock = FakeClock(9.0)
    log = ObservationLog("a1", clock)
    assert ("a1", 0, []) == (read(log).origin, read(log).next, read(log).observations)
    for observation in (partial(1.0), whole(2.0), partial(3.0), partial(4.0)):
        log.add(observation)
    assert [7000, 6000, 5000] == [each.age_ms for each in read(log).observations]
    assert [6000, 5000] == [each.age_ms for each in read(log, 2).observations]
    assert [] == read(log, 4).observations
    assert 4 == read(log, 4).next
    log.plan(12.5)
    assert 3500 == read(log).due_ms
    log.plan(1.0)
    assert 0 == read(log).due_ms


def test_partial_ones_are_bounded() -> None:
    """The oldest go first."""
    log = ObservationLog("a1", FakeClock())
    for number in range(MOST_PARTIAL + 5):
        log.add(partial(float(number)))
    assert MOST_PARTIAL == len(read(log).observations)


@pytest.mark.looptime
async def test_a_follower_waits_for_the_next() -> None:
    """Not for what it has missed, and any number of them wait."""
    log = ObservationLog("a1", asyncio.get_running_loop().time)
    log.add(whole(0.0))
    async with asyncio.timeout(1.0):
        await log.wait_for_more(0)
    waiting = [asyncio.create_task(log.wait_for_more(1)) for _ in range(3)]
    await asyncio.sleep(5.0)
    assert not any(each.done() for each in waiting)
    assert 0.0 == log.followed_at
    log.add(partial(5.0))
    async with asyncio.timeout(1.0):
        await asyncio.gather(*waiting)
