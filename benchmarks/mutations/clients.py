"""Connections of one user to all brokers in turn, each for one request at a time.

A broker reads the next request of a connection when the one before is answered, and later when it
was throttled. A client that sends at a pace despite throttle times needs several: the one that was
unused longest is taken, and another is dialled when all are in use.

Example: at 10 requests a second that take 0.05 s one connection would do, and 6 that are there from
the beginning are used in turn, each once in 0.6 s.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from typing import Self

from pydantic import SecretStr

from sidecar.errors import ClusterError
from sidecar.kafka.client.controller import Controller, Unanswered
from sidecar.kafka.cluster_messages import DescribeCluster
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Failure

LISTENER = "USERS"
"""Of the brokers, with SASL/PLAIN: who is who decides whose quota it is."""
PASSWORD = "only-on-loopback"
"""Of each user of the listener."""
DIAL_TIMEOUT_S = 30.0


class Clients:
    """The connections, as an async context manager."""

    def __init__(self, brokers: Sequence[str], user: str, ready: int) -> None:
        """Nothing is dialled yet.

        Args:
            brokers: "host:port" of each, of the listener.
            user: who logs in.
            ready: how many connections there are from the beginning.
        """
        self._admins = cycle(
            KafkaAdmin(
                bootstrap_servers=addresses(address),
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_username=user,
                sasl_password=SecretStr(PASSWORD),
                client_id=user,
            )
            for address in brokers
        )
        self._ready = ready
        self._idle: deque[Controller] = deque()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with asyncio.timeout(DIAL_TIMEOUT_S):
            for _ in range(self._ready):
                self._idle.append(await self._another(connected=True))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Controller]:
        """A connection that nobody else uses meanwhile."""
        controller = self._idle.popleft() if self._idle else await self._another(connected=False)
        yield controller
        # Not after an error or a cancellation: an answer may still be on its way.
        self._idle.append(controller)

    async def _another(self, *, connected: bool) -> Controller:
        controller = await self._stack.enter_async_context(Controller(next(self._admins)))
        if connected:
            deadline = asyncio.get_running_loop().time() + DIAL_TIMEOUT_S
            answer = await controller.call(DescribeCluster(), deadline)
            if isinstance(answer, Failure | Unanswered):
                raise ClusterError(f"the brokers can't be reached: {answer}")
        return controller
