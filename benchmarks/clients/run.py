"""One client's run: its data, its program, and the records in its topic."""

import asyncio
import json
import os
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.clients.clients import Client
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.errors import ClusterError
from sidecar.formats.cache_folder import cache_folder

_OUTCOMES_TIMEOUT_S: Final = 15.0
_READ_TIMEOUT_S: Final = 300.0


@dataclass(slots=True)
class Run:
    """What happened to a client; times are seconds since 1970, of one machine's clock.

    Attributes:
        client: its key.
        throttle_s: for how long it was to be throttled, seconds.
        throttled_at: when the factor became 0.0.
        released_at: when it became 1.0 again.
        ended_at: when the program was told to send nothing more.
        received: bytes that the broker read from its connections in the whole run.
        connections: how many were made in it.
        dialed: (time, connections so far) now and then in the throttle, the first at its beginning.
        refused: produce requests of it that the broker refused; None: nothing counted them.
        sent: (time, number) of each record that was handed to the client.
        acknowledged: likewise, of each that the client reported as written.
        failed: (time, number, error) of each that it reported as failed.
        landed: (time, partition, number) of each record in the log, in the log's order.
    """

    client: str
    throttle_s: float
    throttled_at: float
    released_at: float
    ended_at: float
    received: int = 0
    connections: int = 0
    dialed: list[tuple[float, int]] = field(default_factory=list)
    refused: int | None = None
    sent: list[tuple[float, int]] = field(default_factory=list)
    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    failed: list[tuple[float, int, str]] = field(default_factory=list)
    landed: list[tuple[float, int, int]] = field(default_factory=list)

    def add_reports(self, lines: Iterable[bytes]) -> None:
        """Add what the program reported; its last line may have been cut by its end."""
        for line in lines:
            if not line.startswith(b"{") or not line.endswith(b"}\n"):
                continue
            report = json.loads(line)
            at = report["at"]
            if "sent" in report:
                self.sent.append((at, report["sent"]))
            elif "acknowledged" in report:
                self.acknowledged.append((at, report["acknowledged"]))
            else:
                self.failed.append((at, report["failed"], report["error"]))


class Program:
    """A client's program.

    Attributes:
        client: whose it is.
        reports: the file that it reports to.
    """

    def __init__(self, client: Client, files: Path) -> None:
        """Nothing is started yet; ``files`` is the stem of its files of reports and of errors."""
        self.client = client
        self.reports, self._log = (Path(f"{files}.{kind}") for kind in ("reports", "log"))
        self._process: Process | None = None

    async def start(self, words: Mapping[str, object], timeout_s: float) -> None:
        """Start it with its words (name=value); returns once a record of it was acknowledged.

        Raises:
            ClusterError: none was in time, or it ended before that.
        """
        libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
        own = [f"{name}={value}" for name, value in words.items()]
        command = self.client.command(java(os.environ), libraries, own)
        with self.reports.open("wb") as reports, self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=reports, stderr=log
            )
        until = time.monotonic() + timeout_s
        while not self._counts()["acknowledged"]:
            if time.monotonic() > until:
                await self.kill()
                raise ClusterError(f"{self.client.name} had no record acknowledged")
            await asyncio.sleep(0.2)

    def _counts(self) -> dict[str, int]:
        """How many records were sent, and how many were reported on; an error if it has ended."""
        if self._process is None or self._process.returncode is not None:
            said = self._log.read_text(errors="replace")[-2000:]
            raise ClusterError(f"the program of {self.client.name} has ended:\n{said}")
        text = self.reports.read_bytes()
        words = ("sent", "acknowledged", "failed")
        return {word: text.count(f'"{word}":'.encode()) for word in words}

    async def end(self) -> None:
        """Let it send nothing more, and wait for what is under way, but not for long.

        Raises:
            ClusterError: it has ended by itself.
        """
        self._counts()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        until = time.monotonic() + _OUTCOMES_TIMEOUT_S
        while time.monotonic() < until:
            counts = self._counts()
            if counts["sent"] <= counts["acknowledged"] + counts["failed"]:
                break
            await asyncio.sleep(1.0)
        await self.kill()

    async def kill(self) -> None:
        """End it at once; more than once is harmless."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


def read_log(bootstrap: str, topic: str, partitions: int) -> list[tuple[float, int, int]]:
    """(time, partition, number) of each record.

    Raises:
        ClusterError: they can't be read.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "log_level": 0})
    landed = []
    try:
        ends = {
            each: consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=10.0)[1]
            for each in range(partitions)
        }
        ends = {each: end for each, end in ends.items() if end}
        consumer.assign([TopicPartition(topic, each, 0) for each in ends])
        until = time.monotonic() + _READ_TIMEOUT_S
        while ends:
            if time.monotonic() > until:
                raise ClusterError(f"the log of {topic} could not be read")
            for message in consumer.consume(1000, timeout=1.0):
                if message.error() is not None:
                    raise ClusterError(f"the log of {topic}: {message.error()}")
                partition, offset = message.partition() or 0, message.offset() or 0
                number = int((message.value() or b"")[:20].split(b" ", 1)[0])
                landed.append((message.timestamp()[1] / 1000, partition, number))
                if offset + 1 >= ends.get(partition, 0):
                    ends.pop(partition, None)
    finally:
        consumer.close()
    return landed
