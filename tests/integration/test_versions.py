"""What depends on Kafka's version, on one combined node of each: the contract with Kafka.

4.3.1 is tried by ``make test``, the others by ``make test-all``. What is the same on every version
is tried elsewhere, on 4.3.1 alone.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import callback_jar, jar_version
from sidecar.formats.cache_folder import cache_folder
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.client.connection import dial
from sidecar.kafka.client.security import load_security
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeLogDirs
from sidecar.kafka.fed_brokers import fed_brokers
from sidecar.kafka.largest_topics import largest_topics
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.produce_size import Produce
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Failure
from tests.support.client_quotas import admin_of, in_force, under
from tests.support.clusters import Clusters, Kind, login
from tests.support.command import command, run
from tests.support.daemon import FULL_BYTES, Daemon, Start, settings
from tests.support.java import bean, beans
from tests.support.java_traffic import JavaTraffic
from tests.support.request_logs import logged
from tests.support.waiting import seen
from usage_pipeline.kernels.line_detail import detail

MESSAGES_OF = {
    # version: of DescribeLogDirs, of DescribeCluster
    "3.3.2": (4, 0),
    "3.9.1": (4, 1),
    "4.3.1": (5, 2),
    "4.4.0": (5, 2),
}
NO_MUTATION_QUOTAS = "3.3.2"
"""Its KRaft controllers have none; only ZooKeeper's brokers had."""

BURST = 11
"""Of a quota of 1 a second: a broker's windows are 11 of 1 s."""

BEAN = "throttlesidecar:type=QuotaCallback"
SWITCH = "client.quota.callback.sidecar.enabled"
RATE = 5e5
"""Bytes a second of each producer while it is not throttled. A volume of theirs violates at 24 MiB:
later than the half minute after a start in which brokers before 3.5 delete no segment."""

RECORD = b"x" * 10_000
MIB = 1 << 20


@pytest.fixture(
    scope="class",
    params=[
        version if version == DEFAULT_VERSION else pytest.param(version, marks=pytest.mark.versions)
        for version in MESSAGES_OF
    ],
)
def version(request: pytest.FixtureRequest) -> str:
    """Each version in turn."""
    return str(request.param)


@pytest_asyncio.fixture
async def node(clusters: Clusters, version: str) -> AsyncIterator[Cluster]:
    """One combined node with the quota callback and an authorizer."""
    async with clusters.borrow(Kind(version, has_callback=True)) as cluster:
        yield cluster


async def beside(node: Cluster, start: Start) -> Daemon:
    """A sidecar where the node's callback asks."""
    listen = f"127.0.0.1:{node.brokers[0].sidecar_port}"
    return await start(node, settings(node.bootstrap, HTTP_LISTEN=listen))


async def grows(traffic: Traffic | JavaTraffic, *, by: int) -> None:
    """Wait until so many bytes more are acknowledged."""
    until = traffic.acknowledged_bytes + by

    await seen(f"{by} bytes more", lambda: traffic.acknowledged_bytes >= until)


async def applies(node: Cluster, what: str, accepts: Callable[[Mapping[str, Any]], bool]) -> None:
    """Wait until the callback's own figures are accepted."""
    await seen(what, lambda: bean(node, 0, BEAN), accepts)


