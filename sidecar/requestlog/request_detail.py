"""Decodes the request and the answer of a line, for the APIs that quotas need.

- INIT_PRODUCER_ID: the producer id; no other request contains both id and user (KIP-936).
- CREATE_TOPICS, CREATE_PARTITIONS, DELETE_TOPICS: partitions created and deleted (KIP-599).

An answer can be missing (a closed connection). The log then has "" or null in its place, and the
fields that only the answer contains are None.

Example: a CREATE_TOPICS asks for -1 partitions of ``invoices``, and the answer contains 12. This is
``TopicChange("invoices", partitions=12, error=0)``. Before version 5 the answer contains no number,
and ``partitions`` is None.

Source: Kafka's message definitions (clients/src/main/resources/common/message).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from sidecar.requestlog.line import Line
from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.wire import (
    InitProducerIdAnswer,
    Topic,
    TopicAnswer,
    TopicsAnswer,
    TopicsRequest,
)

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INIT_PRODUCER_ID: Final = 22
CREATE_PARTITIONS: Final = 37


@dataclass(frozen=True, slots=True)
class TopicChange:
    """One topic of a request that creates or deletes partitions.

    Attributes:
        topic: the topic's name; "" if request and answer contain only its id.
        topic_id: the topic's id in base64, as logged; "" if absent.
        partitions: for CREATE_TOPICS the number of partitions, None if the broker's default
            applies; for CREATE_PARTITIONS the new total; for DELETE_TOPICS None.
        error: Kafka's error code, 89 if the quota refused it; None without an answer.
    """

    topic: str
    topic_id: str
    partitions: int | None
    error: int | None


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """A CREATE_TOPICS, CREATE_PARTITIONS or DELETE_TOPICS request.

    Attributes:
        changes: one change for each topic, in the request's order.
        validate_only: whether the request only validates; KRaft charges it anyway.
    """

    changes: tuple[TopicChange, ...]
    validate_only: bool


Detail = InitProducerIdAnswer | TopicChanges


_PRODUCER_ID: Final = msgspec.json.Decoder(InitProducerIdAnswer | str | None)
_TOPICS_REQUEST: Final = msgspec.json.Decoder(TopicsRequest)
_TOPICS_ANSWER: Final = msgspec.json.Decoder(TopicsAnswer | str | None)


def detail(line: Line) -> Detail | Rejected | None:
    """Decodes a line's request and answer; None for APIs that quotas do not need."""
    decode = _DECODERS.get(line.api_key)
    if decode is None:
        return None
    try:
        return decode(line)
    except msgspec.MsgspecError as error:
        return Rejected(RejectedKind.UNEXPECTED, str(error))
    except UnicodeDecodeError:
        return Rejected(RejectedKind.UNEXPECTED, "not UTF-8")


def _producer_id(line: Line) -> InitProducerIdAnswer:
    answer = _PRODUCER_ID.decode(line.body.response)
    return answer if isinstance(answer, InitProducerIdAnswer) else InitProducerIdAnswer()


def _topics(line: Line) -> TopicChanges:
    request = _TOPICS_REQUEST.decode(line.body.request)
    answer = _TOPICS_ANSWER.decode(line.body.response)
    if not isinstance(answer, TopicsAnswer):
        answer = TopicsAnswer()
    answers = answer.topics or answer.results or answer.responses
    by_name = {each.name: each for each in answers}
    by_id = {each.topic_id: each for each in answers}
    changes = []
    for topic in request.topics or map(Topic, request.topic_names):
        found = by_id.get(topic.topic_id) if topic.name is None else by_name.get(topic.name)
        changes.append(_change(line.api_key, topic, found))
    return TopicChanges(tuple(changes), request.validate_only)


def _change(api_key: int, topic: Topic, answer: TopicAnswer | None) -> TopicChange:
    topic_answer = answer or TopicAnswer(-1)
    return TopicChange(
        topic=topic.name or topic_answer.name or "",
        topic_id=topic_answer.topic_id or topic.topic_id,
        partitions=_partitions(api_key, topic, topic_answer),
        error=None if answer is None else answer.error_code,
    )


def _partitions(api_key: int, topic: Topic, answer: TopicAnswer) -> int | None:
    counts = {
        CREATE_TOPICS: (answer.num_partitions, len(topic.assignments or ()), topic.num_partitions),
        CREATE_PARTITIONS: (topic.count,),
    }
    return next((count for count in counts.get(api_key, ()) if count > 0), None)


_DECODERS: Final[Mapping[int, Callable[[Line], Detail]]] = {
    INIT_PRODUCER_ID: _producer_id,
    CREATE_TOPICS: _topics,
    CREATE_PARTITIONS: _topics,
    DELETE_TOPICS: _topics,
}
