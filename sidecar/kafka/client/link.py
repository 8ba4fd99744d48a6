"""One address in the pool: its connection, if there is one, and its last failure.

A call uses the open connection or makes one, within the caller's deadline. If the connection breaks
during a call, the call is repeated once over a new connection; all calls are reads that may be
repeated. After ``close``, the link makes no connection. A failure starts a pause in which calls
fail at once. An answer with an error is not such a failure.

A login that is refused reads the secrets again, also in the pause. If they are as before, the
former ones are tried. For ten minutes after a change of the secrets, the pause is the shortest, as
brokers may follow at any time. A connection made with former secrets is replaced after five
minutes, so that the sidecar knows whether the broker accepts the new ones.

An address may pass to another cluster or lead to another broker, but a connection stays at one
broker. So a call that needs a certain cluster or broker asks once over each connection, before the
first such call. A broker shows its id by DescribeConfigs: it refuses to describe another one.

Example: the password changes in its file at 0 s, and at the brokers at 60 s. A connection at 30 s
uses the former password, and one at 61 s the new one. In the other order, calls fail from the first
login after 0 s to 60 s, and the next call succeeds.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.api import Response

from sidecar.kafka.client.backoff import INITIAL_PAUSE_S, LONGEST_PAUSE_S, Backoff
from sidecar.kafka.client.connection import End, GuardedConnection
from sidecar.kafka.client.dialler import Dialler
from sidecar.kafka.client.failures import (
    EXPECTED_ERRORS,
    UnsupportedError,
    error_name,
    kind_of,
    other_cluster,
    to_failure,
)
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeClusterId
from sidecar.kafka.config_messages import BROKER, DescribeConfigs
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind

Refused = Callable[[], Awaitable[None]]
"""Called when a broker refuses a login or a certificate; may read the secrets again, and call
``Pool.reload``."""

RENEW_S: Final = 300.0
"""How long a connection made with former secrets may stay."""

INVALID_REQUEST: Final = 42
"""How a broker refuses to describe another broker's configuration."""

_RECENT_S: Final = 600.0
"""How long after a change of the secrets the pauses stay short."""


Throttled = Callable[[HostPort, int], None]
"""Called with the address and the throttle time of each answer, milliseconds."""


async def nothing_to_read() -> None:
    """The default of ``Refused``."""


def not_noted(_endpoint: HostPort, _throttle_ms: int) -> None:
    """The default of ``Throttled``."""


