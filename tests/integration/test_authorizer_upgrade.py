"""Brokers that run are given the authorizer node by node: docs/refusal.md's steps, and back.

There are three brokers and a controller. A user's producers that may write, another's that may not,
and a consumer run through every restart. After each step every broker is asked, on new connections,
whether a user may write to a partition that it alone has.
"""

import asyncio
import os
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from kafka_lab.admin import Admin
from kafka_lab.broker_properties import CONTROLLER_ID
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from sidecar.cli.callback.jar import callback_jar
from tests.support.clusters import FENCED_MS, PASSWORD, java_login, login
from tests.support.factor_server import FactorServer
from tests.support.java import Bean, beans
from tests.support.lives import Course, Found, JavaLives, Lives, faults, read
from tests.support.waiting import seen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ORDER: Final = (0, CONTROLLER_ID, 1, 2)
"""Brokers with another authorizer than the controller's are there in either sense."""

BROKERS: Final = (0, 1, 2)
ORDERS: Final = "orders"
"""Each partition is on all brokers, and each broker leads one."""

ASKED: Final = "asked"
"""Partition n is on broker n alone."""

MAY: Final = "NO_ERROR"
MAY_NOT: Final = "TOPIC_AUTHORIZATION_FAILED"
REFUSED: Final = "NOT_ENOUGH_REPLICAS"

LEADERS: Final = {"leader.imbalance.check.interval.seconds": "1"}
"""A restarted broker leads again soon, so that each of them has producers."""

SIDECAR: Final = {
    **CALLBACK_PROPERTIES,
    **REFUSING_PROPERTIES,
    # The second request of a new connection is refused at the latest.
    "client.quota.callback.sidecar.leak.bytes.per.second": "1",
}
ALLOWING: Final = {"allow.everyone.if.no.acl.found": "true"}
"""What docs/refusal.md adds where there was no authorizer."""

NEVER_MS: Final = 3_600_000
SHORT: Final = Course(ORDERS, 1, partitions=3, threads=1, longest_ms=3000, size=200, burst=6)
"""Producers that come and go: each connects anew."""

LONG: Final = Course(
    ORDERS, 1, 3, threads=1, shortest_ms=NEVER_MS, longest_ms=NEVER_MS, size=200, burst=6
)
"""One that lives as long as the test."""

MANY_RECORDS: Final = 300


class Reading:
    """A consumer in a group of its own name, from entry to exit of its async context.

    Attributes:
        offsets: partition -> the offsets that it has read.
        errors: the names of the errors that it was given.
    """

    def __init__(self, bootstrap: str, user: str | None) -> None:
        """Nothing is read yet."""
        self.offsets: defaultdict[int, set[int]] = defaultdict(set)
        self.errors: set[str] = set()
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **login(user),
        }
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reading", daemon=True)

    @property
    def count(self) -> int:
        """How many records it has read."""
        return sum(map(len, list(self.offsets.values())))

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ends.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        with Consumer(self._config) as consumer:
            consumer.subscribe([ORDERS])
            while not self._ends.is_set():
                for message in consumer.consume(500, 0.2):
                    if (error := message.error()) is not None:
                        self.errors.add(error.name())
                    else:
                        self.offsets[message.partition() or 0].add(message.offset() or 0)


