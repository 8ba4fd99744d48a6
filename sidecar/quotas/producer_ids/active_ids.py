"""Producer ids in use and their owners (KIP-936).

One broker allocates an id to a user, and other brokers receive its batches. Either event may be
reported first. An id counts as soon as both are known: that it wrote, and its owner. An id that is
only allocated does not count. An id that writes without a known owner throttles no user; after
``WAIT_MS`` it is counted as an id of unknown owner. If its owner is reported within a window, it
counts for that owner.

At the start no owner is known, so an id that was allocated earlier does not count until it is
allocated again. The first scan of a partition, and a scan more than a window after the previous
one, cannot distinguish old batches from those of the last moment. It counts only the ids that were
allocated in the last ``FRESH_MS``, or two scan intervals if that is longer, but at most half a
window: who counts an id remembers it so long. A new topic is usually scanned within that time, and
nobody can tell a new topic from one that the sidecar may describe only now.

The state that a partition's leader reports for a producer changes with each batch. A Bloom filter
of (id, epoch, last sequence) compares an answer with the previous one. It misses one batch in a
thousand, but not the producer's next one. The end of a transaction counts as a batch.

An id that continues to write is reported again every eighth to quarter of a window. The receiver
may therefore forget an id after a window, as the KIP does.

Example: id 7 writes at 0 s, and at 2 s its owner is reported to be bob: from then on it counts for
bob. Id 8 writes and no owner is reported: at 10 s it is an id of unknown owner. READ on a topic is
granted, and the producers of a day appear: only those of the last minute count.

Source: KIP-936, "New Quota Types": the rate at which produce requests come with new ids.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sidecar.quotas.producer_ids.seen_ids import FilterTerms, Noted, Room, SeenIds

if TYPE_CHECKING:
    # As in seen_ids, rbloom is imported only where a filter is made.
    from rbloom import Bloom

WAIT_MS: Final = 10_000
"""How long after an id's first batch its owner may be reported, by a log or another sidecar."""
FRESH_MS: Final = 60_000
"""How long an id's allocation shows that the id wrote recently, if nothing else limits it."""
MOST_OWNERS: Final = 50_000
"""How many owners are remembered (about 5 MB), those of the most recently used ids."""
MOST_UNOWNED: Final = 20_000
"""How many ids without a known owner are kept."""

_MISSED: Final = 0.001
_REPORTED_BYTES: Final = 1 << 20
_REPORTED_IDS: Final = 1000
_WINDOW_PARTS: Final = 4

Partition = tuple[str, int]
"""Topic and index."""


class States(Protocol):
    """The (id, epoch, last sequence) of all producers of a partition; iterable more than once."""

    def __len__(self) -> int:
        """How many there are."""

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """One after the other."""


class WrittenSince:
    """Finds the producers that wrote to a partition since its last scan. It starts empty."""

    def __init__(self, window_ms: int) -> None:
        """``window_ms`` is the longest time between two scans that are compared."""
        self._window_ms = window_ms
        self._before: dict[str, dict[int, tuple[int, Bloom | None]]] = {}

    def __contains__(self, partition: Partition) -> bool:
        """Whether it was scanned."""
        return partition[1] in self._before.get(partition[0], ())

    def scan(
        self, partition: Partition, states: States, now_ms: int, fresh: Container[int]
    ) -> list[int]:
        """Return the ids that wrote since the partition's last scan, in the order of the answer.

        Args:
            partition: the scanned partition.
            states: the states of all its producers.
            now_ms: the time, in milliseconds.
            fresh: the ids that can only have written recently, also if the scan is the first.
        """
        topic, index = partition
        known = self._before.setdefault(topic, {})
        scanned_ms, before = known.get(index, (None, None))
        known[index] = now_ms, _filter(states)
        if scanned_ms is None or now_ms - scanned_ms > self._window_ms:
            return [state[0] for state in states if state[0] in fresh]
        if before is None:
            return [state[0] for state in states]
        return [state[0] for state in states if state not in before]

    def retain(self, partitions: Iterable[Partition]) -> None:
        """Forget all other partitions."""
        retained: dict[str, dict[int, tuple[int, Bloom | None]]] = {}
        for topic, index in partitions:
            if (topic, index) in self:
                retained.setdefault(topic, {})[index] = self._before[topic][index]
        self._before = retained


