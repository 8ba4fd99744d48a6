"""Producers that live for some seconds each, and whether each life is in the log once, in order.

``JavaLives`` runs ``Lives.java``, ``Lives`` the same with librdkafka; both add a ``Life`` to
``done`` for each that has ended. ``read`` says what of each life is in a topic, and ``faults`` what
is wrong.
"""

import asyncio
import json
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.errors import ClusterError
from sidecar.formats.cache_folder import cache_folder
from tests.support.java import compiled

_END_S: Final = 330.0
_FLUSH_S: Final = 280.0
_EVERY_S: Final = 0.1

Found = Mapping[str, Mapping[int, list[int]]]
"""Life -> partition -> the numbers of its records, in the log's order."""


@dataclass(frozen=True, slots=True)
class Life:
    """What a producer says of its life.

    Attributes:
        name: unlike any other.
        sent: records that it sent.
        acknowledged: those that were acknowledged.
        failed: those that were not, and one more for an error that ended it.
        error: the first of these; empty without.
    """

    name: str
    sent: int
    acknowledged: int
    failed: int
    error: str


@dataclass(frozen=True, slots=True)
class Course:
    """How lives go.

    Attributes:
        topic: where to.
        seed: of how long they are.
        partitions: how many are written, in turn.
        threads: how many lives at the same time.
        shortest_ms: of a life.
        longest_ms: of a life.
        size: of a value, bytes.
        burst: records every 100 ms.
    """

    topic: str
    seed: int
    partitions: int = 1
    threads: int = 2
    shortest_ms: int = 300
    longest_ms: int = 6000
    size: int = 1000
    burst: int = 12


