"""The scene at the stop line: one broker with a volume of 512 MB, and three kinds of producers.

All write to one partition, 6 MB/s together: librdkafka with a message timeout of 4 s, which dials
anew when a pause is longer; Kafka's own client, which waits on its connections; and clients that
open a connection for every request. The broker leaks a tenth of the rate before, ten times the
default, so that the stop line is reached once or twice a minute.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kafka_lab import traffic
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.scenario import INTERVAL, MINIMUM_INTERVAL
from kafka_lab.series import Series
from kafka_lab.waiting import deadline
from sidecar.cli.callback.jar import callback_jar
from tests.chaos.cleaner import Cleaner, retaining
from tests.chaos.scene import Running, Scene
from tests.chaos.stop_line import StopBound, StopCourse, cleanings
from tests.support.diallers import Diallers
from tests.support.java_traffic import JavaTraffic

VOLUME_BYTES: Final = 512_000_000
LIMIT_BYTES: Final = 150_000_000
LINE_BYTES: Final = 120_000_000
BYTES_PER_S: Final = 2e6
"""Of all producers of one kind."""

BOUND: Final = StopBound(
    bytes_per_s=3 * BYTES_PER_S, delays_s=0.75, request_threads=4, request_bytes=1_000_000
)
"""A quarter of a second until the broker's next look, half a second until that is in force, and the
request threads of the lab's brokers."""

_TOPIC: Final = "stop-line"
_FILLED_BYTES: Final = LIMIT_BYTES + 100_000_000
"""Available when the run begins: at 6 MB/s the limit is reached later than a quota window takes."""
_FILL_BYTES_PER_S: Final = 100e6
_CLIENTS: Final = 4
_DIALLED_BYTES: Final = 500_000


def course(seed: int, duration_s: float, *, refuses: bool) -> StopCourse:
    """A run to be played."""
    return StopCourse(
        seed=seed,
        duration_s=duration_s,
        limit_bytes=LIMIT_BYTES,
        refuses=refuses,
        line_bytes=LINE_BYTES,
        bound=BOUND,
    )


@dataclass(frozen=True, slots=True)
class _Dialling:
    """Clients that open a connection for every request, as other producers report."""

    of: Diallers
    longest_throttle_s = 0.0
    last_failure = None

    @property
    def acknowledged_bytes(self) -> int:
        return self.of.acknowledged_bytes

    @property
    def failed_records(self) -> int:
        return max(0, self.of.requests - self.acknowledged_bytes // _DIALLED_BYTES)

    @property
    def samples(self) -> Series:
        return Series([(time.monotonic(), self.acknowledged_bytes)])


class StopScene(Scene):
    """See the module."""

    topics = MappingProxyType({_TOPIC: [[0]]})
    settings = MappingProxyType(
        {
            "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
            "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
            "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES": str(LINE_BYTES),
            # A tenth of the rate fills what is left in minutes: that is to be no emergency yet.
            "SIDECAR_THROTTLE_EMERGENCY_HORIZON": "PT30S",
        }
    )

    def make_cluster(self) -> Cluster:
        """One node, the controller too."""
        leak = {"client.quota.callback.sidecar.leak.ratio": "0.1"}
        refusing = REFUSING_PROPERTIES if self.course.refuses else {}
        return Cluster(
            environ=os.environ,
            brokers=1,
            combined=True,
            volumes=1,
            volume_bytes=VOLUME_BYTES,
            broker_jars=[callback_jar()],
            properties={**CALLBACK_PROPERTIES, **refusing, **leak},
            properties_of=asks_its_sidecar,
        )

    async def fill(self) -> None:
        """As if producers had written for a while."""
        async with (
            deadline(60.0, "the volume was not filled"),
            traffic.Traffic(self.cluster.bootstrap, _TOPIC, bytes_per_s=_FILL_BYTES_PER_S),
        ):
            while (await self.cluster.usage(0, 0))[1] > _FILLED_BYTES:  # noqa: ASYNC110 - a file system
                await asyncio.sleep(0.2)

    def beside(self) -> list[Coroutine[Any, Any, None]]:
        """What frees space."""
        run = self.course
        cleaner = Cleaner(
            cleanings(run.seed, run.duration_s, LIMIT_BYTES, LINE_BYTES, VOLUME_BYTES),
            is_full=lambda: self._available() <= LINE_BYTES,
            is_free=lambda cleaning: self._available() >= cleaning.available,
            retain=retaining(self.cluster.bootstrap, [_TOPIC]),
            note=self.note,
            where="stop line",
        )
        return [cleaner.run()]

    def _available(self) -> int:
        return self.watch.available.get(0, VOLUME_BYTES)

    def over(self) -> str:
        """What follows the broker's end is worth no look."""
        return "" if self.cluster.is_running(0) else "the broker has ended"

    @asynccontextmanager
    async def producing(self) -> AsyncIterator[list[Running]]:
        """The producers."""
        bootstrap = self.cluster.bootstrap
        running: list[Running] = []
        async with AsyncExitStack() as stack:
            for number in range(_CLIENTS):
                timing_out = traffic.Traffic(
                    bootstrap,
                    _TOPIC,
                    bytes_per_s=BYTES_PER_S / _CLIENTS,
                    config={"client.id": f"times-out-{number}", "message.timeout.ms": 4000},
                )
                await stack.enter_async_context(timing_out)
                rate = BYTES_PER_S / _CLIENTS
                running.append(("librdkafka, timeout of 4 s", rate, timing_out))
            java = JavaTraffic(
                bootstrap,
                _TOPIC,
                bytes_per_s=BYTES_PER_S,
                connections=_CLIENTS,
                config={"buffer.memory": 4 << 20},
                heap_mb=256,
            )
            running.append(("Java", BYTES_PER_S, await stack.enter_async_context(java)))
            dialling = Diallers(
                bootstrap,
                _TOPIC,
                clients=_CLIENTS,
                record_bytes=_DIALLED_BYTES,
                every_s=_CLIENTS * _DIALLED_BYTES / BYTES_PER_S,
                config={"client.id": "dials"},
            )
            await stack.enter_async_context(dialling)
            running.append(("a connection for every request", BYTES_PER_S, _Dialling(dialling)))
            yield running
