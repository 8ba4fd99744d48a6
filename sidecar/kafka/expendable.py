"""Reads the partitions of declared classes, and deletes their oldest records.

``look`` reads leaders, high watermarks, sizes and first offsets, in this order: a size must be
newer than its high watermark (``sidecar.throttle.partition_track``). ``examine`` reads what limits
a deletion: the topics' configurations, the first young record, and the committed offsets of all
groups.

The groups are known only if nothing can hide one. Each active broker has listed its groups, each
partition of __consumer_offsets has a leader, and these leaders have been the same for 5 s and are
so afterwards: a new coordinator may not have loaded its groups yet. A share group holds all
partitions of its topics. A group with members but without any committed offset holds everything,
since what it reads is not known.

Needed: DESCRIBE, DESCRIBE_CONFIGS and DELETE on the declared topics, DESCRIBE on the groups and on
__consumer_offsets, and DESCRIBE on the cluster, like polls.

Example: "logs" has one partition with offsets 100 to 900 and 2 GB; etl has committed 700 of it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.failures import error_name
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.pool import ClusterId, Pool, any_cluster
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.kafka.log_dir_messages import log_dirs_in
from sidecar.kafka.producer_messages import AllTopics
from sidecar.kafka.relief_messages import (
    EARLIEST,
    LATEST,
    DeleteRecords,
    DescribeShareOffsets,
    DescribeTopicConfigs,
    FetchOffsets,
    ListGroups,
    ListOffsets,
    SizesOf,
)
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.throttle.growth import Partition
from sidecar.throttle.memory import LogDir
from sidecar.throttle.partition_track import Sight
from sidecar.throttle.relief import NOTHING, ReliefClass, class_of, matching
from sidecar.volumes import Failure, FailureKind

OFFSETS_TOPIC: Final = "__consumer_offsets"
COORDINATED_S: Final = 5.0
NAMES_S: Final = 60.0
"""How late a new topic is noticed."""
DELETE_MS: Final = 10_000
"""How long a leader waits until the replicas have deleted, too."""

_CONFIGS: Final = ("cleanup.policy", "remote.storage.enable", "segment.bytes")
_NO_TOPIC: Final = 3
_GROUPS_AT_ONCE: Final = 100
_NO_MEMBERS: Final = frozenset({"empty", "dead"})
_READS: Final = frozenset({"consumer", "share", "streams"})
"""The protocol types, and types, of groups whose members read topics."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition as just read.

    Attributes:
        sight: its offsets and size.
        leader: its leader's broker id.
        homes: the volumes with a replica.
    """

    sight: Sight
    leader: int
    homes: frozenset[LogDir]


@dataclass(frozen=True, slots=True)
class Look:
    """The partitions of declared classes.

    Attributes:
        partitions: those that could be read.
        left_out: topic -> why some of it could not.
    """

    partitions: Mapping[Partition, Seen]
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Examined:
    """What limits deletions.

    Attributes:
        segment_bytes: topic -> its segment.bytes; without the topics that are left out.
        young_from: partition -> the first record younger than its class keeps, or its end.
        commits: partition -> group -> its committed offset, or ``NOTHING``.
        groups_unknown: why the groups are not known; "" if they are.
        left_out: topic -> why it is left out.
    """

    segment_bytes: Mapping[str, int]
    young_from: Mapping[Partition, int]
    commits: Mapping[Partition, Mapping[str, int]]
    groups_unknown: str
    left_out: Mapping[str, str]


Deleted = Mapping[Partition, int | Failure]
"""Partition -> its first offset after a deletion, or why that is not known."""


class ExpendableTopics:
    """The topics of declared classes in a cluster.

    Args:
        admin: how to reach the brokers.
        classes: the classes.
        clock: steady seconds.
        cluster_id: the id of the only cluster that may answer; None for any.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        classes: Sequence[ReliefClass],
        clock: Callable[[], float],
        *,
        cluster_id: ClusterId = any_cluster,
    ) -> None:
        self._pool = Pool.of(admin, clock, cluster_id=cluster_id)
        self._classes = classes
        self._clock = clock
        self._names: list[str] = []
        self._named_at: float | None = None
        self._brokers: Collection[int] = ()
        # The leaders of OFFSETS_TOPIC, or why they are not known, and since when they are the same.
        self._coordinators: _Coordinators = "no broker reported their coordinators"
        self._coordinated_at = 0.0

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        """Reads new credentials; see ``Pool.reload``."""
        return self._pool.reload(admin, redial=redial)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def look(self, timeout_s: float) -> Look | Failure:
        """Read the partitions once."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        now = self._clock()
        if self._named_at is None or now >= self._named_at + NAMES_S:
            names = await self._pool.call_any(AllTopics(), deadline, _names, "the topics")
            if isinstance(names, Failure):
                return names
            self._names, self._named_at = matching(names, self._classes), now
        answer = await self._leaders(self._names, deadline)
        if isinstance(answer, Failure):
            return answer
        self._brokers = answer.brokers
        if answer.coordinators != self._coordinators:
            self._coordinators, self._coordinated_at = answer.coordinators, now
        latest = {key: (each.epoch, LATEST) for key, each in answer.led.items()}
        ends = await self._offsets(answer.led, latest, deadline)
        sizes = await self._sizes(answer.led, deadline)
        earliest = {key: (epoch, EARLIEST) for key, (epoch, _) in latest.items()}
        starts = await self._offsets(answer.led, earliest, deadline)
        found: dict[Partition, Seen] = {}
        left_out = dict(answer.left_out)
        for key, led in answer.led.items():
            start, end, replicas = starts.get(key), ends.get(key), sizes.get(key, {})
            size = next((size for (each, _), size in replicas.items() if each == led.leader), None)
            failed = next((each for each in (start, end) if isinstance(each, Failure)), None)
            if failed is not None:
                left_out[key[0]] = failed.message
            elif not isinstance(start, int) or not isinstance(end, int) or size is None:
                left_out[key[0]] = f"partition {key[1]} could not be read"
            else:
                sight = Sight(now, (led.topic_id, led.leader, led.epoch), start, end, size)
                found[key] = Seen(sight, led.leader, frozenset(replicas))
        return Look(found, left_out)

    async def examine(
        self, partitions: Mapping[Partition, Seen], now_ms: int, timeout_s: float
    ) -> Examined | Failure:
        """Read what limits deletions.

        Args:
            partitions: the partitions.
            now_ms: milliseconds of the epoch.
            timeout_s: the time for all requests, seconds.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        topics = sorted({topic for topic, _ in partitions})
        request = DescribeTopicConfigs(topics, _CONFIGS)
        configs = await self._pool.call_any(request, deadline, _configs, "configurations of topics")
        if isinstance(configs, Failure):
            return configs
        segments, left_out = configs
        times = {
            key: (seen.sight.lineage[2], now_ms - round(1000 * of.keep_s))
            for key, seen in partitions.items()
            if (of := class_of(key[0], self._classes)) is not None and of.keep_s is not None
        }
        leaders = {
            key: _Led(seen.leader, *seen.sight.lineage[::2]) for key, seen in partitions.items()
        }
        young = await self._offsets(leaders, times, deadline)
        groups = await self._groups(deadline)
        unknown = f"the groups are not known: {groups}" if isinstance(groups, str) else ""
        commits = {} if isinstance(groups, str) else groups
        return Examined(
            segments,
            {
                # -1: no record is that young.
                key: partitions[key].sight.end if offset < 0 else offset
                for key, offset in young.items()
                if isinstance(offset, int)
            },
            {key: _commits_of(key, commits) for key in partitions},
            unknown,
            left_out,
        )

    async def delete(
        self, offsets: Mapping[Partition, int], leaders: Mapping[Partition, int]
    ) -> Deleted:
        """Delete the records below offsets; a failure does not say that nothing was deleted."""
        deadline = asyncio.get_running_loop().time() + 2 * DELETE_MS / 1000
        results: dict[Partition, int | Failure] = {}

        async def ask(leader: int) -> None:
            mine = {key: offset for key, offset in offsets.items() if leaders[key] == leader}
            answer = await self._pool.call(leader, DeleteRecords(mine, DELETE_MS), deadline)
            if isinstance(answer, Failure):
                results.update(dict.fromkeys(mine, answer))
                return
            for topic, index, low_watermark, code in _entries(answer):
                if (topic, index) in mine:
                    failed = _refused("DeleteRecords", code, "Delete", topic) if code else None
                    results[topic, index] = failed or low_watermark

        await asyncio.gather(*map(ask, sorted({leaders[key] for key in offsets})))
        unanswered = Failure(FailureKind.PROTOCOL, "DeleteRecords did not answer for a partition")
        return {key: results.get(key, unanswered) for key in offsets}

    async def _leaders(self, topics: Iterable[str], deadline: float) -> "_Leaders | Failure":
        request = MetadataOfTopics([*topics, OFFSETS_TOPIC])
        answer = await self._pool.call_any(
            request, deadline, _read_leaders, "leaders of partitions"
        )
        if not isinstance(answer, Failure):
            self._pool.set_brokers(answer.brokers)
        return answer

    async def _each(
        self, requests: Mapping[int, AdminRequest], deadline: float
    ) -> dict[int, Response | Failure]:
        calls = (self._pool.call(key, request, deadline) for key, request in requests.items())
        return dict(zip(requests, await asyncio.gather(*calls), strict=True))

    async def _offsets(
        self,
        led: "Mapping[Partition, _Led]",
        times: Mapping[Partition, tuple[int, int]],
        deadline: float,
    ) -> dict[Partition, int | Failure]:
        by_leader: dict[int, dict[Partition, tuple[int, int]]] = {}
        for key, time in times.items():
            by_leader.setdefault(led[key].leader, {})[key] = time
        requests = {key: ListOffsets(each) for key, each in by_leader.items()}
        offsets: dict[Partition, int | Failure] = {}
        for leader, answer in (await self._each(requests, deadline)).items():
            if isinstance(answer, Failure):
                offsets |= dict.fromkeys(by_leader[leader], answer)
                continue
            for topic, index, code, _time, offset, _epoch in _entries(answer):
                failed = _refused("ListOffsets", code, "Describe", topic) if code else None
                offsets[topic, index] = failed or offset
        return offsets

    async def _sizes(
        self, led: "Mapping[Partition, _Led]", deadline: float
    ) -> dict[Partition, dict[LogDir, int]]:
        by_broker: dict[int, list[Partition]] = {}
        for key, each in led.items():
            for broker_id in each.replicas:
                if broker_id in self._brokers:
                    by_broker.setdefault(broker_id, []).append(key)
        requests = {key: SizesOf(each) for key, each in by_broker.items()}
        sizes: dict[Partition, dict[LogDir, int]] = {}
        for broker_id, answer in (await self._each(requests, deadline)).items():
            log_dirs = [] if isinstance(answer, Failure) else log_dirs_in(answer)
            for code, path, topics, *_ in log_dirs:
                for topic, replicas, _tags in (topics or ()) if not code else ():
                    for index, size, is_future in replicas:
                        if not is_future:
                            sizes.setdefault((topic, index), {})[broker_id, path] = size
        return sizes

    async def _groups(self, deadline: float) -> "dict[str, _Commits] | str":
        """Group -> its committed offsets, or why they are not known."""
        known, is_new = self._coordinators, self._clock() < self._coordinated_at + COORDINATED_S
        if isinstance(known, str):
            return known
        listed = await self._listed(deadline)
        if isinstance(listed, str):
            return listed
        groups: dict[str, _Commits] = {}
        for broker_id, every in listed.items():
            for is_share in (False, True):
                some = [each for each in every if each.is_share is is_share]
                for at in range(0, len(some), _GROUPS_AT_ONCE):
                    piece = some[at : at + _GROUPS_AT_ONCE]
                    found = await self._committed(broker_id, piece, deadline)
                    if isinstance(found, str):
                        return found
                    groups |= found
        again = await self._leaders((), deadline)
        if is_new or isinstance(again, Failure) or again.coordinators != known:
            return "coordinators of groups have just changed"
        return groups

    async def _listed(self, deadline: float) -> "dict[int, list[_Group]] | str":
        requests: dict[int, AdminRequest] = dict.fromkeys(self._brokers, ListGroups())
        listed: dict[int, list[_Group]] = {}
        for broker_id, answer in (await self._each(requests, deadline)).items():
            if isinstance(answer, Failure):
                return answer.message
            if answer.error_code:
                failed = _refused("ListGroups", answer.error_code, "Describe", None)
                return f"broker {broker_id}: {failed.message}"
            listed[broker_id] = [
                # Without the tags; v4 has no types.
                _Group(*entry[:3], *entry[3:-1])
                for entry in answer.groups or ()
            ]
        return listed

    async def _committed(
        self, broker_id: int, groups: "Sequence[_Group]", deadline: float
    ) -> "dict[str, _Commits] | str":
        names = [each.name for each in groups]
        is_share = groups[0].is_share
        request = DescribeShareOffsets(names) if is_share else FetchOffsets(names)
        answer = await self._pool.call(broker_id, request, deadline)
        if isinstance(answer, Failure):
            return answer.message
        commits: dict[str, _Commits] = {}
        for name, topics, code, *_ in answer.groups or ():
            if code:
                return f"group {name}: {error_name(code)}; it needs DESCRIBE on the group"
            offsets: dict[str, dict[int, int]] = {}
            for topic, *_id, partitions, _tags in topics or ():
                of = offsets.setdefault(topic, {})
                for index, offset, *rest in partitions or ():
                    if not is_share:
                        of[index] = NOTHING if rest[2] else offset
            commits[name] = offsets
        for each in groups:
            if each.name not in commits:
                return f"group {each.name}: its coordinator did not report its offsets"
            if each.reads and not commits[each.name]:
                return f"group {each.name} has members, but no committed offset yet"
        return commits


