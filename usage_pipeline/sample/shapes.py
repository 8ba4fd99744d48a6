"""The form of each kind of request in the log: JSON templates, and the parts that differ.

A shape has a template of the whole line and draws the columns for it. The template already contains
everything that is the same for all lines of a flow. A batch of lines applies one ``%`` for each
line, which takes about 3 us.

Example: PRODUCE with 2 partitions has 8 columns of its own: the index and size of each partition,
and the index and offset of each in the answer. The throttle time is a column of every line.

Source: lines of a Kafka 4.3.1 broker, RequestChannel.updateRequestMetrics.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Column = Sequence[int | str]

_PARTITIONS: Final = 12
"""The smallest number of partitions of a topic."""
THROTTLE: Final = "\x00THROTTLE\x00"
"""The position of the throttle time in the answer, for a number or a column."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of request.

    Attributes:
        api_key: the number of the API.
        api: the name of the API.
        version: the client's version of the API.
        request: the request as JSON, with ``%s`` for each column.
        response: the answer, in the same form.
        throttled: the answer if the client must wait; empty if it is the same.
        local_ms: about how long a handler works on the request.
        remote_ms: about how long the request waits for other brokers.
    """

    api_key: int
    api: str
    version: int
    request: str
    response: str
    throttled: str = ""
    local_ms: float = 0.3
    remote_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """The parts that differ in a batch of lines; ``clients`` numbers the senders of some flows."""

    request: tuple[Column, ...]
    response: tuple[Column, ...]
    records: Ints
    clients: Ints | None = None


Draw = Callable[[np.random.Generator, Ints], Drawn]
"""Draws a batch for given sizes of records."""


def quoted(text: str) -> str:
    """Return a text as JSON, with ``%`` doubled."""
    return json.dumps(text, ensure_ascii=False).replace("%", "%%")


def produce(topic: str, version: int, acks: int, partitions: int = 1) -> tuple[Shape, Draw]:
    """Return a PRODUCE to one topic."""
    name = f'"topicId":{quoted(topic_id(topic))}' if version >= 13 else f'"name":{quoted(topic)}'
    parts = ",".join(['{"index":%s,"recordsSizeInBytes":%s}'] * partitions)
    answers = ",".join(
        [
            '{"index":%s,"errorCode":0,"baseOffset":%s,"logAppendTimeMs":-1,"logStartOffset":0,'
            '"recordErrors":[],"errorMessage":null}'
        ]
        * partitions
    )
    shape = Shape(
        0,
        "PRODUCE",
        version,
        f'{{"transactionalId":null,"acks":{acks},"timeoutMs":30000,"topicData":'
        f'[{{{name},"partitionData":[{parts}]}}]}}',
        '""'
        if acks == 0
        else f'{{"responses":[{{{name},"partitionResponses":[{answers}]}}],'
        f'"throttleTimeMs":{THROTTLE}}}',
        local_ms=0.4,
        remote_ms=2.0 if acks == -1 else 0.0,
    )

    def draw(rng: np.random.Generator, sizes: Ints) -> Drawn:
        most = max(_PARTITIONS, partitions)
        first = rng.integers(0, most, len(sizes))
        indexes = [((first + part) % most).tolist() for part in range(partitions)]
        each = [(sizes // partitions).tolist() for _ in range(partitions)]
        each[0] = (sizes - sizes // partitions * (partitions - 1)).tolist()
        offsets = rng.integers(10_000_000, 99_999_999, len(sizes)).tolist()
        request = tuple(c for pair in zip(indexes, each, strict=True) for c in pair)
        answer = tuple(c for index in indexes for c in (index, offsets))
        return Drawn(request, () if acks == 0 else answer, sizes)

    return shape, draw


def fetch(topic: str, version: int, replica: int = -1) -> tuple[Shape, Draw]:
    """Return a FETCH of one partition, by a consumer or a replica."""
    by_id = version >= 13
    topic_field = f'"topicId":{quoted(topic_id(topic))}' if by_id else f'"topic":{quoted(topic)}'
    replica_field = "" if version >= 15 else f'"replicaId":{replica},'
    if version >= 15 and replica >= 0:
        replica_field = f'"replicaState":{{"replicaId":{replica},"replicaEpoch":41}},'
    shape = Shape(
        1,
        "FETCH",
        version,
        f'{{{replica_field}"maxWaitMs":500,"minBytes":1,"maxBytes":52428800,"isolationLevel":0,'
        f'"sessionId":1849127733,"sessionEpoch":%s,"topics":[{{{topic_field},"partitions":'
        '[{"partition":%s,"currentLeaderEpoch":5,"fetchOffset":%s,"lastFetchedEpoch":-1,'
        '"logStartOffset":-1,"partitionMaxBytes":1048576}]}],"forgottenTopicsData":[],'
        '"rackId":""}',
        f'{{"throttleTimeMs":{THROTTLE},"errorCode":0,"sessionId":1849127733,"responses":'
        f'[{{{topic_field},"partitions":[{{"partitionIndex":%s,"errorCode":0,"highWatermark":%s,'
        '"lastStableOffset":%s,"logStartOffset":0,"abortedTransactions":null,'
        '"preferredReadReplica":-1,"recordsSizeInBytes":%s}]}]}',
        f'{{"throttleTimeMs":{THROTTLE},"errorCode":0,"sessionId":1849127733,"responses":[]}}',
        local_ms=0.35,
        remote_ms=40.0,
    )

    def draw(rng: np.random.Generator, sizes: Ints) -> Drawn:
        count = len(sizes)
        epochs = rng.integers(1, 100_000, count).tolist()
        indexes = rng.integers(0, 12, count).tolist()
        at = rng.integers(10_000_000, 99_999_999, count)
        high = (at + 40).tolist()
        return Drawn((epochs, indexes, at.tolist()), (indexes, high, high, sizes.tolist()), sizes)

    return shape, draw


def fixed(shape: Shape) -> tuple[Shape, Draw]:
    """Return a request whose lines differ only in their times."""

    def draw(rng: np.random.Generator, sizes: Ints) -> Drawn:  # noqa: ARG001 - a Draw's arguments
        return Drawn((), (), sizes)

    return shape, draw


def init_producer_id(version: int) -> tuple[Shape, Draw]:
    """Return an INIT_PRODUCER_ID that is answered with an id."""
    shape = Shape(
        22,
        "INIT_PRODUCER_ID",
        version,
        '{"transactionalId":null,"transactionTimeoutMs":2147483647,"producerId":-1,'
        '"producerEpoch":-1}',
        f'{{"throttleTimeMs":{THROTTLE},"errorCode":0,"producerId":%s,"producerEpoch":0}}',
    )

    def draw(rng: np.random.Generator, sizes: Ints) -> Drawn:
        ids = rng.integers(1_000_000, 9_000_000, len(sizes)).tolist()
        return Drawn((), (ids,), sizes)

    return shape, draw


def topic_id(topic: str) -> str:
    """Return an invented topic id with 22 characters of base64, like Kafka's."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    state = 7
    characters = []
    for place in range(21):
        state = (state * 31 + ord(topic[place % len(topic)]) + place) % 1_000_003
        characters.append(letters[state % 64])
    return "".join(characters) + "w"


