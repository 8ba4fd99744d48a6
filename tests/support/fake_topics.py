"""Topics and groups of a simulated cluster, as making room asks for them; answers are kio's.

A subclass says what there is, and what becomes of a deletion.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from sidecar.kafka.cluster_messages import DESCRIBE_LOG_DIRS_KEY
from sidecar.kafka.config_messages import DESCRIBE_CONFIGS_KEY
from sidecar.kafka.producer_messages import METADATA_KEY
from sidecar.kafka.relief_messages import (
    DELETE_RECORDS_KEY,
    HIGHEST,
    LIST_GROUPS_KEY,
    LIST_OFFSETS_KEY,
    OFFSET_FETCH_KEY,
)
from sidecar.throttle.growth import Partition
from tests.sidecar.kafka.kio_codec import kio_answer, kio_values
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest

OK = ErrorCode.none
TOPIC_ID = uuid.UUID(int=7)
_TOPIC_CONFIG = 2


class FakePartition(NamedTuple):
    """A partition in Metadata."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]


class FakeDir(NamedTuple):
    """A log dir with its partitions and their sizes; a future one is the copy of a move."""

    error: int
    log_dir: str
    total: int
    usable: int
    sizes: Sequence[tuple[Partition, int, bool]]


class FakeTopics(ABC):
    """What brokers answer about topics and groups.

    Attributes:
        rights: the user's operations on each topic, as bits.
        topic_id: the id of each topic.
    """

    rights: int = 0
    topic_id: uuid.UUID = TOPIC_ID

    def of(self, cluster: FakeCluster) -> FakeCluster:
        """Let a cluster's brokers answer with these."""
        for key, version, answer in (
            (METADATA_KEY, 12, self._metadata),
            (LIST_OFFSETS_KEY, 7, self._offsets),
            (DESCRIBE_CONFIGS_KEY, 4, self.describe_configs),
            (LIST_GROUPS_KEY, 5, self._groups),
            (OFFSET_FETCH_KEY, 8, self._fetch),
            (DELETE_RECORDS_KEY, 2, self._delete),
        ):
            cluster.answer(key, version, answer)
        return cluster

    @abstractmethod
    def topics(self, broker: FakeBroker) -> Mapping[str, Sequence[FakePartition]]:
        """All topics as a broker knows them, with ``OFFSETS_TOPIC``, unless nobody committed."""

    @abstractmethod
    def offset(
        self, broker: FakeBroker, key: Partition, epoch: int, timestamp: int
    ) -> tuple[ErrorCode, int]:
        """What a broker answers to ListOffsets: an offset, or the highest timestamp for -3."""

    @abstractmethod
    def log_dirs(
        self, broker: FakeBroker, asked: Sequence[tuple[str, Sequence[int]]] | None
    ) -> Iterable[FakeDir]:
        """A broker's log dirs with some partitions; None: with all."""

    @abstractmethod
    def config(self, topic: str) -> tuple[ErrorCode, Mapping[str, str]]:
        """A topic's configuration."""

    @abstractmethod
    def groups_of(
        self, broker: FakeBroker
    ) -> tuple[ErrorCode, Iterable[tuple[str, str, str, str]]]:
        """What a broker coordinates: names, protocol types, states and types."""

    @abstractmethod
    def commits_of(
        self, broker: FakeBroker, group: str
    ) -> tuple[ErrorCode, Mapping[str, Mapping[int, int]]]:
        """A group's committed offsets."""

    @abstractmethod
    def delete(
        self, broker: FakeBroker, offsets: Mapping[Partition, int]
    ) -> Mapping[Partition, tuple[ErrorCode, int]]:
        """Delete records below offsets; the first offsets then."""

    def brokers(self, broker: FakeBroker) -> Iterable[FakeBroker]:
        """The active brokers as a broker knows them."""
        return broker.cluster.brokers.values()

    def _metadata(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        known, named, cluster = self.topics(broker), request.decoded.topics, broker.cluster
        names = known if named is None else [topic.name for topic in named]
        brokers = [
            _row(
                "node_id host port rack",
                *(each.broker_id, cluster.host, each.advertised_port or each.port, None),
            )
            for each in self.brokers(broker)
        ]
        unknown = ErrorCode.unknown_topic_or_partition
        topics = [
            metadata_topic(
                name,
                known.get(name, ()),
                error=OK if name in known else unknown,
                topic_id=self.topic_id,
                rights=self.rights,
            )
            for name in names
        ]
        return metadata_answer(*topics, brokers=brokers, cluster_id=cluster.cluster_id)

    def _offsets(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        found: dict[Partition, dict[str, Any]] = {}
        for topic in request.decoded.topics:
            for index, epoch, timestamp in kio_values(topic.partitions):
                code, offset = self.offset(broker, (topic.name, index), epoch, timestamp)
                names = "partition_index error_code timestamp offset leader_epoch"
                time = offset if timestamp == HIGHEST else -1
                found[topic.name, index] = _row(names, index, code, time, offset, epoch)
        return kio_answer(LIST_OFFSETS_KEY, 7, topics=_by_topic(found))

    def sizes(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        """The answer to DescribeLogDirs with topics."""
        named = request.decoded.topics
        asked = None if named is None else [(each.topic, each.partitions) for each in named]
        names = "partition_index partition_size offset_lag is_future_key"
        results = [
            _row(
                "error_code log_dir topics total_bytes usable_bytes",
                *(ErrorCode(each.error), each.log_dir),
                [
                    _row("name partitions", key[0], [_row(names, key[1], size, 0, is_future)])
                    for key, size, is_future in each.sizes
                ],
                *(each.total, each.usable),
            )
            for each in self.log_dirs(broker, asked)
        ]
        version = request.api_version
        return kio_answer(DESCRIBE_LOG_DIRS_KEY, version, error_code=OK, results=results)

    def describe_configs(self, _: FakeBroker, request: FakeRequest) -> bytes:
        """The answer to DescribeConfigs of topics."""
        names = "name value read_only config_source is_sensitive synonyms config_type documentation"
        results = []
        for topic in [resource.resource_name for resource in request.decoded.resources]:
            code, values = self.config(topic)
            configs = [_row(names, *each, False, 1, False, [], 1, None) for each in values.items()]
            of = "error_code error_message configs resource_type resource_name"
            results.append(_row(of, code, None, configs, _TOPIC_CONFIG, topic))
        return kio_answer(DESCRIBE_CONFIGS_KEY, 4, results=results)

    def _groups(self, broker: FakeBroker, _: FakeRequest) -> bytes:
        code, listed = self.groups_of(broker)
        groups = [_row("group_id protocol_type group_state group_type", *each) for each in listed]
        return kio_answer(LIST_GROUPS_KEY, 5, error_code=code, groups=groups)

    def _fetch(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        names = "partition_index committed_offset committed_leader_epoch metadata error_code"
        groups = []
        for name in [each.group_id for each in request.decoded.groups]:
            code, topics = self.commits_of(broker, name)
            of = {
                (topic, index): _row(names, index, offset, -1, "", OK)
                for topic, offsets in topics.items()
                for index, offset in offsets.items()
            }
            groups.append(_row("group_id topics error_code", name, _by_topic(of), code))
        return kio_answer(OFFSET_FETCH_KEY, 8, groups=groups)

    def _delete(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        asked = {
            (topic.name, each.partition_index): each.offset
            for topic in request.decoded.topics
            for each in topic.partitions
        }
        names = "partition_index low_watermark error_code"
        rows = {
            key: _row(names, key[1], low, code)
            for key, (code, low) in self.delete(broker, asked).items()
        }
        return kio_answer(DELETE_RECORDS_KEY, 2, topics=_by_topic(rows))


def _row(names: str, *values: object) -> dict[str, Any]:
    return dict(zip(names.split(), values, strict=True))


def _by_topic(rows: Mapping[Partition, dict[str, Any]]) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, _), row in rows.items():
        topics.setdefault(topic, []).append(row)
    return [_row("name partitions", *each) for each in topics.items()]


def metadata_topic(
    name: str | None,
    partitions: Sequence[FakePartition] = (),
    *,
    error: ErrorCode = OK,
    topic_id: uuid.UUID = TOPIC_ID,
    rights: int = 0,
) -> dict[str, Any]:
    """A topic in ``metadata_answer``."""
    names = "partition_index error_code leader_id leader_epoch replica_nodes isr_nodes"
    listed = [
        {**_row(names, index, OK, *each, each.replicas), "offline_replicas": ()}
        for index, each in enumerate(partitions)
    ]
    is_internal = name is not None and name.startswith("__")
    names = "error_code name topic_id is_internal partitions topic_authorized_operations"
    return _row(names, error, name, topic_id, is_internal, listed, rights)


def metadata_answer(
    *topics: dict[str, Any], brokers: Sequence[dict[str, Any]] = (), cluster_id: str = "any"
) -> bytes:
    """An answer to Metadata."""
    fields = {"brokers": list(brokers), "cluster_id": cluster_id, "controller_id": 0}
    return kio_answer(METADATA_KEY, 12, **fields, topics=list(topics))