def _filter(states: States) -> "Bloom | None":
    if len(states) == 0:
        return None
    from rbloom import Bloom  # noqa: PLC0415 - see above

    bloom = Bloom(len(states), _MISSED)
    bloom.update(states)
    return bloom


@dataclass(frozen=True, slots=True)
class Attribution:
    """An id that wrote.

    Attributes:
        producer_id: the id.
        user: the owner, for whom it counts; None while the owner is unknown.
    """

    producer_id: int
    user: str | None


class ActiveIds:
    """The known owners, and the ids whose owner is not known yet. At the start there are none.

    Attributes:
        unknown: how many ids wrote without their owner being reported in time.
        window_ms: the quota's window in milliseconds.
        fresh_ms: how long an id's allocation shows that the id wrote recently.
    """

    def __init__(self, window_ms: int, interval_ms: int = 0) -> None:
        """``window_ms`` is the quota's window, at least 8, and ``interval_ms`` that of scans."""
        self.unknown = 0
        self.window_ms = window_ms
        self.fresh_ms = min(max(FRESH_MS, 2 * interval_ms), window_ms // 2)
        self._owners: dict[int, str] = {}
        # When each was allocated, the earliest first.
        self._fresh: dict[int, int] = {}
        # When each id wrote, the earliest first.
        self._waiting: dict[int, int] = {}
        self._unknown: dict[int, int] = {}
        terms = FilterTerms(max(2, window_ms // _WINDOW_PARTS), _REPORTED_IDS, _MISSED)
        self._reported = SeenIds(terms, Room(_REPORTED_BYTES))

    def __repr__(self) -> str:
        return f"ActiveIds({len(self._owners)} owners, {self.unowned} unowned)"

    @property
    def unowned(self) -> int:
        """How many ids wrote and have no known owner yet."""
        return len(self._waiting) + len(self._unknown)

    def fresh(self, now_ms: int) -> Container[int]:
        """Return the ids that were allocated in the last ``fresh_ms``, also those of later."""
        for producer_id, since_ms in tuple(self._fresh.items()):
            if now_ms - since_ms <= self.fresh_ms:
                break
            del self._fresh[producer_id]
        return self._fresh.keys()

    def allocated(self, user: str, producer_id: int, now_ms: int) -> Attribution | None:
        """Record an id's owner; return the id as active if it wrote before."""
        if producer_id < 0:
            return None
        self._own(user, producer_id)
        self._fresh.pop(producer_id, None)
        self._fresh[producer_id] = now_ms
        if len(self._fresh) > MOST_OWNERS:
            del self._fresh[next(iter(self._fresh))]
        waited = self._waiting.pop(producer_id, None)
        if waited is None:
            waited = self._unknown.pop(producer_id, None)
        return None if waited is None else Attribution(producer_id, user)

    def wrote(self, producer_id: int, now_ms: int) -> Attribution | None:
        """Record that an id wrote; return None if that was reported recently."""
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
        """Count the ids whose owner was not reported in time."""
        for producer_id, since_ms in tuple(self._waiting.items()):
            if now_ms - since_ms < WAIT_MS:
                break
            self._give_up(producer_id)
        for producer_id, since_ms in tuple(self._unknown.items()):
            if now_ms - since_ms < self.window_ms:
                break
            del self._unknown[producer_id]
        self.fresh(now_ms)
        self._reported.forget(now_ms)

    def _own(self, user: str, producer_id: int) -> None:
        # Move the id to the end, since it is the most recent one.
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
