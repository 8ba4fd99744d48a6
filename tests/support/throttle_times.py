"""Throttle times of real brokers and controllers, beside those predicted from their request logs.

Bytes and mutations are predicted but for what the log cuts off: which millisecond it was, and how
long a broker took to write the line: 1 to 5 ms were measured on an idle machine, 65 on a busy one.
Request time can't be: the network threads' time is not in the log. What they spent, N, makes the
wait N / T longer at a quota of T, until a window bounds it.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from statistics import median
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as LibrdkafkasTopic

from kafka_lab.admin import Admin
from kafka_lab.broker_properties import CONTROLLER_ID
from kafka_lab.cluster import Cluster
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.quotas.entities import ClientQuotas, Entity, QuotaKey
from sidecar.quotas.rate import QuotaWindow
from sidecar.requestlog.exempt import PRODUCE
from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import TopicSizes
from tests.support.charges import charges
from tests.support.client_quotas import admin_of, under
from tests.support.java import bean, beans
from tests.support.prediction import Charge, Prediction, Predictor
from tests.support.request_logs import controllers_of, logged
from usage_pipeline.replay.request_percentage import percent

WINDOW = QuotaWindow()
"""Kafka's defaults, which the cluster has."""

OVER_MS = 10_500
"""What a rate is taken over: 10 to 11 s."""

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A line and what was predicted of its charges.

    Attributes:
        line: of a broker or controller.
        predictions: of each charge.
    """

    line: Line
    predictions: tuple[Prediction, ...]

    @property
    def throttle_ms(self) -> int:
        return self.line.throttle_ms

    @property
    def predicted_ms(self) -> int:
        return max((each.throttle_ms for each in self.predictions), default=0)

    def is_near(self, share: float, clock_ms: float) -> bool:
        """Whether it is within a share of the throttle time, or what the clock may be off."""
        return abs(self.predicted_ms - self.throttle_ms) <= max(clock_ms, share * self.throttle_ms)


@dataclass(frozen=True, slots=True)
class Node:
    """A node's lines beside what was predicted of them, and its quotas as they are then."""

    lines_judged: list[Judged]
    predictor: Predictor

    def of(self, *client_ids: str, api_keys: Iterable[int] = (PRODUCE,)) -> list[Judged]:
        return [
            each
            for each in self.lines_judged
            if each.line.client_id in client_ids and each.line.api_key in api_keys
        ]


def predicted(lines: Iterable[Line], quotas: ClientQuotas) -> Node:
    """All of a node's lines, charge by charge in the order of their time."""
    predictor, sizes = Predictor(WINDOW), TopicSizes()
    predictor.set_quotas(quotas)
    charged = [(line, charges(line, sizes)) for line in lines]
    assert not any(each.unknown for _, each in charged)
    due: list[tuple[int, Charge]] = [
        (number, charge) for number, (_, each) in enumerate(charged) for charge in each.charges
    ]
    found: dict[int, list[Prediction]] = {number: [] for number in range(len(charged))}
    for number, charge in sorted(due, key=lambda one: one[1].at_ms):
        found[number].append(predictor.charge(charge))
    lines_judged = [Judged(line, tuple(found[number])) for number, (line, _) in enumerate(charged)]
    return Node(lines_judged, predictor)


def throttled(judged: Iterable[Judged]) -> list[Judged]:
    """Those that were throttled, or predicted to be."""
    return [each for each in judged if each.throttle_ms or each.predicted_ms]


def listed(judged: list[Judged]) -> list[str]:
    """All lines with throttle times real and predicted, for the message of a failure."""
    return [
        f"{each.line.time:%M:%S.%f} {each.line.api} {each.line.client_id} "
        f"{each.line.local_ms} ms: {each.throttle_ms} {each.predicted_ms}"
        for each in judged
    ]


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of ``send_bytes``.

    Attributes:
        node: broker 0's lines.
        counts: PRODUCE requests that it counted itself meanwhile, and the bytes of their bodies.
        rates: what it compared with the quotas, by user and client-id.
        read_ms: between which times it was asked for those.
    """

    node: Node
    counts: list[float]
    rates: dict[tuple[str, str], float]
    read_ms: tuple[int, int]


async def send_bytes(kafka: Cluster) -> Sent:
    """Two connections that share a quota and one with its own, at three times their burst."""
    shared, own = Entity(client_id="shared"), Entity(user="ANONYMOUS", client_id="own")
    quotas: ClientQuotas = {entity: {QuotaKey.PRODUCE: 100_000.0} for entity in (shared, own)}
    chance = random.Random(7)
    sizes = [chance.randrange(1000, 200_000) for _ in range(30)]
    await place(kafka, "bytes")
    async with logged(kafka) as logs, under(kafka, quotas):
        await asyncio.to_thread(produce, kafka, "bytes", "warm-up", sizes)
        counted = await request_bytes(kafka)
        producers = (
            asyncio.to_thread(produce, kafka, "bytes", name, sizes, connections=connections)
            for name, connections in (("shared", 2), ("own", 1))
        )
        await asyncio.gather(*producers)
        before_ms = local_ms()
        rates = await rates_of(kafka, "Produce", "byte-rate")
        after_ms = local_ms()
        counts = [now - then for now, then in zip(await request_bytes(kafka), counted, strict=True)]
    return Sent(predicted(logs.lines[0], quotas), counts, rates, (before_ms, after_ms))


async def send_compressed(kafka: Cluster) -> Node:
    """Batches that the broker compresses anew: handlers' time that waits for the whole window."""
    await place(kafka, "compressed", {"compression.type": "gzip"})
    config = {"compression.type": "lz4", "message.max.bytes": 10_000_000}
    heavy = [b"\0" * 4_000_000]
    async with logged(kafka) as logs:
        await asyncio.to_thread(produce, kafka, "compressed", "warm-up", heavy * 10, config)
        await logs.read_all()
        warm = [line.local_ms for line in logs.lines[0] if line.client_id == "warm-up"]
        # Each request would wait for four windows: what network threads spend makes no difference.
        percentage = percent(round(median(warm) * NS_PER_MS)) / (4 * WINDOW.window_ms / 1000)
        quotas: ClientQuotas = {Entity(client_id="heavy"): {QuotaKey.REQUEST: percentage}}
        async with under(kafka, quotas):
            await asyncio.to_thread(produce, kafka, "compressed", "heavy", heavy * 30, config)
    return predicted(logs.lines[0], quotas)


