"""Clients that dial anew for each request, which no quota can stop: each lands one, and is gone.

``async with Diallers(bootstrap, "t", clients=16)`` runs them, in threads; ``landed`` says how many
bytes of records are in a topic.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support.waiting import POLL_S

_END_S: Final = 30.0


class Diallers:
    """Clients of librdkafka, each one connection after another.

    Attributes:
        requests: how many were sent.
        acknowledged_bytes: of records that the broker acknowledged.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        clients: int = 4,
        record_bytes: int = 500_000,
        patience_s: float = 1.0,
        every_s: float = 0.1,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            bootstrap: host:port list.
            topic: where to, partition 0.
            clients: how many at once.
            record_bytes: of each request's one record.
            patience_s: how long each waits for its answer before it dials anew, seconds.
            every_s: from one request of each to its next, at least, seconds; without it a fast
                machine would fill a volume in seconds, and Kafka 3.3 deletes nothing before its
                30th.
            config: more of librdkafka's configuration.
        """
        self.requests = 0
        self.acknowledged_bytes = 0
        self._lock = threading.Lock()
        self._every_s = every_s
        self._topic = topic
        self._value = bytes(record_bytes)
        self._patience_s = patience_s
        self._config = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "linger.ms": 0,
            "message.timeout.ms": round(patience_s * 1000),
            **(config or {}),
        }
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"dialler-{each}", daemon=True)
            for each in range(clients)
        ]

    async def __aenter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            await asyncio.to_thread(thread.join, _END_S)

    def _run(self) -> None:
        while not self._ends.is_set():
            due = time.monotonic() + self._every_s
            producer = Producer(self._config)
            producer.produce(self._topic, self._value, partition=0, on_delivery=self._delivered)
            producer.flush(self._patience_s + 1.0)
            self.requests += 1
            self._ends.wait(max(0.0, due - time.monotonic()))

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is None:
            with self._lock:
                self.acknowledged_bytes += len(self._value)


async def landed(bootstrap: str, topic: str, record_bytes: int = 500_000) -> int:
    """Bytes of records that were ever appended to a topic's partition 0."""
    return await asyncio.to_thread(_landed, bootstrap, topic, record_bytes)


def _landed(bootstrap: str, topic: str, record_bytes: int) -> int:
    with Consumer({"bootstrap.servers": bootstrap, "group.id": topic}) as consumer:
        until = time.monotonic() + _END_S
        while True:
            try:
                _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
            except KafkaException as error:
                # A broker may not know yet that it leads a partition that was just created.
                is_new = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
                if not is_new or time.monotonic() > until:
                    raise
                time.sleep(POLL_S)
            else:
                return int(high) * record_bytes
