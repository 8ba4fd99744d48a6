"""A connection for requests that change the cluster; each is sent at most once.

With KRaft, any broker forwards these requests to the controller. With ZooKeeper, only the
controller accepts them, and other brokers answer error 41, NOT_CONTROLLER. So the first address
that can be reached is used, and ``find`` switches to the controller after that error.

Example: the first of three addresses does not answer. After 5 s the second is tried. It answers,
but not the first request. The second request goes to the first or the third address.
"""

import asyncio
from dataclasses import dataclass
from typing import Self

from aiokafka.protocol.api import Response

from sidecar.kafka.client.connection import GuardedConnection
from sidecar.kafka.client.dialler import Dialler
from sidecar.kafka.client.failures import EXPECTED_ERRORS, UnsupportedError, to_failure
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.cluster_answers import read_cluster
from sidecar.kafka.cluster_messages import DescribeCluster
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

DIAL_TIMEOUT_S = 5.0
"""How long connecting to an address may take if there are other addresses."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request that was sent but not answered: the controller may have executed it.

    Attributes:
        failure: why there is no answer.
    """

    failure: Failure


class Controller:
    """A connection to the controller; an async context manager that closes it.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin
        self._dialler = Dialler.of(admin, asyncio.get_running_loop().time)
        self._addresses = admin.bootstrap_servers
        self._connection: GuardedConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._close()

    async def call(self, request: AdminRequest, deadline: float) -> Response | Failure | Unanswered:
        """Sends a request at most once, and returns its answer.

        Args:
            request: the request.
            deadline: the loop's time by which this returns.

        Returns:
            The answer; a failure if the request was not sent or is not supported; ``Unanswered``
            if it was sent without an answer.
        """
        connection = await self._connected(deadline)
        if isinstance(connection, Failure):
            return connection
        address = str(HostPort(connection.host, connection.port))
        names = self._dialler.security.names
        try:
            return await connection.call(request, deadline)
        except UnsupportedError as error:
            return to_failure(error, address, "", names)
        except EXPECTED_ERRORS as error:
            # Another address comes next: this one may never answer.
            servers = self._admin.bootstrap_servers
            self._addresses = tuple(each for each in servers if str(each) != address)
            doing = f"waiting for {request.NAME}"
            return Unanswered(to_failure(error, address, doing, names))

    async def find(self, deadline: float) -> Failure | None:
        """Asks the broker for the controller, which the next call then uses; or returns why not."""
        answer = await self.call(DescribeCluster(), deadline)
        if isinstance(answer, Unanswered):
            return answer.failure
        if isinstance(answer, Failure):
            return answer
        cluster = read_cluster(answer, self._addresses[0])
        if isinstance(cluster, Failure):
            return cluster
        controller = cluster.endpoints.get(answer.controller_id)
        if controller is None:
            return Failure(FailureKind.BROKER, f"{self._addresses[0]}: there is no controller")
        await self._close()
        self._addresses = (controller,)
        return None

    async def _connected(self, deadline: float) -> GuardedConnection | Failure:
        if self._connection is not None and self._connection.usable:
            return self._connection
        await self._close()
        failures: list[Failure] = []
        # If the controller that was found has left, the configured addresses are tried again.
        addresses = dict.fromkeys((*self._addresses, *self._admin.bootstrap_servers))
        for address in addresses:
            dialled = await self._dial(address, deadline, alone=len(addresses) == 1)
            if isinstance(dialled, GuardedConnection):
                self._addresses = (address,)
                self._connection = dialled
                return dialled
            failures.append(dialled)
        return Failure(failures[0].kind, "; ".join(failure.message for failure in failures[:3]))

    async def _dial(
        self, address: HostPort, deadline: float, *, alone: bool
    ) -> GuardedConnection | Failure:
        soon = asyncio.get_running_loop().time() + DIAL_TIMEOUT_S
        try:
            async with asyncio.timeout_at(deadline if alone else min(deadline, soon)):
                return await self._dialler.either(address)
        except EXPECTED_ERRORS as error:
            return to_failure(error, str(address), "connecting", self._dialler.security.names)

    async def _close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
