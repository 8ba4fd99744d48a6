"""The fields of requests and answers that this package reads from Kafka's JSON, in all versions.

If a version lacks a field, the field has the default of the wire format. Other fields are ignored,
so that newer versions of Kafka can be read.

Example: a FETCH contains its replica in ``replicaId`` up to version 14, and in ``replicaState``
from version 15 on. A consumer's replica is -1.

Source: Kafka's message definitions (clients/src/main/resources/common/message).
"""

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
"""Kafka's integers. A damaged line may have larger ones, which fit into no column."""


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Part of a request or answer, with Kafka's names."""


class InitProducerIdAnswer(Wire, frozen=True):
    """The answer to INIT_PRODUCER_ID.

    Attributes:
        producer_id: the id; -1 if the answer contains none.
        error: Kafka's error code; None without an answer.
        throttle_time_ms: the throttle time.
    """

    producer_id: Int64 = -1
    error: Int32 | None = msgspec.field(default=None, name="errorCode")
    throttle_time_ms: Int32 = 0


class Acks(Wire, frozen=True):
    """The acks of a PRODUCE; 0 means that there is no answer."""

    acks: Int32


class ReplicaState(Wire, frozen=True):
    """The replica that fetches, from version 15 on."""

    replica_id: Int32 = -1


class Fetch(Wire, frozen=True):
    """A FETCH request."""

    replica_id: Int32 = -1
    replica_state: ReplicaState = ReplicaState()

    @property
    def replica(self) -> int:
        """The replica that fetches, in any version; negative for consumers."""
        return self.replica_id if self.replica_id != -1 else self.replica_state.replica_id


class Topic(Wire, frozen=True):
    """A topic in one of the three requests about topics."""

    name: str | None = None
    topic_id: str = ""
    num_partitions: Int32 = -1
    count: Int32 = -1
    assignments: tuple[msgspec.Raw, ...] | None = None


class TopicsRequest(Wire, frozen=True):
    """CREATE_TOPICS, CREATE_PARTITIONS or DELETE_TOPICS; ``topic_names`` before DELETE_TOPICS 6."""

    topics: tuple[Topic, ...] = ()
    topic_names: tuple[str, ...] = ()
    validate_only: bool = False


class TopicAnswer(Wire, frozen=True):
    """The result for one topic."""

    error_code: Int32
    name: str | None = None
    topic_id: str = ""
    num_partitions: Int32 = -1


class TopicsAnswer(Wire, frozen=True):
    """The answer to one of the three requests; each uses another name for its list."""

    topics: tuple[TopicAnswer, ...] = ()
    results: tuple[TopicAnswer, ...] = ()
    responses: tuple[TopicAnswer, ...] = ()