class TestKafka:
    """One version of Kafka."""

    async def test_the_newest_messages_that_both_know_are_spoken(self, node: Cluster) -> None:
        """Log dirs are v4 before Kafka 4.3 and v5 since; fenced brokers (v2) are only since 4.0."""
        (endpoint,) = addresses(node.bootstrap)
        security = load_security(KafkaAdmin(bootstrap_servers=(endpoint,)), time.monotonic)
        connection = await dial(endpoint, security, "tests", time.monotonic)
        try:
            asked = (DescribeLogDirs(), DescribeCluster())
            answers = [await connection.call(each) for each in asked]
        finally:
            await connection.close()
        assert MESSAGES_OF[node.version] == tuple(each.API_VERSION for each in answers)

    async def test_volumes_are_seen_with_their_sizes_full_and_free(
        self, node: Cluster, start: Start
    ) -> None:
        """One is filled: factor 0.0 names it; it is freed: 1.0; no poll has failed."""
        daemon = await start(node, settings(node.bootstrap))
        await daemon.decides(1.0)
        sizes = {(0, volume.path): volume.size_bytes for volume in node.brokers[0].volumes}
        assert sizes == {key: each["total_bytes"] for key, each in (await daemon.volumes()).items()}
        await node.occupy(0, 1, FULL_BYTES)
        (violation,) = (await daemon.decides(0.0))["violations"]
        assert node.brokers[0].volumes[1].path == violation["log_dir"]
        await node.occupy(0, 1, 0)
        await daemon.decides(1.0)
        assert set() == (await daemon.metrics()).failure_kinds()

    async def test_kafkas_own_client_reads_the_same_figures(self, node: Cluster) -> None:
        """The version's Java Admin agrees to the byte, of volumes filled differently."""
        for index in (0, 1):
            await node.occupy(0, index, (1 + index) * MIB)

        async def both() -> tuple[object, object]:
            return await figures_by_check(node), await figures_by_java(node)

        # A broker writes checkpoints of a page each second, to a new file before it removes the
        # old one: figures read in that instant differ by that page.
        await seen("the same figures", both, lambda found: found[0] == found[1])

    async def test_a_log_dir_that_fails_is_shown_as_offline(
        self, node: Cluster, start: Start
    ) -> None:
        """It has error 56 and its last sizes; the decision does not change."""
        key = (0, node.brokers[0].volumes[1].path)
        daemon = await start(node, settings(node.bootstrap))
        before = await daemon.decides(1.0)
        await node.fail_log_dir(0, 1)
        volumes = await seen(
            "it is offline", daemon.volumes, lambda now: now[key]["state"] == "offline"
        )
        assert "error 56" in volumes[key]["unread_reason"]
        assert node.brokers[0].volumes[1].size_bytes == volumes[key]["total_bytes"]
        assert before["generation"] == (await daemon.factor())["generation"]

    async def test_a_full_log_dir_that_fails_throttles_until_it_is_forgotten(
        self, node: Cluster, start: Start, tmp_path: Path
    ) -> None:
        """While its broker lives, by the command; and the next polls do not bring it back."""
        path = node.brokers[0].volumes[1].path
        token = tmp_path / "token"
        token.write_text("secret")
        daemon = await start(node, settings(node.bootstrap, TOKEN_FILE=str(token)))
        await daemon.decides(1.0)
        await node.occupy(0, 1, FULL_BYTES)
        await daemon.decides(0.0)
        await node.fail_log_dir(0, 1)
        await node.occupy(0, 1, 0)
        await seen("it is offline", daemon.volumes, lambda now: now[0, path]["state"] == "offline")
        assert 0.0 == (await daemon.factor())["factor"]
        words = ("forget", "0", "--log-dir", path, "--sidecars", daemon.address)
        done = await command(*words, "--token-file", str(token), environ={})
        assert 0 == done.code, done.said
        released = await daemon.factor()
        later = await seen(
            "a later poll",
            daemon.factor,
            lambda now: now["computed_at"] > released["computed_at"],
        )
        assert (1.0, released["generation"]) == (later["factor"], later["generation"])
        assert "offline" == (await daemon.volumes())[0, path]["state"]

    async def test_a_full_volume_throttles_producers_and_nothing_else(
        self, node: Cluster, start: Start
    ) -> None:
        """Both clients wait until it is free; an excluded user doesn't, and topics are created.

        In combined mode there are two callbacks and one store: one MBean, and one reader.
        """
        daemon = await beside(node, start)
        await daemon.decides(1.0)
        names = ("librdkafka", "java", "excluded")
        async with Admin(node.bootstrap) as admin:
            for name in names:
                await admin.create_topic(name, assignment=[[0]], config=small())
                for user in ("etl", "ops"):
                    await admin.allow(user, "WRITE", "TOPIC", name)
            basic = node.bootstrap_of("BASIC")
            async with (
                Traffic(basic, names[0], bytes_per_s=RATE, config=login("etl")) as librdkafka,
                JavaTraffic(
                    node.bootstrap,
                    names[1],
                    bytes_per_s=RATE,
                    config={"acks": 1},
                    version=node.version,
                ) as kafkas,
                Traffic(basic, names[2], bytes_per_s=RATE, config=login("ops")) as excluded,
            ):
                everybody = (librdkafka, kafkas, excluded)
                for each in everybody:
                    await grows(each, by=500_000)
                await node.occupy(0, 0, FULL_BYTES)
                await daemon.decides(0.0)
                throttled = (librdkafka, kafkas)
                for each in throttled:
                    await is_throttled(each)
                # Both callbacks hear of it, and Kafka walks over all rates.
                async with under(node, {Entity(client_id="other"): {"producer_byte_rate": 1e6}}):
                    await admin.create_topic("mutation", assignment=[[0]])
                    await grows(excluded, by=1_000_000)
                assert 0.0 == excluded.longest_throttle_s
                (reader,) = (await daemon.get("/v1/readers"))["readers"]
                assert node.version == reader["kafka_version"]
                assert jar_version(callback_jar()) == reader["jar_version"]
                assert [BEAN] == list(await beans(node, 0, "throttlesidecar:*"))
                await node.occupy(0, 0, 0)
                await daemon.decides(1.0)
                for each in everybody:
                    await grows(each, by=1_000_000)
                assert 0 == sum(each.failed_records for each in everybody)

    async def test_the_callback_is_switched_off_while_the_broker_runs(
        self, node: Cluster, start: Start
    ) -> None:
        """The broker's dynamic configuration does so, and switches it on again."""
        daemon = await beside(node, start)
        await node.occupy(0, 0, FULL_BYTES)
        await daemon.decides(0.0)
        await applies(node, "factor 0.0", lambda now: now["FactorApplied"] == 0.0)
        async with Admin(node.bootstrap) as admin:
            await admin.set_broker_config(0, {SWITCH: "false"})
            await applies(node, "it is off", lambda now: now["FactorApplied"] == 1.0)
            await admin.set_broker_config(0, {SWITCH: "true"})
            await applies(node, "it is on again", lambda now: now["FactorApplied"] == 0.0)

    async def test_who_may_not_describe_is_refused_until_the_acl_is_there(
        self, node: Cluster
    ) -> None:
        """``check`` names the right that is missing; with it the volumes are seen."""
        environ = settings(node.bootstrap_of("BASIC")) | {
            f"SIDECAR_KAFKA_ADMIN_{name.upper().replace('.', '_')}": value
            for name, value in login("etl").items()
        }
        refused = await command("check", environ=environ)
        assert 2 == refused.code
        assert "--operation Describe --cluster" in refused.err
        async with Admin(node.bootstrap) as admin:
            await admin.allow("etl", "DESCRIBE", "BROKER", "kafka-cluster")
        await seen(
            "it is enough",
            lambda: command("check", environ=environ),
            lambda done: done.code == 0,
        )

    async def test_quotas_of_all_entities_are_set_and_read(self, node: Cluster) -> None:
        """Some of their names are such that Kafka sanitises them."""
        wanted = {
            Entity("a b/ü%"): {"request_percentage": 9.2},
            Entity(DEFAULT, "etl"): {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6},
            Entity(client_id=DEFAULT): {"controller_mutation_rate": 5.0},
            Entity(ip="192.0.2.1"): {"connection_creation_rate": 2.0},
        }
        async with under(node, wanted):
            await in_force(node, wanted)
        await in_force(node, {})

    async def test_topics_are_created_grown_and_deleted(self, node: Cluster) -> None:
        """One is there already, one is not, and one has too few partitions."""
        admin = admin_of(node, "plain")
        new = [NewTopic("t0", 1, 1), NewTopic("t1", 1, 1), NewTopic("d", configs=small())]
        assert [Outcome.DONE] * 3 == [each.outcome for each in await create_topics(admin, new)]

        (again, other) = await create_topics(admin, [NewTopic("t0"), NewTopic("t2")])
        assert (Outcome.FAILED, Outcome.DONE) == (again.outcome, other.outcome)
        assert again.message.startswith("error 36 (TOPIC_ALREADY_EXISTS)")

        grown = await create_partitions(admin, [Growth("t0", 3), Growth("t1", 1), Growth("no", 2)])
        assert (Outcome.DONE, Outcome.FAILED, Outcome.FAILED) == tuple(r.outcome for r in grown)
        assert grown[1].message.startswith("error 37 (INVALID_PARTITIONS)")
        assert grown[2].message.startswith("error 3 (")

        (possible,) = await create_topics(admin, [NewTopic("only-asked")], validate_only=True)
        assert Outcome.DONE is possible.outcome

        deleted = await delete_topics(admin, ["t0", "t1", "no"])
        assert (Outcome.DONE, Outcome.DONE, Outcome.FAILED) == tuple(r.outcome for r in deleted)
        async with Admin(node.bootstrap) as other_admin:

            async def left() -> set[str]:
                return {each for each in await other_admin.topics() if not each.startswith("__")}

            # The controller has answered; a broker learns of it a moment later.
            await seen("those that are left", left, lambda names: names == {"t2", "d"})

    async def test_a_mutation_quota_rejects_what_is_over_it(self, node: Cluster) -> None:
        """Each rejected topic has the controller's wait; Kafka 3.3's rejects none."""
        admin = admin_of(node, "impatient")
        rate = {Entity(client_id=admin.client_id): {"controller_mutation_rate": 1.0}}
        async with under(node, rate):
            new = [NewTopic(f"t{number}", 1, 1) for number in range(20)]
            results = await create_topics(admin, new, retry_on_quota_violation=False)
        rejected = [each for each in results if each.outcome is Outcome.THROTTLED]
        if node.version == NO_MUTATION_QUOTAS:
            assert [] == rejected
        else:
            assert 0 < len(rejected) <= 20 - BURST
            assert all(0 < each.throttle_time_ms <= 1000 for each in rejected)

    async def test_the_request_log_has_ids_bytes_and_throttle_times(self, node: Cluster) -> None:
        """It is turned on and off; each producer's id is in it, and what it sent and waited."""
        throttled: list[float] = []
        producers: dict[str, dict[str, Any]] = {
            "first": {"enable.idempotence": True},
            "second": {"enable.idempotence": True},
            "hasty": {"acks": 0},
            "slow": {"acks": 1, "throttle_cb": lambda event: throttled.append(event.throttle_time)},
        }
        # Over a window of 10 s at least, three records are over it and two are not.
        quota = {Entity(client_id="slow"): {"producer_byte_rate": 2_500.0}}
        async with Admin(node.bootstrap) as admin:
            await admin.create_topic("read-me")
        async with under(node, quota), logged(node) as logs:
            for name, config in producers.items():
                await asyncio.to_thread(produce, node.bootstrap, name, config)
        made = {
            line.client_id: allocated
            for line in logs.all_lines
            if (allocated := producer_id(line)) is not None
        }
        assert {"first", "second"} == set(made)
        assert 2 == len(set(made.values()))
        for name in producers:
            sent = sum(
                said.records_bytes
                for line in logs.all_lines
                if line.client_id == name and isinstance(said := detail(line), Produce)
            )
            assert 3 * len(RECORD) < sent < 3 * len(RECORD) + 1000, name
        clients = logs.usage.clients()
        first = clients["ANONYMOUS", "first"]
        assert first.exempt_ms == 0 < first.request_ms
        assert clients["ANONYMOUS", "hasty"].exempt_ms > 0
        slow = clients["ANONYMOUS", "slow"]
        assert slow.longest_throttle_ms > 0
        assert round(1000 * max(throttled)) == slow.longest_throttle_ms

    async def test_a_broker_reports_its_own_configuration(self, node: Cluster) -> None:
        """Threads are those of the properties file, windows those of Kafka's defaults."""
        expected = {
            "num.io.threads": "4",
            "num.network.threads": "2",
            "quota.window.num": "11",
            "log.dirs": ",".join(volume.path for volume in node.brokers[0].volumes),
        }
        names = [*expected, "no.such"]
        assert {0: expected} == await describe_broker_configs(admin_of(node), None, names)

    async def test_what_lies_on_its_volumes_is_reported(self, node: Cluster) -> None:
        """The topic's partitions are by log dir, and together have the bytes that were written."""
        async with Admin(node.bootstrap) as admin:
            await admin.create_topic("orders", assignment=[[0], [0], [0]])
        async with Traffic(
            node.bootstrap, "orders", bytes_per_s=5e6, partitions=(0, 1, 2)
        ) as traffic:
            await grows(traffic, by=2_000_000)
        written = traffic.acknowledged_bytes
        found = await largest_topics(admin_of(node), 0, 10.0)
        assert not isinstance(found, Failure), found
        assert {volume.path for volume in node.brokers[0].volumes} == set(found)
        ours = [
            each for log_dir in found.values() for each in log_dir.largest if each.topic == "orders"
        ]
        assert [0, 1, 2] == sorted(index for each in ours for index in each.partitions)
        assert frozenset({0}) == await fed_brokers(admin_of(node), 0, 10.0)
        # What was in flight when the producer stopped is there, and was not acknowledged to it.
        assert written <= sum(each.size_bytes for each in ours) <= written + 5e6


