"""The fields of requests and answers that this package reads from Kafka's JSON, in all versions.

If a version lacks a field, the field has the default of the wire format. Other fields are ignored,
so that newer versions of Kafka can be read.

Example: a FETCH contains its replica in ``replicaId`` up to version 14, and in ``replicaState``
from version 15 on. A consumer's replica is -1.

Source: Kafka's message definitions (clients/src/main/resources/common/message).
"""

import msgspec


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Part of a request or answer, with Kafka's names."""


class ProducePartition(Wire, frozen=True):
    """The records for one partition.

    Attributes:
        index: the partition.
        records_size_in_bytes: the size of the batches; the quota is charged for the whole request.
    """

    index: int
    records_size_in_bytes: int = 0


class ProduceTopic(Wire, frozen=True):
    """The records for one topic.

    Attributes:
        partition_data: the topic's partitions.
        name: the topic's name; "" from version 13 on, which use the id.
        topic_id: the topic's id in base64, as logged; "" before version 13.
    """

    partition_data: tuple[ProducePartition, ...]
    name: str = ""
    topic_id: str = ""


class Produce(Wire, frozen=True):
    """A PRODUCE request.

    Attributes:
        acks: -1, 0 or 1.
        topics: the records for each topic.
        transactional_id: the transactional id; None outside transactions.
    """

    acks: int
    topics: tuple[ProduceTopic, ...] = msgspec.field(name="topicData")
    transactional_id: str | None = None

    @property
    def records_bytes(self) -> int:
        """The size of all batches."""
        return sum(
            partition.records_size_in_bytes
            for topic in self.topics
            for partition in topic.partition_data
        )


class InitProducerIdAnswer(Wire, frozen=True):
    """The answer to INIT_PRODUCER_ID.

    Attributes:
        producer_id: the id; -1 if the answer contains none.
        producer_epoch: how often the broker has returned this id again.
        error: Kafka's error code; None without an answer.
    """

    producer_id: int = -1
    producer_epoch: int = -1
    error: int | None = msgspec.field(default=None, name="errorCode")


class Acks(Wire, frozen=True):
    """The acks of a PRODUCE; 0 means that there is no answer."""

    acks: int


class ReplicaState(Wire, frozen=True):
    """The replica that fetches, from version 15 on."""

    replica_id: int = -1


class Fetch(Wire, frozen=True):
    """A FETCH request."""

    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()

    @property
    def replica(self) -> int:
        """The replica that fetches, in any version; negative for consumers."""
        return self.replica_id if self.replica_id != -1 else self.replica_state.replica_id


class Present(Wire, frozen=True):
    """A structure of fixed size on the wire; only its presence matters."""


class FetchedPartition(Wire, frozen=True):
    """A partition in a FETCH's answer.

    Attributes:
        records_size_in_bytes: the size of the batches.
        aborted_transactions: one element of fixed size for each aborted transaction; or None.
        diverging_epoch: a tagged field from version 12 on, like the next two.
        current_leader: the leader to fetch from instead.
        snapshot_id: the snapshot to fetch instead.
    """

    records_size_in_bytes: int = 0
    aborted_transactions: tuple[Present, ...] | None = None
    diverging_epoch: Present | None = None
    current_leader: Present | None = None
    snapshot_id: Present | None = None


class FetchedTopic(Wire, frozen=True):
    """A topic in a FETCH's answer; its name is "" from version 13 on."""

    topic: str = ""
    partitions: tuple[FetchedPartition, ...] = ()


class Fetched(Wire, frozen=True):
    """A FETCH's answer."""

    responses: tuple[FetchedTopic, ...] = ()

    @property
    def records_bytes(self) -> int:
        """The size of all batches."""
        return sum(
            partition.records_size_in_bytes
            for topic in self.responses
            for partition in topic.partitions
        )


class Topic(Wire, frozen=True):
    """A topic in one of the three requests about topics."""

    name: str | None = None
    topic_id: str = ""
    num_partitions: int = -1
    count: int = -1
    assignments: tuple[msgspec.Raw, ...] | None = None


class TopicsRequest(Wire, frozen=True):
    """CREATE_TOPICS, CREATE_PARTITIONS or DELETE_TOPICS; ``topic_names`` before DELETE_TOPICS 6."""

    topics: tuple[Topic, ...] = ()
    topic_names: tuple[str, ...] = ()
    validate_only: bool = False


class TopicAnswer(Wire, frozen=True):
    """The result for one topic."""

    error_code: int
    name: str | None = None
    topic_id: str = ""
    num_partitions: int = -1


class TopicsAnswer(Wire, frozen=True):
    """The answer to one of the three requests; each uses another name for its list."""

    topics: tuple[TopicAnswer, ...] = ()
    results: tuple[TopicAnswer, ...] = ()
    responses: tuple[TopicAnswer, ...] = ()


class EntityPart(Wire, frozen=True):
    """A user, client-id or address; the name None stands for the default."""

    entity_type: str
    entity_name: str | None


class Op(Wire, frozen=True):
    """A quota to set or to remove; Jackson writes NaN and infinities as strings."""

    key: str
    value: float | str
    remove: bool


class QuotaEntry(Wire, frozen=True):
    """The quotas of one entity."""

    entity: tuple[EntityPart, ...]
    ops: tuple[Op, ...]


class QuotasRequest(Wire, frozen=True):
    """An ALTER_CLIENT_QUOTAS request."""

    entries: tuple[QuotaEntry, ...]
    validate_only: bool


class QuotaAnswer(Wire, frozen=True):
    """The result for one entity."""

    error_code: int
    entity: tuple[EntityPart, ...]


class QuotasAnswer(Wire, frozen=True):
    """The answer to ALTER_CLIENT_QUOTAS."""

    entries: tuple[QuotaAnswer, ...] = ()
