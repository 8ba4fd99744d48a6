"""The topics in each log dir of one broker, and which of them are the largest.

The broker reports them in DescribeLogDirs with all topics, whose answer grows with the broker's
partitions. The request uses a connection of its own, so that no poll waits behind it. A thread
decodes the answer, so that the event loop does not wait. The request needs DESCRIBE on the cluster,
like polls.

Example: ``await largest_topics(admin, 2, 10.0)`` is ``{"/data": LogDirTopics(...)}``.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Final, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.log_dir_messages import (
    DescribeSomeTopics,
    DescribeTopicsOfLogDirs,
    PartitionSizes,
    log_dirs_in,
)
from sidecar.settings import KafkaAdmin
from sidecar.threads import OwnThreads
from sidecar.volumes import Failure, FailureKind

LARGEST: Final = 10
"""The number of topics reported for each log dir; a hundred would hide the important one."""

T = TypeVar("T")

_THREADS: Final = OwnThreads("topics of volumes")
_QUERY: Final = Query(DescribeTopicsOfLogDirs(), "Describe")
_NONSENSE: Final = (ValueError, struct.error, LookupError, TypeError)


@dataclass(frozen=True, slots=True)
class TopicSize:
    """The size of a topic in one log dir.

    Attributes:
        topic: the topic's name.
        size_bytes: the size of all its partitions in the log dir.
        partitions: the indexes of these partitions, the largest first.
        largest_bytes: the size of the largest partition.
    """

    topic: str
    size_bytes: int
    partitions: tuple[int, ...]
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class LogDirTopics:
    """The topics in a log dir.

    Attributes:
        topics: the number of topics.
        size_bytes: the size of all topics.
        largest: at most ``LARGEST`` topics, the largest first.
        used_bytes: the used bytes of the volume, by the same answer.
        packed: topic -> its partitions, 22 bytes for each.
    """

    topics: int
    size_bytes: int
    largest: tuple[TopicSize, ...]
    used_bytes: int = field(default=0, compare=False)
    packed: Mapping[str, PartitionSizes] = field(default_factory=dict, compare=False, repr=False)


async def largest_topics(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> Mapping[str, LogDirTopics] | Failure:
    """Reads log dir -> its largest topics, without offline log dirs.

    Args:
        admin: how to reach the brokers.
        broker_id: the broker to read.
        timeout_s: the time for all requests, seconds.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    return await _described(admin, broker_id, timeout_s, _largest)


async def topics_by_log_dir(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> Mapping[str, frozenset[str]] | Failure:
    """Reads log dir -> the names of all topics in it, without offline log dirs."""
    return await _described(admin, broker_id, timeout_s, _names_by_log_dir)


async def partitions_by_log_dir(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> Mapping[str, int] | Failure:
    """Reads log dir -> the number of partitions in it, without offline log dirs."""
    return await _described(admin, broker_id, timeout_s, _partitions)


async def sizes_of(
    admin: KafkaAdmin,
    timeout_s: float,
    topics: Mapping[int, Mapping[str, Sequence[int]]] | None = None,
) -> Mapping[int, Sequence[Mapping[str, PartitionSizes]] | Failure] | Failure:
    """Reads for each broker and each of its log dirs: topic -> its partitions there.

    Args:
        admin: how to reach the brokers.
        timeout_s: the time for all requests, seconds.
        topics: broker id -> the only partitions to read, by topic; None for everything of all.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def query_of(broker_id: int) -> Query:
        if topics is None:
            return _QUERY
        return replace(_QUERY, request=DescribeSomeTopics(topics[broker_id]))

    answers = await query_each(admin, topics, query_of, _answered, timeout_s)
    if isinstance(answers, Failure):
        return answers
    return {key: await _decoded(key, each, _sizes) for key, each in answers.items()}


async def _described(
    admin: KafkaAdmin, broker_id: int, timeout_s: float, read: Callable[[Response], T]
) -> T | Failure:
    answers = await query_each(admin, [broker_id], lambda _: _QUERY, _answered, timeout_s)
    if isinstance(answers, Failure):
        return answers
    return await _decoded(broker_id, answers[broker_id], read)


async def _decoded(
    broker_id: int, answer: Response | Failure, read: Callable[[Response], T]
) -> T | Failure:
    if isinstance(answer, Failure):
        return answer
    try:
        return await _THREADS.call(read, answer)
    except _NONSENSE:
        text = f"broker {broker_id}: DescribeLogDirs sent an answer that can't be decoded"
        return Failure(FailureKind.PROTOCOL, text)


def _answered(query: Query, response: Response, broker_id: int) -> Response | Failure:
    if response.error_code:
        return query.refused(broker_id, response.error_code, None)
    return response


def _online(response: Response) -> Iterator[tuple[str, dict[str, PartitionSizes], int]]:
    """Path, topics and used bytes of each online log dir."""
    for error_code, log_dir, topics, total_bytes, available_bytes, *_ in log_dirs_in(response):
        if not error_code and log_dir is not None:
            sizes = {name: partitions for name, partitions, _ in topics or ()}
            yield log_dir, sizes, total_bytes - available_bytes


def _names_by_log_dir(response: Response) -> dict[str, frozenset[str]]:
    return {log_dir: frozenset(topics) for log_dir, topics, _ in _online(response)}


def _partitions(response: Response) -> dict[str, int]:
    return {log_dir: sum(map(len, topics.values())) for log_dir, topics, _ in _online(response)}


def _sizes(response: Response) -> list[dict[str, PartitionSizes]]:
    return [topics for _, topics, _ in _online(response)]


def _largest(response: Response) -> dict[str, LogDirTopics]:
    return {log_dir: _log_dir(topics, used) for log_dir, topics, used in _online(response)}


def _log_dir(topics: Mapping[str, PartitionSizes], used_bytes: int) -> LogDirTopics:
    sizes = [(partitions.total_bytes, name, partitions) for name, partitions in topics.items()]
    largest = nlargest(LARGEST, sizes, key=lambda each: each[:2])
    return LogDirTopics(
        len(sizes),
        sum(size for size, *_ in sizes),
        tuple(_topic(*each) for each in largest),
        used_bytes,
        topics,
    )


def _topic(size: int, name: str, partitions: PartitionSizes) -> TopicSize:
    by_size = sorted(partitions, key=lambda each: (-each[1], each[0]))
    return TopicSize(
        name, size, tuple(index for index, *_ in by_size), by_size[0][1] if by_size else 0
    )
