"""Reads the partitions of declared classes, and deletes their oldest records.

``look`` reads leaders, high watermarks, sizes and first offsets, in this order: a size must be
newer than its high watermark (``sidecar.throttle.partition_track``). It also reads the topics'
configurations, since what was seen of a topic while it was compacted never counts. ``examine``
reads what limits a deletion: the first young record, and the committed offsets of all groups
(``sidecar.kafka.group_commits``).

Needed: DESCRIBE, DESCRIBE_CONFIGS and DELETE on the declared topics, DESCRIBE on the groups, on the
topics that they read and on __consumer_offsets, and DESCRIBE on the cluster, like polls.

Example: "logs" has one partition with offsets 100 to 900 and 2 GB; etl has committed 700 of it.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.pool import ClusterId, Pool, any_cluster
from sidecar.kafka.config_messages import TOPIC, DescribeConfigs
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.kafka.group_commits import GroupCommits, commits_of, led_by
from sidecar.kafka.log_dir_messages import DescribeSomeTopics, log_dirs_in
from sidecar.kafka.partition_leaders import (
    Led,
    Offsets,
    delete_records,
    highest_times,
    offsets_at,
    read_leaders,
)
from sidecar.kafka.producer_messages import AllTopics
from sidecar.kafka.relief_messages import EARLIEST, LATEST, refused
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.throttle.growth import Partition
from sidecar.throttle.partition_track import Sight
from sidecar.throttle.relief import BEYOND, NOTHING, ReliefClass, class_of, matching
from sidecar.volumes import Failure, FailureKind, LogDir

NAMES_S: Final = 60.0
"""How late a new topic is noticed."""

_AGAIN_S: Final = 5.0
"""How long leaders may take to be read again before a deletion, seconds."""
_DELETE: Final = 6
_NOT_TOLD: Final = -(2**31)
_CHANGED: Final = Failure(FailureKind.BROKER, "the topic was made again, or its leader has changed")
_TIERED: Final = ("remote.storage.enable", "confluent.tier.enable")
"""Kafka's setting, and the one of Confluent Server."""
_CONFIGS: Final = ("cleanup.policy", "segment.bytes", *_TIERED)


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition as just read.

    Attributes:
        sight: its offsets and size.
        leader: its leader's broker id.
        homes: the volumes with a replica that does not move to another log dir.
    """

    sight: Sight
    leader: int
    homes: frozenset[LogDir]


@dataclass(frozen=True, slots=True)
class Look:
    """The partitions of declared classes.

    Attributes:
        partitions: those that could be read.
        left_out: topic -> why some of it could not, or why Kafka would not free what is deleted.
        segment_bytes: topic -> its segment.bytes; without the unsuitable topics.
        unsuitable: topic -> why nothing may be deleted from it, by its configuration, or because
            it is not read.
    """

    partitions: Mapping[Partition, Seen]
    left_out: Mapping[str, str] = field(default_factory=dict)
    segment_bytes: Mapping[str, int] = field(default_factory=dict)
    unsuitable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Examined:
    """What limits deletions.

    Attributes:
        young_from: partition -> the first record younger than its class keeps, or its end; without
            those whose records' age is not known.
        commits: partition -> group -> its committed offset, or ``NOTHING``.
        groups_unknown: why the groups are not known; "" if they are.
        silent: of each group with members that shows no committed offset: why.
    """

    young_from: Mapping[Partition, int]
    commits: Mapping[Partition, Mapping[str, int]]
    groups_unknown: str
    silent: Sequence[str] = ()


class ExpendableTopics:
    """The topics of declared classes in a cluster.

    Args:
        admin: how to reach the brokers.
        clock: steady seconds.
        cluster_id: the id of the only cluster that may answer; None for any.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        clock: Callable[[], float],
        *,
        cluster_id: ClusterId = any_cluster,
    ) -> None:
        self._pool = Pool.of(admin, clock, cluster_id=cluster_id)
        self._clock = clock
        self._groups = GroupCommits(self._pool, clock)
        self._classes: Sequence[ReliefClass] = ()
        self._names: list[str] = []
        self._beyond: list[str] = []
        self._named_at = 0.0
        self._brokers: Collection[int] = ()
        self._lineages: Mapping[Partition, tuple[bytes, int, int]] = {}

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        """Reads new credentials; see ``Pool.reload``."""
        return self._pool.reload(admin, redial=redial)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def look(self, classes: Sequence[ReliefClass], timeout_s: float) -> Look | Failure:
        """Read the partitions once."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        now = self._clock()
        if classes != self._classes or now >= self._named_at + NAMES_S:
            names = await self._pool.call_any(AllTopics(), deadline, _names, "the topics")
            if isinstance(names, Failure):
                return names
            self._names, self._beyond = matching(names, classes)
            self._named_at, self._classes = now, classes
        answer = await read_leaders(self._pool, self._names, deadline)
        if isinstance(answer, Failure):
            return answer
        self._brokers = answer.brokers
        self._lineages = {key: each.lineage for key, each in answer.led.items()}
        leaders = {key: each.leader for key, each in answer.led.items()}
        latest = {key: (each.epoch, LATEST) for key, each in answer.led.items()}
        of_groups = led_by(answer.coordinators)
        ends = await offsets_at(
            self._pool,
            latest | {key: (epoch, LATEST) for key, (_, epoch) in of_groups.items()},
            leaders | {key: leader for key, (leader, _) in of_groups.items()},
            deadline,
        )
        self._groups.note(answer.coordinators, ends, now)
        sizes, moving = await self._sizes(answer.led, deadline)
        earliest = {key: (epoch, EARLIEST) for key, (epoch, _) in latest.items()}
        starts = await offsets_at(self._pool, earliest, leaders, deadline)
        topics = sorted({topic for topic, _ in answer.led})
        configs = await self._configs(topics, deadline)
        if isinstance(configs, Failure):
            return configs
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
                sight = Sight(now, led.lineage, start, end, size)
                # Kafka frees nothing of a replica that moves to another log dir, until that ends.
                homes = frozenset(each for each in replicas if (key, each[0]) not in moving)
                found[key] = Seen(sight, led.leader, homes)
        segment_bytes, unsuitable = configs
        beyond = dict.fromkeys(self._beyond, BEYOND)
        return Look(found, left_out, segment_bytes, unsuitable | beyond)

    async def examine(
        self,
        partitions: Mapping[Partition, Seen],
        classes: Sequence[ReliefClass],
        now_ms: int,
        timeout_s: float,
    ) -> Examined | Failure:
        """Read what limits deletions.

        Args:
            partitions: the partitions.
            classes: the classes.
            now_ms: milliseconds of the epoch.
            timeout_s: the time for all requests, seconds.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        times = {
            key: (seen.sight.lineage[2], now_ms - round(1000 * declared.keep_s))
            for key, seen in partitions.items()
            if (declared := class_of(key[0], classes)) is not None and declared.keep_s is not None
        }
        leaders = {key: seen.leader for key, seen in partitions.items()}
        young_from = await self._young_from(times, partitions, leaders, deadline)
        groups = await self._groups.read(self._brokers, deadline)
        if isinstance(groups, str):
            none = {key: dict[str, int]() for key in partitions}
            return Examined(young_from, none, f"the groups are not known: {groups}")
        commits = {key: commits_of(key, groups.commits) for key in partitions}
        unknown = [f"the groups are not known: {each}" for each in groups.silent]
        return Examined(
            young_from,
            await self._of_these_logs(commits, partitions, leaders, deadline),
            next(iter(unknown), ""),
            groups.silent,
        )

    async def changed(self, partitions: Collection[Partition]) -> Mapping[Partition, Failure]:
        """Those of partitions that ``look`` read otherwise, or that can't be read now.

        DeleteRecords has neither topic ids nor leader epochs, so these must not be deleted from.
        """
        deadline = asyncio.get_running_loop().time() + _AGAIN_S
        answer = await read_leaders(self._pool, {topic for topic, _ in partitions}, deadline)
        if isinstance(answer, Failure):
            return dict.fromkeys(partitions, answer)
        known = {key: each.lineage for key, each in answer.led.items()}
        return {
            key: _CHANGED
            for key in partitions
            if key not in known or known[key] != self._lineages.get(key)
        }

    async def delete(
        self, offsets: Mapping[Partition, int], leaders: Mapping[Partition, int]
    ) -> Offsets:
        """Delete the records below offsets; see ``delete_records``."""
        return await delete_records(self._pool, offsets, leaders)

    async def undeletable(
        self, topics: Sequence[str], timeout_s: float
    ) -> frozenset[str] | Failure:
        """The topics whose records the user may not delete, as brokers report it (KIP-430)."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        request = MetadataOfTopics(topics, rights=True)
        return await self._pool.call_any(request, deadline, _undeletable, "rights on topics")

    async def _young_from(
        self,
        times: Mapping[Partition, tuple[int, int]],
        partitions: Mapping[Partition, Seen],
        leaders: Mapping[Partition, int],
        deadline: float,
    ) -> dict[Partition, int]:
        """The first record from a time on, or the end; without partitions of which Kafka can't say.

        For "none", it searches only the first segment with such a timestamp. That may be one of a
        deleted record, and later segments have others (UnifiedLog.fetchOffsetByTimestamp).
        """
        found = await offsets_at(self._pool, times, leaders, deadline)
        young = {key: offset for key, offset in found.items() if isinstance(offset, int)}
        epochs = {key: times[key][0] for key, offset in young.items() if offset < 0}
        highest = await highest_times(self._pool, epochs, leaders, deadline)
        old = {
            key: partitions[key].sight.end
            for key, at_ms in highest.items()
            if isinstance(at_ms, int) and 0 <= at_ms < times[key][1]
        }
        return {key: offset for key, offset in young.items() if offset >= 0} | old

    async def _of_these_logs(
        self,
        commits: Mapping[Partition, Mapping[str, int]],
        partitions: Mapping[Partition, Seen],
        leaders: Mapping[Partition, int],
        deadline: float,
    ) -> dict[Partition, Mapping[str, int]]:
        """The commits, with ``NOTHING`` for those beyond the end.

        A consumer that ran on while its topic was deleted and made again commits one (KAFKA-4095).
        """
        of_logs = dict(commits)
        ahead = {
            key: (seen.sight.lineage[2], LATEST)
            for key, seen in partitions.items()
            if max(commits[key].values(), default=NOTHING) > seen.sight.end
        }
        ends = await offsets_at(self._pool, ahead, leaders, deadline)
        for key in ahead:
            # Read after the commits, since a group may have read what was written meanwhile.
            end = ends.get(key)
            of_logs[key] = {
                group: offset if isinstance(end, int) and offset <= end else NOTHING
                for group, offset in commits[key].items()
            }
        return of_logs

    async def _configs(
        self, topics: Sequence[str], deadline: float
    ) -> tuple[dict[str, int], dict[str, str]] | Failure:
        if not topics:
            return {}, {}
        request = DescribeConfigs(TOPIC, topics, _CONFIGS)
        return await self._pool.call_any(request, deadline, _configs, "configurations of topics")

    async def _sizes(
        self, led: Mapping[Partition, Led], deadline: float
    ) -> tuple[dict[Partition, dict[LogDir, int]], set[tuple[Partition, int]]]:
        """The sizes of replicas, and on which brokers partitions move to another log dir."""
        by_broker: dict[int, dict[str, list[int]]] = {}
        for (topic, index), each in led.items():
            for broker_id in each.replicas:
                if broker_id in self._brokers:
                    by_broker.setdefault(broker_id, {}).setdefault(topic, []).append(index)
        requests = {key: DescribeSomeTopics(each) for key, each in by_broker.items()}
        sizes: dict[Partition, dict[LogDir, int]] = {}
        moving: set[tuple[Partition, int]] = set()
        for broker_id, answer in (await self._pool.call_each(requests, deadline)).items():
            log_dirs = [] if isinstance(answer, Failure) else log_dirs_in(answer)
            for code, path, topics, *_ in log_dirs:
                for topic, replicas, _tags in (topics or ()) if not code else ():
                    for index, size, is_future in replicas:
                        if is_future:
                            moving.add(((topic, index), broker_id))
                        else:
                            sizes.setdefault((topic, index), {})[broker_id, path] = size
        return sizes, moving


def _names(response: Response, _: HostPort) -> dict[str, int]:
    """Topic -> the number of its partitions; each has an index and a leader."""
    return {
        name: len(leaders) // 2
        for code, name, _id, is_internal, leaders, *_more in response.topics or ()
        if not code and not is_internal and name is not None
    }


def _undeletable(response: Response, _: HostPort) -> frozenset[str]:
    return frozenset(
        name
        for code, name, _id, _internal, _partitions, rights, *_more in response.topics or ()
        if not code and rights != _NOT_TOLD and not rights >> _DELETE & 1
    )


def _configs(response: Response, _: HostPort) -> tuple[dict[str, int], dict[str, str]]:
    segments: dict[str, int] = {}
    unsuitable: dict[str, str] = {}
    for code, _message, _type, topic, configs, *_tags in response.results or ():
        values = {name: value for name, value, *_ in configs or ()}
        policy = values.get("cleanup.policy")
        if code:
            unsuitable[topic] = refused("DescribeConfigs", code, "DescribeConfigs", topic).message
        elif policy != "delete":
            text = f"its cleanup.policy is {policy or 'not set'}: only delete is supported"
            unsuitable[topic] = text
        elif any(values.get(name) == "true" for name in _TIERED):
            unsuitable[topic] = "its records are in tiered storage, too"
        elif segment_bytes := values.get("segment.bytes"):
            segments[topic] = int(segment_bytes)
        else:
            unsuitable[topic] = "the broker does not report its segment.bytes"
    return segments, unsuitable
