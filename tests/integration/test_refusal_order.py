"""Refusal and release break no order: idempotent and transactional producers of two clients.

Throttles begin and end at random moments, each shorter than any time-out of a client. Producers
come and go all the time, so that many begin within a throttle, and have several requests in flight
when a verdict changes. Every record that was acknowledged is in the log once and in order, and none
failed.
"""

import asyncio
import os
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from sidecar.cli.callback.jar import callback_jar
from tests.support.factor_server import FactorServer
from tests.support.java import bean
from tests.support.lives import Course, JavaLives, Lives, faults, read
from tests.support.waiting import seen

BEAN = "throttlesidecar:type=QuotaCallback"
SEED = int(os.environ.get("REFUSAL_SEED", "1"))
THROTTLES = int(os.environ.get("REFUSAL_THROTTLES", "20"))
"""100 for the whole claim, as ``make test-all`` has it: that takes nine minutes."""

PARTITIONS = 4

JAVA: dict[str, object] = {"linger.ms": 0, "batch.size": 2500, "delivery.timeout.ms": 300_000}
"""Idempotent, as by default; small batches, so that many are in flight."""

LIBRDKAFKA: dict[str, Any] = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "batch.num.messages": 2,
    "message.timeout.ms": 300_000,
}
TRANSACTIONAL = {"transactional.id": "tx", "transaction.timeout.ms": 300_000}


def refusing() -> Cluster:
    """One combined node that refuses."""
    return Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=1 << 30,
        broker_jars=[callback_jar()],
        properties={**CALLBACK_PROPERTIES, **REFUSING_PROPERTIES},
        properties_of=asks_its_sidecar,
    )


@pytest.mark.slow
@pytest.mark.timeout(480 + 12 * THROTTLES)
async def test_every_record_is_in_the_log_once_and_in_order() -> None:
    """Whatever is refused at whichever moment."""
    choices = random.Random(SEED)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(refusing())
        sidecar = await stack.enter_async_context(FactorServer(cluster.brokers[0].sidecar_port))
        topics = ["java", "librdkafka", "java-many", "librdkafka-many", "java-tx", "librdkafka-tx"]
        async with Admin(cluster.bootstrap) as admin:
            for name in topics:
                await admin.create_topic(name, partitions=PARTITIONS)
        courses = {
            name: Course(name, SEED * 100 + number, PARTITIONS if "many" in name else 1)
            for number, name in enumerate(topics)
        }
        lives: list[JavaLives | Lives] = []
        for name, course in courses.items():
            more = TRANSACTIONAL | {"transactional.id": name} if name.endswith("-tx") else {}
            make = JavaLives if name.startswith("java") else Lives
            config = JAVA if name.startswith("java") else LIBRDKAFKA
            lives.append(
                await stack.enter_async_context(
                    make(cluster.bootstrap, f"{name}/", course, config | more)
                )
            )
        figures = partial(bean, cluster, 0, BEAN)
        await seen("the broker follows", figures, lambda now: now["Source"] == "SIDECAR")
        await seen("each has a life", lambda: all(each.done for each in lives))
        for _ in range(THROTTLES):
            sidecar.decide(0.0)
            await asyncio.sleep(choices.uniform(0.2, 6.0))
            sidecar.decide(1.0)
            await asyncio.sleep(choices.uniform(0.2, 4.0))
        await asyncio.gather(*(each.end() for each in lives))
        now: Mapping[str, Any] = await figures()
        wrong: list[str] = []
        for name, group in zip(topics, lives, strict=True):
            found = await asyncio.to_thread(read, cluster.bootstrap, name, PARTITIONS)
            sent = sum(life.sent for life in group.done)
            print(f"{name}: {len(group.done)} lives, {sent} records")
            wrong += faults(group.done, found)
    print(f"{now['RefusedTotal']} refused, {now['RefusedAfterRelease']} of them after a release")
    assert now["RefusedNewConnections"] > THROTTLES, "too few to show anything"
    assert now["RefusedAfterRelease"] > 0
    assert [] == wrong
