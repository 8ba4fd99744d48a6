"""The committed offsets of all groups, if nothing can hide one.

Each active broker has listed its groups, each partition of __consumer_offsets has a leader that
knows it, and these leaders have been the same for 5 s and are so afterwards: a new coordinator may
not have loaded its groups yet, and one without the newest metadata lists none. A share group holds
all partitions of its topics. A group with members but without any committed offset holds
everything, since what it reads is not known.

Needed: DESCRIBE on the groups, on their topics, on __consumer_offsets and on the cluster.

Example: etl has committed 700 of "logs" 0: {"etl": {"logs": {0: 700}}}.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.pool import Pool
from sidecar.kafka.partition_leaders import (
    OFFSETS_TOPIC,
    UNREAD,
    Coordinators,
    Offsets,
    read_leaders,
)
from sidecar.kafka.relief_messages import DescribeShareOffsets, FetchOffsets, ListGroups, refused
from sidecar.throttle.growth import Partition
from sidecar.throttle.relief import NOTHING
from sidecar.volumes import Failure

COORDINATED_S: Final = 5.0

_GROUPS_AT_ONCE: Final = 100
_NO_MEMBERS: Final = frozenset({"empty", "dead"})
_READS: Final = frozenset({"consumer", "share", "streams"})
"""The protocol types, and types, of groups whose members read topics."""

Commits = Mapping[str, Mapping[int, int]]
"""Topic -> index -> committed offset."""


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups.

    Attributes:
        commits: group -> its committed offsets.
        silent: of each group with members that shows none: why what it reads is not known.
    """

    commits: Mapping[str, Commits]
    silent: Sequence[str] = ()


class GroupCommits:
    """Reads the groups of a cluster; ``clock`` in steady seconds."""

    def __init__(self, pool: Pool, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._clock = clock
        self._coordinators: Coordinators = UNREAD
        self._coordinated_at = 0.0

    def note(self, coordinators: Coordinators, ends: Offsets, now: float) -> None:
        """Note who coordinates at a time.

        Args:
            coordinators: by the metadata of one broker.
            ends: what these brokers answered for ``led_by``.
            now: when that was.
        """
        coordinators = _confirmed(coordinators, ends)
        if coordinators != self._coordinators:
            self._coordinators, self._coordinated_at = coordinators, now

    async def read(self, brokers: Collection[int], deadline: float) -> Groups | str:
        """Return the groups, or why they are not known."""
        known, is_new = self._coordinators, self._clock() < self._coordinated_at + COORDINATED_S
        if isinstance(known, str):
            return known
        listed = await self._listed(brokers, deadline)
        if isinstance(listed, str):
            return listed
        groups: dict[str, Commits] = {}
        silent: list[str] = []
        for broker_id, every in listed.items():
            for is_share in (False, True):
                some = [each for each in every if each.is_share is is_share]
                for at in range(0, len(some), _GROUPS_AT_ONCE):
                    piece = some[at : at + _GROUPS_AT_ONCE]
                    found = await self._committed(broker_id, piece, deadline)
                    if isinstance(found, str):
                        return found
                    if twice := groups.keys() & found.keys():
                        # One of them no longer coordinates it, and may have an older offset.
                        return f"two brokers report group {min(twice)}"
                    groups |= found
                    silent += [
                        # Kafka leaves out topics that the user may not describe.
                        f"group {each.name} has members, but shows no committed offset: it has none"
                        " yet, or DESCRIBE on its topics is missing"
                        for each in piece
                        if each.reads and not found[each.name]
                    ]
        again = await read_leaders(self._pool, (), deadline)
        if is_new or isinstance(again, Failure) or again.coordinators != known:
            return "coordinators of groups have just changed"
        return Groups(groups, tuple(silent))

    async def _listed(
        self, brokers: Collection[int], deadline: float
    ) -> "dict[int, list[_Group]] | str":
        requests = dict.fromkeys(brokers, ListGroups())
        listed: dict[int, list[_Group]] = {}
        for broker_id, answer in (await self._pool.call_each(requests, deadline)).items():
            if isinstance(answer, Failure):
                return answer.message
            if answer.error_code:
                failed = refused("ListGroups", answer.error_code, "Describe", None)
                return f"broker {broker_id}: {failed.message}"
            # Without the tags; v4 has no types.
            listed[broker_id] = [_Group(*entry[:-1]) for entry in answer.groups or ()]
        return listed

    async def _committed(
        self, broker_id: int, groups: "Sequence[_Group]", deadline: float
    ) -> dict[str, Commits] | str:
        names = [each.name for each in groups]
        is_share = groups[0].is_share
        request = DescribeShareOffsets(names) if is_share else FetchOffsets(names)
        answer = await self._pool.call(broker_id, request, deadline)
        if isinstance(answer, Failure):
            return answer.message
        commits: dict[str, Commits] = {}
        for name, topics, code, *_ in answer.groups or ():
            if code:
                needs = "AUTHORIZATION" in error_name(code)
                right = "; it needs DESCRIBE on the group" if needs else ""
                return f"group {name}: {error_name(code)}{right}"
            offsets: dict[str, dict[int, int]] = {}
            for topic, *_id, partitions, _tags in topics or ():
                by_index = offsets.setdefault(topic, {})
                for index, offset, *rest in partitions or ():
                    if not is_share:
                        by_index[index] = NOTHING if rest[2] else offset
            commits[name] = offsets
        for each in groups:
            if each.name not in commits:
                return f"group {each.name}: its coordinator did not report its offsets"
        return commits


def led_by(coordinators: Coordinators) -> dict[Partition, tuple[int, int]]:
    """Return the partitions of __consumer_offsets, each with its leader and epoch, if known."""
    if isinstance(coordinators, str):
        return {}
    return {(OFFSETS_TOPIC, index): leader for index, leader in coordinators.items()}


def _confirmed(coordinators: Coordinators, ends: Offsets) -> Coordinators:
    """Return the coordinators, or why one does not know that it is one."""
    for key, (leader, _) in led_by(coordinators).items():
        end = ends.get(key)
        if not isinstance(end, int):
            why = "no answer" if end is None else end.message
            return f"broker {leader} may not know yet which groups it coordinates: {why}"
    return coordinators


def commits_of(partition: Partition, groups: Mapping[str, Commits]) -> dict[str, int]:
    """Group -> its committed offset of a partition, for each group that reads the topic."""
    topic, index = partition
    return {
        group: topics[topic].get(index, NOTHING)
        for group, topics in groups.items()
        if topic in topics
    }


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    protocol_type: str
    state: str
    type: str = ""

    @property
    def is_share(self) -> bool:
        return self.type.lower() == "share"

    @property
    def reads(self) -> bool:
        is_reader = {self.protocol_type.lower(), self.type.lower()} & _READS
        return bool(is_reader) and self.state.lower() not in _NO_MEMBERS
