"""Sends the known tenants' traffic to a real cluster, and counts it in the clients.

Example: after ``await send_round(bootstrap, FULL, 0)`` the ledger says that carol's "batch" sent 3
requests with 12,000,723 bytes in total, and that its longest wait was 3.334 s.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_lab.admin import Admin
from kafka_lab.tenant_traffic import (
    CREATED_PARTITIONS,
    CREATOR,
    READER,
    USERS,
    Plan,
    Send,
    Tenant,
)
from kafka_lab.traffic import ThrottleEvent
from sidecar.errors import ClusterError

_STATS_MS: Final = 200
_DEADLINE_S: Final = 60.0
_MOST_BYTES: Final = 8_000_000
_LATEST_S: Final = 0.3
"""The limit for late requests. With a delay of 0.4 s, the end of a burst is in the next second of
Kafka's window, and its wait is half a second longer than planned."""


@dataclass(slots=True)
class Sent:
    """The client's own counts of one round, from librdkafka's statistics.

    Attributes:
        requests: the number of PRODUCE or FETCH requests.
        bytes: the bytes sent with PRODUCE or received with FETCH. Other requests are included: the
            handshake takes about 200 bytes.
        longest_wait_s: the longest throttle time from a broker, in seconds.
        late_s: the longest delay of a request after its planned time.
        took_s: the longest time from a connection's first request until its last response.
    """

    requests: int = 0
    bytes: int = 0
    longest_wait_s: float = 0.0
    late_s: float = 0.0
    took_s: float = 0.0

    def __add__(self, other: "Sent") -> "Sent":
        return Sent(
            self.requests + other.requests,
            self.bytes + other.bytes,
            max(self.longest_wait_s, other.longest_wait_s),
            max(self.late_s, other.late_s),
            max(self.took_s, other.took_s),
        )


Produced = dict[tuple[str, str], Sent]
"""The counts of producers by (user, client-id)."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts of a round by (user, client-id), and the number of created partitions."""

    produced: Produced
    fetched: dict[tuple[str, str], Sent] = field(default_factory=dict)
    created: int = 0


async def place(bootstrap: str, tenants: Iterable[Tenant]) -> None:
    """Create the tenants' topics, each on its broker."""
    async with Admin(bootstrap) as admin:
        for tenant in tenants:
            config = {"max.message.bytes": str(_MOST_BYTES * 2)}
            await admin.create_topic(tenant.topic, assignment=[[tenant.broker]], config=config)


async def send_round(bootstrap: str, plan: Plan, number: int) -> Ledger:
    """Send all requests once.

    Raises:
        ClusterError: a record was not acknowledged, or a request was too late.
    """
    begin = time.monotonic() + 1.0
    produced, fetched, created = await asyncio.gather(
        send(bootstrap, plan.senders, begin),
        asyncio.to_thread(_fetch, bootstrap, plan),
        _create(bootstrap, plan, number, begin),
    )
    return Ledger(refuse_late(produced), {(READER.user, READER.client_id): fetched}, created)


async def send(bootstrap: str, tenants: Iterable[Tenant], begin: float | None = None) -> Produced:
    """Send the tenants' requests, each connection in a thread of its own.

    Args:
        bootstrap: the address of the tenants' listener.
        tenants: the tenants, whose topics exist.
        begin: the start of the round, a monotonic time; None for a second from now.

    Raises:
        ClusterError: a record was not acknowledged.
    """
    begin = time.monotonic() + 1.0 if begin is None else begin
    lines = [(tenant, sends) for tenant in tenants for sends in tenant.connections]
    produced: Produced = {}
    with ThreadPoolExecutor(len(lines), "tenant") as pool:
        loop = asyncio.get_running_loop()
        producing = [
            loop.run_in_executor(pool, _produce, bootstrap, tenant, sends, begin)
            for tenant, sends in lines
        ]
        for (tenant, _), sent in zip(lines, await asyncio.gather(*producing), strict=True):
            names = (tenant.user, tenant.client_id)
            produced[names] = produced.get(names, Sent()) + sent
    return produced


def refuse_late(produced: Produced) -> Produced:
    """Return the counts of a round whose requests came as planned.

    Raises:
        ClusterError: a request was too late.
    """
    late = max(sent.late_s for sent in produced.values())
    if late > _LATEST_S:
        raise ClusterError(f"a tenant's request was {late:.2f} s late: the machine is too busy")
    return produced