async def is_throttled(traffic: Traffic | JavaTraffic) -> None:
    """Wait until a broker has throttled a producer."""
    await seen("a throttle time", lambda: traffic.longest_throttle_s)


def small() -> dict[str, str]:
    """A topic's configuration, so that it never fills a volume by itself."""
    return {"retention.bytes": str(4 << 20), "segment.bytes": str(1 << 20)}


async def figures_by_java(node: Cluster) -> dict[str, tuple[int, int]]:
    """Log dir -> total and usable bytes, by Admin.describeLogDirs."""
    folder = await jars(node.version, cache_folder(os.environ))
    program = str(Path(__file__).with_name("DescribeLogDirs.java"))
    done = await run([java(os.environ), "-cp", f"{folder}/*", program, node.bootstrap])
    assert 0 == done.code, done.said
    rows = (line.split("\t") for line in done.out.splitlines())
    return {path: (int(total), int(usable)) for _, path, total, usable in rows}


async def figures_by_check(node: Cluster) -> dict[str, tuple[int, int]]:
    """Log dir -> total and available bytes, by ``check``."""
    done = await command("check", "--json", environ=settings(node.bootstrap))
    return {
        each["log_dir"]: (each["total_bytes"], each["available_bytes"])
        for each in done.document()["volumes"]
    }


def produce(bootstrap: str, name: str, config: Mapping[str, Any]) -> None:
    """Three records, each a batch of its own."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": name, "linger.ms": 0, **config}
    )
    for _ in range(3):
        producer.produce("read-me", RECORD)
        assert 0 == producer.flush(30)
    # The throttle time of a throttled producer is still to come.
    producer.poll(0.5)
