"""A state whose disk hangs at the start: what is published without it, and once it is read."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sidecar.control.board import Board, PersistedState
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import TIMED_OUT, FakeClock, reading, whole

VALIDITY_S = 120.0
START = 1000.0
FULL, ROOM = 10, 90
factors = VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S), fallback=1.0)


def observed(
    at: float, seen: dict[int, int | None], fenced: Collection[int] | None = (), cluster: str = "c"
) -> Observation:
    """Broker -> its available bytes of 100; None: it did not answer."""
    answers = [reading(key, at, {"/d": free}) for key, free in seen.items() if free is not None]
    silent = [key for key, free in seen.items() if free is None]
    return whole(at, answers, silent=silent, fenced=fenced, cluster_id=cluster)


def past(*observations: Observation, override: Override | None = None) -> PersistedState:
    """The state of an earlier run."""
    memory = Memory(override=override)
    for observation in observations:
        memory = factors.fold(memory, observation)
    return PersistedState(memory, 0.0, Source.OBSERVATION, 0.0)


FENCED_FULL = past(observed(0.0, {1: ROOM, 2: FULL}), observed(START - 1.0, {1: ROOM}, [2]))
"""Broker 2 was full when it went down, just before the sidecar did."""


class Daemon:
    """A board that started while its state could not be read."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.board = Board(factors, self.clock, unread="the disk hangs")

    def sees(
        self, after_s: float, seen: dict[int, int | None], fenced: Collection[int] | None = ()
    ) -> None:
        """It polls the cluster."""
        self.clock.now = START + after_s
        self.board.observe(observed(self.clock.now, seen, fenced))

    @property
    def publishes(self) -> tuple[float, bool]:
        """The factor, and whether readers get it."""
        return self.board.snapshot.decision.factor, not self.board.withheld


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


# Before the state is read.


def test_without_a_hanging_disk_nothing_is_withheld() -> None:
    """The fallback of a first start is an answer."""
    assert not Board(factors, FakeClock(START)).withheld


def test_nobody_is_released_before_the_first_observation(daemon: Daemon) -> None:
    """Readers get no fallback, and so keep what they were told before."""
    assert (1.0, False) == daemon.publishes
    daemon.sees(1.0, {1: ROOM, 2: None})
    assert (1.0, False) == daemon.publishes


def test_all_brokers_with_room_need_no_memory(daemon: Daemon) -> None:
    """Nothing that is remembered could throttle."""
    daemon.sees(1.0, {1: ROOM, 2: ROOM})
    assert (1.0, True) == daemon.publishes


def test_a_violation_is_published(daemon: Daemon) -> None:
    """Whatever else is remembered, it can't release that."""
    daemon.sees(1.0, {1: ROOM, 2: FULL})
    assert (0.0, True) == daemon.publishes


@pytest.mark.parametrize("fenced", [None, [2]])
def test_a_broker_that_may_be_full_and_fenced(daemon: Daemon, fenced: list[int] | None) -> None:
    """Nobody is released for the validity, also where a cluster can't list who is fenced."""
    daemon.sees(1.0, {1: ROOM}, fenced)
    assert (1.0, False) == daemon.publishes
    daemon.sees(VALIDITY_S, {1: ROOM}, fenced)
    assert (1.0, False) == daemon.publishes
    daemon.sees(VALIDITY_S + 0.1, {1: ROOM}, fenced)
    assert (1.0, True) == daemon.publishes


def test_a_fenced_broker_that_had_room_since_the_start(daemon: Daemon) -> None:
    """What it had before does not matter."""
    daemon.sees(1.0, {1: ROOM, 2: ROOM})
    daemon.sees(2.0, {1: ROOM}, [2])
    assert (1.0, True) == daemon.publishes
    daemon.board.take_over(FENCED_FULL)
    assert (1.0, True) == daemon.publishes


def test_an_operator_decides(daemon: Daemon) -> None:
    """An override is published at once."""
    daemon.board.set_override(Override(1.0, "x", START, START + 60.0))
    assert (1.0, True) == daemon.publishes


def test_observe_mode_withholds_as_enforce_mode_would() -> None:
    """Its factor of 1.0 throttles nobody in any case, and its document says what would apply."""
    observing = replace(factors, is_enforced=False)
    board = Board(observing, FakeClock(START), unread="the disk hangs")
    assert board.withheld
    board.observe(observed(START, {1: FULL}))
    assert not board.withheld


# Once it is read.


def test_a_fenced_full_broker_throttles_again(daemon: Daemon) -> None:
    """As if the state had been read at the start."""
    daemon.sees(1.0, {1: ROOM}, [2])
    daemon.board.take_over(FENCED_FULL)
    assert (0.0, True) == daemon.publishes
    daemon.sees(500.0, {1: ROOM}, [2])
    assert (0.0, True) == daemon.publishes
    daemon.sees(501.0, {1: ROOM, 2: ROOM})
    assert (1.0, True) == daemon.publishes


