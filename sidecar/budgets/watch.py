"""Reads the sizes of topics, and publishes the throttles of owners past their storage budgets.

Every broker is read once a minute, as for the growth of volumes: ``VolumeContents`` sends one
request for both, to one broker at a time. A round is over when every active broker has answered, or
has failed to, since the round before, and ``ROUND_S`` after that at the latest. A broker that did
not answer in a round keeps its last sizes for the validity. After that, it is missing. The same
applies to a log dir that is offline.

An owner that may reach its soft or hard bytes sooner is read again after half of that time, at most
every ``storage_check_interval_minimum``. These requests have only the owner's partitions, so a
topic that is new counts from the next minute on. A sidecar that follows observers asks one of them
for its throttles instead.

Example: of 1,000 owners, one is past its soft bytes. Each broker has one request a minute for all
topics, and one a second or less for that owner's partitions. If 10 brokers hang, each for 10 s,
reading all brokers takes more than 100 s, and rounds are over after 70 s.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from sidecar.budgets.followers import Follow
from sidecar.control.board import Board
from sidecar.control.volume_contents import Contents, FetchSizes, VolumeContents
from sidecar.state.records import Record, restored
from sidecar.threads import OwnThreads
from sidecar.throttle.budgets import (
    FAR_S,
    Budget,
    BudgetRules,
    Owners,
    Seen,
    Usage,
    next_usages,
    sentence,
    throttles,
)
from sidecar.throttle.memory import BrokerState, BudgetThrottle
from sidecar.throttle.topic_sizes import TopicSizes, broker_topics
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure

_log = logging.getLogger(__name__)

NAME: Final = "budgets"
"""The capability's name, used for its record too."""

LOOK_S: Final = 0.25
"""How often the watch checks for due readings."""

ROUND_S: Final = FAR_S + 10.0
"""How long a round lasts at most: the time between two readings of a broker, and 10 s."""

_THREADS: Final = OwnThreads("storage budgets")
_DOES: Final = {
    "free": "its writers are not slowed by it",
    "slowed": "its writers are slowed",
    "paused": "its writers are paused",
}


class _PausedRecord(Record):
    paused: dict[str, list[str]]
    """Owner -> its topics."""


