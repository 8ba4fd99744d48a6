"""Real messages at a set rate, and how long the brokers make the producer wait.

A thread of its own produces with confluent-kafka, so nothing in an event loop slows it down or is
slowed down by it. Its queue is bounded: when the brokers throttle it the queue fills, producing
stops until there is room, and what could not be sent in that time is not made up for later.

Example: ``Traffic(bootstrap, "t", bytes_per_s=6e6)`` sends 600 records of 10 kB a second.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_lab.series import Series
from sidecar.errors import ClusterError

_QUEUE_KBYTES = 4096
_POLL_S = 0.05
_SAMPLE_S = 0.1
_STOP_TIMEOUT_S = 10.0


class ThrottleEvent(Protocol):
    """What librdkafka passes to its throttle_cb: by whom, and for how many seconds."""

    broker_id: int
    throttle_time: float


@dataclass(frozen=True, slots=True)
class ThrottleTime:
    """The last throttle time that a broker reported.

    Attributes:
        wait_s: seconds; 0.0 is the end of a throttle.
        broker_id: which broker.
        at: when, ``time.monotonic()`` seconds.
    """

    wait_s: float
    broker_id: int
    at: float


class Traffic:
    """One producer, running from entry to exit of its async context.

    Attributes:
        acknowledged_bytes: of record values that brokers acknowledged, so far.
        failed_records: records that were dropped, so far.
        last_failure: why the last of them was, one line; None while there is none.
        last_throttle: what the last throttle_cb said; None while there was none.
        longest_throttle_s: the longest reported throttle time, seconds.
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
        config: dict[str, Any] | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            bootstrap: host:port list.
            topic: where to; it must exist.
            bytes_per_s: of record values, > 0.
            record_bytes: the size of each value, bytes.
            partitions: written in turn, so that they fill alike.
            config: more of librdkafka's configuration, such as security.protocol or client.id.
        """
        self.acknowledged_bytes = 0
        self.failed_records = 0
        self.last_failure: str | None = None
        self.last_throttle: ThrottleTime | None = None
        self.longest_throttle_s = 0.0
        self.samples = Series()
        self._topic = topic
        self._bytes_per_s = bytes_per_s
        self._value = bytes(record_bytes)
        self._partitions = tuple(partitions)
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
            "linger.ms": 5,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            # librdkafka's own lines about brokers that go on purpose are noise.
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
        """Stop sending and drop what is queued; more than once is harmless.

        Raises:
            ClusterError: the producer's thread did not end in 10 s.
        """
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, _STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise ClusterError(f"the producer to {self._topic} does not stop")

    def _run(self) -> None:
        seconds_each = len(self._value) / self._bytes_per_s
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
            due += seconds_each
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
        self.last_throttle = ThrottleTime(event.throttle_time, event.broker_id, time.monotonic())
        self.longest_throttle_s = max(self.longest_throttle_s, event.throttle_time)
