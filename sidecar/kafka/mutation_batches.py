"""Sends many mutations in several requests, and waits when a mutation quota is used up (KIP-599).

Each request contains as many topics as fit into a batch. Throttled topics come first in the next
request, after the wait that the answer states. Topics that were sent but not answered, within a
minute at most, are not sent again, because the controller may have done them.

Example: of a batch of 50, the controller does 12 and answers throttle_time_ms 1000. A second later,
the next batch has the other 38 topics and 12 new ones.
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
"""The most topics of a request, as in KIP-599's measurements. The answer has about 3 KB for each
created topic, and the controller handles a request in one step."""
BATCH_PARTITIONS = 2000
"""The most partitions of a request, unless one topic has more; KRaft controllers refuse 10,000."""
SHORTEST_WAIT_S = 0.01
"""The wait if the quota rejected a topic and the answer states 0 ms. Kafka rounds waits to
milliseconds."""
ANSWER_S = 60.0
"""How long an answer is waited for, and the controller's time-out: Kafka's default of requests that
change the cluster. Later requests then still have time, and go to another address."""
MOST_MOVES = 3
"""How often in a row brokers may answer that they are not the controller."""

ResultCallback = Callable[[TopicResult], None]
"""Called with each topic's result as soon as it is known."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mutation(Generic[T]):
    """One kind of mutation.

    Attributes:
        request: makes the request for some topics, with the controller's time-out in ms.
        answers: the name, error code and error message of each topic in a response.
        name: the name of a topic.
        partitions: the number of partitions that a topic counts as in a batch.
    """

    request: Callable[[Sequence[T], int], AdminRequest]
    answers: Callable[[Response], Iterable[tuple[str | None, int, str | None]]]
    name: Callable[[T], str]
    partitions: Callable[[T], int]


class ControllerClient(Protocol):
    """The connection to the controller: see ``Controller``."""

    async def call(self, request: AdminRequest, deadline: float) -> Response | Failure | Unanswered:
        """Sends a request at most once, and returns the answer."""

    async def find(self, deadline: float) -> Failure | None:
        """Finds the controller, as the connected broker reports it."""


class MutationBatcher(Generic[T]):
    """The state of one call. Its time-out begins when it is created, in a running loop.

    Args:
        mutation: the kind of mutation.
        topics: the topics, each name once.
        timeout_s: the time for all requests and waits, seconds.
        on_result: called with each result.
        retry: whether throttled topics are sent again.

    Raises:
        ValueError: a topic is named twice.
    """

    def __init__(
        self,
        mutation: Mutation[T],
        topics: Sequence[T],
        timeout_s: float,
        on_result: ResultCallback | None = None,
        *,
        retry: bool,
    ) -> None:
        self._mutation = mutation
        self._names = [mutation.name(topic) for topic in topics]
        self._pending = dict(zip(self._names, topics, strict=True))
        if len(self._pending) != len(topics):
            raise ValueError("a topic is named twice")
        self._retry = retry
        self._on_result = on_result
        self._now = asyncio.get_running_loop().time
        self._deadline = self._now() + timeout_s
        self._results: dict[str, TopicResult] = {}
        self._free_at: dict[str, float] = {}
        self._moves = 0

    async def run(self, controller: ControllerClient) -> tuple[TopicResult, ...]:
        """Sends the topics, and returns a result for each of them, in their order."""
        why = ""
        while self._pending and not why:
            why = await self._send(controller)
        for name in tuple(self._pending):
            self._finish(self._unfinished(name, why))
        return tuple(self._results[name] for name in self._names)

    async def _send(self, controller: ControllerClient) -> str:
        """Sends one request.

        Returns:
            Why no other request should follow; "" if one should.
        """
        batch = self._batch()
        now = self._now()
        deadline = min(self._deadline, now + ANSWER_S)
        left_ms = int((deadline - now) * 1000)
        if left_ms <= 0:
            return "the time-out came first"
        request = self._mutation.request(list(batch.values()), left_ms)
        answer = await controller.call(request, deadline)
        if isinstance(answer, Failure):
            return answer.message
        if isinstance(answer, Unanswered):
            for name in batch:
                self._finish(TopicResult(name, Outcome.UNKNOWN, answer.failure.message))
            self._moves = 0
            return ""
        throttled, moved = self._read(batch, answer)
        if moved:
            return await self._find_controller(controller)
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
        """Reads an answer.

        Returns:
            Whether a topic was throttled, and whether the broker is not the controller.
        """
        unanswered = set(batch)
        moved = False
        throttled: list[str] = []
        for name, error_code, error_message in self._mutation.answers(answer):
            if name is None or name not in unanswered:
                continue
            unanswered.remove(name)
            if error_code == NOT_CONTROLLER:
                moved = True
            elif error_code == THROTTLING_QUOTA_EXCEEDED:
                throttled.append(name)
            else:
                self._finish(topic_result(name, error_code, error_message))
        for name in unanswered:
            self._finish(TopicResult(name, Outcome.UNKNOWN, "the answer does not name it"))
        free_at = self._now() + answer.throttle_time_ms / 1000
        self._free_at |= dict.fromkeys(throttled, free_at)
        return bool(throttled), moved

    async def _find_controller(self, controller: ControllerClient) -> str:
        self._moves += 1
        if self._moves > MOST_MOVES:
            return "the controller was not found: each broker names another one"
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
