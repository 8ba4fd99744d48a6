"""Leaders of a simulated cluster's partitions and the producers that are active there, by kio."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i32, i64

from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest, encode

METADATA = 3
DESCRIBE_PRODUCERS = 61

NO_TIME = timedelta(0)

Partition = tuple[str, int]


@dataclass
class FakeProducers:
    """What the brokers of a cluster report of their partitions.

    Attributes:
        leaders: partition -> the broker that leads it, -1 for none.
        producers: partition -> its producers: id, epoch and last sequence.
        internal: topics that are Kafka's own.
        refused: partition -> the error that its leader answers instead.
        silent: partitions that brokers leave out of their answers.
        asked: broker id and partitions of each question for producers, in order.
        listed: how often it was asked who leads what.
    """

    leaders: dict[Partition, int] = field(default_factory=dict)
    producers: dict[Partition, list[tuple[int, int, int]]] = field(default_factory=dict)
    internal: set[str] = field(default_factory=set)
    refused: dict[Partition, ErrorCode] = field(default_factory=dict)
    silent: set[Partition] = field(default_factory=set)
    asked: list[tuple[int, list[Partition]]] = field(default_factory=list)
    listed: int = 0

    def of(self, cluster: FakeCluster) -> FakeCluster:
        """Let a cluster's brokers answer with these."""
        cluster.answer(METADATA, 12, self._metadata)
        return cluster.answer(DESCRIBE_PRODUCERS, 0, self._describe)

    def _metadata(self, broker: FakeBroker, _: FakeRequest) -> bytes:
        self.listed += 1
        kio = load_payload_module(METADATA, 12, EntityType.response)
        topics: dict[str, list[Any]] = {}
        for (topic, index), leader in self.leaders.items():
            partition = kio.MetadataResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(index),
                leader_id=i32(leader),
                replica_nodes=(i32(0), i32(1)),
                isr_nodes=(i32(0),),
            )
            topics.setdefault(topic, []).append(partition)
        brokers = tuple(
            kio.MetadataResponseBroker(node_id=each.broker_id, host="127.0.0.1", port=each.port)
            for each in broker.cluster.brokers.values()
        )
        reported = tuple(
            kio.MetadataResponseTopic(
                error_code=ErrorCode.none,
                name=name,
                topic_id=uuid.UUID(int=1),
                is_internal=name in self.internal,
                partitions=tuple(partitions),
            )
            for name, partitions in topics.items()
        )
        return encode(kio.MetadataResponse(throttle_time=NO_TIME, brokers=brokers, topics=reported))

    def _describe(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        asked = request.decoded
        named = [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
        self.asked.append((broker.broker_id, named))
        kio = load_payload_module(DESCRIBE_PRODUCERS, 0, EntityType.response)
        topics = tuple(
            kio.TopicResponse(
                name=topic.name,
                partitions=tuple(
                    self._partition(kio, broker, (topic.name, index))
                    for index in topic.partition_indexes
                    if (topic.name, index) not in self.silent
                ),
            )
            for topic in asked.topics
        )
        return encode(kio.DescribeProducersResponse(throttle_time=NO_TIME, topics=topics))

    def _partition(self, kio: Any, broker: FakeBroker, partition: Partition) -> Any:
        leads = self.leaders.get(partition) == broker.broker_id
        wrong = ErrorCode.none if leads else ErrorCode.not_leader_or_follower
        code = self.refused.get(partition, wrong)
        states = self.producers.get(partition, []) if code is ErrorCode.none else []
        return kio.PartitionResponse(
            partition_index=i32(partition[1]),
            error_code=code,
            active_producers=tuple(
                kio.ProducerState(
                    producer_id=i64(producer_id),
                    producer_epoch=i32(epoch),
                    last_sequence=i32(sequence),
                    last_timestamp=i64(0),
                    coordinator_epoch=i32(-1),
                )
                for producer_id, epoch, sequence in states
            ),
        )
