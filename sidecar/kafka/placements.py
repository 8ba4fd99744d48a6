"""Who leads partitions, and which of them a reassignment adds to a broker.

The sidecar sends that broker two requests: ListPartitionReassignments (key 46) v0 for all
reassignments (KIP-455, Kafka 2.4), and Metadata (key 3) v12 for a few topics by name, and those
that arrive. The first needs DESCRIBE on the cluster, like polls, the second DESCRIBE on each topic.
If one of them fails, the result has what the other returned. The leaders of partitions that arrive
are asked for the sizes of these alone (DescribeLogDirs): 22 bytes for each, ``MOST`` at most.

Example: broker 2 is asked for "orders", which has one partition, led by broker 1, and a
reassignment adds broker 2 to it: the leaders are {("orders", 0): 1}, ("orders", 0) arrives, and
broker 1 is asked for its size.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import CompactArray, Int32

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.messages import (
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    array,
    message,
)
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.kafka.largest_topics import sizes_of
from sidecar.settings import KafkaAdmin
from sidecar.throttle.growth import Partition, Placement
from sidecar.volumes import Failure

LIST_PARTITION_REASSIGNMENTS_KEY = 46

MOST: Final = 4000
"""The most arriving partitions whose sizes are asked for, 88 kB of answers."""

_TIMEOUT_MS = 5000

_ReassignmentsRequest, _ = message(
    "ListPartitionReassignments",
    LIST_PARTITION_REASSIGNMENTS_KEY,
    0,
    request=(
        ("timeout_ms", Int32),
        array("topics", ("name", STRING), ("partition_indexes", CompactArray(Int32))),
    ),
    response=(
        THROTTLE_TIME,
        *ERROR,
        array(
            "topics",
            ("name", STRING),
            array(
                "partitions",
                ("partition_index", Int32),
                ("replicas", CompactArray(Int32)),
                ("adding_replicas", CompactArray(Int32)),
                ("removing_replicas", CompactArray(Int32)),
            ),
        ),
    ),
)


class AllReassignments(AdminRequest, versions=(_ReassignmentsRequest,)):
    """Requests all reassignments that are in progress: null in place of topics."""

    NEEDED = "v0 (Kafka 2.4)"
    values = (_TIMEOUT_MS, None)


async def placement(
    admin: KafkaAdmin, broker_id: int, timeout_s: float, topics: Sequence[str]
) -> Placement:
    """Reads where partitions are.

    Args:
        admin: how to reach the brokers.
        broker_id: the broker to ask, and the one at which replicas arrive.
        timeout_s: the time for each of the three kinds of requests, seconds.
        topics: the topics whose leaders are read.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    moves = await _moves(admin, broker_id, timeout_s)
    known = None if isinstance(moves, Failure) else _arriving(moves, broker_id)
    asked = sorted({*topics, *(topic for topic, _ in known or ())})
    if not asked:
        return Placement(arriving=known)
    metadata = Query(MetadataOfTopics(asked), "Describe")
    led = await query_each(admin, [broker_id], lambda _: metadata, _leaders, timeout_s)
    leaders = led if isinstance(led, Failure) else led[broker_id]
    found = Placement() if isinstance(leaders, Failure) else leaders
    sizes = await _sizes(admin, timeout_s, known or (), found.leaders)
    return replace(found, arriving=known, sizes=sizes)


async def receiving(
    admin: KafkaAdmin, broker_id: int, timeout_s: float
) -> frozenset[int] | Failure:
    """Asks a broker for the brokers to which reassignments add replicas; see ``placement``."""
    moves = await _moves(admin, broker_id, timeout_s)
    if isinstance(moves, Failure):
        return moves
    return frozenset(broker for *_, adding, _removing in moves for broker in adding)


_Moves = Sequence[tuple[Partition, Sequence[int], Sequence[int], Sequence[int]]]
"""Partition, replicas, those that are added, and those that are removed."""


async def _moves(admin: KafkaAdmin, broker_id: int, timeout_s: float) -> _Moves | Failure:
    all_moves = Query(AllReassignments(), "Describe")
    answers = await query_each(admin, [broker_id], lambda _: all_moves, _moves_in, timeout_s)
    return answers if isinstance(answers, Failure) else answers[broker_id]


async def _sizes(
    admin: KafkaAdmin,
    timeout_s: float,
    arriving: Iterable[Partition],
    leaders: Mapping[Partition, int],
) -> dict[Partition, int]:
    """Reads the sizes of partitions on their leaders, without those that can't be read."""
    asked: dict[int, dict[str, list[int]]] = {}
    for topic, index in islice(arriving, MOST):
        if (leader := leaders.get((topic, index), -1)) >= 0:
            asked.setdefault(leader, {}).setdefault(topic, []).append(index)
    answers = await sizes_of(admin, timeout_s, asked) if asked else {}
    return {
        (topic, index): size
        for log_dirs in ({} if isinstance(answers, Failure) else answers).values()
        for topics in (() if isinstance(log_dirs, Failure) else log_dirs)
        for topic, partitions in topics.items()
        for index, size, is_copy in partitions
        if not is_copy
    }


def _leaders(_query: Query, response: Response, _broker_id: int) -> Placement | Failure:
    leaders: dict[Partition, int] = {}
    topic_ids: dict[str, str] = {}
    replicas: dict[str, tuple[int, int]] = {}
    for error_code, name, topic_id, _internal, partitions, *_ in response.topics or ():
        if not error_code and name is not None:
            leaders |= {(name, index): leader for index, leader, *_ in partitions}
            most = max((len(brokers) for _, _, brokers, _ in partitions), default=0)
            replicas[name] = len(partitions), most
            # As Kafka's Uuid writes it.
            topic_ids[name] = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
    return Placement(leaders, None, topic_ids, replicas=replicas)


def _moves_in(query: Query, response: Response, broker_id: int) -> _Moves | Failure:
    if response.error_code:
        return query.refused(broker_id, response.error_code, response.error_message)
    return [
        ((name, index), replicas or (), adding or (), removing or ())
        for name, partitions, _ in response.topics or ()
        for index, replicas, adding, removing, _ in partitions or ()
    ]


def _arriving(moves: _Moves, broker_id: int) -> dict[Partition, tuple[int, ...]]:
    return {
        partition: tuple(each for each in replicas if each not in removing)
        for partition, replicas, adding, removing in moves
        if broker_id in adding
    }
