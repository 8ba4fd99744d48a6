"""The leaders of partitions and the coordinators of groups, offsets at leaders, and deletion there.

A group's coordinator leads a partition of __consumer_offsets. Needed: DESCRIBE and DELETE on the
topics, and DESCRIBE on __consumer_offsets.

Example: broker 1 leads "logs" 0. ``delete_records(pool, {("logs", 0): 300}, {("logs", 0): 1})``
asks it, and returns {("logs", 0): 300}, the first offset then.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.pool import Pool
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.kafka.relief_messages import EARLIEST, HIGHEST, DeleteRecords, ListOffsets, refused
from sidecar.settings import HostPort
from sidecar.throttle.growth import Partition
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

OFFSETS_TOPIC: Final = "__consumer_offsets"
DELETE_MS: Final = 10_000
"""How long a leader waits until the replicas have deleted, too."""
UNREAD: Final = "no broker reported their coordinators"

_NO_TOPIC: Final = 3
_TIMED_OUT: Final = 7
_ANY_EPOCH: Final = -1
_UNCONFIRMED: Final = Failure(
    FailureKind.TIMEOUT, f"the replicas did not confirm it within {DELETE_MS / 1000:.0f} s"
)

T = TypeVar("T")

Coordinators = Mapping[int, tuple[int, int]] | str
"""Partition of ``OFFSETS_TOPIC`` -> leader and epoch; or why they are not known."""
Offsets = Mapping[Partition, int | Failure]
"""Partition -> an offset, or why it is not known."""


@dataclass(frozen=True, slots=True)
class Led:
    """A partition with a leader."""

    leader: int
    topic_id: bytes
    epoch: int
    replicas: Sequence[int]

    @property
    def lineage(self) -> tuple[bytes, int, int]:
        """What makes offsets those of the same records; see ``Sight``."""
        return self.topic_id, self.leader, self.epoch


@dataclass(frozen=True, slots=True)
class Leaders:
    """What a broker knows; ``left_out`` says of a topic why some of it can't be read."""

    brokers: Mapping[int, HostPort]
    led: Mapping[Partition, Led]
    left_out: Mapping[str, str]
    coordinators: Coordinators


async def read_leaders(pool: Pool, topics: Iterable[str], deadline: float) -> Leaders | Failure:
    """Read the leaders, and set the pool's brokers."""
    request = MetadataOfTopics([*topics, OFFSETS_TOPIC])
    answer = await pool.call_any(request, deadline, _read, "leaders of partitions")
    if not isinstance(answer, Failure):
        pool.set_brokers(answer.brokers)
    return answer


async def offsets_at(
    pool: Pool,
    times: Mapping[Partition, tuple[int, int]],
    leaders: Mapping[Partition, int],
    deadline: float,
) -> Offsets:
    """Read offsets; ``times`` as in ``ListOffsets``."""

    def read(topic: str, code: int, _time: int, offset: int, _epoch: int) -> int | Failure:
        return refused("ListOffsets", code, "Describe", topic) if code else offset

    return await _ask(pool, times, leaders, ListOffsets, read, deadline=deadline)


async def highest_times(
    pool: Pool,
    epochs: Mapping[Partition, int],
    leaders: Mapping[Partition, int],
    deadline: float,
) -> Offsets:
    """Read the highest timestamp of each partition, also of deleted records; -1: none has one.

    Args:
        pool: the connections.
        epochs: partition -> its leader epoch.
        leaders: partition -> its leader.
        deadline: the loop's time by which this returns.
    """

    def read(topic: str, code: int, time_ms: int, _offset: int, _epoch: int) -> int | Failure:
        return refused("ListOffsets", code, "Describe", topic) if code else time_ms

    times = {key: (epoch, HIGHEST) for key, epoch in epochs.items()}
    return await _ask(pool, times, leaders, ListOffsets, read, deadline=deadline)


