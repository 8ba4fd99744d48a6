"""Requests and answers as Kafka writes them as JSON: the fields that are read, all versions.

A field that some versions lack has the default that it has on the wire. Fields that are not named
here are skipped, whatever they contain, so that new versions of Kafka are read too.

Example: a FETCH names its replica in ``replicaId`` up to version 14 and in ``replicaState`` from 15
on; a consumer's is -1.

Source: Kafka's message definitions (clients/src/main/resources/common/message).
"""

import msgspec


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Part of a request or of an answer, by Kafka's names."""


class ProducePartition(Wire, frozen=True):
    """What was written to a partition.

    Attributes:
        index: the partition.
        records_size_in_bytes: of its batches; the quota is charged with the whole request.
    """

    index: int
    records_size_in_bytes: int = 0


class ProduceTopic(Wire, frozen=True):
    """What was written to a topic.

    Attributes:
        partition_data: its partitions.
        name: "" from version 13 on, where the topic is named by its id.
        topic_id: base64, as logged; "" before version 13.
    """

    partition_data: tuple[ProducePartition, ...]
    name: str = ""
    topic_id: str = ""


class Produce(Wire, frozen=True):
    """A PRODUCE request.

    Attributes:
        acks: -1, 0 or 1.
        topics: what was written.
        transactional_id: None outside transactions.
    """

    acks: int
    topics: tuple[ProduceTopic, ...] = msgspec.field(name="topicData")
    transactional_id: str | None = None

    @property
    def records_bytes(self) -> int:
        """Of all batches."""
        return sum(
            partition.records_size_in_bytes
            for topic in self.topics
            for partition in topic.partition_data
        )


class InitProducerIdAnswer(Wire, frozen=True):
    """The answer to INIT_PRODUCER_ID.

    Attributes:
        producer_id: -1 when none was sent.
        producer_epoch: how often it was returned again.
        error: Kafka's error code; None without an answer.
    """

    producer_id: int = -1
    producer_epoch: int = -1
    error: int | None = msgspec.field(default=None, name="errorCode")


class Acks(Wire, frozen=True):
    """How a PRODUCE is to be acknowledged; 0: not at all."""

    acks: int


class ReplicaState(Wire, frozen=True):
    """Who fetches, from version 15 on."""

    replica_id: int = -1


class Fetch(Wire, frozen=True):
    """A FETCH request."""

    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()

    @property
    def replica(self) -> int:
        """Who fetches, whatever the version; negative for consumers."""
        return self.replica_id if self.replica_id != -1 else self.replica_state.replica_id


class Present(Wire, frozen=True):
    """Something whose size on the wire is fixed: only whether it is there matters."""


class FetchedPartition(Wire, frozen=True):
    """What a FETCH's answer has of a partition.

    Attributes:
        records_size_in_bytes: of its batches.
        aborted_transactions: an element of fixed size for each; None: absent.
        diverging_epoch: a tagged field from version 12 on, like the next two.
        current_leader: where to fetch instead.
        snapshot_id: the snapshot to fetch instead.
    """

    records_size_in_bytes: int = 0
    aborted_transactions: tuple[Present, ...] | None = None
    diverging_epoch: Present | None = None
    current_leader: Present | None = None
    snapshot_id: Present | None = None


class FetchedTopic(Wire, frozen=True):
    """What a FETCH's answer has of a topic; its name is "" from version 13 on."""

    topic: str = ""
    partitions: tuple[FetchedPartition, ...] = ()


class Fetched(Wire, frozen=True):
    """A FETCH's answer."""

    responses: tuple[FetchedTopic, ...] = ()

    @property
    def records_bytes(self) -> int:
        """Of all batches."""
        return sum(
            partition.records_size_in_bytes
            for topic in self.responses
            for partition in topic.partitions
        )


class Topic(Wire, frozen=True):
    """A topic of any of the three requests about topics."""

    name: str | None = None
    topic_id: str = ""
    num_partitions: int = -1
    count: int = -1
    assignments: tuple[msgspec.Raw, ...] | None = None


class TopicsRequest(Wire, frozen=True):
    """CREATE_TOPICS, CREATE_PARTITIONS or DELETE_TOPICS; names alone before DELETE_TOPICS 6."""

    topics: tuple[Topic, ...] = ()
    topic_names: tuple[str, ...] = ()
    validate_only: bool = False


class TopicAnswer(Wire, frozen=True):
    """What became of a topic."""

    error_code: int
    name: str | None = None
    topic_id: str = ""
    num_partitions: int = -1


class TopicsAnswer(Wire, frozen=True):
    """The answer, by the name that its list has in each of the three."""

    topics: tuple[TopicAnswer, ...] = ()
    results: tuple[TopicAnswer, ...] = ()
    responses: tuple[TopicAnswer, ...] = ()


class EntityPart(Wire, frozen=True):
    """A user, client-id or address; None is the default."""

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
    """What became of an entity."""

    error_code: int
    entity: tuple[EntityPart, ...]


class QuotasAnswer(Wire, frozen=True):
    """The answer to ALTER_CLIENT_QUOTAS."""

    entries: tuple[QuotaAnswer, ...] = ()
