# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""One connection to one broker, guarded.

aiokafka's connection, with what it lacks: a frame's length is checked before it is believed (an
absurd one would be buffered), an answer that can't be decoded fails the call without a traceback in
the log, the end of a SASL session is known (KIP-368), credentials are hidden from debug logs, and
closing never waits for the peer. A call that misses its deadline closes the connection, but not
while another call waits, whose answer may come behind the late one. A call that is cancelled leaves
it open: somebody else's answer was sooner, and to dial and log in anew costs more than to drop an
answer when it comes. A peer that hangs is found by the next call's deadline.

Example: a TLS alert read as a frame's length is 352,518,912 bytes; it is refused at once.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import IncompatibleBrokerVersion, KafkaConnectionError
from aiokafka.protocol.admin import SaslAuthenticateRequest
from aiokafka.protocol.api import Request, Response

from sidecar.kafka.client.failures import (
    EXPECTED_ERRORS,
    ClosedUnansweredError,
    ProtocolError,
    UnsupportedError,
)
from sidecar.kafka.client.hidden_sasl import HiddenSaslAuthenticate
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.security import Security
from sidecar.settings import HostPort

LONGEST_FRAME_BYTES = 16 * 1024 * 1024
"""Brokers before 3.7.1 name every topic in each log dir (KAFKA-16807): 20,000 names of 60 bytes in
12 log dirs are 14 MB. The volumes alone are some hundred bytes."""
SHORTEST_FRAME_BYTES = 4
"""Each answer begins with its correlation id."""
SESSION_SHARE = 0.85
"""The part of a SASL session after which it is renewed; the Java client takes 0.85 to 0.95."""

# What decoding bytes that make no sense raises: aiokafka checks some of them with assert.
_NONSENSE = (ValueError, struct.error, LookupError, AssertionError, TypeError)


