"""The factor's whole life on the board, against the slow reference."""

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sidecar.control.board import Board, PersistedState, Snapshot
from sidecar.throttle.decision import Decision, VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Override, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind, OfflineLogDir, Reading, Volume
from tests.sidecar.throttle.build import LONG_MAX, FakeClock, partial, whole
from tests.sidecar.throttle.reference import (
    Cleared,
    Event,
    Failed,
    Forgotten,
    InForce,
    Overridden,
    Reference,
    Restarted,
    Seen,
)

BROKERS = (1, 2, 3, 4)
SIZES: Mapping[str, tuple[int, int]] = {
    "roomy": (100, 31),
    "at the limit": (100, 30),
    "full": (100, 29),
    "above the margin": (100, 12),
    "in the margin": (100, 11),
    "at the stop line": (100, 10),
    "empty file system": (0, 0),
    "huge": (LONG_MAX, LONG_MAX),
}
"""Total and available bytes; of the limits below, 30 bytes and 30 % of 100 bytes are the same.
So are the stop lines of 10 bytes and 10 %, and those above the limit."""

changes = st.lists(
    st.tuples(
        st.sampled_from(BROKERS),
        st.one_of(
            st.sampled_from(["answers", "is silent", "is fenced", "is unregistered"]),
            st.tuples(
                st.sampled_from(["/d0", "/d1"]),
                st.sampled_from([*SIZES, "offline", "unreadable", "gone"]),
            ),
        ),
    ),
    max_size=2,
)
"""What becomes of a broker, or of one of its log dirs, before a poll.

Clusters that change a little from poll to poll get further than ones that are new at each: every
violation or missing member hides whatever else is wrong with the same observation.
"""
Changes = list[tuple[int, str | tuple[str, str]]]
times = st.tuples(
    st.sampled_from(["soon", "soon", "later", "below", "at", "above"]), st.integers(0, 7)
)
"""A step, or just below, at or just above one of the boundaries to come."""


