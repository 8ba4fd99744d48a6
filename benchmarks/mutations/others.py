"""Another user's operations: a topic of one partition every 0.2 s, and a first record in it.

They are due at a fixed pace, whether or not the earlier ones are done. The answer says that the
controller has written the topic down. A record gets through only once the brokers have caught up
with what the controller wrote, so that is waited for too.

Example: while the brokers are 3 s behind, 15 topics wait for their first record although their
answers came at once.
"""

import asyncio
import threading
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from confluent_kafka import KafkaError, Producer

from benchmarks.mutations.clients import LISTENER, PASSWORD, Clients
from kafka_lab.cluster import Cluster
from sidecar.kafka.client.controller import Unanswered
from sidecar.kafka.topic_messages import CreateTopics, NewTopic
from sidecar.kafka.topic_results import topic_result
from sidecar.volumes import Failure

USER: Final = "other"
EVERY_S: Final = 0.2
_READY: Final = 30
"""Connections from the beginning: with none left one would have to be dialled first."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Another user creates a topic of one partition.

    Attributes:
        due: when it was to be sent, seconds.
        answered: when its answer was there, seconds; None: not while it was watched.
        usable: when the first record in the topic was acknowledged, seconds; None likewise.
        error: why it failed; "" if it did not.
    """

    due: float
    answered: float | None = None
    usable: float | None = None
    error: str = ""


class Others:
    """They run from entry to exit of the async context.

    Attributes:
        operations: those that were due so far; times are ``time.monotonic()``.
    """

    def __init__(self, cluster: Cluster, replication: int, patience_s: float) -> None:
        """Nothing runs yet.

        Args:
            cluster: it is up, with the listener of ``clients``.
            replication: replicas of each topic's partition.
            patience_s: how long the answer and the first record are waited for.
        """
        self.operations: list[Operation] = []
        brokers = [broker.addresses[LISTENER] for broker in cluster.brokers.values()]
        self._clients = Clients(brokers, USER, _READY)
        self._writer = FirstRecords(cluster.bootstrap_of(LISTENER), patience_s)
        self._replication = replication
        self._patience_s = patience_s
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._clients)
        self._stack.enter_context(self._writer)
        self._start(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._stack.aclose()

    def _start(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work, name="others")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tick(self) -> None:
        begin = time.monotonic()
        while True:
            number = len(self.operations)
            due = begin + number * EVERY_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.operations.append(Operation(due))
            self._start(self._one(number))

    async def _one(self, number: int) -> None:
        topic = NewTopic(f"other-{number}", 1, self._replication)
        patience_ms = int(self._patience_s * 1000)
        deadline = asyncio.get_running_loop().time() + self._patience_s
        async with self._clients.one() as controller:
            answer = await controller.call(CreateTopics([topic], patience_ms), deadline)
        now = time.monotonic()
        if isinstance(answer, Failure | Unanswered):
            failure = answer if isinstance(answer, Failure) else answer.failure
            self._set(number, error=failure.message)
            return
        ((name, _, code, message, *_),) = answer.topics
        if code:
            self._set(number, error=topic_result(name, code, message).message)
            return
        self._set(number, answered=now)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                self._set(number, usable=await self._writer.write(topic.name))

    def _set(self, number: int, **news: Any) -> None:  # noqa: ANN401 - as replace() takes them
        self.operations[number] = replace(self.operations[number], **news)


class FirstRecords:
    """Writes one record into a topic that has just been made; a context manager."""

    def __init__(self, bootstrap: str, patience_s: float) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "client.id": USER,
                "acks": 1,
                "linger.ms": 0,
                "message.timeout.ms": int(patience_s * 1000),
                # A broker that does not know the topic yet is asked again soon, and for long.
                "topic.metadata.refresh.fast.interval.ms": 20,
                "topic.metadata.propagation.max.ms": int(patience_s * 1000),
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="first records", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """What was not acknowledged is dropped."""
        self._stopping.set()
        self._thread.join()
        self._producer.purge()
        self._producer.poll(0)

    async def write(self, topic: str) -> float:
        """When the record was acknowledged, ``time.monotonic()`` seconds.

        Raises:
            TimeoutError: it timed out.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[float] = loop.create_future()

        def settle(error: KafkaError | None, at: float) -> None:
            if not done.done():
                if error is None:
                    done.set_result(at)
                else:
                    done.set_exception(TimeoutError(error.str()))

        def delivered(error: KafkaError | None, _: object) -> None:
            # In the polling thread; at the end there may be no loop any more.
            at = time.monotonic()
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, error, at)

        self._producer.produce(topic, b"first", on_delivery=delivered)
        return await done

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(0.02)