@dataclass(frozen=True, slots=True)
class Rolled:
    """A cluster that is given the authorizer, and who uses it meanwhile.

    Attributes:
        cluster: the cluster.
        listener: where the users are whom a test asks for.
        sidecars: by broker.
        allowed: producers that may write.
        denied: those that may not; None where everybody may.
        reading: a consumer that may read.
    """

    cluster: Cluster
    listener: str
    sidecars: Mapping[int, FactorServer]
    allowed: Sequence[Lives | JavaLives]
    denied: Lives | None
    reading: Reading

    async def says(self, user: str | None) -> dict[int, str]:
        """Broker -> the name of the error for a record from a user, on a new connection."""
        bootstrap = self.cluster.bootstrap_of("PLAIN" if user is None else self.listener)
        each = (asyncio.to_thread(ask, bootstrap, user, broker) for broker in BROKERS)
        return dict(zip(BROKERS, await asyncio.gather(*each), strict=True))

    async def comes_to(self, user: str | None, answer: str) -> None:
        """Wait until every broker says this."""
        expected = dict.fromkeys(BROKERS, answer)
        await seen(f"{user}: {answer}", lambda: self.says(user), lambda now: now == expected)

    async def still(self, **answers: str) -> None:
        """Every broker says this of each user, and nothing else: not even once."""
        for user, answer in answers.items():
            # A broker that has just started may not lead yet, which is no answer to the question.
            now = await seen(
                f"answers to {user}",
                partial(self.says, user),
                lambda now: {MAY, MAY_NOT, REFUSED}.issuperset(now.values()),
            )
            assert dict.fromkeys(BROKERS, answer) == now, user

    async def flows(self) -> None:
        """Wait until everybody has gone on."""
        before, denied = self.reading.count, self.denials
        await seen("records are read", lambda: self.reading.count > before + MANY_RECORDS)
        if self.denied is not None:
            await seen("others are denied", lambda: self.denials > denied + 1)

    @property
    def denials(self) -> int:
        """How many producers that may not write have ended."""
        return 0 if self.denied is None else len(self.denied.done)

    async def restart(self, node: int) -> None:
        """Restart a node as it is configured now; returns when all replicas are in sync."""
        if node == CONTROLLER_ID:
            await self.cluster.restart_controller()
        else:
            await self.cluster.stop_broker(node)
            await self.cluster.start_broker(node)
        async with Admin(self.cluster.bootstrap) as admin:
            await seen("all are in sync", admin.under_replicated, lambda found: not found)

    async def figures(self) -> dict[int, Bean]:
        """What the quota callback reports, by the brokers that have it."""
        found = {each: await beans(self.cluster, each, "throttlesidecar:*") for each in BROKERS}
        return {each: next(iter(of.values())) for each, of in found.items() if of}

    async def has_ours(self, *brokers: int) -> None:
        """Wait until these brokers, and no others, have the callback and the authorizer."""
        expected = dict.fromkeys(brokers, ("SIDECAR", True))
        await seen(
            f"the jar works in {brokers}",
            self.figures,
            lambda now: (
                {k: (each["Source"], each["Refusing"]) for k, each in now.items()} == expected
            ),
        )

    async def throttles(self, user: str, **others: str) -> None:
        """New connections of a user who may write are refused meanwhile; others' answers stay."""
        before = await self.figures()
        for sidecar in self.sidecars.values():
            sidecar.decide(0.0)
        await seen(
            "all obey",
            self.figures,
            lambda now: {0.0} == {each["FactorApplied"] for each in now.values()},
        )
        await self.comes_to(user, REFUSED)
        await self.still(**others)
        now = await self.figures()
        for broker in BROKERS:
            assert int_of(now, broker) > int_of(before, broker), broker
        for sidecar in self.sidecars.values():
            sidecar.decide(1.0)
        await self.comes_to(user, MAY)

    async def ends(self) -> tuple[Found, Found]:
        """All producers end well, and all that they sent was read; what is in both topics."""
        await asyncio.gather(*(each.end() for each in self.allowed))
        orders = await asyncio.to_thread(read, self.cluster.bootstrap, ORDERS, 3)
        lives = [life for each in self.allowed for life in each.done]
        print(f"{len(lives)} producers, {sum(life.acknowledged for life in lives)} acknowledged")
        assert all(each.done and sum(life.sent for life in each.done) for each in self.allowed)
        assert [] == faults(lives, orders)
        landed = sum(len(numbers) for life in orders.values() for numbers in life.values())
        await seen("all are read", lambda: self.reading.count, lambda count: count == landed)
        assert set() == self.reading.errors
        return orders, await asyncio.to_thread(read, self.cluster.bootstrap, ASKED, 3)


def int_of(figures: Mapping[int, Bean], broker: int) -> int:
    """How many requests of new connections a broker has refused."""
    return int(figures[broker]["RefusedNewConnections"] or 0)


def ask(bootstrap: str, user: str | None, partition: int) -> str:
    """Send one record, once; the name of the error."""
    said: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        said.append(MAY if error is None else error.name())

    config = {"bootstrap.servers": bootstrap, "retries": 0, "linger.ms": 0, "log_level": 0}
    producer = Producer({**config, "message.timeout.ms": 20_000, **login(user)})
    producer.produce(ASKED, f"{user} 0 ", partition=partition, on_delivery=delivered)
    producer.flush(30)
    return said[0] if said else "no answer"


@asynccontextmanager
async def rolled(user: str | None, denied: str | None, **of_cluster: Any) -> AsyncIterator[Rolled]:
    """A cluster without the jar, on which a user's producers and a consumer run.

    Args:
        user: who writes and reads; None: nobody's login.
        denied: who tries to write; None: nobody.
        of_cluster: how it is made.
    """
    users = dict.fromkeys(("etl", "reader", "denied", "late"), PASSWORD)
    listener = Listener("BASIC", "SASL_PLAINTEXT", "PLAIN", users)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            Cluster(
                environ=os.environ,
                brokers=len(BROKERS),
                volumes=1,
                volume_bytes=128 << 20,
                properties=LEADERS,
                controller_too=True,
                listeners=[listener],
                session_timeout_ms=FENCED_MS,
                start_timeout_s=120.0,
                **of_cluster,
            )
        )
        sidecars = {each: FactorServer(cluster.brokers[each].sidecar_port) for each in BROKERS}
        for sidecar in sidecars.values():
            await stack.enter_async_context(sidecar)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(ORDERS, assignment=[[0, 1, 2], [1, 2, 0], [2, 0, 1]])
            await admin.create_topic(ASKED, assignment=[[0], [1], [2]])
            if denied is not None:
                await grant(admin)
        bootstrap = cluster.bootstrap_of("PLAIN" if user is None else listener.name)
        batches = {"linger.ms": 0, "enable.idempotence": True, "message.timeout.ms": 300_000}
        java = {"linger.ms": 0, "delivery.timeout.ms": 300_000}
        allowed: list[Lives | JavaLives] = [
            Lives(bootstrap, "long/", LONG, {**batches, **login(user)}),
            Lives(bootstrap, "short/", SHORT, {**batches, **login(user)}),
            JavaLives(bootstrap, "java/", LONG, {**java, **java_login(user)}),
        ]
        others = Lives(bootstrap, "denied/", SHORT, login(denied)) if denied is not None else None
        reading = Reading(bootstrap, "reader" if user is not None else None)
        roll = Rolled(cluster, listener.name, sidecars, allowed, others, reading)
        # Brokers learn of ACLs after the controller has answered; the last is for writes of etl.
        await roll.comes_to(user, MAY)
        for each in [*allowed, *([] if others is None else [others]), reading]:
            await stack.enter_async_context(each)
        yield roll