def test_before_any_observation_it_counts_as_at_the_start(daemon: Daemon) -> None:
    """Polls have failed since."""
    daemon.board.fail(TIMED_OUT)
    daemon.board.take_over(FENCED_FULL)
    assert (0.0, True) == daemon.publishes
    assert (1, TIMED_OUT) == (
        daemon.board.snapshot.memory.failed_polls,
        daemon.board.snapshot.memory.failure,
    )


def test_a_silent_broker_counts_as_remembered(daemon: Daemon) -> None:
    """For its validity."""
    daemon.sees(1.0, {1: ROOM, 2: None})
    daemon.board.take_over(past(observed(START - 1.0, {1: ROOM, 2: FULL})))
    assert (0.0, True) == daemon.publishes
    assert TIMED_OUT == daemon.board.snapshot.memory.brokers[2].failure


def test_a_newer_reading_counts(daemon: Daemon) -> None:
    """Broker 2 was full before the start, and has room since."""
    daemon.sees(1.0, {1: ROOM, 2: ROOM})
    daemon.board.take_over(past(observed(START - 1.0, {1: ROOM, 2: FULL})))
    assert (1.0, True) == daemon.publishes


def test_without_a_usable_state_all_goes_on(daemon: Daemon) -> None:
    """Such as on a disk whose file is damaged."""
    daemon.board.take_over(None)
    assert (1.0, True) == daemon.publishes


def test_of_another_cluster_only_the_override_is_taken(daemon: Daemon) -> None:
    """The one that answers counts."""
    daemon.sees(1.0, {1: ROOM})
    override = Override(0.5, "x", START - 10.0, START + 60.0)
    daemon.board.take_over(
        past(observed(START - 1.0, {1: FULL, 2: FULL}, cluster="other"), override=override)
    )
    assert override == daemon.board.snapshot.decision.override
    daemon.board.set_override(None)
    assert (1.0, True) == daemon.publishes


OF_BEFORE = Override(0.5, "x", START - 10.0, START + 60.0)
SINCE = Override(0.25, "y", START, START + 60.0)


@pytest.mark.parametrize(
    ("changes", "applies"), [([], OF_BEFORE), ([SINCE], SINCE), ([SINCE, None], None)]
)
def test_the_last_override_applies(
    daemon: Daemon, changes: list[Override | None], applies: Override | None
) -> None:
    """An operator's change since the start is newer than the state, its end too."""
    for each in changes:
        daemon.board.set_override(each)
    daemon.board.take_over(past(override=OF_BEFORE))
    assert applies == daemon.board.snapshot.memory.override


def test_what_was_forgotten_since_stays_forgotten(daemon: Daemon) -> None:
    """The operator did not know whether it was full, and the sidecar neither."""
    daemon.sees(1.0, {1: ROOM}, [2])
    daemon.board.forget(2)
    daemon.board.take_over(FENCED_FULL)
    assert (1.0, True) == daemon.publishes


@given(
    st.lists(st.tuples(st.sampled_from([FULL, ROOM, None, "fenced"]), st.booleans()), min_size=1),
    st.lists(st.tuples(st.sampled_from([FULL, ROOM, None, "fenced"]), st.booleans())),
)
def test_late_or_in_time(
    before: list[tuple[int | str | None, bool]], since: list[tuple[int | str | None, bool]]
) -> None:
    """Once the state is read, the decision is the one of a start that read it.

    Except for a broker with room that was fenced and is silent since: it was forgotten when it was
    fenced, but only by a sidecar that knew it. The other one uses its last reading while that is
    valid.
    """

    def observations(
        start: float, events: list[tuple[int | str | None, bool]]
    ) -> list[Observation]:
        found = []
        for second, (what, is_full) in enumerate(events):
            seen: dict[int, int | None] = {1: FULL if is_full else ROOM}
            if not isinstance(what, str):
                seen[2] = what
            fenced = [2] if isinstance(what, str) else []
            found.append(observed(start + second, seen, fenced))
        return found

    state = past(*observations(START - 100.0, before))
    clock = FakeClock(START)
    in_time, late = Board(factors, clock, restored=state), Board(factors, clock, unread="hangs")
    for observation in observations(START, since):
        clock.now = observation.observed_at
        in_time.observe(observation)
        late.observe(observation)
    is_forgotten = False
    for what, _ in since:
        is_forgotten = what == "fenced" or (is_forgotten and what is None)
    assume(not is_forgotten or since[-1][0] == "fenced")
    late.take_over(state)
    one, other = in_time.snapshot.decision, late.snapshot.decision
    assert (one.factor, one.source) == (other.factor, other.source)
    assert [each.volume for each in one.violations] == [each.volume for each in other.violations]