@dataclass(slots=True)
class BudgetWatch:
    """The usages of owners; none until every broker was read.

    Attributes:
        board: the board with the brokers, which gets the throttles.
        contents: reads all topics of a broker.
        fetch: reads some partitions of a broker.
        rules: the rules for all budgets.
        shortest_s: the shortest time between two readings of an owner, seconds.
        is_observer: whether this sidecar asks brokers; otherwise it follows observers.
        follow: asks an observer for its throttles.
        owners: the budgets.
        usages: owner -> its usage, in the order of the budgets.
        left_out: owners past their soft bytes whose throttle brokers do not get.
    """

    board: Board
    contents: VolumeContents
    fetch: FetchSizes
    rules: BudgetRules
    shortest_s: float
    is_observer: Callable[[], bool]
    follow: Follow
    owners: Owners
    usages: Mapping[str, Usage] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    _kept: Mapping[str, Sequence[str]] = field(default_factory=dict, init=False)
    # What applied when this sidecar began to ask brokers: of an earlier run, or of an observer.
    _resumed: Mapping[str, BudgetThrottle] = field(default_factory=dict, init=False)
    _sizes: TopicSizes = field(default_factory=TopicSizes, init=False)
    _taken: dict[int, float] = field(default_factory=dict, init=False)
    # The brokers that have answered in this round, and when it is over at the latest.
    _answered: set[int] = field(default_factory=set, init=False)
    _ends_at: float | None = field(default=None, init=False)
    _followed_at: float = field(default=float("-inf"), init=False)
    _is_changed: bool = field(default=False, init=False)

    def resume(self) -> None:
        """Pause the owners that an earlier run paused, until all is read, or for the validity.

        Otherwise each restart would let an owner write for some seconds.
        """
        record = restored(self.board.snapshot.memory, NAME, _PausedRecord)
        principals = self._principals()
        paused = {} if record is None else record.paused
        self._kept = paused
        now = self.board.now()
        found = {
            owner: BudgetThrottle(0.0, tuple(topics), now, principals[owner])
            for owner, topics in paused.items()
            if owner in principals
        }
        if found:
            self.board.update(lambda memory: replace(memory, budgets=found))

    def change(self, budgets: Sequence[Budget]) -> None:
        """Use other budgets, with the sizes that are known."""
        self.owners = Owners(budgets)
        self._is_changed = True

    async def run(self) -> NoReturn:
        """Read what is due, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Read what is due now, and publish what follows."""
        now = self.board.now()
        if not self.is_observer():
            if now >= self._followed_at + self.shortest_s:
                self._followed_at = now
                await self._follow(now)
            return
        if self._ends_at is None:
            self._ends_at = now + ROUND_S
            # What the first brokers have of an owner is not all, and would release it.
            self._resumed = self.board.snapshot.memory.budgets
        active = sorted(self.board.snapshot.memory.active)
        # What arrives changes only the sum of all replicas.
        replicas = any(each.counts_replicas for each in self.owners.budgets)
        known = {
            broker_id: self.contents.request(broker_id, in_parts=False, arriving=replicas)
            for broker_id in active
        }
        new = {
            broker_id: each
            for broker_id, each in known.items()
            # An older answer, which others have requested, is about to be renewed.
            if each is not None and each.answered_at > self._taken.get(broker_id, now - FAR_S)
        }
        if new:
            await _THREADS.call(self._take_all, new)
            self._taken |= {broker_id: each.answered_at for broker_id, each in new.items()}
            self._answered |= new.keys()
        # One sum for all brokers of a minute: sums in between would look like growth.
        is_over = bool(self._answered) and (
            self._answered.issuperset(active) or now >= self._ends_at
        )
        if is_over:
            self._answered, self._ends_at = set(), now + ROUND_S
        if is_over or (self._is_changed and self.usages):
            self._is_changed = False
            await self._fold(now, None)
            return
        if near := self._near(now):
            topics = [topic for each in near for topic in each.topics]
            await self._read(active, topics)
            # Changed budgets wait for the next look, since their owners may have other topics.
            if not self._is_changed:
                await self._fold(now, frozenset(each.budget.owner for each in near))

    async def _follow(self, now: float) -> None:
        found = await self.follow(now)
        # What this sidecar knew as an observer is soon old.
        self.usages, self._taken, self._answered, self._ends_at = {}, {}, set(), None
        if found is not None:
            # The observer's answer has no principals.
            principals = self._principals()
            self._publish(
                {
                    owner: replace(each, principals=principals.get(owner, ()))
                    for owner, each in found.items()
                }
            )

    def _principals(self) -> dict[str, tuple[str, ...]]:
        return {each.owner: each.principals for each in self.owners.budgets}

    def _near(self, now: float) -> list[Usage]:
        """The owners to read now, in between the readings of all topics."""
        volumes = self.board.snapshot.memory.volumes()
        by = sum(max(0.0, each.fill.fastest_bytes_per_second or 0.0) for each in volumes)
        waits = ((each, each.next_read_s(by, self.shortest_s)) for each in self.usages.values())
        return [
            each
            for each, wait_s in waits
            if wait_s < FAR_S and now >= each.at + wait_s and each.topics
        ]

    async def _read(self, brokers: Sequence[int], topics: Sequence[str]) -> None:
        wanted = {broker_id: self._sizes.partitions(broker_id, topics) for broker_id in brokers}
        wanted = {broker_id: some for broker_id, some in wanted.items() if some}
        read_at = self.board.now()
        answers = await self.fetch(wanted) if wanted else {}
        for broker_id, answer in ({} if isinstance(answers, Failure) else answers).items():
            if not isinstance(answer, Failure):
                is_partial = self._lacks_log_dirs(broker_id, len(answer))
                reading = broker_topics(read_at, answer, is_partial=is_partial)
                self._sizes.take(broker_id, reading, frozenset(wanted[broker_id]))

    def _take_all(self, new: Mapping[int, Contents]) -> None:
        for broker_id, contents in new.items():
            if not isinstance(contents.result, Failure):
                log_dirs = (each.packed for each in contents.result.values())
                reading = broker_topics(
                    contents.answered_at,
                    log_dirs,
                    contents.arriving,
                    is_partial=self._lacks_log_dirs(broker_id, len(contents.result)),
                )
                self._sizes.take(broker_id, reading)

    def _lacks_log_dirs(self, broker_id: int, count: int) -> bool:
        """Whether an answer with ``count`` log dirs lacks one, which is offline or unreadable."""
        state = self.board.snapshot.memory.brokers.get(broker_id, BrokerState())
        # The answer may be newer than the last poll, for which the log dir is still online.
        known = {each.volume.log_dir for each in state.volumes}
        return count < len(known.union(each.log_dir for each in state.offline))

    async def _fold(self, now: float, read: frozenset[str] | None) -> None:
        memory = self.board.snapshot.memory
        unseen = self._sizes.seen({**memory.active, **memory.fenced}, self.rules.validity_s, now)
        seen = Seen(self._sizes.sizes, tuple(unseen), now)
        before, owners = self.usages, self.owners
        self.rules = replace(self.rules, unslowed=self.board.readers.unslowed)
        self.usages = await _THREADS.call(next_usages, owners, before, seen, self.rules, read)
        found, left_out = throttles(self.usages.values())
        self._resumed = {
            owner: each
            for owner, each in self._resumed.items()
            if owner in self.usages
            and self.usages[owner].unseen
            and is_valid(each.at, self.rules.validity_s, now)
        }
        found |= {
            owner: each
            for owner, each in self._resumed.items()
            if owner not in found or each.factor < found[owner].factor
        }
        if left_out and left_out != self.left_out:
            _log.warning("too many topics: brokers do not throttle %s", ", ".join(left_out))
        self.left_out = left_out
        for owner, usage in self.usages.items():
            self._log_change(before.get(owner), usage)
        self._publish(found)

    def _publish(self, found: Mapping[str, BudgetThrottle]) -> None:
        if found or self.board.snapshot.memory.budgets:
            self.board.update(lambda memory: replace(memory, budgets=found))
        paused = {owner: list(each.topics) for owner, each in found.items() if each.factor == 0.0}
        if paused != self._kept:
            self._kept = paused
            self.board.retain(NAME, {"paused": paused})

    def _log_change(self, before: Usage | None, usage: Usage) -> None:
        if usage.state != ("free" if before is None else before.state):
            level = logging.INFO if usage.state == "free" else logging.WARNING
            does = "it is only shown"
            if self.rules.enforces(usage.budget):
                does = _DOES[usage.state]
                if self.rules.by_quotas and usage.factor < 1.0:
                    does = "its principals are slowed by client quotas"
            text = "storage budget of %s: %s is used, and %s"
            _log.log(level, text, usage.budget.owner, sentence(usage), does)