METADATA: Final = Shape(
    3,
    "METADATA",
    13,
    '{"topics":[{"topicId":"AAAAAAAAAAAAAAAAAAAAAA","name":"orders"}],'
    '"allowAutoTopicCreation":false,"includeTopicAuthorizedOperations":false}',
    f'{{"throttleTimeMs":{THROTTLE},"brokers":[{{"nodeId":0,"host":"10.0.1.1","port":9093,'
    '"rack":null}],"clusterId":"SKtR8wJTR-i0IpdKkdlT9g","controllerId":0,"topics":[],'
    '"errorCode":0}',
)
OFFSET_COMMIT: Final = Shape(
    8,
    "OFFSET_COMMIT",
    9,
    '{"groupId":"orders-etl","generationIdOrMemberEpoch":4,"memberId":"etl-1",'
    '"groupInstanceId":null,"topics":[{"name":"orders","partitions":[{"partitionIndex":3,'
    '"committedOffset":90115204,"committedLeaderEpoch":5,"committedMetadata":""}]}]}',
    f'{{"throttleTimeMs":{THROTTLE},"topics":[{{"name":"orders","partitions":'
    '[{"partitionIndex":3,"errorCode":0}]}]}',
    remote_ms=2.0,
)
BROKER_HEARTBEAT: Final = Shape(
    63,
    "BROKER_HEARTBEAT",
    2,
    '{"brokerId":1,"brokerEpoch":13,"currentMetadataOffset":9001,"wantFence":false,'
    '"wantShutDown":false,"offlineLogDirs":[]}',
    f'{{"throttleTimeMs":{THROTTLE},"errorCode":0,"isCaughtUp":true,"isFenced":false,'
    '"shouldShutDown":false}',
    remote_ms=3.0,
)
