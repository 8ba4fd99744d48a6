"""The scenario with faults: three brokers with the jar, a sidecar beside each, and producers.

Each broker leads one partition of each topic, and has a replica of all: every volume fills with
all that is sent, 9 MB/s. Half of that librdkafka sends, one producer to each partition, and half
Kafka's own client, three producers to all of them. A volume of 256 MB is at its limit some 10 s
after it was cleaned; 130 MB are left then for what gets past it. Each callback asks all sidecars,
its own first.
"""

import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast

from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES
from kafka_lab.cluster import Cluster
from kafka_lab.nodes import Broker
from kafka_lab.scenario import INTERVAL, MINIMUM_INTERVAL, PAUSE_MAX_S
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import callback_jar
from tests.chaos.bound import Bound, Clients, Rules
from tests.chaos.claims import full_at
from tests.chaos.cleaner import Cleaner, Cleaning, retaining
from tests.chaos.course import Course
from tests.chaos.injector import Injector
from tests.chaos.scene import Running, Scene
from tests.chaos.schedule import plan
from tests.support.java_traffic import JavaTraffic

BROKERS: Final = 3
VOLUME_BYTES: Final = 256_000_000
LIMIT_BYTES: Final = 130_000_000
BYTES_PER_S: Final = 4.5e6
"""Of all producers of one kind."""

_TOPICS: Final = ("librdkafka", "java")
PARTITIONS: Final = tuple(
    tuple((first + other) % BROKERS for other in range(BROKERS)) for first in range(BROKERS)
)
QUEUE_BYTES: Final = 4 << 20
"""What each producer may have waiting."""
_RETAINED: Final = 4 << 20
_BATCH_BYTES: Final = 1_000_000
_JAVA_REQUEST_BYTES: Final = BROKERS * (16 << 10)
_SEGMENT_BYTES: Final = 1 << 20
"""The lab's brokers'."""

BOUND: Final = Bound(
    Rules(
        interval_s=1.0,
        deadline_s=2.0,
        retry_s=0.5,
        look_s=0.25,
        apply_s=0.5,
        pause_max_s=PAUSE_MAX_S,
        leak_ratio=0.01,
    ),
    (
        Clients(BROKERS, _BATCH_BYTES, int(BYTES_PER_S)),
        Clients(BROKERS * BROKERS, _JAVA_REQUEST_BYTES, int(BYTES_PER_S)),
    ),
    brokers=BROKERS,
    apart_bytes=len(_TOPICS) * len(PARTITIONS) * _SEGMENT_BYTES,
)
"""Of the settings below, the callback's defaults and these producers; half a second until a look is
in force, on two slow cores."""


def course(seed: int, duration_s: float, *, refuses: bool) -> Course:
    """A run to be played."""
    return Course(
        seed=seed,
        duration_s=duration_s,
        limit_bytes=LIMIT_BYTES,
        refuses=refuses,
        plan=plan(seed, duration_s, BROKERS),
        bound=BOUND,
    )


class FaultsScene(Scene):
    """See the module."""

    topics = dict.fromkeys(_TOPICS, PARTITIONS)
    volumes: ClassVar[int] = 1
    settings = MappingProxyType(
        {
            "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
            "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
        }
    )
    _injector: Injector

    def make_cluster(self) -> Cluster:
        """Every callback asks every sidecar."""

        def asks_every_sidecar(broker: Broker) -> dict[str, str]:
            # Its own counts first; the others are asked by turns.
            others = [each.sidecar_url for each in cluster.brokers.values() if each.id != broker.id]
            return {"client.quota.callback.sidecar.url": ",".join([broker.sidecar_url, *others])}

        properties = {**CALLBACK_PROPERTIES, "leader.imbalance.check.interval.seconds": "5"}
        cluster = Cluster(
            environ=os.environ,
            brokers=BROKERS,
            volumes=self.volumes,
            volume_bytes=VOLUME_BYTES,
            broker_jars=[callback_jar()],
            properties=properties | (REFUSING_PROPERTIES if self.course.refuses else {}),
            properties_of=asks_every_sidecar,
            # It is the controller that makes the first leaders lead again.
            controller_too=True,
        )
        return cluster

    def beside(self) -> list[Coroutine[Any, Any, None]]:
        """Faults, and what frees space."""

        def failed(words: str) -> None:
            self.course.ended.append((self.now(), words))
            self.note(words)

        planned = cast("Course", self.course).plan
        self._injector = Injector(
            planned,
            self.cluster,
            self.callbacks,
            self.settings,
            now=self.now,
            note=self.note,
            failed=failed,
        )
        cleaner = Cleaner(
            [Cleaning(after_s, _RETAINED) for after_s in planned.cleaning_s],
            is_full=self._violates,
            is_free=lambda _: not self._violates(),
            retain=retaining(self.cluster.bootstrap, tuple(self.topics)),
            note=self.note,
            where="limit",
        )
        return [self._injector.run(), cleaner.run()]

    def _violates(self) -> bool:
        return any(
            available <= self.course.limit_bytes
            for broker_id, available in self.watch.available.items()
            if f"broker {broker_id}" in self._injector.since
        )

    def since(self) -> Mapping[str, float]:
        """As the injector knows it."""
        return self._injector.since

    def over(self) -> str:
        """What follows a full volume is worth no look."""
        samples = self.course.samples
        return "a volume is full" if samples and full_at(samples[-1]) is not None else ""

    @asynccontextmanager
    async def producing(self) -> AsyncIterator[list[Running]]:
        """The producers."""
        librdkafka, java = _TOPICS
        rate, bootstrap = BYTES_PER_S / BROKERS, self.cluster.bootstrap
        running: list[Running] = []
        async with AsyncExitStack() as stack:
            for partition in range(BROKERS):
                traffic = Traffic(
                    bootstrap,
                    librdkafka,
                    bytes_per_s=rate,
                    partitions=[partition],
                    config={"queue.buffering.max.kbytes": QUEUE_BYTES >> 10},
                )
                await stack.enter_async_context(traffic)
                running.append((f"librdkafka, partition {partition}", rate, traffic))
            three = JavaTraffic(
                bootstrap,
                java,
                bytes_per_s=BYTES_PER_S,
                partitions=range(BROKERS),
                connections=BROKERS,
                config={"buffer.memory": QUEUE_BYTES},
                heap_mb=256,
            )
            await stack.enter_async_context(three)
            running.append((f"Java, {BROKERS} producers", BYTES_PER_S, three))
            yield running