MUTATORS = ("strict", "permissive")
"""The client-ids of ``mutate``."""


async def mutate(kafka: Cluster) -> Node:
    """Strict and permissive requests, of topics that are made, grown and deleted."""
    quotas: ClientQuotas = {
        Entity(client_id=name): {QuotaKey.CONTROLLER_MUTATION: 10.0} for name in MUTATORS
    }
    async with logged(kafka, await controllers_of(kafka)) as logs, under(kafka, quotas):
        # A controller that has just begun is slow, and the log doesn't say where.
        await mutate_strictly(kafka, "warm-up", rounds=4)
        await mutate_strictly(kafka, "strict", rounds=6)
        await mutate_permissively(kafka)
    return predicted(logs.lines[CONTROLLER_ID], quotas)


async def mutate_strictly(cluster: Cluster, client_id: str, rounds: int) -> None:
    admin = admin_of(cluster, client_id)
    for number in range(rounds):
        new = [NewTopic(f"{client_id}-{number}-{index}", 30, 1) for index in range(4)]
        await create_topics(admin, new, retry_on_quota_violation=False)
        growth = [Growth(topic.name, 50) for topic in new[:2]]
        await create_partitions(admin, growth, retry_on_quota_violation=False)
        await delete_topics(admin, [new[0].name], retry_on_quota_violation=False)


async def mutate_permissively(cluster: Cluster) -> None:
    """Librdkafka's admin client creates topics by version 4."""
    with AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": "permissive"}) as admin:
        for number in range(14):
            for created in admin.create_topics([LibrdkafkasTopic(f"p{number}", 20, 1)]).values():
                await asyncio.to_thread(created.result, 60)


async def place(cluster: Cluster, topic: str, config: Mapping[str, str] | None = None) -> None:
    """A topic of one partition on broker 0."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(topic, assignment=[[0]], config=config)


def produce(
    cluster: Cluster,
    topic: str,
    client_id: str,
    values: Iterable[int | bytes],
    config: Mapping[str, Any] | None = None,
    *,
    connections: int = 1,
) -> None:
    """Produces each value, or random bytes of that number, in a request of its own; by turns."""
    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": client_id,
        "linger.ms": 0,
    }
    settings |= {"acks": 1, "linger.ms": 0, **(config or {})}
    producers = cycle([Producer(settings) for _ in range(connections)])
    for value, producer in zip(values, producers, strict=False):
        sent = value if isinstance(value, bytes) else random.Random(value).randbytes(value)
        producer.produce(topic, sent, partition=0)
        assert 0 == producer.flush(60)


async def request_bytes(cluster: Cluster) -> tuple[float, float]:
    """How many PRODUCE broker 0 had since it started, and the bytes of their bodies."""
    attributes = await bean(
        cluster, 0, "kafka.network:type=RequestMetrics,name=RequestBytes,request=Produce"
    )
    count, mean = attributes["Count"], attributes["Mean"]
    assert isinstance(count, int)
    assert isinstance(mean, float)
    return (count, count * mean)


async def rates_of(cluster: Cluster, kind: str, name: str) -> dict[tuple[str, str], float]:
    """What broker 0 compares with the quotas of a kind, by user and client-id, "" for neither."""
    rates = {}
    for bean_name, attributes in (await beans(cluster, 0, f"kafka.server:type={kind},*")).items():
        tags = dict(part.split("=", 1) for part in bean_name.partition(":")[2].split(","))
        rate = attributes.get(name)
        if isinstance(rate, float):
            rates[tags.get("user", ""), tags.get("client-id", "")] = rate
    return rates


def local_ms() -> int:
    """Now as brokers log it: local time, counted as ``charged_at_ms`` does."""
    return int(datetime.now(UTC).astimezone().replace(tzinfo=UTC).timestamp() * 1000)