async def grant(admin: Admin) -> None:
    """Everybody may write to one topic but one, whom an ACL denies it; on the other one may."""
    await admin.allow("*", "WRITE", "TOPIC", ORDERS)
    await admin.deny("denied", "WRITE", "TOPIC", ORDERS)
    await admin.allow("reader", "READ", "TOPIC", ORDERS)
    await admin.allow("reader", "READ", "GROUP", "reader")
    for user in ("denied", "late"):
        # A producer who may not even describe a topic sends it nothing.
        await admin.allow(user, "DESCRIBE", "TOPIC", ASKED)
    await admin.allow("etl", "WRITE", "TOPIC", ASKED)


async def test_a_secured_cluster_is_rolled_to_the_authorizer_and_back() -> None:
    """Each ACL is in force at each moment, and what was acknowledged is there once, in order."""
    async with (
        rolled("etl", "denied", super_users=[]) as roll,
        Admin(roll.cluster.bootstrap, timeout_s=60.0) as admin,
    ):
        assert roll.denied is not None
        await roll.flows()
        await roll.has_ours()
        await roll.still(etl=MAY, denied=MAY_NOT, late=MAY_NOT)

        roll.cluster.configure(LEADERS | SIDECAR, asks_its_sidecar, [callback_jar()])
        late = MAY_NOT
        for count, node in enumerate(ORDER, 1):
            await roll.restart(node)
            await roll.has_ours(*(each for each in ORDER[:count] if each in BROKERS))
            await roll.still(etl=MAY, denied=MAY_NOT, late=late)
            await roll.flows()
            if node == CONTROLLER_ID:
                await admin.allow("late", "WRITE", "TOPIC", ASKED)
                await roll.comes_to("late", MAY)
                late = MAY

        await roll.throttles("etl", denied=MAY_NOT)
        await roll.flows()
        await admin.delete_acls("late", "WRITE", "TOPIC", ASKED)
        await roll.comes_to("late", MAY_NOT)

        roll.cluster.configure(LEADERS)
        for count, node in enumerate(ORDER, 1):
            await roll.restart(node)
            await roll.has_ours(*(each for each in ORDER[count:] if each in BROKERS))
            await roll.still(etl=MAY, denied=MAY_NOT, late=MAY_NOT)
            await roll.flows()
        await admin.allow("late", "WRITE", "TOPIC", ASKED)
        await roll.comes_to("late", MAY)

        await roll.denied.end()
        orders, asked = await roll.ends()
        assert [] == [life for life in orders if life.startswith("denied/")]
        assert {"etl", "late"} == set(asked)
        tried = [life for life in roll.denied.done if life.sent]
        print(f"{sum(life.sent for life in tried)} denied")
        odd = [life for life in tried if life.acknowledged or MAY_NOT not in life.error]
        assert [] == odd


async def test_a_cluster_without_an_authorizer_is_rolled_to_it() -> None:
    """Everybody may do everything, with a login and without, until a resource has an ACL."""
    async with (
        rolled(None, None) as roll,
        Admin(roll.cluster.bootstrap, timeout_s=60.0) as admin,
    ):
        await roll.flows()
        await roll.still(etl=MAY)

        properties = LEADERS | SIDECAR | ALLOWING
        roll.cluster.configure(properties, asks_its_sidecar, [callback_jar()])
        for count, node in enumerate(ORDER, 1):
            await roll.restart(node)
            await roll.has_ours(*(each for each in ORDER[:count] if each in BROKERS))
            await roll.still(etl=MAY)
            await roll.flows()

        await roll.throttles("etl")
        await roll.flows()
        await admin.allow("late", "WRITE", "TOPIC", ASKED)
        await roll.comes_to("late", MAY)
        await roll.comes_to("etl", MAY_NOT)
        await roll.comes_to(None, MAY)
        await roll.flows()
        await roll.ends()
