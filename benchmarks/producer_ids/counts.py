"""How many producer ids brokers remember, read over JMX while something else goes on.

``kafka.server:type=ReplicaManager,name=ProducerIdCount`` is what KIP-936 wants to bound: the ids of
all partitions on that broker, those of replicas included, each until producer.id.expiration.ms is
over (a day). Read by one JVM for all brokers, twice a second.
"""

import asyncio
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from kafka_lab.cache import cache_folder
from kafka_lab.cluster import Cluster
from kafka_lab.jars import jars, java
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.support.java import compiled

INTERVAL_MS: Final = 500

_BEAN: Final = "kafka.server:type=ReplicaManager,name=ProducerIdCount"
_START_TIMEOUT_S: Final = 30.0
_END_TIMEOUT_S: Final = 10.0


class Counts:
    """Reads from entry to exit of its async context.

    Attributes:
        samples: the ids of all brokers together, ``time.monotonic()`` seconds.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self.samples = Series()
        self._cluster = cluster
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Returns with the first sample.

        Raises:
            ClusterError: there is none.
        """
        libraries = await jars(self._cluster.version, cache_folder(os.environ))
        classes = await compiled("WatchBean", libraries)
        pids = [str(broker.pid) for broker in self._cluster.brokers.values()]
        words = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(classes), "WatchBean"]
        self._process = await asyncio.create_subprocess_exec(
            java(os.environ),
            *words,
            str(INTERVAL_MS),
            _BEAN,
            "Value",
            *pids,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        first = asyncio.Event()
        self._reading = asyncio.create_task(self._read(self._process, first), name="id counts")
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await first.wait()
        except BaseException:
            await self._stop()
            raise
        if not self.samples:
            await self._stop()
            raise ClusterError("the brokers' counts of producer ids can't be read")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    def check(self) -> None:
        """Raises a ClusterError when nothing is read any more: a course would miss its end."""
        if self._reading is None or self._reading.done():
            raise ClusterError("the brokers' counts of producer ids can't be read any more")

    async def _read(self, process: asyncio.subprocess.Process, first: asyncio.Event) -> None:
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self.samples.add(self._clock(), sum(map(float, line.split())))
                first.set()
        finally:
            first.set()

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._reading is not None:
            await self._reading
