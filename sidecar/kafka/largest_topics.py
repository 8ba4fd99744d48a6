"""Which topics are the largest in each log dir of one broker, as it reports itself.

That is DescribeLogDirs with all topics, whose answer grows with the broker's partitions: it comes
over a connection of its own, so that no poll waits behind it, and is decoded on a thread, so
that nobody else waits either. It needs DESCRIBE on the cluster, as polls do.

Example: ``await largest_topics(admin, 2, 10.0)`` is ``{"/data": LogDirTopics(...)}``.
"""

import asyncio
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.log_dir_messages import DescribeTopicsOfLogDirs, PartitionSizes, log_dirs_in
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

LARGEST: Final = 10
"""So many topics of each log dir are reported; a hundred would hide the one that matters."""

T = TypeVar("T")

_QUERY: Final = Query(DescribeTopicsOfLogDirs(), "DescribeLogDirs", "Describe")
_NONSENSE: Final = (ValueError, struct.error, LookupError, TypeError)


@dataclass(frozen=True, slots=True)
class TopicSize:
    """What a topic has in one log dir.

    Attributes:
        topic: its name.
        size_bytes: its partitions there together.
        partitions: these partitions' indexes, the largest first.
        largest_bytes: the largest of them.
    """

    topic: str
    size_bytes: int
    partitions: tuple[int, ...]
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class LogDirTopics:
    """What lies in a log dir.

    Attributes:
        topics: how many there are.
        size_bytes: what they take together.
        largest: the ``LARGEST`` of them, the largest first.
    """

    topics: int
    size_bytes: int
    largest: tuple[TopicSize, ...]


async def largest_topics(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> Mapping[str, LogDirTopics] | Failure:
    """What lies in each log dir of a broker, offline ones left out.

    Args:
        admin: how to reach the brokers.
        broker_id: the one that is read.
        timeout_s: for all of it, seconds.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    return await _described(admin, broker_id, timeout_s, _largest)


async def topics_of(admin: KafkaAdmin, broker_id: int, timeout_s: float) -> set[str] | Failure:
    """The names of all topics that have something in a broker's log dirs; see above."""
    return await _described(admin, broker_id, timeout_s, _names)


async def topics_by_log_dir(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> Mapping[str, frozenset[str]] | Failure:
    """Log dir -> the names of all topics that have something in it, offline ones left out."""
    return await _described(admin, broker_id, timeout_s, _names_by_log_dir)


async def _described(
    admin: KafkaAdmin, broker_id: int, timeout_s: float, read: Callable[[Response], T]
) -> T | Failure:
    answers = await query_each(admin, [broker_id], lambda _: _QUERY, _answered, timeout_s)
    if isinstance(answers, Failure):
        return answers
    answer = answers[broker_id]
    if isinstance(answer, Failure):
        return answer
    try:
        return await asyncio.to_thread(read, answer)
    except _NONSENSE:
        text = f"broker {broker_id}: DescribeLogDirs sent an answer that can't be decoded"
        return Failure(FailureKind.PROTOCOL, text)


def _answered(query: Query, response: Response, broker_id: int) -> Response | Failure:
    if response.error_code:
        return query.refused(broker_id, response.error_code, None)
    return response


def _names(response: Response) -> set[str]:
    return set().union(*_names_by_log_dir(response).values())


def _names_by_log_dir(response: Response) -> dict[str, frozenset[str]]:
    return {
        log_dir: frozenset(name for name, *_ in topics or ())
        for error_code, log_dir, topics, *_ in log_dirs_in(response)
        if not error_code and log_dir is not None
    }


def _largest(response: Response) -> dict[str, LogDirTopics]:
    return {
        log_dir: _log_dir(topics or ())
        for error_code, log_dir, topics, *_ in log_dirs_in(response)
        if not error_code and log_dir is not None
    }


def _log_dir(topics: Iterable[tuple[str, PartitionSizes, object]]) -> LogDirTopics:
    sizes = [(partitions.total_bytes, name, partitions) for name, partitions, _ in topics]
    largest = nlargest(LARGEST, sizes, key=lambda each: each[:2])
    return LogDirTopics(
        len(sizes), sum(size for size, *_ in sizes), tuple(_topic(*each) for each in largest)
    )


def _topic(size: int, name: str, partitions: PartitionSizes) -> TopicSize:
    by_size = sorted(partitions, key=lambda each: (-each[1], each[0]))
    return TopicSize(
        name, size, tuple(index for index, _ in by_size), by_size[0][1] if by_size else 0
    )
