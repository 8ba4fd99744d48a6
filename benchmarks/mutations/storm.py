"""The storm: new topics at a pace that no throttle time changes.

At each tick the next topics that are not there yet are asked for, those that were rejected first.
Where there is somebody to ask before, that is done, and Kafka is asked for what was admitted alone.

Example: 80 requests of 50 topics, 10 a second, are all sent in 8 s when none is rejected; else the
ticks go on to the end of the storm's time, with the topics that are left.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from aiokafka.protocol.api import Response

from benchmarks.mutations.course import Request
from sidecar.http import HttpError
from sidecar.kafka.client.controller import Unanswered
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.topic_messages import CreateTopics, NewTopic
from sidecar.kafka.topic_results import THROTTLING_QUOTA_EXCEEDED
from sidecar.volumes import Failure

Admitted = Callable[[Sequence[str], int], Awaitable[Sequence[str]]]
"""Names of topics, and the partitions of each -> those that may be created now."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much of a storm it is.

    Attributes:
        seconds: for how long requests are sent.
        requests: how many requests all its topics are.
        per_s: requests a second.
        topics: in a request.
        partitions: of a topic.
        replication: replicas of a partition.
        rate: the quota of the throttled user, partitions a second.
    """

    seconds: float = 20.0
    requests: int = 80
    per_s: float = 10.0
    topics: int = 50
    partitions: int = 4
    replication: int = 3
    rate: float = 20.0


class Caller(Protocol):
    """A connection to a broker: see ``Controller``."""

    async def call(self, request: AdminRequest, deadline: float) -> Response | Failure | Unanswered:
        """The answer to a request that is sent at most once."""


class Connections(Protocol):
    """See ``Clients``."""

    def one(self) -> AbstractAsyncContextManager[Caller]:
        """A connection that nobody else uses meanwhile."""


class Storm:
    """Sends a load.

    Args:
        load: what.
        connections: to Kafka.
        admitted: who is asked before; None: nobody.
        patience_s: how long an answer is waited for.
    """

    def __init__(
        self, load: Load, connections: Connections, admitted: Admitted | None, patience_s: float
    ) -> None:
        self._load = load
        self._connections = connections
        self._admitted = admitted
        self._patience_s = patience_s
        self._left = deque(f"storm-{number}" for number in range(load.requests * load.topics))

    async def run(self, begin: float) -> list[Request]:
        """What became of its requests, in the order in which they were due.

        Args:
            begin: when the first is due, the loop's time.
        """
        load = self._load
        now = asyncio.get_running_loop().time
        tasks: list[asyncio.Task[Request]] = []
        async with asyncio.TaskGroup() as group:
            for tick in range(round(load.seconds * load.per_s)):
                due = begin + tick / load.per_s
                await asyncio.sleep(max(0.0, due - now()))
                count = min(load.topics, len(self._left))
                names = [self._left.popleft() for _ in range(count)]
                if names:
                    tasks.append(group.create_task(self._send(due, names), name=f"tick {tick}"))
        return [task.result() for task in tasks]

    async def _send(self, due: float, names: list[str]) -> Request:
        reported = Request(due, len(names))
        try:
            async with asyncio.timeout(self._patience_s):
                admitted = await self._ask(names)
                if not admitted:
                    return replace(reported, answered=asyncio.get_running_loop().time())
                return await self._create(replace(reported, admitted=len(admitted)), admitted)
        except (OSError, HttpError) as error:
            # A TimeoutError is an OSError.
            return replace(reported, error=str(error) or type(error).__name__)

    async def _ask(self, names: list[str]) -> Sequence[str]:
        if self._admitted is None:
            return names
        admitted = await self._admitted(names, self._load.partitions)
        self._later(set(names) - set(admitted))
        return admitted

    async def _create(self, reported: Request, names: Sequence[str]) -> Request:
        load = self._load
        now = asyncio.get_running_loop().time
        topics = [NewTopic(name, load.partitions, load.replication) for name in names]
        message = CreateTopics(topics, int(self._patience_s * 1000))
        async with self._connections.one() as connection:
            answer = await connection.call(message, now() + self._patience_s)
        if isinstance(answer, Failure):
            return replace(reported, error=answer.message)
        if isinstance(answer, Unanswered):
            return replace(reported, error=answer.failure.message)
        codes = {name: code for name, _, code, *_ in answer.topics}
        throttled = {name for name, code in codes.items() if code == THROTTLING_QUOTA_EXCEEDED}
        self._later(throttled)
        others = sorted(set(codes.values()) - {0, THROTTLING_QUOTA_EXCEEDED})
        return replace(
            reported,
            created=sum(code == 0 for code in codes.values()),
            throttled=len(throttled),
            answered=now(),
            error=f"errors {others}" if others else "",
        )

    def _later(self, names: set[str]) -> None:
        self._left.extendleft(sorted(names, reverse=True))
