"""The board: the one published snapshot, and waiting for its next change.

All news comes in through the board's methods: an observation, a failed poll, an operator's
override, or only the passing of time. The news is folded into the memory, decided upon and
published in one synchronous step of the loop, so no reader sees half of a change. All other parts
read the snapshot. The board alone owns the rules (limit, soft limit, stop line, validity) and
publishes them with each snapshot.

The generation grows by one when one of these changes: the factor, the source, the override, the
factors of users, the topics that the factor is for, the throttles by storage budgets, or the set of
volumes that violate the limit or the stop line. Each change of an operator begins one too. It does
not grow when free bytes, the validity or the leaks move, nor when the factor moves on its slope.
With the start id it is the ETag, so that a restart never repeats one.

Example: generation 4 has factor 1.0. After 40 polls free bytes have moved, and it is still
generation 4. A volume reaches the limit: generation 5 has factor 0.0, and every reader that waits
for a change of generation 4 gets it.
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.control.operation import Operation
from sidecar.throttle.decision import Decider, Decision, Source
from sidecar.throttle.fold import fail
from sidecar.throttle.leak import NO_LEAKS, LeakRules, Leaks
from sidecar.throttle.memory import (
    BudgetThrottle,
    Computed,
    Memory,
    Override,
    VolumeState,
)
from sidecar.throttle.readers import NO_READERS, ReaderCounts, Readers
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Release
from sidecar.throttle.user_throttles import release, throttle_users
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, FailureKind, LogDir, Observation

MOST_CHANGES: Final = 1000
"""The most changes that are kept. A volume that changes every second fills this in a quarter of an
hour; one that changes twice a day, in more than a year."""

_CHECK_S: Final = 5.0
"""How late an expiry may be published after the machine was suspended."""

MOST_VIOLATIONS: Final = 20
"""The most violations that are kept of each change. When a limit is set too high, all volumes
violate it, and a thousand such changes of a large cluster would be gigabytes. So would a thousand
with all throttled users, since each new one of them is a change."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The published state.

    Attributes:
        decision: the current decision.
        generation: 1 at the start, plus one at each change.
        since: when factor and source began to apply, steady seconds.
        memory: the memory from which the decision was made.
        rules: the rules of the decision.
        released: when the factor last rose; None if it never rose since the start.
        leaks: how much brokers may let through; leaks move without a new generation.
        operation: the operator's change that led to this snapshot; None for other news.
        readers: the brokers that read the decision when the snapshot was published.
    """

    decision: Decision
    generation: int
    since: float
    memory: Memory
    rules: Rules
    released: Release | None = None
    leaks: Leaks = NO_LEAKS
    operation: Operation | None = None
    readers: ReaderCounts = NO_READERS


@dataclass(frozen=True, slots=True)
class Change:
    """A decision when it began a generation.

    Attributes:
        changed_at: when the generation began, steady seconds.
        generation: the generation that began.
        decision: the decision, with its first ``MOST_VIOLATIONS`` violations and its first topic,
            and without users and budgets.
        violation_count: the number of all its violations.
        operation: the operator's change that began it, if one did.
    """

    changed_at: float
    generation: int
    decision: Decision
    violation_count: int
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class PersistedState:
    """The state that a restart takes over.

    Attributes:
        memory: the memory.
        factor: the factor that applied when it was written.
        source: the source of that factor.
        since: when factor and source began to apply, steady seconds.
        shares: broker id -> its share of its leak budget, below 1.
    """

    memory: Memory
    factor: float
    source: Source
    since: float
    shares: Mapping[int, float] = field(default_factory=dict)

    @property
    def effect(self) -> tuple[float | None, Source]:
        """Factor and source, as ``_effect`` of a decision."""
        is_sloped = self.memory.slope is not None and 0.0 < self.factor < 1.0
        return None if is_sloped else self.factor, self.source


@dataclass(slots=True)
class Tally:
    """The counters since the start; each is a Prometheus counter or timestamp.

    Attributes:
        fallback_applied: transitions to the fallback (a start with the fallback is none).
        throttles: how often the factor fell from 1.
        limit_violated: how often a volume began to violate the limit.
        failures: polls and calls to one broker that failed, by kind.
        polled_at: when the last poll ended, however it did, steady seconds.
        succeeded_at: when the last whole poll succeeded, steady seconds.
    """

    fallback_applied: int = 0
    throttles: int = 0
    limit_violated: int = 0
    failures: dict[FailureKind, int] = field(default_factory=lambda: dict.fromkeys(FailureKind, 0))
    polled_at: float | None = None
    succeeded_at: float | None = None


Listener = Callable[[Snapshot | None, Snapshot], None]
"""Called after each update with the previous snapshot and the new one; for the first snapshot, the
previous one is None."""


class Board:
    """Holds the memory and the published snapshot.

    Attributes:
        start_id: differs at every start.
        tally: the counters.
        changes: the newest ``MOST_CHANGES`` changes, oldest first.
        readers: the brokers whose quota callbacks read the board.
        leak_rules: the rules by which brokers may let through less.
        unread: why the state of an earlier run is not read yet; "" once it is, or without one.
    """

    def __init__(
        self,
        factors: Decider,
        clock: Callable[[], float],
        *,
        leak_rules: LeakRules | None = None,
        restored: PersistedState | None = None,
        unread: str = "",
        listeners: tuple[Listener, ...] = (),
        start_id: str | None = None,
    ) -> None:
        self.start_id = start_id or random_id()
        self.tally = Tally()
        self.changes: deque[Change] = deque(maxlen=MOST_CHANGES)
        self.readers = Readers()
        self._factors = factors
        self.leak_rules = leak_rules or LeakRules()
        self._clock = clock
        self._listeners = listeners
        self._news = asyncio.Event()
        self._changed = asyncio.Event()
        self._closed = False
        now = clock()
        self.unread = unread
        self._unread_until = now + factors.rules.validity_s
        # Since the start, while the state is not read.
        self._operations: list[Callable[[Memory], Memory]] = []
        self._seen: set[int] = set()
        memory = restored.memory if restored is not None else Memory()
        decision = factors.decide(memory, now)
        since, leaks = now, NO_LEAKS
        if restored is not None and restored.effect == _effect(decision):
            since = restored.since
            leaks = self.leak_rules.resumed(restored.shares, now)
        self._snapshot = Snapshot(decision, 1, since, memory, factors.rules, leaks=leaks)
        self._record_change(None, now)

    @property
    def snapshot(self) -> Snapshot:
        """The published snapshot."""
        return self._snapshot

    @property
    def rules(self) -> Rules:
        """The rules by which volumes are judged: limit, soft limit, stop line and validity."""
        return self._factors.rules

    @property
    def etag(self) -> str:
        """The start id and the generation, without quotes."""
        return f"{self.start_id}-{self._snapshot.generation}"

    @property
    def closed(self) -> bool:
        """Whether the daemon is stopping, so that no reader waits any more."""
        return self._closed

    def now(self) -> float:
        """The board's clock: steady seconds."""
        return self._clock()

    def without_override(self) -> Decision:
        """The decision that would apply now without the override."""
        return self._factors.decide(replace(self._snapshot.memory, override=None), self.now())

    def observe(self, observation: Observation) -> Snapshot:
        """Fold in an observation, and publish the result.

        Returns:
            The new snapshot.
        """
        before = self._snapshot.memory
        snapshot = self.update(lambda memory: self._factors.fold(memory, observation))
        if self.unread:
            brokers = snapshot.memory.brokers.items()
            self._seen.update(key for key, state in brokers if state.read_at is not None)
        tally = self.tally
        tally.polled_at = self._clock()
        for broker_id, answer in observation.answers.items():
            if isinstance(answer, Failure):
                # A sidecar asks its own broker even while that broker is fenced.
                tally.failures[answer.kind] += broker_id in snapshot.memory.active
            else:
                were, are = (_violating(known, broker_id) for known in (before, snapshot.memory))
                tally.limit_violated += len(are - were)
        if observation.membership is not None:
            failure = snapshot.memory.failure
            if failure is None:
                tally.succeeded_at = observation.observed_at
            else:
                tally.failures[failure.kind] += 1
        return snapshot

    def take_factor(self, factor: float, at: float) -> Snapshot:
        """Publish the factor that a factor source returned.

        Args:
            factor: 0.0 to 1.0.
            at: when the source was called, steady seconds.
        """
        self.tally.polled_at = self.tally.succeeded_at = self._clock()
        computed = Computed(factor, at, ())
        return self.update(
            lambda memory: replace(memory, computed=computed, failed_polls=0, failure=None)
        )

    def fail(self, failure: Failure, *, partial: bool = False) -> Snapshot:
        """Fold in a failed poll, and publish the result.

        Args:
            failure: why the poll failed.
            partial: whether only some brokers were polled; then the failure is only counted.

        Returns:
            The new snapshot.
        """
        self.tally.polled_at = self._clock()
        self.tally.failures[failure.kind] += 1
        if partial:
            return self._snapshot
        return self.update(lambda memory: fail(memory, failure))

    def set_override(
        self, override: Override | None, operation: Operation | None = None
    ) -> Snapshot:
        """Publish an operator's override; None ends it."""
        return self._operate(lambda memory: replace(memory, override=override), operation)

    def forget(
        self, broker_id: int, log_dir: str | None = None, operation: Operation | None = None
    ) -> Snapshot:
        """Forget the last reading of a broker or log dir, and publish the result."""
        return self._operate(
            lambda memory: self._factors.forget(memory, broker_id, log_dir), operation
        )

    def take_over(self, past: PersistedState | None) -> Snapshot:
        """Take the state of an earlier run, which was read late, and publish the result.

        Args:
            past: the state; None if there is none that can be used.
        """
        operations, self._operations = self._operations, []
        self.unread = ""
        if past is None:
            return self._snapshot
        remembered = past.memory
        for operation in operations:
            remembered = operation(remembered)
        seen = self._seen
        return self.update(lambda memory: self._factors.take_over(remembered, memory, seen))

    @property
    def withheld(self) -> bool:
        """Whether readers get no answer, because it may release what an unread state throttles.

        A reader then uses its last answer while that is valid, as if this sidecar was down. So no
        answer is withheld for longer than the validity. A decision that every volume has space
        needs no memory, unless a broker is fenced that was not read since the start.
        """
        decision, memory = self._snapshot.decision.decided, self._snapshot.memory
        if not self.unread or not is_valid(self._unread_until, 0.0, self._clock()):
            return False
        if decision.factor == 0.0 or decision.source is Source.OVERRIDE:
            return False
        if decision.source is not Source.OBSERVATION:
            return True
        if memory.membership is None:
            # A factor source decides.
            return False
        fenced = memory.membership.fenced
        return fenced is None or not self._seen.issuperset(fenced)

    def throttle_users(
        self,
        enforcer: str,
        until: Mapping[str, tuple[float, str]],
        released: Collection[str] = (),
    ) -> Snapshot:
        """Publish new throttles of users, and end others; throttles of other enforcers stay.

        Args:
            enforcer: the capability's name.
            until: user -> the end, steady seconds, and the reason, one sentence for a person.
            released: the users that the enforcer no longer throttles.
        """
        now = self._clock()

        def fold(memory: Memory) -> Memory:
            left = release(memory.user_throttles, enforcer, released)
            return replace(memory, user_throttles=throttle_users(left, enforcer, until, now))

        return self.update(fold)

    def retain(self, capability: str, part: object, operation: Operation | None = None) -> Snapshot:
        """Publish the record that a capability keeps over a restart, as plain JSON values."""
        return self.update(
            lambda memory: replace(memory, retained={**memory.retained, capability: part}),
            operation,
        )

    def _operate(self, change: Callable[[Memory], Memory], operation: Operation | None) -> Snapshot:
        if self.unread:
            # It is newer than the state, and applies to that too.
            self._operations.append(change)
        return self.update(change, operation)

    def update(
        self, fold: Callable[[Memory], Memory], operation: Operation | None = None
    ) -> Snapshot:
        """Change the memory by a function, decide and publish.

        Args:
            fold: memory before -> memory after.
            operation: the operator's change, which begins a generation in any case.

        Returns:
            The new snapshot.
        """
        now = self._clock()
        before = self._snapshot
        memory = fold(before.memory)
        decision = self._factors.decide(memory, now)
        changed = operation is not None or _identity(decision) != _identity(before.decision)
        # Factors of budgets move step by step, and each step is news for brokers. It is no change
        # of the decision, of which people want to see the last thousand.
        is_news = changed or _budgets(decision) != _budgets(before.decision)
        since = before.since if _effect(decision) == _effect(before.decision) else now
        released = before.released
        if decision.factor > before.decision.factor:
            full = frozenset(state.volume.broker_id for state in before.decision.violations)
            released = Release(now, full)
        leaks = self.leak_rules.next(
            before.leaks,
            memory,
            throttled=decision.factor == 0.0,
            validity_s=self.rules.validity_s,
            now=now,
        )
        self._snapshot = Snapshot(
            decision,
            before.generation + is_news,
            since,
            memory,
            self.rules,
            released,
            leaks,
            operation,
            self.readers.counts(now),
        )
        self._news.set()
        self._news = asyncio.Event()
        self.tally.throttles += decision.factor < 1.0 <= before.decision.factor
        if changed:
            self._record_change(before, now)
        elif is_news:
            self._wake()
        for listener in self._listeners:
            listener(before, self._snapshot)
        return self._snapshot

    async def wait_for_change(self, generation: int, timeout_s: float) -> Snapshot:
        """Wait until the generation differs, the time is over, or the board is closed.

        Args:
            generation: the generation that the reader has.
            timeout_s: the longest wait, seconds.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while self._snapshot.generation == generation and not self._closed:
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self._snapshot

    async def publish_expiries(self) -> None:
        """Publish each change that only the passing of time causes; run until cancelled."""
        while True:
            news = self._news
            until = self._snapshot.decision.changes_after
            if until is not None and not is_valid(until, 0.0, self._clock()):
                self.update(lambda memory: memory)
                continue
            # Slightly after the boundary, because at the boundary the decision is still valid.
            wait_s = None if until is None else max(0.0, until - self._clock()) + 0.001
            with contextlib.suppress(TimeoutError):
                # The loop's clock stands still while the machine is suspended, and the board's does
                # not, so the boundary may come sooner than the loop's timer says.
                async with asyncio.timeout(None if wait_s is None else min(wait_s, _CHECK_S)):
                    await news.wait()

    def close(self) -> None:
        """Wake all waiting readers, and let nobody wait any more."""
        self._closed = True
        self._changed.set()

    def _record_change(self, before: Snapshot | None, now: float) -> None:
        snapshot, decision = self._snapshot, self._snapshot.decision
        count, kept = len(decision.violations), _cut(decision)
        self.changes.append(Change(now, snapshot.generation, kept, count, snapshot.operation))
        if before is not None and before.decision.source is not Source.FALLBACK:
            self.tally.fallback_applied += decision.source is Source.FALLBACK
        self._wake()

    def _wake(self) -> None:
        if not self._closed:
            self._changed.set()
            self._changed = asyncio.Event()


def _cut(decision: Decision) -> Decision:
    """Return the decision without what grows with the cluster."""
    return replace(
        decision,
        violations=decision.violations[:MOST_VIOLATIONS],
        at_stop_line=decision.at_stop_line[:MOST_VIOLATIONS],
        user_throttles={},
        budgets={},
        topics=decision.topics and decision.topics[:1],
        shadow=decision.shadow and _cut(decision.shadow),
    )


def _violating(memory: Memory, broker_id: int) -> set[str]:
    """Return the log dirs of a broker that violated the limit when last read."""
    broker = memory.brokers.get(broker_id)
    return set() if broker is None else {state.volume.log_dir for state in broker.violating}


def random_id() -> str:
    """Return an id that no earlier start had."""
    return secrets.token_hex(4)


def _effect(decision: Decision) -> tuple[float | None, Source]:
    """Return factor and source. A move of the factor on its slope is no change."""
    return None if decision.is_sloped else decision.factor, decision.source


def _identity(decision: Decision) -> tuple[object, ...]:
    return (
        *_effect(decision),
        decision.override,
        decision.users,
        decision.shadow and _identity(decision.shadow),
        _log_dirs(decision.violations),
        # Together with the source this decides ``stop_line_reached``.
        _log_dirs(decision.at_stop_line),
        decision.topics,
    )


def _budgets(decision: Decision) -> Mapping[str, BudgetThrottle]:
    return {owner: replace(each, at=0.0) for owner, each in decision.budgets.items()}


def _log_dirs(states: Sequence[VolumeState]) -> frozenset[LogDir]:
    return frozenset(state.volume.place for state in states)
