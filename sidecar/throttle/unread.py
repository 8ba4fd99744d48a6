"""What no consumer group has read, and what a shorter retention would free.

Kafka knows where groups are by offset, not by byte. Bytes are the share of a partition's offsets
that a part of it has, so they are estimates. A consumer that commits no offsets in Kafka is not a
group here, and neither is one whose offsets Kafka has forgotten (offsets.retention.minutes).

Example: a partition of 900 MB has the offsets 100 to 1,000, and the furthest group has committed
700. About 300 MB of it were never read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Final

from sidecar.throttle.relief import NOTHING


class Reading(StrEnum):
    """Whether groups read a topic."""

    RECENT = "read"
    """A group has read some of what was written in the last days."""
    NOT_RECENT = "not read"
    """Records were written in the last days, and no group has read any of them."""
    NO_GROUP = "no group"
    """No group has a committed offset of it."""
    NOTHING_NEW = "nothing new"
    """Nothing was written in the last days; groups have read some of what was there before."""
    UNKNOWN = "not known"
    """A group reads it whose offsets Kafka does not show, or the age of its records is not known.
    """


_IDLE: Final = (Reading.NOT_RECENT, Reading.NO_GROUP)


@dataclass(frozen=True, slots=True)
class Stored:
    """A partition.

    Attributes:
        topic: its topic.
        start: its first offset.
        end: the offset after its last record.
        nbytes: the size of all its replicas.
        commits: group -> its committed offset, or ``NOTHING`` if Kafka does not show it.
        recent_from: the first record of the last days, or ``end``; None: not known.
        kept_from: the first record that the shorter retention would keep; None: it frees nothing,
            or that is not known.
    """

    topic: str
    start: int
    end: int
    nbytes: int
    commits: Mapping[str, int]
    recent_from: int | None = None
    kept_from: int | None = None

    @property
    def read_to(self) -> int | None:
        """How far the furthest group has read; None if that is not known."""
        known = [offset for offset in self.commits.values() if offset != NOTHING]
        if self.commits and not known:
            return None
        return min(max([self.start, *known]), self.end)

    @property
    def unread_bytes(self) -> float | None:
        """About how much of it no group has read; None if that is not known."""
        return None if self.read_to is None else self._share(self.read_to, self.end)

    @property
    def freed_bytes(self) -> float:
        """About how much the shorter retention would free."""
        return 0.0 if self.kept_from is None else self._share(self.start, self.kept_from)

    def _share(self, begin: int, end: int) -> float:
        # An offset that was read after the end may be beyond it.
        records = min(end, self.end) - begin
        return self.nbytes * records / (self.end - self.start) if records > 0 else 0.0


@dataclass(frozen=True, slots=True)
class TopicUse:
    """A topic, and what is read of it.

    Attributes:
        topic: its name.
        owner: who owns it.
        reading: whether groups read it.
        groups: the groups that have committed offsets of it, by name.
        nbytes: the size of all replicas.
        unread_bytes: about how much no group has read, of the partitions of which that is known.
        freed_bytes: about how much the shorter retention would free.
    """

    topic: str
    owner: str
    reading: Reading
    groups: tuple[str, ...]
    nbytes: int
    unread_bytes: float
    freed_bytes: float


@dataclass(frozen=True, slots=True)
class OwnerUse:
    """All topics of an owner.

    Attributes:
        owner: who owns them.
        topics: how many.
        nbytes: their size.
        unread_bytes: about how much of it no group has read.
        idle_bytes: the size of the topics that no group has read for days, or has an offset of.
        freed_bytes: about how much the shorter retention would free.
    """

    owner: str
    topics: int
    nbytes: int
    unread_bytes: float
    idle_bytes: int
    freed_bytes: float


def topic_uses(partitions: Iterable[Stored], owner_of: Callable[[str], str]) -> Iterator[TopicUse]:
    """Return each topic of partitions, the largest first."""
    by_topic = groupby(sorted(partitions, key=attrgetter("topic")), attrgetter("topic"))
    uses = [_use(topic, owner_of(topic), list(found)) for topic, found in by_topic]
    return iter(sorted(uses, key=lambda use: (-use.nbytes, use.topic)))


def owner_uses(topics: Iterable[TopicUse]) -> list[OwnerUse]:
    """Return each owner of topics, the one with the most unread bytes first."""
    by_owner = groupby(sorted(topics, key=attrgetter("owner")), attrgetter("owner"))
    uses = []
    for owner, found in by_owner:
        every = list(found)
        idle = [use.nbytes for use in every if use.reading in _IDLE]
        uses.append(
            OwnerUse(
                owner,
                len(every),
                sum(use.nbytes for use in every),
                sum(use.unread_bytes for use in every),
                sum(idle),
                sum(use.freed_bytes for use in every),
            )
        )
    return sorted(uses, key=lambda use: (-use.unread_bytes, use.owner))


def _use(topic: str, owner: str, partitions: list[Stored]) -> TopicUse:
    return TopicUse(
        topic,
        owner,
        _reading(partitions),
        tuple(sorted({group for each in partitions for group in each.commits})),
        sum(each.nbytes for each in partitions),
        sum(each.unread_bytes or 0.0 for each in partitions),
        sum(each.freed_bytes for each in partitions),
    )


def _reading(partitions: list[Stored]) -> Reading:
    if not any(each.commits for each in partitions):
        return Reading.NO_GROUP
    ages = [(each.recent_from, each.read_to, each.end) for each in partitions]
    known = [(recent, read, end) for recent, read, end in ages if recent is not None]
    if any(read is not None and read > recent for recent, read, _ in known):
        return Reading.RECENT
    if len(known) < len(ages) or any(read is None for _, read, _ in known):
        return Reading.UNKNOWN
    is_new = any(recent < end for recent, _, end in known)
    return Reading.NOT_RECENT if is_new else Reading.NOTHING_NEW