class GuardedConnection(AIOKafkaConnection):
    """A connection that may be called; made by ``dial``."""

    def __init__(
        self, endpoint: HostPort, security: Security, client_id: str, clock: Callable[[], float]
    ) -> None:
        super().__init__(
            endpoint.host,
            endpoint.port,
            client_id=client_id,
            ssl_context=security.ssl_context,
            security_protocol=security.protocol,
            sasl_mechanism=security.sasl_mechanism,
            sasl_plain_username=security.username,
            sasl_plain_password=security.password.get_secret_value() if security.password else None,
            sasl_oauth_token_provider=security.tokens,
        )
        # Every wait is within a deadline of ours, so aiokafka needs no timers of its own.
        self._request_timeout = None
        self._names = security.names
        self._clock = clock
        self.session_ends_at: float | None = None
        """When the SASL session should be renewed, clock seconds; None for never."""
        self._answered = False

    @property
    def owed(self) -> int:
        """How many answers are to come, also those that nobody waits for any more."""
        return len(self._requests)

    async def call(self, request: AdminRequest, deadline: float | None = None) -> Response:
        """The decoded answer to one request.

        Args:
            request: of a version that is negotiated.
            deadline: the loop's time by which this returns; None: the caller cancels it.

        Raises:
            TimeoutError: there was no answer by the deadline.
            UnsupportedError: the broker knows no version of it that we do; the connection is good.
            ProtocolError: the answer makes no sense.
            KafkaError: the connection broke; it is closed, the cause has the reason.
            ClosedUnansweredError: it was closed at the first request, without a login; so a
                listener with SASL does after it has reported its versions to anybody.
        """
        try:
            answer = self.send(request)
        except (NotImplementedError, IncompatibleBrokerVersion) as error:
            raise UnsupportedError(self._unsupported(request)) from error
        try:
            async with asyncio.timeout_at(deadline):
                answered = await answer
        except Exception as error:
            awaited = any(not future.done() for _, _, future in self._requests)
            if awaited and isinstance(error, TimeoutError):
                raise
            self.close(CloseReason.CONNECTION_TIMEOUT)
            if not self._answered and self._closed_by_peer(error):
                raise ClosedUnansweredError from error
            raise
        self._answered = True
        return answered

    def send(self, request: Request[Any], expect_response: bool = True) -> Awaitable[Any]:
        """As aiokafka's, but SASL's messages are hidden and their answers are read."""
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(request)
        answer: Awaitable[Any] = super().send(request, expect_response)
        return answer

    async def _authenticate(self, request: SaslAuthenticateRequest) -> Response:
        asked_at = self._clock()
        response = await super().send(HiddenSaslAuthenticate(request))
        # 0 is no limit, and so is v0, which has no such field.
        lifetime_ms = getattr(response, "session_lifetime_ms", 0)
        if lifetime_ms > 0:
            self.session_ends_at = asked_at + SESSION_SHARE * lifetime_ms / 1000
        return response

    def close(
        self, reason: CloseReason | None = None, exc: BaseException | None = None
    ) -> asyncio.Future[None]:
        """Closes at once, without unsent bytes or a frozen TLS peer; done when the socket is."""
        if self._writer is not None:
            self._writer.transport.abort()
        closed: asyncio.Future[None] = super().close(reason=reason, exc=exc)
        return closed

    async def _read(self, _self_ref: "ref[GuardedConnection]") -> None:
        # As aiokafka's, with a check of the length. (Theirs refers to itself weakly, for owners
        # that forget to close; a link never does.)
        reader = self._reader
        while True:
            length = int.from_bytes(await reader.readexactly(4), "big", signed=True)
            if not SHORTEST_FRAME_BYTES <= length <= LONGEST_FRAME_BYTES:
                raise ProtocolError(
                    f"announced a frame of {length} bytes, which is no answer of Kafka's; is it "
                    "another protocol, or a TLS listener spoken to without TLS? "
                    f"({self._names['security_protocol']})"
                )
            frame = await reader.readexactly(length)
            self._handle_frame(frame)

    def _handle_frame(self, frame: bytes) -> None:
        try:
            super()._handle_frame(frame)
        except _NONSENSE as error:
            # An answer without a request is a LookupError.
            raise ProtocolError("sent an answer that can't be decoded") from error

    @classmethod
    def _on_read_task_error(
        cls, self_ref: "ref[GuardedConnection]", read_task: asyncio.Task[None]
    ) -> None:
        # As aiokafka's, without the traceback: the calls that fail have the reason.
        if read_task.cancelled() or (error := read_task.exception()) is None:
            return
        if (connection := self_ref()) is not None:
            connection.close(CloseReason.CONNECTION_BROKEN, error)

    def _closed_by_peer(self, error: BaseException) -> bool:
        cause = error.__cause__ if isinstance(error, KafkaConnectionError) else error
        closed = isinstance(cause, EOFError | ConnectionResetError | BrokenPipeError)
        return closed and self._sasl_mechanism is None

    def _unsupported(self, request: AdminRequest) -> str:
        name = type(request).__name__
        oldest, newest = self._versions.get(request.API_KEY, (None, None))
        known = f"{name} v{oldest} to v{newest}" if newest is not None else f"no {name}"
        return f"the broker knows {known}; {request.NEEDED} is needed"


@dataclass(frozen=True, slots=True)
class Dialler:
    """Makes connections to any address of a cluster with the same arguments for all."""

    security: Security
    client_id: str
    clock: Callable[[], float]

    async def __call__(self, endpoint: HostPort) -> GuardedConnection:
        """As ``dial``."""
        return await dial(endpoint, self.security, self.client_id, self.clock)


async def dial(
    endpoint: HostPort, security: Security, client_id: str, clock: Callable[[], float]
) -> GuardedConnection:
    """Connect, secure, negotiate versions and log in.

    Cancelling it at any moment leaves no socket open.

    Raises:
        OSError: of the network or of TLS.
        KafkaError: the login was refused, or the connection broke.
        ProtocolError: the other side does not speak Kafka.
        TokenError: there is no OAUTHBEARER token.
    """
    connection = GuardedConnection(endpoint, security, client_id, clock)
    try:
        await connection.connect()
    except EXPECTED_ERRORS:
        # First, since an untrusted certificate is a ValueError too.
        raise
    except _NONSENSE as error:
        raise ProtocolError("what it answered while connecting makes no sense") from error
    return connection