_Coordinators = Mapping[int, tuple[int, int]] | str
_Commits = Mapping[str, Mapping[int, int]]
"""Topic -> index -> committed offset."""


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


@dataclass(frozen=True, slots=True)
class _Led:
    leader: int
    topic_id: bytes
    epoch: int
    replicas: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class _Leaders:
    brokers: Mapping[int, HostPort]
    led: Mapping[Partition, _Led]
    left_out: Mapping[str, str]
    coordinators: _Coordinators


def _names(response: Response, _: HostPort) -> frozenset[str]:
    return frozenset(
        name
        for code, name, _id, is_internal, *_more in response.topics or ()
        if not code and not is_internal and name is not None
    )


def _read_leaders(response: Response, _: HostPort) -> _Leaders:
    brokers = {broker_id: HostPort(host, port) for broker_id, host, port, *_ in response.brokers}
    led: dict[Partition, _Led] = {}
    left_out: dict[str, str] = {}
    coordinators: _Coordinators = "no broker reported their coordinators"
    for code, name, topic_id, _internal, partitions, *_more in response.topics or ():
        if name == OFFSETS_TOPIC:
            coordinators = _read_coordinators(code, partitions, brokers)
        elif code and code != _NO_TOPIC:
            left_out[name] = _refused("Metadata", code, "Describe", name).message
        for index, leader, replicas, epoch in partitions:
            if name == OFFSETS_TOPIC or code:
                continue
            if leader not in brokers:
                left_out[name] = f"partition {index} has no leader"
            else:
                led[name, index] = _Led(leader, topic_id, epoch, replicas)
    return _Leaders(brokers, led, left_out, coordinators)


