"""One client's run: its program with the two files that it writes, and what is in its topic."""

import asyncio
import os
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.clients.clients import Client
from kafka_lab.cache import cache_folder
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.errors import ClusterError

_OUTCOMES_TIMEOUT_S: Final = 15.0
_READ_TIMEOUT_S: Final = 300.0
_CHECK_S: Final = 0.2


class Run:
    """A client's program.

    Attributes:
        client: whose it is.
        reports: the file that it reports to.
    """

    def __init__(self, client: Client, reports: Path, log: Path) -> None:
        """Nothing is started yet.

        Args:
            client: whose program.
            reports: what it writes to standard output.
            log: what it writes to standard error.
        """
        self.client = client
        self.reports = reports
        self._log = log
        self._process: Process | None = None

    async def start(self, words: Mapping[str, object]) -> None:
        """Start it with its words, as name=value."""
        libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
        command = self.client.command(
            java(os.environ), libraries, [f"{name}={value}" for name, value in words.items()]
        )
        with self.reports.open("wb") as reports, self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=reports, stderr=log
            )

    async def acknowledged_one(self) -> None:
        """Returns when the client has called a record written.

        Raises:
            ClusterError: it ended before that.
        """
        while not self.counts()["acknowledged"]:  # noqa: ASYNC110 - a file announces nothing
            await asyncio.sleep(_CHECK_S)

    def counts(self) -> dict[str, int]:
        """How many records were sent, and how many were reported on.

        Raises:
            ClusterError: it has ended.
        """
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
        self.counts()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        until = time.monotonic() + _OUTCOMES_TIMEOUT_S
        while time.monotonic() < until:
            counts = self.counts()
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
