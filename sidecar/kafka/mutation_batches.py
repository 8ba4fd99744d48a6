"""Many mutations in several requests, and what a mutation quota makes of them (KIP-599).

A request has as many as fit into a batch. What is throttled goes first into the next request,
after the wait that the answer states. What was sent and not answered is not sent again: it may have
been done.

Example: of a batch of 50 the controller takes 12 and answers throttle_time_ms 1000: the next batch,
a second later, is the other 38 and 12 new ones.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.controller import Unanswered
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.topic_results import (
    NOT_CONTROLLER,
    THROTTLED_TEXT,
    THROTTLING_QUOTA_EXCEEDED,
    Outcome,
    TopicResult,
    topic_result,
)
from sidecar.volumes import Failure

BATCH_TOPICS = 50
"""Topics in a request: what KIP-599 measured with. Answers name every setting of each topic that is
created, some 3 KB, and a controller does a request in one step."""
BATCH_PARTITIONS = 2000
"""Partitions in a request, unless a topic alone has more; a KRaft controller refuses 10,000."""
SHORTEST_WAIT_S = 0.01
"""After an answer that rejects for the quota and states no wait: Kafka rounds waits to
milliseconds, so less than half of one is 0."""
MOST_MOVES = 3
"""How often in a row a broker may answer that it is not the controller."""

ResultCallback = Callable[[TopicResult], None]
"""Gets each topic's result as soon as it is known."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mutation(Generic[T]):
    """One kind of mutation.

    Attributes:
        request: of some topics, with the milliseconds that the controller may take.
        answers: a response's name, error code and error message of each topic.
        name: of a topic.
        partitions: how many a topic counts as, to fill a batch.
    """

    request: Callable[[Sequence[T], int], AdminRequest]
    answers: Callable[[Response], Iterable[tuple[str | None, int, str | None]]]
    name: Callable[[T], str]
    partitions: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """How long a call lasts.

    Attributes:
        timeout_s: for all of it, seconds.
        retry: whether what is throttled is sent again.
    """

    timeout_s: float
    retry: bool


class ControllerClient(Protocol):
    """The connection to the controller: see ``Controller``."""

    async def call(self, request: AdminRequest, deadline: float) -> Response | Failure | Unanswered:
        """The answer to a request that is sent at most once."""

    async def find(self, deadline: float) -> Failure | None:
        """Finds the controller that the broker names."""


class MutationBatcher(Generic[T]):
    """One call: what is left to do of it; its time begins with it, in a running loop.

    Args:
        mutation: of which kind.
        topics: each name once.
        policy: how long it lasts.
        on_result: gets each result.

    Raises:
        ValueError: a name comes twice.
    """

    def __init__(
        self,
        mutation: Mutation[T],
        topics: Sequence[T],
        policy: CallPolicy,
        on_result: ResultCallback | None = None,
    ) -> None:
        self._mutation = mutation
        self._names = [mutation.name(topic) for topic in topics]
        self._pending = dict(zip(self._names, topics, strict=True))
        if len(self._pending) != len(topics):
            raise ValueError("a topic is named twice")
        self._retry = policy.retry
        self._on_result = on_result
        self._now = asyncio.get_running_loop().time
        self._deadline = self._now() + policy.timeout_s
        self._results: dict[str, TopicResult] = {}
        self._free_at: dict[str, float] = {}
        self._moves = 0

    async def run(self, controller: ControllerClient) -> tuple[TopicResult, ...]:
        """Sends what can be sent, and returns a result for each topic, in their order."""
        why = ""
        while self._pending and not why:
            why = await self._send(controller)
        for name in tuple(self._pending):
            self._finish(self._unfinished(name, why))
        return tuple(self._results[name] for name in self._names)

    async def _send(self, controller: ControllerClient) -> str:
        """One request.

        Returns:
            Why there is no use in another one; "" if there is.
        """
        batch = self._batch()
        left_ms = int((self._deadline - self._now()) * 1000)
        if left_ms <= 0:
            return "the time-out came first"
        request = self._mutation.request(list(batch.values()), left_ms)
        answer = await controller.call(request, self._deadline)
        if isinstance(answer, Failure):
            return answer.message
        if isinstance(answer, Unanswered):
            for name in batch:
                self._finish(TopicResult(name, Outcome.UNKNOWN, answer.failure.message))
            return ""
        throttled, moved = self._read(batch, answer)
        if moved:
            return await self._move(controller)
        self._moves = 0
        return await self._pause(throttled, answer.throttle_time_ms)

    def _batch(self) -> dict[str, T]:
        batch: dict[str, T] = {}
        partitions = 0
        for name, topic in self._pending.items():
            partitions += max(1, self._mutation.partitions(topic))
            if batch and (len(batch) == BATCH_TOPICS or partitions > BATCH_PARTITIONS):
                break
            batch[name] = topic
        return batch

    def _read(self, batch: dict[str, T], answer: Response) -> tuple[bool, bool]:
        """Read an answer.

        Returns:
            Whether some are throttled, and whether this was not the controller.
        """
        silent = set(batch)
        moved = False
        throttled: list[str] = []
        for name, error_code, error_message in self._mutation.answers(answer):
            if name is None or name not in silent:
                continue
            silent.remove(name)
            if error_code == NOT_CONTROLLER:
                moved = True
            elif error_code == THROTTLING_QUOTA_EXCEEDED:
                throttled.append(name)
            else:
                self._finish(topic_result(name, error_code, error_message))
        for name in silent:
            self._finish(TopicResult(name, Outcome.UNKNOWN, "the answer does not name it"))
        free_at = self._now() + answer.throttle_time_ms / 1000
        self._free_at |= dict.fromkeys(throttled, free_at)
        return bool(throttled), moved

    async def _move(self, controller: ControllerClient) -> str:
        self._moves += 1
        if self._moves > MOST_MOVES:
            return "the controller was not found: each broker answers that it is another one"
        failure = await controller.find(self._deadline)
        return failure.message if failure is not None else ""

    async def _pause(self, throttled: bool, throttle_time_ms: int) -> str:
        if throttled and not self._retry:
            return "a request before it was throttled"
        wait_s = throttle_time_ms / 1000
        if throttled:
            wait_s = max(wait_s, SHORTEST_WAIT_S)
        if not self._pending or not wait_s:
            return ""
        if self._now() + wait_s >= self._deadline:
            return f"the required wait of {throttle_time_ms} ms ends after the time-out"
        await asyncio.sleep(wait_s)
        return ""

    def _unfinished(self, name: str, why: str) -> TopicResult:
        free_at = self._free_at.get(name)
        if free_at is None:
            return TopicResult(name, Outcome.NOT_SENT, why)
        left_ms = max(0, round((free_at - self._now()) * 1000))
        return TopicResult(name, Outcome.THROTTLED, f"{THROTTLED_TEXT}; {why}", left_ms)

    def _finish(self, result: TopicResult) -> None:
        del self._pending[result.topic]
        self._results[result.topic] = result
        if self._on_result is not None:
            self._on_result(result)