class JavaLives:
    """Lives of Kafka's own producer, in a JVM of their own, within an async context."""

    def __init__(
        self,
        bootstrap: str,
        name: str,
        course: Course,
        config: Mapping[str, object],
        version: str = DEFAULT_VERSION,
    ) -> None:
        """Nothing runs yet; names of lives begin with ``name``."""
        self.done: list[Life] = []
        self._version = version
        self._words = [
            f"{key}={value}"
            for key, value in {
                "bootstrap.servers": bootstrap,
                "name": name,
                "topic": course.topic,
                "partitions": course.partitions,
                "threads": course.threads,
                "seed": course.seed,
                "shortest": course.shortest_ms,
                "longest": course.longest_ms,
                "size": course.size,
                "burst": course.burst,
                **config,
            }.items()
        ]
        self._said: list[bytes] = []

    async def __aenter__(self) -> Self:
        libraries = await jars(self._version, cache_folder(os.environ))
        classes = await compiled("Lives", libraries)
        self._process = await asyncio.create_subprocess_exec(
            java(os.environ),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dlog4j2.level=OFF",
            "-cp",
            f"{classes}:{libraries}/*",
            "Lives",
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self._reading = asyncio.create_task(self._read(), name="java lives")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._reading

    async def end(self) -> None:
        """Return when the lives that run have ended.

        Raises:
            ClusterError: they did not.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                code = await self._process.wait()
                await self._reading
        except TimeoutError as error:
            raise ClusterError(f"the Java lives did not end: {self._said}") from error
        if code != 0 or self._said:
            raise ClusterError(f"the Java lives ended with {code}: {self._said}")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.startswith(b"{"):
                self._said.append(line)
                continue
            said = json.loads(line)
            if "life" in said:
                self.done.append(
                    Life(
                        said["life"],
                        said["sent"],
                        said["acknowledged"],
                        said["failed"],
                        said["error"],
                    )
                )


class Lives:
    """The same with librdkafka, in threads."""

    def __init__(
        self, bootstrap: str, name: str, course: Course, config: Mapping[str, Any]
    ) -> None:
        """Nothing runs yet; names of lives begin with ``name``."""
        self.done: list[Life] = []
        self._course = course
        self._config = {"bootstrap.servers": bootstrap, "log_level": 0, **config}
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._live, args=(f"{name}{each}", course.seed * 1000 + each))
            for each in range(course.threads)
        ]

    async def __aenter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def end(self) -> None:
        """Return when the lives that run have ended."""
        self._ends.set()
        for thread in self._threads:
            await asyncio.to_thread(thread.join, _END_S)

    def _live(self, name: str, seed: int) -> None:
        choices = random.Random(seed)
        number = 0
        while not self._ends.is_set():
            length_ms = choices.randint(self._course.shortest_ms, self._course.longest_ms)
            self.done.append(self._life(name, number, length_ms / 1000))
            number += 1

    def _life(self, thread: str, number: int, length_s: float) -> Life:
        config = dict(self._config)
        if "transactional.id" in config:
            config["transactional.id"] = f"{config['transactional.id']}-{thread}"
        life = _Life(f"{thread}-{number}", self._course, config)
        life.run(time.monotonic() + length_s, self._ends)
        return Life(life.name, sum(life.sent), life.acknowledged, life.failed, life.error)


class _Life:
    """One producer of librdkafka, from its first record to its end."""

    def __init__(self, name: str, course: Course, config: Mapping[str, Any]) -> None:
        self.name = name
        self.sent = [0] * course.partitions
        self.acknowledged = 0
        self.failed = 0
        self.error = ""
        self._course = course
        self._transactional = "transactional.id" in config
        self._producer = Producer({**config, "on_delivery": self._delivered})

    def _delivered(self, wrong: object, _: object) -> None:
        if wrong is None:
            self.acknowledged += 1
        else:
            self._fails(str(wrong))

    def _fails(self, error: str) -> None:
        self.failed += 1
        self.error = self.error or error

    def run(self, until: float, ends: threading.Event) -> None:
        """Send until a time, or until all end."""
        try:
            if self._transactional:
                self._producer.init_transactions(_FLUSH_S)
            while time.monotonic() < until and not ends.is_set():
                self._burst()
                next_burst = time.monotonic() + _EVERY_S
                while (left := next_burst - time.monotonic()) > 0:
                    self._producer.poll(left)
            if self._producer.flush(_FLUSH_S) > 0:
                self._fails("not flushed")
        except (KafkaException, BufferError) as broken:
            self._fails(str(broken))

    def _burst(self) -> None:
        if self._transactional:
            self._producer.begin_transaction()
        for record in range(self._course.burst):
            partition = record % self._course.partitions
            value = f"{self.name} {self.sent[partition]} ".encode()
            self._producer.produce(
                self._course.topic, value.ljust(self._course.size, b"\0"), partition=partition
            )
            self.sent[partition] += 1
        if self._transactional:
            self._producer.commit_transaction(_FLUSH_S)


def read(bootstrap: str, topic: str, partitions: int, timeout_s: float = 120.0) -> Found:
    """What of each life is in the log, committed.

    Raises:
        ClusterError: it could not all be read.
    """
    found: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": f"reads-{topic}",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    deadline = time.monotonic() + timeout_s
    with Consumer(config) as consumer:
        consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            if time.monotonic() > deadline:
                raise ClusterError(f"{topic} could not be read in {timeout_s:.0f} s")
            for message in consumer.consume(1000, 1.0):
                if (error := message.error()) is not None:
                    if error.name() != "_PARTITION_EOF":
                        raise ClusterError(f"{topic} can't be read: {error}")
                    ended.add(message.partition() or 0)
                    continue
                name, number, _ = (message.value() or b"").split(b" ", 2)
                found[name.decode()][message.partition() or 0].append(int(number))
    return found


def faults(lives: Iterable[Life], found: Found) -> list[str]:
    """What is wrong: records of a life that failed, are missing, twice or out of order."""
    wrong = []
    for life in lives:
        if life.failed:
            wrong.append(f"{life.name}: {life.failed} failed: {life.error}")
        landed = found.get(life.name, {})
        for partition, numbers in landed.items():
            if numbers != list(range(len(numbers))):
                first = next(i for i, number in enumerate(numbers) if number != i)
                near = numbers[max(0, first - 3) : first + 8]
                wrong.append(f"{life.name}, partition {partition}, at {first}: {near}")
        total = sum(map(len, landed.values()))
        if total < life.acknowledged:
            wrong.append(f"{life.name}: {life.acknowledged} acknowledged, {total} in the log")
    return wrong
