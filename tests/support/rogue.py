"""Clients that open a new idempotent producer for every batch, which is what KIP-936 is about.

Each of them connects, gets a producer id, sends one record, waits for its acknowledgement and
disconnects, again and again. Example: 16 of them on one machine open some 30 ids a second of a
broker that lets them.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from confluent_kafka import KafkaException, Producer

from kafka_lab.series import Series

_FLUSH_S = 10.0
_SAMPLE_S = 0.1


class Rogue:
    """So many clients, from entry to exit of the async context.

    Attributes:
        acknowledged: records that landed, so far: each needed a producer id of its own.
        samples: that number ten times a second, ``time.monotonic()`` seconds.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        config: Mapping[str, object],
        clients: int = 4,
        record_bytes: int = 1,
    ) -> None:
        self.acknowledged = 0
        self.samples = Series()
        self._topic = topic
        self._record = bytes(record_bytes)
        self._config = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "log_level": 0,
            **config,
        }
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"rogue {number}") for number in range(clients)
        ]
        self._threads.append(threading.Thread(target=self._sample, name="rogue samples"))

    async def __aenter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    async def rate(self, over_s: float) -> float:
        """Ids a second, from now on."""
        begin = time.monotonic()
        await asyncio.sleep(over_s)
        return self.samples.rate(begin, begin + over_s - 0.2)

    def _work(self) -> None:
        while not self._end.is_set():
            producer = Producer(self._config)
            with suppress(KafkaException, BufferError):
                producer.produce(self._topic, self._record, on_delivery=self._delivered)
            deadline = time.monotonic() + _FLUSH_S
            while len(producer) and time.monotonic() < deadline and not self._end.is_set():
                producer.flush(0.1)
            producer.purge()
            producer.flush(0.1)

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            with self._lock:
                self.acknowledged += 1

    def _sample(self) -> None:
        while not self._end.wait(_SAMPLE_S):
            self.samples.add(time.monotonic(), self.acknowledged)
