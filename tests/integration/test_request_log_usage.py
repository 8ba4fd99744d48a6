"""What real brokers' and controllers' request logs say, followed while they are written."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from sidecar.demo.cluster import Cluster
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.broker_loggers import set_levels
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.kafka.topics import create_partitions, create_topics, delete_topics
from sidecar.quotas.entities import Entity
from sidecar.requestlog.detail import QuotaChange, QuotaChanges, detail
from sidecar.requestlog.line import LOGGER, Line, parse
from sidecar.requestlog.producer_ids import producer_ids
from sidecar.requestlog.tail import Tail
from sidecar.requestlog.usage import Usage
from sidecar.requestlog.wire import Produce
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure

RECORD = b"x" * 10_000


class Logs:
    """The lines that brokers and the controller write meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        assert cluster.folder is not None
        files = [Path(f"{broker.log}.requests") for broker in cluster.brokers.values()]
        self._tails = [Tail(file) for file in (*files, cluster.folder / "controller.log.requests")]
        self.lines: list[Line] = []
        self.usage = Usage()
        # A file that is there already is followed from its end as it is now.
        assert not self._read()

    def _read(self) -> int:
        given = 0
        for tail in self._tails:
            looked = tail.read()
            given += len(looked.lines)
            for text in looked.lines:
                parsed = parse(text)
                self.usage.record(parsed)
                assert isinstance(parsed, Line), (parsed, text)
                self.lines.append(parsed)
        return given

    async def read_all(self) -> None:
        """Until nothing new comes for half a second."""
        quiet = 0
        while quiet < 5:
            quiet = 0 if self._read() else quiet + 1
            await asyncio.sleep(0.1)

    def close(self) -> None:
        for tail in self._tails:
            tail.close()


@asynccontextmanager
async def logged(cluster: Cluster, controllers: Sequence[str] = ()) -> AsyncIterator[Logs]:
    """Both kinds of nodes log meanwhile; afterwards all that they logged has been read."""
    logs = Logs(cluster)
    await _set(cluster, controllers, "DEBUG")
    try:
        yield logs
    finally:
        await _set(cluster, controllers, "WARN")
        await logs.read_all()
        logs.close()


async def _set(cluster: Cluster, controllers: Sequence[str], level: str) -> None:
    done = await set_levels(
        _admin(cluster.bootstrap), dict.fromkeys(cluster.brokers, level), LOGGER
    )
    _succeeded(done)
    for controller in controllers:
        node_id, _, address = controller.partition("@")
        levels = {int(node_id): level}
        _succeeded(await set_levels(_admin(address), levels, LOGGER, nodes="controllers"))


async def test_producer_ids_bytes_and_throttle_times(any_kafka: Cluster) -> None:
    """Every version's lines are read; each producer's id is told, and what it sent and waited."""
    throttled: list[float] = []
    producers: dict[str, dict[str, Any]] = {
        "first": {"enable.idempotence": True},
        "second": {"enable.idempotence": True},
        "hasty": {"acks": 0},
        "slow": {"acks": 1, "throttle_cb": lambda event: throttled.append(event.throttle_time)},
    }
    quota = {"client-id": "slow"}
    # Over a window of 10 s at least, three records are over it and two are not.
    await _alter(any_kafka, quota, 2_500.0)
    _all_well(await create_topics(_admin(any_kafka.bootstrap), [NewTopic("read-me", 1, 1)]))
    try:
        async with logged(any_kafka) as logs:
            for name, settings in producers.items():
                await asyncio.to_thread(_produce, any_kafka.bootstrap, name, settings)
    finally:
        await _alter(any_kafka, quota, None)
        _all_well(await delete_topics(_admin(any_kafka.bootstrap), ["read-me"]))
    made = {event.client_id: event.producer_id for event in producer_ids(logs.lines)}
    assert {"first", "second"} == set(made)
    assert 2 == len(set(made.values()))

    for name in producers:
        sent = sum(
            said.records_bytes
            for line in logs.lines
            if line.client_id == name and isinstance(said := detail(line), Produce)
        )
        assert 3 * len(RECORD) < sent < 3 * len(RECORD) + 1000, name
    clients = logs.usage.clients()
    assert clients["ANONYMOUS", "first"].exempt_ms == 0 < clients["ANONYMOUS", "first"].request_ms
    assert clients["ANONYMOUS", "hasty"].exempt_ms > 0
    slow = clients["ANONYMOUS", "slow"]
    assert slow.longest_throttle_ms > 0
    assert round(1000 * max(throttled)) == slow.longest_throttle_ms


async def test_mutations_and_quotas_are_in_the_controllers_log(kafka: Cluster) -> None:
    """Created, grown and deleted partitions are counted once, and a quota's change is told."""
    admin = _admin(kafka.bootstrap)
    told = await describe_broker_configs(admin, [0], ["controller.quorum.voters"])
    assert not isinstance(told, Failure)
    configs = told[0]
    assert not isinstance(configs, Failure)
    voters = configs["controller.quorum.voters"]
    assert voters is not None
    async with logged(kafka, voters.split(",")) as logs:
        topics = [NewTopic("three", 3, 1), NewTopic("default", -1, 1)]
        _all_well(await create_topics(admin, topics))
        _all_well(await create_partitions(admin, [Growth("three", 5)]))
        _all_well(await delete_topics(admin, ["three", "default"]))
        await _alter(kafka, {"user": "someone", "client-id": None}, 1e6)
        await _alter(kafka, {"user": "someone", "client-id": None}, None)
    sums = logs.usage.clients()["ANONYMOUS", "throttle-sidecar"]
    created, grown = 3 + 1, 2
    assert 2 * (created + grown) == sums.mutations
    assert (0, 0) == (sums.mutations_refused, sums.mutations_unknown)
    changes = [
        change
        for line in logs.lines
        if line.is_forwarded and isinstance(said := detail(line), QuotaChanges)
        for change in said.changes
    ]
    entity = Entity.of({"user": "someone", "client-id": None})
    expected = [QuotaChange(entity, "producer_byte_rate", value, 0) for value in (1e6, None)]
    assert expected == changes


def _produce(bootstrap: str, name: str, settings: Mapping[str, Any]) -> None:
    """Three records, each a batch of its own."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": name, "linger.ms": 0, **settings}
    )
    for _ in range(3):
        producer.produce("read-me", RECORD)
        assert 0 == producer.flush(30)
    # What a throttled producer was told is still to come.
    producer.poll(0.5)


async def _alter(
    cluster: Cluster, entity: Mapping[str, str | None], bytes_per_s: float | None
) -> None:
    quotas = {"producer_byte_rate": bytes_per_s}
    assert await alter_client_quotas(_admin(cluster.bootstrap), [(entity, quotas)]) is None


def _admin(bootstrap: str) -> KafkaAdmin:
    addresses = (address.rpartition(":") for address in bootstrap.split(","))
    return KafkaAdmin(
        bootstrap_servers=tuple(HostPort(host, int(port)) for host, _, port in addresses)
    )


def _succeeded(levels: Mapping[int, object] | Failure) -> None:
    assert not isinstance(levels, Failure), levels
    failed = [value for value in levels.values() if isinstance(value, Failure)]
    assert not failed


def _all_well(results: Sequence[TopicResult]) -> None:
    assert {Outcome.DONE} == {result.outcome for result in results}, results