async def delete_records(
    pool: Pool, offsets: Mapping[Partition, int], leaders: Mapping[Partition, int]
) -> Offsets:
    """Delete below offsets, and return the first ones; a failure does not say nothing was done."""

    def request(mine: Mapping[Partition, int]) -> AdminRequest:
        return DeleteRecords(mine, DELETE_MS)

    def read(topic: str, low_watermark: int, code: int) -> int | Failure:
        if code == _TIMED_OUT:
            return _UNCONFIRMED
        return refused("DeleteRecords", code, "Delete", topic) if code else low_watermark

    deadline = asyncio.get_running_loop().time() + 2 * DELETE_MS / 1000
    results = await _ask(pool, offsets, leaders, request, read, deadline=deadline)
    # The leader deletes at once, and waits for all replicas of live brokers. One that is in an
    # offline log dir never does, so each request for the partition ends like that.
    late = {key: (_ANY_EPOCH, EARLIEST) for key, each in results.items() if each is _UNCONFIRMED}
    deadline = asyncio.get_running_loop().time() + DELETE_MS / 1000
    for key, first in (await offsets_at(pool, late, leaders, deadline)).items():
        if isinstance(first, int) and first >= offsets[key]:
            results[key] = first
            _log.warning("%s-%d was deleted from, but %s", *key, _UNCONFIRMED.message)
    unanswered = Failure(FailureKind.PROTOCOL, "DeleteRecords did not answer for a partition")
    return {key: results.get(key, unanswered) for key in offsets}


async def _ask(
    pool: Pool,
    values: Mapping[Partition, T],
    leaders: Mapping[Partition, int],
    request_of: Callable[[Mapping[Partition, T]], AdminRequest],
    read: Callable[..., int | Failure],
    *,
    deadline: float,
) -> dict[Partition, int | Failure]:
    by_leader: dict[int, dict[Partition, T]] = {}
    for key, value in values.items():
        by_leader.setdefault(leaders[key], {})[key] = value
    requests = {leader: request_of(mine) for leader, mine in by_leader.items()}
    results: dict[Partition, int | Failure] = {}
    for leader, answer in (await pool.call_each(requests, deadline)).items():
        if isinstance(answer, Failure):
            results |= dict.fromkeys(by_leader[leader], answer)
            continue
        topics: list[Any] = answer.topics or []
        results |= {
            (topic, index): read(topic, *fields)
            for topic, partitions, _tags in topics
            for index, *fields, _ in partitions or ()
        }
    return results


def _read(response: Response, _: HostPort) -> Leaders:
    brokers = {broker_id: HostPort(host, port) for broker_id, host, port, *_ in response.brokers}
    led: dict[Partition, Led] = {}
    left_out: dict[str, str] = {}
    coordinators: Coordinators = UNREAD
    for code, name, topic_id, _internal, partitions, *_more in response.topics or ():
        if name == OFFSETS_TOPIC:
            coordinators = _coordinators(code, partitions, brokers)
        elif code and code != _NO_TOPIC:
            left_out[name] = refused("Metadata", code, "Describe", name).message
        for index, leader, replicas, epoch in partitions:
            if name == OFFSETS_TOPIC or code:
                continue
            if leader not in brokers:
                left_out[name] = f"partition {index} has no leader"
            else:
                led[name, index] = Led(leader, topic_id, epoch, replicas)
    return Leaders(brokers, led, left_out, coordinators)


def _coordinators(
    code: int, partitions: Iterable[Any], brokers: Mapping[int, HostPort]
) -> Coordinators:
    if code == _NO_TOPIC:
        # No group has ever committed an offset.
        return {}
    if code:
        return refused("Metadata", code, "Describe", OFFSETS_TOPIC).message
    leaders = {index: (leader, epoch) for index, leader, _, epoch in partitions}
    without = [index for index, (leader, _) in leaders.items() if leader not in brokers]
    return f"partition {without[0]} of {OFFSETS_TOPIC} has no leader" if without else leaders