def _read_coordinators(
    code: int, partitions: Iterable[Any], brokers: Mapping[int, HostPort]
) -> _Coordinators:
    if code == _NO_TOPIC:
        # No group has ever committed an offset.
        return {}
    if code:
        return _refused("Metadata", code, "Describe", OFFSETS_TOPIC).message
    leaders = {index: (leader, epoch) for index, leader, _, epoch in partitions}
    without = [index for index, (leader, _) in leaders.items() if leader not in brokers]
    return f"partition {without[0]} of {OFFSETS_TOPIC} has no leader" if without else leaders


def _configs(response: Response, _: HostPort) -> tuple[dict[str, int], dict[str, str]]:
    segments: dict[str, int] = {}
    left_out: dict[str, str] = {}
    for code, _message, _type, topic, configs, *_tags in response.results or ():
        values = {name: value for name, value, *_ in configs or ()}
        policy = values.get("cleanup.policy")
        if code:
            left_out[topic] = _refused("DescribeConfigs", code, "DescribeConfigs", topic).message
        elif policy != "delete":
            left_out[topic] = f"its cleanup.policy is {policy}: only delete is supported"
        elif values.get("remote.storage.enable") == "true":
            left_out[topic] = "its records are in tiered storage, too"
        else:
            segments[topic] = int(values["segment.bytes"])
    return segments, left_out


def _commits_of(partition: Partition, groups: Mapping[str, _Commits]) -> dict[str, int]:
    topic, index = partition
    return {
        group: topics[topic].get(index, NOTHING)
        for group, topics in groups.items()
        if topic in topics
    }


def _entries(response: Response) -> Iterable[tuple[Any, ...]]:
    """Topic, and the fields of each of its partitions."""
    for topic, partitions, _tags in response.topics or ():
        for *fields, _ in partitions or ():
            yield topic, *fields


def _refused(name: str, code: int, needs: str, topic: str | None) -> Failure:
    text = f"{name} returned {error_name(code)}"
    if "AUTHORIZATION" in error_name(code):
        where = "the cluster" if topic is None else f"topic {topic}"
        return Failure(FailureKind.AUTHORIZATION, f"{text}: it needs {needs} on {where}")
    return Failure(FailureKind.BROKER, text)
