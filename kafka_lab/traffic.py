"""Produces real messages at a fixed rate, and records how long brokers make the producer wait.

A thread produces with confluent-kafka, so it does not affect an event loop, and is not affected by
it. Its queue is bounded. If brokers throttle the producer, the queue fills, and producing stops
until there is room. What could not be sent in that time is not sent later.

Example: ``Traffic(bootstrap, "t", bytes_per_s=6e6)`` sends 600 records of 10 kB a second.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_lab.series import Series
from sidecar.errors import ClusterError

_QUEUE_KBYTES = 4096
_POLL_S = 0.05
_SAMPLE_S = 0.1
_STOP_TIMEOUT_S = 10.0


class ThrottleEvent(Protocol):
    """The argument of librdkafka's throttle_cb: the broker, and the throttle time in seconds."""

    broker_id: int
    throttle_time: float


class Traffic:
    """A producer that runs from entry to exit of its async context.

    Attributes:
        bytes_per_s: the rate of record values, which may be changed at any time.
        acknowledged_bytes: the bytes of record values that brokers have acknowledged.
        failed_records: the number of dropped records.
        last_failure: why the last of them was dropped, in one line; None without a failure.
        longest_throttle_s: the longest reported throttle time, in seconds.
        samples: the acknowledged bytes, ten times a second, over ``time.monotonic()`` seconds.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        bytes_per_s: float,
        record_bytes: int = 10_000,
        partitions: Sequence[int] = (0,),
        config: dict[str, Any] | None = None,
    ) -> None:
        """Make a producer without starting it.

        Args:
            bootstrap: a list of host:port.
            topic: an existing topic.
            bytes_per_s: the rate of record values, above 0.
            record_bytes: the size of each value in bytes.
            partitions: the partitions, which are written in turn, so that they fill equally.
            config: more settings of librdkafka, such as security.protocol or client.id.
        """
        self.acknowledged_bytes = 0
        self.failed_records = 0
        self.last_failure: str | None = None
        self.longest_throttle_s = 0.0
        self.samples = Series()
        self._topic = topic
        self.bytes_per_s = bytes_per_s
        self._value = bytes(record_bytes)
        self._partitions = tuple(partitions)
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
            "linger.ms": 5,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            # librdkafka's messages about brokers that are ended deliberately are noise.
            "log_level": 0,
            **(config or {}),
            "throttle_cb": self._throttled,
            "on_delivery": self._delivered,
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"traffic-{topic}", daemon=True)

    async def __aenter__(self) -> Self:
        try:
            self._producer = Producer(self._config)
        except KafkaException as error:
            raise ClusterError(f"the producer can't be made: {error}") from error
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop sending and drop queued records; it can be called more than once.

        Raises:
            ClusterError: the producer's thread did not end within 10 s.
        """
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, _STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise ClusterError(f"the producer to {self._topic} does not stop")

    def _run(self) -> None:
        due = time.monotonic()
        sent = 0
        sample_at = due
        while not self._stopping.is_set():
            now = time.monotonic()
            if now >= sample_at:
                self.samples.add(now, self.acknowledged_bytes)
                sample_at = now + _SAMPLE_S
            if now < due:
                self._producer.poll(min(due - now, _POLL_S))
                continue
            try:
                partition = self._partitions[sent % len(self._partitions)]
                self._producer.produce(self._topic, self._value, partition=partition)
            except BufferError:
                self._producer.poll(_POLL_S)
                due = time.monotonic()
                continue
            sent += 1
            due += len(self._value) / self.bytes_per_s
            self._producer.poll(0)
        self.samples.add(time.monotonic(), self.acknowledged_bytes)
        self._producer.purge()
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:  # noqa: ANN401 - untyped
        if error is None:
            self.acknowledged_bytes += len(message.value())
        elif error.code() not in {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}:  # noqa: SLF001 - public there, by these names
            self.failed_records += 1
            self.last_failure = error.str()

    def _throttled(self, event: ThrottleEvent) -> None:
        self.longest_throttle_s = max(self.longest_throttle_s, event.throttle_time)
