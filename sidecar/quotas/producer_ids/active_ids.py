"""Which producer ids count because they are used, and whose they are (KIP-936).

An id is allocated to a user by one broker and used at others, and either may be known first. So an
id counts as soon as both are known: that it wrote, and whose it is. One that is only allocated
counts for nobody, and one that writes without a known owner throttles nobody: it is counted as
unknown after ``WAIT_MS``, and counts for its owner if that is reported within a window.

Initially no owner is known, so ids that were allocated before count for nobody until they are
allocated again; and the first scan of a partition counts nobody at all, unless it is new itself,
since what its producers wrote long ago can't be distinguished from what they wrote just now.

What a partition's leader says of a producer changes with every batch. An answer is compared with
the one before by a Bloom filter of (id, epoch, last sequence): one in a thousand batches is
missed, and the producer's next one is not. The end of a transaction is the same as a batch.

An id that continues to write is reported again every eighth to quarter of a window, so that who
counts may forget it after a window, as the KIP does.

Example: id 7 wrote, at 0 s; "7 is bob's" comes at 2 s: it counts for bob then. Of id 8 nothing
comes: at 10 s it is one of unknown owner.

Source: KIP-936, "New Quota Types": the rate at which produce requests come with new ids.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sidecar.quotas.producer_ids.seen_ids import FilterTerms, Noted, Room, SeenIds

if TYPE_CHECKING:
    # As in seen_ids, imported where a filter is made.
    from rbloom import Bloom

WAIT_MS: Final = 10_000
"""So late a log or another sidecar may report an owner before the id is one of unknown owner."""
MOST_OWNERS: Final = 50_000
"""Of so many ids the owner is remembered, some 5 MB: those that were allocated or wrote last."""
MOST_UNOWNED: Final = 20_000
"""So many ids without an owner wait for one."""

_MISSED: Final = 0.001
_REPORTED_BYTES: Final = 1 << 20
_REPORTED_IDS: Final = 1000
_WINDOW_PARTS: Final = 4

Partition = tuple[str, int]
"""Topic and index."""


class States(Protocol):
    """Id, epoch and last sequence of all producers of a partition, iterable more than once."""

    def __len__(self) -> int:
        """How many there are."""

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """One after the other."""


class WrittenSince:
    """Which producers wrote to partitions since the last scan. Initially there was none."""

    def __init__(self) -> None:
        self._before: dict[str, dict[int, Bloom | None]] = {}

    def __contains__(self, partition: Partition) -> bool:
        """Whether it was scanned."""
        return partition[1] in self._before.get(partition[0], ())

    def scan(self, partition: Partition, states: States, *, is_new: bool) -> list[int]:
        """Ids that wrote since the partition's last scan, in the order of the answer.

        Args:
            partition: where.
            states: of all its producers.
            is_new: whether the partition is, so that all of them wrote lately.
        """
        topic, index = partition
        known = self._before.setdefault(topic, {})
        is_first = index not in known
        before = known.get(index)
        known[index] = _filter(states)
        if is_first and not is_new:
            return []
        if before is None:
            return [state[0] for state in states]
        return [state[0] for state in states if state not in before]

    def retain(self, partitions: Iterable[Partition]) -> None:
        """Forgets all others."""
        retained: dict[str, dict[int, Bloom | None]] = {}
        for topic, index in partitions:
            if (topic, index) in self:
                retained.setdefault(topic, {})[index] = self._before[topic][index]
        self._before = retained


def _filter(states: States) -> "Bloom | None":
    if len(states) == 0:
        return None
    from rbloom import Bloom  # noqa: PLC0415 - see above

    found = Bloom(len(states), _MISSED)
    found.update(states)
    return found


@dataclass(frozen=True, slots=True)
class Attribution:
    """An id that wrote.

    Attributes:
        producer_id: it.
        user: for whom it counts now; None while nobody knows whose it is.
    """

    producer_id: int
    user: str | None


class ActiveIds:
    """Owners, and the ids that wait for theirs. Initially there are none.

    Attributes:
        unknown: ids that wrote and whose owner nobody reported in time, so far.
    """

    def __init__(self, window_ms: int) -> None:
        """``window_ms``: the quota's window, milliseconds, at least 8."""
        self.unknown = 0
        self._window_ms = window_ms
        self._owners: dict[int, str] = {}
        # When each wrote, the first of them first.
        self._waiting: dict[int, int] = {}
        self._unknown: dict[int, int] = {}
        terms = FilterTerms(max(2, window_ms // _WINDOW_PARTS), _REPORTED_IDS, _MISSED)
        self._reported = SeenIds(terms, Room(_REPORTED_BYTES))

    def __repr__(self) -> str:
        return f"ActiveIds({len(self._owners)} owners, {self.unowned} unowned)"

    @property
    def unowned(self) -> int:
        """How many ids wrote and wait for an owner now."""
        return len(self._waiting) + len(self._unknown)

    def allocated(self, user: str, producer_id: int) -> Attribution | None:
        """An id is a user's; what counts by that, if it wrote before."""
        if producer_id < 0:
            return None
        self._own(user, producer_id)
        waited = self._waiting.pop(producer_id, None)
        if waited is None:
            waited = self._unknown.pop(producer_id, None)
        return None if waited is None else Attribution(producer_id, user)

    def wrote(self, producer_id: int, now_ms: int) -> Attribution | None:
        """An id wrote; None when that was reported lately."""
        user = self._owners.get(producer_id)
        if user is not None:
            self._own(user, producer_id)
        if producer_id < 0 or self._reported.note(producer_id, now_ms) is Noted.KNOWN:
            return None
        if user is None and producer_id not in self._unknown:
            self._waiting.setdefault(producer_id, now_ms)
            self._bound(now_ms)
        return Attribution(producer_id, user)

    def tick(self, now_ms: int) -> None:
        """Lets time pass for ids without an owner."""
        for producer_id, since_ms in tuple(self._waiting.items()):
            if now_ms - since_ms < WAIT_MS:
                break
            self._give_up(producer_id)
        for producer_id, since_ms in tuple(self._unknown.items()):
            if now_ms - since_ms < self._window_ms:
                break
            del self._unknown[producer_id]
        self._reported.forget(now_ms)

    def _own(self, user: str, producer_id: int) -> None:
        # The last one last.
        self._owners.pop(producer_id, None)
        self._owners[producer_id] = user
        if len(self._owners) > MOST_OWNERS:
            del self._owners[next(iter(self._owners))]

    def _give_up(self, producer_id: int) -> None:
        self._unknown[producer_id] = self._waiting.pop(producer_id)
        self.unknown += 1

    def _bound(self, now_ms: int) -> None:
        if self.unowned <= MOST_UNOWNED:
            return
        self.tick(now_ms)
        if self.unowned > MOST_UNOWNED:
            if not self._unknown:
                self._give_up(next(iter(self._waiting)))
            del self._unknown[next(iter(self._unknown))]
