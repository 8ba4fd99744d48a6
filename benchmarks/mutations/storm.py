"""The storm: new topics at a pace that no throttle time changes, from a process of its own.

At each tick it asks for the next topics that are not there yet, first for those that were rejected.
With a sidecar's admission endpoint it asks that first, and asks Kafka only for the topics that were
admitted. Kafka's answers name every setting of every topic, some 3 KB each; in a process of its own
(``python -m benchmarks.mutations.storm``) reading them delays no operation of the others. Its order
comes as JSON on standard input, its requests go as JSON to standard output. Times are of
``time.monotonic()``, one clock for all processes of a machine.

Example: 80 requests of 50 topics, 10 a second, are all sent in 8 s when none is rejected; else the
ticks go on to the end of the storm's time with the topics that are left.
"""

import asyncio
import json
import logging
import ssl
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, Self

from aiokafka.protocol.api import Response

from benchmarks.mutations.clients import Clients
from sidecar.errors import ClusterError
from sidecar.http import HttpError, request
from sidecar.kafka.client.controller import Unanswered
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.topic_messages import CreateTopics, NewTopic
from sidecar.kafka.topic_results import THROTTLING_QUOTA_EXCEEDED
from sidecar.mutations.routes import PATH
from sidecar.volumes import Failure

_READY: Final = 20
"""Connections from the beginning."""
Admitted = Callable[[Sequence[str], int], Awaitable[Sequence[str]]]
"""Names of topics, and the partitions of each -> those that may be created now."""


@dataclass(frozen=True, slots=True)
class Load:
    """The size of a storm.

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


@dataclass(frozen=True, slots=True)
class Request:
    """One request for new topics.

    Attributes:
        due: when it was to be sent, seconds.
        asked: topics in it.
        admitted: the topics that Kafka was asked for: all of them without an endpoint.
        created: topics that were created.
        throttled: topics that Kafka rejected for the quota.
        answered: when all of it was over, seconds; None: it has no answer.
        error: what else went wrong; "" if nothing did.
    """

    due: float
    asked: int
    admitted: int = 0
    created: int = 0
    throttled: int = 0
    answered: float | None = None
    error: str = ""


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
        admitted: the endpoint that is asked first; None: none.
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
        """Its requests, in the order in which they were due; the first at ``begin``, loop time."""
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
                admitted: Sequence[str] = names
                if self._admitted is not None:
                    admitted = await self._admitted(names, self._load.partitions)
                    self._later(set(names) - set(admitted))
                if not admitted:
                    return replace(reported, answered=asyncio.get_running_loop().time())
                return await self._create(replace(reported, admitted=len(admitted)), admitted)
        except (OSError, HttpError) as error:
            # A TimeoutError is an OSError.
            return replace(reported, error=str(error) or type(error).__name__)

    async def _create(self, reported: Request, names: Sequence[str]) -> Request:
        load, now = self._load, asyncio.get_running_loop().time
        topics = [NewTopic(name, load.partitions, load.replication) for name in names]
        message = CreateTopics(topics, int(self._patience_s * 1000))
        async with self._connections.one() as connection:
            answer = await connection.call(message, now() + self._patience_s)
        if isinstance(answer, Failure | Unanswered):
            failure = answer if isinstance(answer, Failure) else answer.failure
            return replace(reported, error=failure.message)
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


async def admitted(
    url: str, user: str, client_id: str, names: Sequence[str], partitions: int
) -> list[str]:
    """Ask a sidecar which topics may be created now, as a portal does before it asks Kafka.

    Args:
        url: the sidecar's.
        user: the user who wants the topics.
        client_id: likewise.
        names: of the topics.
        partitions: of each.

    Raises:
        OSError: of the network.
        HttpError: the answer is not one of the endpoint.
    """
    operations = [
        {"kind": "create_topic", "topic": name, "partitions": partitions} for name in names
    ]
    body = {"user": user, "client_id": client_id, "operations": operations}
    response = await request(
        "POST",
        f"{url}{PATH}",
        headers={"Content-Type": "application/json"},
        ssl_context=ssl.create_default_context(),
        body=json.dumps(body).encode(),
    )
    if response.status == 429:
        return []
    if response.status != 200:
        raise HttpError(f"the sidecar answered {response.status}: {response.body[:200]!r}")
    return [each["topic"] for each in json.loads(response.body)["results"] if each["accepted"]]


@dataclass(frozen=True, slots=True)
class Order:
    """What the process does.

    Attributes:
        load: what is sent.
        brokers: "host:port" of each.
        user: the user that it logs in as.
        begin: the first tick, ``time.monotonic()`` seconds.
        patience_s: how long an answer is waited for.
        ask_url: the sidecar that is asked before Kafka; None: none.
        ask_for: the user for whom it is asked.
    """

    load: Load
    brokers: Sequence[str]
    user: str
    begin: float
    patience_s: float
    ask_url: str | None
    ask_for: str

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        """From the JSON of it."""
        return cls(**(document | {"load": Load(**document["load"])}))


async def storm(order: Order) -> list[Request]:
    """Start the process, and wait for its end; cancelling this kills it.

    Raises:
        ClusterError: it failed.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=pipe, stdout=pipe
    )
    try:
        said, _ = await process.communicate(json.dumps(asdict(order)).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ClusterError(f"the storm ended with {process.returncode}")
    return [Request(**each) for each in json.loads(said)]


async def _run(order: Order) -> list[Request]:
    url = order.ask_url
    ask = partial(admitted, url, order.ask_for, order.user) if url else None
    async with Clients(order.brokers, order.user, _READY) as clients:
        return await Storm(order.load, clients, ask, order.patience_s).run(order.begin)


if __name__ == "__main__":
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # It logs every login.
    done = asyncio.run(_run(Order.read(json.load(sys.stdin))))
    json.dump([asdict(each) for each in done], sys.stdout)
