"""The request log of real brokers and controllers: on for a while, off, and what it says."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.topic_changes import create_partitions, create_topics, delete_topics
from sidecar.kafka.topic_messages import Growth, NewTopic
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.quotas.entities import Entity
from tests.support.client_quotas import admin_of
from tests.support.command import command
from tests.support.request_logs import controllers_of, logged
from tests.support.waiting import SEEN_S, seen
from usage_pipeline.kernels.line_detail import QuotaChange, QuotaChanges, detail

SOMEONE = {"user": "someone", "client-id": None}
VALUES = (1e6, None)


@asynccontextmanager
async def session(cluster: Cluster, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """``request-log on`` in a process of its own; it is killed hard if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sidecar", "request-log", "on", *words),
        *("--bootstrap-server", cluster.bootstrap),
        env={},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def levels(cluster: Cluster, *words: str) -> Mapping[int, str]:
    """The brokers' levels, as ``status --json`` has them."""
    reached = words or ("--bootstrap-server", cluster.bootstrap)
    done = await command("request-log", "status", "--json", *reached, environ={})
    assert (0, "") == (done.code, done.err)
    return {each["broker_id"]: each["level"] for each in done.document()["brokers"]}


async def all_at(cluster: Cluster, level: str) -> None:
    """Wait until every broker is at this level."""
    expected = dict.fromkeys(cluster.brokers, level)
    await seen(f"all at {level}", lambda: levels(cluster), lambda result: result == expected)


def written(file: Path) -> list[str]:
    """The lines of a request log; none before its first."""
    return file.read_text().splitlines() if file.exists() else []


def clients(lines: list[str]) -> set[str]:
    """The client-ids of the requests in a log."""
    requests = [
        json.loads(line.partition("Completed request:")[2].rpartition(" (")[0]) for line in lines
    ]
    return {each["requestHeader"]["clientId"] for each in requests}


async def traffic(cluster: Cluster) -> None:
    """A few requests to every broker."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.topics()
    for broker_id in cluster.brokers:
        done = await command(
            *("request-log", "status", "--broker", str(broker_id)),
            *("--bootstrap-server", cluster.bootstrap),
            environ={},
        )
        assert 0 == done.code, done.said


def log_of(cluster: Cluster, broker_id: int) -> Path:
    """Where a broker's request log is written."""
    return Path(f"{cluster.brokers[broker_id].log}.requests")


async def test_it_is_on_for_a_while_and_off_again(kafka: Cluster) -> None:
    """Lines are written meanwhile and not before or after; the command sees its own."""
    await traffic(kafka)
    before = {key: len(written(log_of(kafka, key))) for key in kafka.brokers}
    file = log_of(kafka, 1)
    async with session(kafka, "--for", "PT10M", "--file", str(file)) as process:
        await all_at(kafka, "DEBUG")
        await traffic(kafka)
        process.send_signal(signal.SIGTERM)
        printed, complained = await process.communicate()
    assert (0, b"") == (process.returncode, complained)
    assert f"on: the line of this command's request to broker 1 is in {file}." in printed.decode()
    await all_at(kafka, "WARN")
    after = {key: len(written(log_of(kafka, key))) for key in kafka.brokers}
    assert all(after[key] > before[key] for key in kafka.brokers), (before, after)
    assert {"throttle-sidecar"} <= clients(written(log_of(kafka, 0)))
    await traffic(kafka)
    assert after == {key: len(written(log_of(kafka, key))) for key in kafka.brokers}


@pytest.mark.slow
async def test_a_broker_that_restarts_is_off_and_that_is_reported(kafka: Cluster) -> None:
    """The session goes on for the others; a broker that is gone delays nothing."""
    async with session(kafka, "--for", "PT10M") as process:
        await all_at(kafka, "DEBUG")
        await kafka.stop_broker(1)
        await kafka.start_broker(1)
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stderr.readline(), SEEN_S)
        assert line.startswith(b"Broker 1 ")
        assert {0: "DEBUG", 1: "WARN"} == await levels(kafka)
        process.send_signal(signal.SIGINT)
        assert 0 == await asyncio.wait_for(process.wait(), SEEN_S)
    await all_at(kafka, "WARN")


async def test_a_controller_has_one_too(kafka: Cluster) -> None:
    """A dedicated one writes there who changed topics; it is asked on its own listener."""
    (voter,) = await controllers_of(kafka)
    controller_id, _, controller = voter.partition("@")
    reached = ("--bootstrap-controller", controller)
    assert {int(controller_id): "WARN"} == await levels(kafka, *reached)
    done = await command("request-log", "on", "--for", "PT1S", *reached, environ={})
    assert (0, "") == (done.code, done.err)
    assert "DEBUG" in done.out
    assert {int(controller_id): "WARN"} == await levels(kafka, *reached)
    assert kafka.folder is not None
    assert [] != written(kafka.folder / "controller.log.requests")


async def test_mutations_and_quotas_are_in_the_controllers_log(kafka: Cluster) -> None:
    """Created, grown and deleted partitions are counted once, and a quota's change is reported."""
    admin = admin_of(kafka)
    async with logged(kafka, await controllers_of(kafka)) as logs:
        topics = [NewTopic("three", 3, 1), NewTopic("default", -1, 1)]
        _all_well(await create_topics(admin, topics))
        _all_well(await create_partitions(admin, [Growth("three", 5)]))
        _all_well(await delete_topics(admin, ["three", "default"]))
        for value in VALUES:
            quota = (SOMEONE, {"producer_byte_rate": value})
            assert await alter_client_quotas(admin, [quota]) is None
    sums = logs.usage.clients()["ANONYMOUS", "throttle-sidecar"]
    created, grown = 3 + 1, 2
    assert 2 * (created + grown) == sums.mutations
    assert (0, 0) == (sums.mutations_refused, sums.mutations_unknown)
    changes = [
        change
        for line in logs.all_lines
        if line.is_forwarded and isinstance(said := detail(line), QuotaChanges)
        for change in said.changes
    ]
    entity = Entity.of(SOMEONE)
    assert [QuotaChange(entity, "producer_byte_rate", value, 0) for value in VALUES] == changes


def _all_well(results: Sequence[TopicResult]) -> None:
    assert {Outcome.DONE} == {result.outcome for result in results}, results
