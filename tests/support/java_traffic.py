"""Traffic by Kafka's own client, as ``kafka_lab.traffic`` makes it with librdkafka.

``JavaTraffic`` runs ``Produce.java`` in a JVM of its own and reads what that says, ten times a
second. Its times are this process's ``time.monotonic()``: on Linux both are the kernel's.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import Final, Self

from kafka_lab.jars import DEFAULT_VERSION, jars, java
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from sidecar.formats.cache_folder import cache_folder
from tests.support.java import compiled

_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 10.0


class JavaTraffic:
    """One or more of Java's producers in one JVM, from entry to exit of its async context.

    Attributes:
        acknowledged_bytes: of record values that brokers acknowledged, so far.
        committed_records: those in transactions that were committed, so far.
        failed_records: those that failed, so far; one more for a producer that ended by an error.
        last_failure: why the last of them was, one line; None while there is none.
        longest_throttle_s: the longest throttle time that a broker reported, seconds.
        samples: the acknowledged bytes so far, ten times a second, ``time.monotonic()`` seconds.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        bytes_per_s: float,
        record_bytes: int = 10_000,
        partitions: Sequence[int] = (0,),
        connections: int = 1,
        config: Mapping[str, object] | None = None,
        version: str = DEFAULT_VERSION,
        heap_mb: int = 512,
    ) -> None:
        """Nothing is started yet.

        Args:
            bootstrap: host:port list.
            topic: where to; it must exist.
            bytes_per_s: of record values, of all connections together; ``math.inf`` for as fast as
                it goes.
            record_bytes: the size of each value, bytes; enough for "connection transaction record".
            partitions: written in turn.
            connections: how many producers.
            config: more of the producer's configuration. With a ``transactional.id`` (each producer
                adds its number) all is sent in transactions of ``transaction`` ms, 500 by default.
            version: of Kafka's client.
            heap_mb: the JVM's largest heap, MiB; the producers' buffers are in it.
        """
        self.acknowledged_bytes = 0
        self.committed_records = 0
        self.failed_records = 0
        self.last_failure: str | None = None
        self.longest_throttle_s = 0.0
        self.samples = Series()
        self._version = version
        self._heap_mb = heap_mb
        words: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "topic": topic,
            "rate": "Infinity" if bytes_per_s == float("inf") else bytes_per_s,
            "size": record_bytes,
            "partitions": ",".join(map(str, partitions)),
            "connections": connections,
            "linger.ms": 5,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            **(config or {}),
        }
        self._words = [f"{name}={value}" for name, value in words.items()]
        self._complaints: list[bytes] = []
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start it; returns when it has said its first line.

        Raises:
            ClusterError: it ended instead.
        """
        libraries = await jars(self._version, cache_folder(os.environ))
        classes = await compiled("Produce", libraries)
        self._process = await asyncio.create_subprocess_exec(
            java(os.environ),
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            # It writes nothing but what is read here: no logging is configured.
            "-Dlog4j2.level=OFF",
            "-cp",
            f"{classes}:{libraries}/*",
            "Produce",
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = asyncio.Event()
        self._reading = asyncio.create_task(self._read(self._process, said), name="java traffic")
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await said.wait()
        except BaseException:
            await self.stop()
            raise
        if not self.samples:
            await self.stop()
            raise ClusterError(f"Java's producer did not start:\n{self._complained()}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End it at once; what is buffered is dropped. More than once is harmless."""
        if self._process is None or self._reading is None:
            return
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await asyncio.wait_for(self._reading, _END_TIMEOUT_S)

    async def _read(self, process: asyncio.subprocess.Process, said: asyncio.Event) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if not line.startswith(b"{"):
                self._complaints.append(line)
                continue
            if not line.endswith(b"\n"):
                # It was killed in the middle.
                continue
            document = json.loads(line)
            self.acknowledged_bytes = document["acknowledged_bytes"]
            self.committed_records = document["committed_records"]
            self.failed_records = document["failed_records"]
            self.last_failure = document["last_failure"] or None
            self.longest_throttle_s = document["longest_throttle_ms"] / 1000
            self.samples.add(document["at"], self.acknowledged_bytes)
            said.set()
        said.set()

    def _complained(self) -> str:
        return b"".join(self._complaints[-15:]).decode(errors="replace")
