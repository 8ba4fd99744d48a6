"""One broker's slot in the pool: its address, its connection if any, and what failed last.

A call takes the connection that is there or dials one, within the caller's deadline. A connection
that dropped during a call is dialled anew once, since all our calls are reads that may be repeated.
A link that was closed connects no more, whatever was begun before. A failure starts a pause in
which calls fail at once; an answer that has an error does not.
"""

import asyncio
from collections.abc import Callable

from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.api import Response

from sidecar.kafka.client.backoff import Backoff
from sidecar.kafka.client.connection import Dialler, GuardedConnection
from sidecar.kafka.client.failures import EXPECTED_ERRORS, Names, UnsupportedError, to_failure
from sidecar.kafka.client.messages import AdminRequest
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind


class Link:
    """The connection to one address.

    Args:
        endpoint: where the broker listens.
        dial: makes a connection to it.
        clock: steady seconds.
    """

    def __init__(self, endpoint: HostPort, dial: Dialler, clock: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self._dial = dial
        self._clock = clock
        self._dialling = asyncio.Lock()
        self._connection: GuardedConnection | None = None
        self._connection_dial: Dialler | None = None
        self._closed = False
        self._backoff = Backoff()

    def __repr__(self) -> str:
        return f"Link({self.endpoint}, usable={self.usable})"

    @property
    def usable(self) -> bool:
        """Whether there is a connection that a call may take without dialling."""
        connection = self._connection
        return (
            connection is not None
            and connection.connected()
            and self._connection_dial is self._dial
            and (connection.session_ends_at is None or self._clock() < connection.session_ends_at)
        )

    @property
    def owes(self) -> bool:
        """Whether an answer is to come over it: Kafka answers in order, so the next one waits."""
        return self._connection is not None and self._connection.owed > 0

    async def call(self, request: AdminRequest, deadline: float) -> Response | Failure:
        """The answer to a request, or why there is none.

        Args:
            request: one that may be repeated.
            deadline: the loop's time by which this returns.
        """
        if not self.usable and (refusal := self._backoff.refusal(self._clock())) is not None:
            return refusal
        name = type(request).__name__
        doing = "connecting"
        try:
            for may_repeat in (True, False):
                doing = "connecting"
                async with asyncio.timeout_at(deadline):
                    connection = await self._connected()
                doing = f"waiting for {name}"
                try:
                    answer = await connection.call(request, deadline)
                except EXPECTED_ERRORS as error:
                    if not (may_repeat and self._dropped(error)):
                        raise
                else:
                    self._backoff.succeeded()
                    return answer
        except EXPECTED_ERRORS as error:
            failure = to_failure(error, str(self.endpoint), doing, self._dial.security.names)
            if not isinstance(error, UnsupportedError):
                self._backoff.failed(failure, self._clock())
            return failure
        raise AssertionError("the second call has either returned or raised")

    def redial_with(self, dial: Dialler) -> None:
        """Replace the connection, at the next call, by one that is made anew; try it at once."""
        self._dial = dial
        self._backoff.succeeded()

    def close(self) -> asyncio.Future[None] | None:
        """Closes the link for good; done when its socket is closed, None when there is none."""
        self._closed = True
        return self._disconnect()

    def _disconnect(self) -> asyncio.Future[None] | None:
        connection, self._connection = self._connection, None
        return connection.close() if connection is not None else None

    def _dropped(self, error: BaseException) -> bool:
        return to_failure(error, "", "", Names()).kind is FailureKind.CONNECT

    async def _connected(self) -> GuardedConnection:
        if self.usable and self._connection is not None:
            return self._connection
        async with self._dialling:
            # Another call may have dialled while this one waited.
            if self.usable and self._connection is not None:
                return self._connection
            self._disconnect()
            self._check_open()
            # The dial may be replaced while this one runs; its connection is then not usable.
            dial = self._dial
            connection = self._connection = await dial(self.endpoint)
            self._connection_dial = dial
            self._check_open()
            return connection

    def _check_open(self) -> None:
        if self._closed:
            self._disconnect()
            raise KafkaConnectionError("the broker has left, or the sidecar stops")