def _client(bootstrap: str, user: str, client_id: str, counted: "_Counted") -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user],
        "statistics.interval.ms": _STATS_MS,
        "stats_cb": counted.stats,
        # With notices: when a client ends, it may report how many of its own events it drops.
        "log_level": 5,
    }


class _Counted:
    """The counts from librdkafka's statistics."""

    def __init__(self, api: str, bytes_key: str) -> None:
        self.sent = Sent()
        self.updated = threading.Event()
        self._api = api
        self._bytes_key = bytes_key

    def stats(self, text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        self.sent.requests = sum(broker.get("req", {}).get(self._api, 0) for broker in brokers)
        self.sent.bytes = sum(broker[self._bytes_key] for broker in brokers)
        self.updated.set()

    def throttle(self, event: ThrottleEvent) -> None:
        self.sent.longest_wait_s = max(self.sent.longest_wait_s, event.throttle_time)


def _produce(bootstrap: str, tenant: Tenant, sends: Sequence[Send], begin: float) -> Sent:
    """Send a connection's requests, each at its time."""
    counted = _Counted("Produce", "txbytes")
    producer = Producer(
        _client(bootstrap, tenant.user, tenant.client_id, counted)
        | {
            "acks": 1,
            "linger.ms": 0,
            "message.max.bytes": _MOST_BYTES,
            "throttle_cb": counted.throttle,
            "message.send.max.retries": 0,
        }
    )
    first = begin + sends[0].at_s
    for planned in sends:
        due = begin + planned.at_s
        while (left_s := due - time.monotonic()) > 0:
            producer.poll(min(left_s, 0.05))
        counted.sent.late_s = max(counted.sent.late_s, -left_s)
        producer.produce(tenant.topic, bytes(planned.bytes), partition=0)
        if producer.flush(_DEADLINE_S):
            raise ClusterError(f"{tenant.topic}: a record was not acknowledged")
    counted.sent.took_s = time.monotonic() - first
    _last_stats(counted, producer.poll)
    return counted.sent


def _fetch(bootstrap: str, plan: Plan) -> Sent:
    """Read from the topic's present end until all of the round's records were read."""
    topic, records = plan.read.topic, sum(map(len, plan.read.connections))
    counted = _Counted("Fetch", "rxbytes")
    consumer = Consumer(
        _client(bootstrap, READER.user, READER.client_id, counted)
        | {"group.id": READER.client_id, "enable.auto.commit": False}
    )
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_DEADLINE_S)
        partition = TopicPartition(topic, 0, end)
        consumer.assign([partition])
        read = 0
        deadline = time.monotonic() + plan.round_s + _DEADLINE_S
        while read < records and time.monotonic() < deadline:
            read += sum(not message.error() for message in consumer.consume(100, 0.1))
        if read < records:
            raise ClusterError(f"{topic}: {records - read} records were not read")
        # After fetch.wait.max.ms, no answer is outstanding.
        consumer.pause([partition])
        time.sleep(1.0)
        _last_stats(counted, consumer.poll)
        return counted.sent
    finally:
        consumer.close()


def _last_stats(counted: _Counted, poll: Callable[[float], object]) -> None:
    """Wait for statistics that include the last answer: the second ones from now on."""
    for _ in range(2):
        counted.updated.clear()
        deadline = time.monotonic() + _DEADLINE_S
        while not counted.updated.is_set():
            poll(0.05)
            if time.monotonic() > deadline:
                raise ClusterError("librdkafka sent no statistics")


async def _create(bootstrap: str, plan: Plan, number: int, begin: float) -> int:
    """Create topics, each at its time, and return the number of their partitions."""
    created = 0
    counted = _Counted("CreateTopics", "txbytes")
    with AdminClient(_client(bootstrap, CREATOR, "portal", counted)) as admin:
        for index, at_s in enumerate(plan.created_at_s):
            await asyncio.sleep(max(0.0, begin + at_s - time.monotonic()))
            name = f"made-{number}-{index}"
            futures = admin.create_topics([NewTopic(name, CREATED_PARTITIONS, 1)])
            await asyncio.to_thread(futures[name].result, _DEADLINE_S)
            created += CREATED_PARTITIONS
    return created
