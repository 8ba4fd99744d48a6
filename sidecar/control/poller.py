"""The poller, which repeats: observe, publish, schedule the next poll, and wait.

One poll runs at a time, each with one deadline. A failed poll never ends the poller, not even if it
fails by a bug, because a sidecar that stopped polling would fall back after the validity.

Example: interval 60 s, minimum 1 s: polls at 0 s and 1 s bring the first fill rates. Nothing fills,
so the next poll comes at 61 s.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.control.board import Board, Snapshot
from sidecar.throttle.memory import Memory
from sidecar.throttle.schedule import (
    NextPoll,
    OwnPolls,
    Timing,
    next_followers_poll,
    next_poll,
)
from sidecar.volumes import Failure, FailureKind, Observation, Reading, VolumeSource

_log = logging.getLogger(__name__)

_BUG: Final = Failure(FailureKind.UNEXPECTED, "the poll failed unexpectedly: see the log")

_GRACE_S: Final = 1.0
"""How much longer than its deadline a source may take, to close silent connections."""

_HAIR_S: Final = 1e-6
"""Shorter waits than the resolution of the clock would never end."""

_RENEWALS: Final = 2
"""Observers read a broker if its last reading is not older than this number of polls."""

_UNLISTED_POLLS: Final = 2
"""After this number of polls without it, the log says that the own broker is in no list."""

_LOOK_S: Final = 0.25
"""How often the poller checks whether this sidecar has to poll."""
_STEERING_S: Final = 2.0
"""How often it checks which volumes steer client quotas."""


def always() -> bool:
    """Return True: without observers, every sidecar polls."""
    return True


@dataclass(slots=True)
class Poller:
    """Polls a source and publishes what follows on a board.

    Attributes:
        source: the source of observations.
        board: publishes the decisions.
        timing: how often to poll.
        polled: called with the duration of each poll, seconds.
        observed: called with each observation after it was published; must not raise.
        is_wanted: whether this sidecar has to poll the cluster. Otherwise observers do, and it
            polls only the brokers that they do not see, and its own.
        planned: called with the latest end of the next poll, steady seconds; for followers.
        own_broker: the id of the broker beside this sidecar; None if it is not known.
    """

    source: VolumeSource
    board: Board
    timing: Timing
    polled: Callable[[float], None]
    observed: Callable[[Observation], None]
    is_wanted: Callable[[], bool] = always
    planned: Callable[[float], None] = lambda _due_at: None
    own_broker: int | None = None
    _asked_at: dict[int, float] = field(default_factory=dict, init=False)
    _read_at: dict[int, float] = field(default_factory=dict, init=False)
    # The last plan, for this memory: nothing is due before.
    _planned: Memory | None = field(default=None, init=False)
    _next_at: float = field(default=0.0, init=False)
    # The brokers that only observers reach, and why.
    _spots: dict[int, FailureKind] = field(default_factory=dict, init=False)
    # After how many polls in a row no list had the broker beside this sidecar.
    _unlisted: int = field(default=0, init=False)
    _bug: type[Exception] | None = field(default=None, init=False)

    async def run(self) -> None:
        """Poll until cancelled."""
        brokers: frozenset[int] | None = None
        deadline_s = self.timing.deadline_s
        whole_started = self.board.now()
        while True:
            if not self.is_wanted():
                # Observers' observations are folded in meanwhile. The first poll after that is
                # whole.
                brokers = None
                await self._poll_unseen()
                await asyncio.sleep(_LOOK_S)
                continue
            started = self.board.now()
            if brokers is None:
                whole_started = started
            snapshot = await self.poll(brokers, deadline_s)
            self.polled(self.board.now() - started)
            plan = await self._wait(snapshot, whole_started)
            brokers = plan.brokers
            # A poll that failed may have needed longer. A deadline that stayed short would never
            # see a cluster that is slow to list its brokers.
            failed = brokers is None and snapshot.memory.failed_polls > 0
            timing = self.timing
            deadline_s = timing.deadline_s if failed else timing.deadline_after(plan.delay_s)

    async def _poll_unseen(self) -> None:
        """Poll the brokers that are due although observers poll the cluster, if there are any."""
        now, memory = self.board.now(), self.board.snapshot.memory
        if memory is self._planned and now < self._next_at:
            return
        polls = OwnPolls(self.own_broker, self._asked_at, self._read_at)
        delay_s, brokers = next_followers_poll(memory, self.timing, now, polls)
        if delay_s > 0.0:
            self._planned, self._next_at = memory, now + delay_s
            return
        self._planned = None
        known = {*memory.active, self.own_broker}
        self._asked_at = {key: at for key, at in self._asked_at.items() if key in known}
        self._read_at = {key: at for key, at in self._read_at.items() if key in known}
        self._asked_at.update(dict.fromkeys(brokers, now))
        # A broker that hangs must not delay the poll of another one near its limit.
        polls = OwnPolls(self.own_broker, self._asked_at, self._read_at)
        delay_s, _ = next_followers_poll(memory, self.timing, now, polls)
        await self.poll(brokers, self.timing.deadline_after(delay_s))

    async def _wait(self, snapshot: Snapshot, whole_started: float) -> NextPoll:
        """Wait until the next poll is due, and return the brokers to ask.

        A release without a poll, such as the end of an override, may make the poll due earlier, and
        so do volumes that begin to steer client quotas. No change delays it.
        """
        steering = self.board.readers.steering
        plan = self._plan(snapshot, whole_started)
        due = self.board.now() + plan.delay_s
        self.planned(due + self.timing.deadline_after(plan.delay_s))
        while (left_s := due - self.board.now()) > _HAIR_S and not self.board.closed:
            generation = snapshot.generation
            snapshot = await self.board.wait_for_change(generation, min(left_s, _STEERING_S))
            if snapshot.generation == generation and self.board.readers.steering == steering:
                continue
            steering = self.board.readers.steering
            sooner = self._plan(snapshot, whole_started)
            if self.board.now() + sooner.delay_s < due:
                plan, due = sooner, self.board.now() + sooner.delay_s
                self.planned(due + self.timing.deadline_after(plan.delay_s))
        return plan

    def _plan(self, snapshot: Snapshot, whole_started: float) -> NextPoll:
        now = self.board.now()
        since_whole_s = now - whole_started
        return next_poll(
            snapshot.memory,
            self.timing,
            now,
            since_whole_s,
            snapshot.released,
            soft_limit=snapshot.rules.soft_limit,
            steering=self.board.readers.steering,
        )

    async def poll(self, brokers: frozenset[int] | None, deadline_s: float) -> Snapshot:
        """Poll once, and publish the result.

        Args:
            brokers: the only brokers to poll; None for the whole cluster.
            deadline_s: the deadline of the poll, seconds, > 0.
        """
        try:
            result = await self._observe(brokers, deadline_s)
            if isinstance(result, Failure):
                snapshot = self.board.fail(result, partial=brokers is not None)
            else:
                if brokers is not None and not self.is_wanted():
                    result = self._without_blind_spots(result)
                snapshot = self.board.observe(result)
                self._note_own(snapshot.memory)
                self._read_at |= {
                    key: each.read_at
                    for key, each in result.answers.items()
                    if isinstance(each, Reading)
                }
                # After the publication, so that a slow listener does not delay a throttle.
                self.observed(result)
        except Exception as error:  # noqa: BLE001 - the one place where a bug becomes a failed poll
            # One traceback for each new bug, not one for each poll.
            if type(error) is not self._bug:
                _log.exception("a poll failed because of a bug in the sidecar; please report this")
            self._bug = type(error)
            return self.board.fail(_BUG, partial=brokers is not None)
        self._bug = None
        return snapshot

    def _note_own(self, memory: Memory) -> None:
        """Count and log that the list lacks the broker beside this sidecar.

        Kafka leaves out a broker without the listener at which it was asked. So nothing else shows
        that its volumes are not read. Lists of brokers before Kafka 4.0 lack fenced ones too.
        """
        own, membership = self.own_broker, memory.membership
        if own is None or membership is None or membership.fenced is None:
            return
        is_listed = own in membership.active or own in membership.fenced
        self._unlisted = 0 if is_listed else self._unlisted + 1
        self.board.tally.failures[FailureKind.INCOMPLETE] += not is_listed
        # The first poll has only one list, which may be old.
        if self._unlisted == _UNLISTED_POLLS:
            _log.warning(
                "broker %d beside this sidecar is in no list of brokers, so its volumes are not "
                "read: give it the listener that the sidecar uses, or correct SIDECAR_BROKER_ID",
                own,
            )

    def _without_blind_spots(self, seen: Observation) -> Observation:
        """Leave out the failures of brokers that observers read, and log each when it begins.

        A follower may not reach its own broker, as a pod that can't call its own address. With each
        reading of an observer, that failure would end and begin again.
        """
        brokers = self.board.snapshot.memory.brokers
        oldest = seen.observed_at - _RENEWALS * (self.timing.interval_s + self.timing.deadline_s)
        spots = set()
        for broker_id, answer in seen.answers.items():
            read_at = state.read_at if (state := brokers.get(broker_id)) else None
            is_read = read_at not in {None, self._read_at.get(broker_id)}
            if isinstance(answer, Failure) and is_read and (read_at or 0.0) > oldest:
                spots.add(broker_id)
                self.board.tally.failures[answer.kind] += 1
                if self._spots.get(broker_id) != answer.kind:
                    _log.warning(
                        "broker %d: %s: %s; observers read it",
                        broker_id,
                        answer.kind.value,
                        answer.message,
                    )
                self._spots[broker_id] = answer.kind
            elif self._spots.pop(broker_id, None) and isinstance(answer, Reading):
                _log.info("broker %d answers this sidecar again", broker_id)
        answers = {key: each for key, each in seen.answers.items() if key not in spots}
        return replace(seen, answers=answers)

    async def _observe(
        self, brokers: frozenset[int] | None, deadline_s: float
    ) -> Observation | Failure:
        try:
            async with asyncio.timeout(deadline_s + _GRACE_S):
                return await self.source.observe(brokers, deadline_s)
        except TimeoutError:
            return Failure(FailureKind.TIMEOUT, f"the poll did not end within {deadline_s:g} s")
