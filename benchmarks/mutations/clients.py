"""Connections of one user to all brokers in turn, each for one request at a time.

A broker reads the next request of a connection once it has answered the one before, and later when
it throttled that one. A client that keeps its pace despite throttle times needs several: the one
that was unused longest is taken, and another is dialled when all are in use.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from typing import Final, Self

from pydantic import SecretStr

from sidecar.errors import ClusterError
from sidecar.kafka.client.controller import Controller, Unanswered
from sidecar.kafka.cluster_messages import DescribeCluster
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Failure

LISTENER: Final = "USERS"
"""Of the brokers, with SASL/PLAIN: a quota is that of the user who logs in."""
PASSWORD: Final = "only-on-loopback"
"""Of each user of the listener."""
_DIAL_TIMEOUT_S: Final = 30.0


class Clients:
    """The connections, as an async context manager."""

    def __init__(self, brokers: Sequence[str], user: str, ready: int) -> None:
        """Nothing is dialled yet.

        Args:
            brokers: "host:port" of each, of the listener.
            user: the user that logs in.
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
        async with asyncio.timeout(_DIAL_TIMEOUT_S):
            for _ in range(self._ready):
                controller = await self._another()
                deadline = asyncio.get_running_loop().time() + _DIAL_TIMEOUT_S
                answer = await controller.call(DescribeCluster(), deadline)
                if isinstance(answer, Failure | Unanswered):
                    raise ClusterError(f"the brokers can't be reached: {answer}")
                self._idle.append(controller)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Controller]:
        """A connection that nobody else uses meanwhile."""
        controller = self._idle.popleft() if self._idle else await self._another()
        yield controller
        # Not after an error or a cancellation: an answer may still be on its way.
        self._idle.append(controller)

    async def _another(self) -> Controller:
        return await self._stack.enter_async_context(Controller(next(self._admins)))