class Life(RuleBasedStateMachine):
    """One sidecar's life, event by event, compared with the reference after each."""

    @initialize(
        limit=st.sampled_from([MinAvailableBytes(30), MinAvailableRatio(0.3)]),
        validity_s=st.sampled_from([4.0, 120.0]),
        fallback=st.sampled_from([0.0, 0.5, 1.0]),
        stop_line=st.sampled_from(
            [
                None,
                MinAvailableBytes(10),
                MinAvailableRatio(0.1),
                MinAvailableBytes(40),
                MinAvailableRatio(0.4),
            ]
        ),
        lists_fenced=st.sampled_from(["always", "never", "sometimes"]),
        brokers=st.integers(1, 4),
    )
    def begin(
        self,
        *,
        limit: Limit,
        validity_s: float,
        fallback: float,
        stop_line: Limit | None,
        lists_fenced: str,
        brokers: int,
    ) -> None:
        self.states = dict.fromkeys(BROKERS[:brokers], "answers")
        self.log_dirs = {broker_id: {"/d0": "roomy"} for broker_id in self.states}
        self.lists_fenced = lists_fenced
        self.clock = FakeClock(1000.0)
        self.factors = VolumeLimit(Rules(limit, validity_s, stop_line), fallback)
        self.reference = Reference(limit, validity_s, fallback, stop_line)
        self.board = Board(self.factors, self.clock)
        self.readings: dict[int, Reading] = {}

    # Events.

    @rule(
        when=times,
        changes=changes,
        can_list=st.booleans(),
        cluster_id=st.sampled_from(["A", "A", "A", "A", "A", "A", "B", None]),
        lag_s=st.sampled_from([0.0, 0.25]),
    )
    def whole_poll(
        self,
        *,
        when: tuple[str, int],
        changes: Changes,
        can_list: bool,
        cluster_id: str | None,
        lag_s: float,
    ) -> None:
        now = self.after(when)
        self.become(changes)
        can_list = self.lists_fenced == "always" or (can_list and self.lists_fenced != "never")
        before = dict(self.readings)
        observation = whole(
            now,
            [self.says(broker_id, now - lag_s) for broker_id in self.those("answers")],
            silent=self.those("is silent"),
            fenced=self.those("is fenced") if can_list else None,
            cluster_id=cluster_id,
        )
        self.happens(Seen(observation), lambda: self.board.observe(observation))
        failure = self.board.snapshot.memory.failure
        if failure is not None and failure.kind is FailureKind.OTHER_CLUSTER:
            self.readings = before

    @precondition(lambda self: self.board.snapshot.memory.membership is not None)
    @rule(
        when=times,
        changes=changes,
        asked=st.sets(st.sampled_from(BROKERS)),
        lag_s=st.sampled_from([0.0, 0.25]),
    )
    def partial_poll(
        self, when: tuple[str, int], changes: Changes, asked: set[int], lag_s: float
    ) -> None:
        now = self.after(when)
        self.become(changes)
        membership = self.board.snapshot.memory.membership
        asked &= set() if membership is None else set(membership.active)
        up = asked & set(self.those("answers"))
        observation = partial(
            now, [self.says(broker_id, now - lag_s) for broker_id in sorted(up)], silent=asked - up
        )
        self.happens(Seen(observation), lambda: self.board.observe(observation))

    @rule(when=times)
    def failed_poll(self, when: tuple[str, int]) -> None:
        failure = Failure(FailureKind.CONNECT, "nothing listens")
        self.happens(Failed(self.after(when)), lambda: self.board.fail(failure))

    @rule(
        when=times,
        factor=st.sampled_from([0.0, 0.25, 1.0]),
        for_s=st.sampled_from([None, 1.0, 60.0]),
    )
    def override(self, when: tuple[str, int], factor: float, for_s: float | None) -> None:
        now = self.after(when)
        if for_s is None:
            self.happens(Cleared(now), lambda: self.board.set_override(None))
            return
        override = Override(factor, "maintenance", now, now + for_s)
        self.happens(
            Overridden(now, factor, "maintenance", now + for_s),
            lambda: self.board.set_override(override),
        )

    @rule(
        when=times,
        broker_id=st.sampled_from(BROKERS),
        log_dir=st.sampled_from([None, "/d0", "/d1"]),
    )
    def forget(self, when: tuple[str, int], broker_id: int, log_dir: str | None) -> None:
        now = self.after(when)
        self.happens(
            Forgotten(now, broker_id, log_dir),
            lambda: self.board.forget(broker_id, log_dir),
        )

    @rule(when=times, with_state=st.booleans())
    def restart(self, when: tuple[str, int], with_state: bool) -> None:
        self.clock.now = self.after(when)
        self.reference.events.append(Restarted(self.clock.now, with_state))
        before, decision = self.board.snapshot, self.board.snapshot.decision
        restored = PersistedState(before.memory, decision.factor, decision.source, before.since)
        self.board = Board(self.factors, self.clock, restored=restored if with_state else None)
        self.agrees(self.reference.at(self.clock.now))

    # Invariants.

    @invariant()
    def remembers_no_more_than_was_reported(self) -> None:
        memory = self.board.snapshot.memory
        for broker_id, state in memory.brokers.items():
            last = self.readings.get(broker_id)
            reported = (
                {volume.log_dir for volume in last.volumes}
                | {each.log_dir for each in last.offline}
                if last is not None
                else set()
            )
            assert {known.volume.log_dir for known in state.volumes} <= reported
            assert all(len(known.fill.trail) <= 45 for known in state.volumes)

    @invariant()
    def factor_is_one_that_may_be(self) -> None:
        decision = self.board.snapshot.decision
        override = decision.override.factor if decision.override else 1.0
        assert decision.factor in {0.0, 1.0, self.factors.fallback, override}

    @invariant()
    def nothing_stops_that_does_not_throttle(self) -> None:
        decision = self.board.snapshot.decision
        assert not decision.stop_line_reached or (decision.factor, decision.source) == (
            0.0,
            "observation",
        )

    def teardown(self) -> None:
        if hasattr(self, "reference"):
            assert self.reference.generation() == self.board.snapshot.generation
            assert self.reference.fallbacks() == self.board.tally.fallback_applied

    # The parts of it.

    def after(self, when: tuple[str, int]) -> float:
        """Returns the time of the next event."""
        kind, which = when
        now = self.clock.now
        validity_s = self.factors.rules.validity_s
        steps = {"soon": 0.25 * which, "later": validity_s * which / 4}
        if kind in steps:
            return now + steps[kind]
        memory = self.board.snapshot.memory
        boundaries = [answer.read_at + validity_s for answer in self.readings.values()]
        if memory.computed is not None:
            boundaries.append(memory.computed.computed_at + validity_s)
        if memory.membership_at is not None:
            boundaries.append(memory.membership_at + validity_s)
        if memory.override is not None:
            boundaries.append(memory.override.ends_at)
        to_come = sorted({boundary for boundary in boundaries if boundary > now})
        if not to_come:
            return now
        boundary = to_come[which % len(to_come)]
        towards = {"below": -math.inf, "at": boundary, "above": math.inf}
        return math.nextafter(boundary, towards[kind])

    def become(self, changes: Changes) -> None:
        """Lets brokers and log dirs change."""
        for broker_id, change in changes:
            if broker_id not in self.states:
                continue
            if isinstance(change, str):
                self.states[broker_id] = change
            else:
                log_dir, size = change
                self.log_dirs[broker_id][log_dir] = size

    def those(self, state: str) -> list[int]:
        """The brokers in a state."""
        return [broker_id for broker_id, has in self.states.items() if has == state]

    def says(self, broker_id: int, read_at: float) -> Reading:
        """A broker's answer, no older than its last one."""
        if broker_id in self.readings:
            read_at = max(read_at, self.readings[broker_id].read_at)
        log_dirs = self.log_dirs[broker_id].items()
        volumes = [Volume(broker_id, key, *SIZES[size]) for key, size in log_dirs if size in SIZES]
        offline = [
            OfflineLogDir(key, size, is_written=size == "unreadable")
            for key, size in log_dirs
            if size in {"offline", "unreadable"}
        ]
        self.readings[broker_id] = Reading(broker_id, read_at, tuple(volumes), tuple(offline))
        return self.readings[broker_id]

    def happens(self, event: Event, publish: Callable[[], Snapshot]) -> None:
        """Lets time pass until an event, then lets it happen."""
        if self.reference.events:
            for now, expected in self.reference.expiries(event.at):
                self.clock.now = now
                self.board.update(lambda memory: memory)
                self.agrees(expected)
        self.clock.now = event.at
        self.reference.events.append(event)
        publish()
        self.agrees(self.reference.at(event.at))

    def agrees(self, expected: InForce) -> None:
        """What is published is what the reference says, and it is honest about its end."""
        decision = self.board.snapshot.decision
        assert expected.factor == decision.factor
        assert expected.source == decision.source
        assert expected.violating == log_dirs(decision.violations)
        assert expected.stopping == log_dirs(decision.at_stop_line)
        assert expected.stop == decision.stop_line_reached
        assert (expected.override is None) == (decision.override is None)
        assert self.reference.failed_polls() == self.board.snapshot.memory.failed_polls
        until = math.inf if decision.valid_until is None else decision.valid_until
        assert expected.until == until
        if decision.valid_until is not None:
            memory = self.board.snapshot.memory
            last = self.factors.decide(memory, until)
            after = self.factors.decide(memory, math.nextafter(until, math.inf))
            assert identity(decision) == identity(last)
            assert identity(decision) != identity(after)


def log_dirs(states: Sequence[VolumeState]) -> frozenset[tuple[int, str]]:
    return frozenset((state.volume.broker_id, state.volume.log_dir) for state in states)


def identity(decision: Decision) -> tuple[object, ...]:
    return (
        decision.factor,
        decision.source,
        decision.override,
        log_dirs(decision.violations),
        log_dirs(decision.at_stop_line),
    )


# A failing life takes longer to be made short than a test may run.
pytestmark = pytest.mark.timeout(300)

TestLife = Life.TestCase
TestLife.settings = settings(stateful_step_count=20)