@dataclass(slots=True, eq=False, repr=False)
class Link:
    """The connection to one address.

    Attributes:
        endpoint: the broker's address.
        dial: makes a connection to the address; its clock is the link's.
        refused: called when the broker refuses the login.
        logged_in: called after each login.
        throttled: called with each answer's throttle time.
        shared_ends: the ends of connections that several addresses lead to; changes.
        refusal: why the broker refused the current secrets, if it accepted the former ones; "" if
            it accepted the current ones; None if it has not been asked.
    """

    endpoint: HostPort
    dial: Dialler
    refused: Refused = nothing_to_read
    logged_in: Callable[[], None] = lambda: None
    throttled: Throttled = not_noted
    shared_ends: Container[End] = ()
    refusal: str | None = field(default=None, init=False)
    _dialling: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _connection: GuardedConnection | None = field(default=None, init=False)
    _connection_dial: Dialler | None = field(default=None, init=False)
    _renew_at: float = field(default=math.inf, init=False)
    _closed: bool = field(default=False, init=False)
    _backoff: Backoff = field(default_factory=Backoff, init=False)

    def __repr__(self) -> str:
        return f"Link({self.endpoint}, usable={self.usable})"

    @property
    def usable(self) -> bool:
        """Whether a call can use the open connection without making a new one."""
        connection = self._connection
        if connection is None or self._connection_dial is not self.dial:
            return False
        is_due = self.dial.clock() >= self._renew_at and not connection.owed
        return connection.usable and not is_due

    @property
    def end(self) -> End | None:
        """Where the connection leads to; None if there is none."""
        return None if self._connection is None else self._connection.end

    @property
    def awaits_answer(self) -> bool:
        """Whether an answer is outstanding: Kafka answers in order, so the next answer waits."""
        return self._connection is not None and self._connection.owed > 0

    async def call(
        self,
        request: AdminRequest,
        deadline: float,
        *,
        cluster_id: str | None = None,
        broker_id: int | None = None,
        must_show: bool = False,
    ) -> Response | Failure:
        """Sends a request, and returns the answer or why there is none.

        Args:
            request: a request that may be repeated.
            deadline: the loop's time by which this returns.
            cluster_id: the only cluster whose answer counts; None for any.
            broker_id: the only broker whose answer counts; None for any. Where several addresses
                lead to one end, the broker there is asked whether it is this one.
            must_show: whether the broker is asked in any case, and has to show its id.
        """
        refusal = None if self.usable else self._backoff.refusal(self.dial.clock())
        if refusal is not None and not await self._has_changed(refusal, deadline):
            return refusal
        doing = "connecting"
        try:
            for may_repeat in (True, False):
                doing = "connecting"
                async with asyncio.timeout_at(deadline):
                    connection = await self._connected()
                try:
                    doing = "asking which broker it is"
                    failure = await self._other_cluster(connection, cluster_id, deadline)
                    failure = failure or await self._other_broker(
                        connection, broker_id, deadline, must_show=must_show
                    )
                    if failure is not None:
                        return failure
                    doing = f"waiting for {request.NAME}"
                    answer = await self._answer(connection, request, deadline)
                except EXPECTED_ERRORS as error:
                    if not may_repeat or kind_of(error) is not FailureKind.CONNECT:
                        raise
                else:
                    self._backoff.succeeded()
                    return answer
        except EXPECTED_ERRORS as error:
            failure = to_failure(error, str(self.endpoint), doing, self.dial.security.names)
            if not isinstance(error, UnsupportedError):
                self._backoff.failed(failure, self.dial.clock(), self._longest_pause_s(failure))
            return failure
        raise AssertionError("the second call has either returned or raised")

    async def _answer(
        self, connection: GuardedConnection, request: AdminRequest, deadline: float
    ) -> Response:
        answer = await connection.call(request, deadline)
        self.throttled(self.endpoint, answer.throttle_time_ms)
        if isinstance(request, DescribeCluster | DescribeClusterId) and not answer.error_code:
            connection.cluster_id = answer.cluster_id or ""
        return answer

    async def _other_cluster(
        self, connection: GuardedConnection, cluster_id: str | None, deadline: float
    ) -> Failure | None:
        """Why the broker of a connection is not of a cluster; None if it is, or need not be."""
        if cluster_id is None:
            return None
        if connection.cluster_id is None:
            answer = await self._answer(connection, DescribeClusterId(), deadline)
            if answer.error_code:
                text = f"{self.endpoint}: DescribeCluster returned {error_name(answer.error_code)}"
                return Failure(FailureKind.BROKER, text)
        failure = other_cluster(str(self.endpoint), connection.cluster_id, cluster_id)
        return failure and self._elsewhere(failure)

    async def _other_broker(
        self,
        connection: GuardedConnection,
        broker_id: int | None,
        deadline: float,
        *,
        must_show: bool,
    ) -> Failure | None:
        """Why a connection may lead to another broker; None if it does not, or may."""
        if broker_id is None or connection.broker_id == broker_id:
            return None
        is_shared = connection.end in self.shared_ends and connection.asked_id != broker_id
        if not (must_show or is_shared):
            return None
        request = DescribeConfigs(BROKER, [str(broker_id)], ["broker.id"])
        answer = await self._answer(connection, request, deadline)
        connection.asked_id = broker_id
        error_code = answer.results[0][0] if answer.results else INVALID_REQUEST
        if not error_code:
            connection.broker_id = broker_id
            return None
        kind = FailureKind.SHARED_ADDRESS
        if error_code == INVALID_REQUEST:
            text = (
                f"{self.endpoint}: another broker than {broker_id} answers there; set "
                "advertised.listeners so that each broker has an address of its own"
            )
            return self._elsewhere(Failure(kind, text))
        # Behind a proxy for TLS, several names lead to one end, and each to a broker of its own.
        text = f"{self.endpoint}: does not show that it is broker {broker_id}"
        return Failure(kind, text) if must_show else None

    def _elsewhere(self, failure: Failure) -> Failure:
        """Closes a connection to a wrong broker, since the address may lead elsewhere again."""
        self._disconnect()
        self._backoff.failed(failure, self.dial.clock(), LONGEST_PAUSE_S)
        return failure

    def redial_with(self, dial: Dialler, *, keep: bool = False) -> None:
        """Makes new connections in another way, without waiting for the pause to end.

        Args:
            dial: makes them.
            keep: whether the open connection stays; otherwise the next call makes a new one.
        """
        if keep and self._connection_dial is self.dial:
            self._connection_dial = dial
            self._renew_at = self.dial.clock() + RENEW_S
        self.refusal = None
        self.dial = dial
        self._backoff.succeeded()

    def close(self) -> asyncio.Future[None] | None:
        """Closes the link for good.

        Returns:
            A future that is done when the socket is closed; None if there is no socket.
        """
        self._closed = True
        return self._disconnect()

    def _disconnect(self) -> asyncio.Future[None] | None:
        connection, self._connection = self._connection, None
        return connection.close() if connection is not None else None

    def _longest_pause_s(self, failure: Failure) -> float:
        is_recent = self.dial.clock() <= self.dial.changed_at + _RECENT_S
        may_end = is_recent and self.dial.may_be_refused(failure.kind)
        return INITIAL_PAUSE_S if may_end else LONGEST_PAUSE_S

    async def _has_changed(self, refusal: Failure, deadline: float) -> bool:
        """Reads the secrets again after a refusal, and returns whether they have changed."""
        dial = self.dial
        if dial.may_be_refused(refusal.kind):
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self.refused()
        return self.dial is not dial

    async def _connected(self) -> GuardedConnection:
        if self.usable and self._connection is not None:
            return self._connection
        async with self._dialling:
            # Another call may have connected while this one waited for the lock.
            if self.usable and self._connection is not None:
                return self._connection
            self._disconnect()
            self._check_open()
            dial, connection = await self._dialled()
            self._connection = connection
            self._connection_dial = dial
            is_former = connection.security is not dial.security
            self._renew_at = self.dial.clock() + RENEW_S if is_former else math.inf
            self._check_open()
            self.logged_in()
            return connection

    async def _dialled(self) -> tuple[Dialler, GuardedConnection]:
        for may_look in (True, False):
            # redial_with may replace the dial meanwhile; then the new connection is not usable.
            dial = self.dial
            try:
                connection = await dial(self.endpoint)
            except EXPECTED_ERRORS as error:
                if not dial.may_be_refused(kind_of(error)):
                    raise
                if may_look:
                    await self.refused()
                    if self.dial is not dial:
                        # The secrets have changed, so the refusal was of the old ones.
                        continue
                connection = await dial.again(self.endpoint, error)
                names = dial.security.names
                failure = to_failure(error, str(self.endpoint), "connecting", names)
                is_former = connection.security is not dial.security
                self.refusal = failure.message if is_former else ""
            else:
                self.refusal = ""
            return dial, connection
        raise AssertionError("the second attempt has either returned or raised")

    def _check_open(self) -> None:
        if self._closed:
            self._disconnect()
            raise KafkaConnectionError("the broker has left, or the sidecar is stopping")
