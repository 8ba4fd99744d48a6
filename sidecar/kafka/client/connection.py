# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""One connection to one broker: aiokafka's, with additional checks.

- If an address of a host name does not answer, the next one is tried.
- The length of a frame is checked first; aiokafka would buffer any length.
- An answer that can't be decoded fails the call, without a traceback in the log.
- An error in place of the broker's versions fails the connection.
- The connection knows when its SASL session ends (KIP-368).
- Credentials do not appear in debug logs.
- Closing never waits for the peer.

Example: a TLS alert, read as the length of a frame, is 352,518,912 bytes. The connection is closed
at once.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from aiokafka.conn import READER_LIMIT, AIOKafkaConnection, AIOKafkaProtocol, CloseReason
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    for_code,
)
from aiokafka.protocol.admin import ApiVersionRequest, SaslAuthenticateRequest
from aiokafka.protocol.api import Request, Response

from sidecar.http import name_in_certificate, next_address_s
from sidecar.kafka.client.failures import (
    EXPECTED_ERRORS,
    ClosedUnansweredError,
    ProtocolError,
    UnsupportedError,
)
from sidecar.kafka.client.hidden_sasl import HiddenSaslAuthenticate
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.oauth_tokens import SharedTokens, TokenLogin
from sidecar.kafka.client.security import Security
from sidecar.settings import HostPort
from sidecar.throttle.sizes import size

if TYPE_CHECKING:
    from sidecar.kafka.client.kerberos import KerberosLogin


class End(NamedTuple):
    """The other end of a connection: an IP address, or localhost, and a port."""

    address: str
    port: int


LONGEST_FRAME_BYTES = 16 * 1024 * 1024
"""Brokers before 3.7.1 list every topic in each log dir (KAFKA-16807): 20,000 names of 60 bytes in
12 log dirs take 14 MB. Volumes without topics take a few hundred bytes."""
SHORTEST_FRAME_BYTES = 4
"""Each answer begins with its correlation id."""
SESSION_SHARE = 0.85
"""The part of a SASL session after which it is renewed; the Java client takes 0.85 to 0.95."""

# The errors of decoding invalid bytes. aiokafka checks some of them with assert.
_NONSENSE = (ValueError, struct.error, LookupError, AssertionError, TypeError)


class GuardedConnection(AIOKafkaConnection):
    """A connection for requests; ``dial`` makes it."""

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
            sasl_kerberos_service_name=security.kerberos.service if security.kerberos else "",
        )
        # Every wait has a deadline here, so aiokafka needs no timers of its own.
        self._request_timeout = None
        self.security = security
        self._clock = clock
        self.session_ends_at: float | None = None
        """When to renew the SASL session, in seconds of the clock; None for never."""
        self.cluster_id: str | None = None
        """The cluster of the broker; None until it was asked, "" if it has no id."""
        self.broker_id: int | None = None
        """The broker's id; None until it has shown it."""
        self.asked_id: int | None = None
        """The id that the broker was asked to show."""
        self.end: End | None = None
        """Where it leads to; None if it was never connected, or leads to no IP address."""
        self._answered = False

    @property
    def usable(self) -> bool:
        """Whether it is connected, and its SASL session need not be renewed yet."""
        ends_at = self.session_ends_at
        return bool(self.connected()) and (ends_at is None or self._clock() < ends_at)

    @property
    def owed(self) -> int:
        """How many answers are outstanding, including those of cancelled calls."""
        return len(self._requests)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects like aiokafka, but tries a name's next address when one does not answer."""
        self._closed_fut = self._loop.create_future()
        reader = asyncio.StreamReader(limit=READER_LIMIT, loop=self._loop)
        protocol = AIOKafkaProtocol(self._closed_fut, reader, loop=self._loop)
        context = self._ssl_context if self._security_protocol in {"SSL", "SASL_SSL"} else None
        transport, _ = await self._loop.create_connection(
            lambda: protocol,
            self.host,
            self.port,
            ssl=context,
            server_hostname=None if context is None else name_in_certificate(self.host),
            happy_eyeballs_delay=next_address_s(self.host),
        )
        self.end = _end_of(transport)
        writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        self._reader, self._writer, self._protocol = reader, writer, protocol
        self._read_task = self._create_reader_task()
        try:
            await self._do_version_lookup()
            if self._security_protocol.startswith("SASL_"):
                await self._do_sasl_handshake()
        except BaseException as error:
            if isinstance(error, SaslAuthenticationFailed):
                if self.security.kerberos is not None:
                    self.security.kerberos.refused()
                if isinstance(self.security.tokens, SharedTokens):
                    self.security.tokens.refused()
            self.close()
            raise
        return reader, writer

    def authenticator_oauth(self) -> TokenLogin:
        """Logs in with a token, and learns of a refusal."""
        return TokenLogin(sasl_oauth_token_provider=self.security.tokens)

    def authenticator_gssapi(self) -> "KerberosLogin":
        """Logs in with the keytab, where aiokafka would use tickets that someone else renews."""
        assert self.security.kerberos is not None  # noqa: S101 - only GSSAPI needs it
        return self.security.kerberos.login(name_in_certificate(self.host))

    async def call(self, request: AdminRequest, deadline: float | None = None) -> Response:
        """Sends a request and returns the decoded answer.

        Args:
            request: the request; its version is negotiated.
            deadline: the loop's time by which this returns; None if the caller cancels it.

        Raises:
            TimeoutError: there was no answer by the deadline.
            UnsupportedError: the broker supports no version of the request that the sidecar does.
                The connection stays usable.
            ProtocolError: the answer is not valid.
            KafkaError: the connection broke and is closed; the cause has the reason.
            ClosedUnansweredError: the broker closed the connection at the first request, without a
                login. A listener with SASL does this after it has sent its versions.
        """
        try:
            answer = self.send(request)
        except (NotImplementedError, IncompatibleBrokerVersion) as error:
            raise UnsupportedError(self._unsupported(request)) from error
        try:
            # Cancelling the call leaves the connection open: to connect and log in again costs more
            # than to drop one answer, and if the peer hangs, the next call's deadline closes it.
            async with asyncio.timeout_at(deadline):
                decoded = await answer
        except Exception as error:
            # Another call's answer may follow the late one.
            others_wait = any(not future.done() for _, _, future in self._requests)
            if others_wait and isinstance(error, TimeoutError):
                raise
            self.close(CloseReason.CONNECTION_TIMEOUT)
            if not self._answered and self._closed_by_peer(error):
                raise ClosedUnansweredError from error
            raise
        self._answered = True
        return decoded

    def send(self, request: Request[Any], expect_response: bool = True) -> Awaitable[Any]:
        """Like aiokafka's, but hides SASL's messages, and reads their answers and ApiVersions'."""
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(request)
        if isinstance(request, ApiVersionRequest):
            return self._ask_versions(request)
        answer: Awaitable[Any] = super().send(request, expect_response)
        return answer

    async def _ask_versions(self, request: ApiVersionRequest) -> Response:
        response = await super().send(request)
        # aiokafka would take the error for a broker that supports nothing.
        if response.error_code:
            raise for_code(response.error_code)("in answer to ApiVersions")
        return response

    async def _authenticate(self, request: SaslAuthenticateRequest) -> Response:
        asked_at = self._clock()
        response = await super().send(HiddenSaslAuthenticate(request))
        # 0 means no limit. v0 has no such field, and no limit.
        lifetime_ms = getattr(response, "session_lifetime_ms", 0)
        if lifetime_ms > 0:
            self.session_ends_at = asked_at + SESSION_SHARE * lifetime_ms / 1000
        return response

    def close(
        self, reason: CloseReason | None = None, exc: BaseException | None = None
    ) -> asyncio.Future[None]:
        """Closes at once, without waiting for unsent bytes or for the peer's TLS.

        Returns:
            A future that is done when the socket is closed.
        """
        if self._writer is not None:
            self._writer.transport.abort()
        closed: asyncio.Future[None] = super().close(reason=reason, exc=exc)
        return closed

    async def _read(self, _self_ref: "ref[GuardedConnection]") -> None:
        # Like aiokafka's, plus a check of the length. aiokafka's uses a weak reference, for owners
        # that forget to close; Link always closes.
        reader = self._reader
        while True:
            length = int.from_bytes(await reader.readexactly(4), "big", signed=True)
            if length > LONGEST_FRAME_BYTES and self._versions:
                raise ProtocolError(
                    f"sends an answer of {size(length)}; at most "
                    f"{LONGEST_FRAME_BYTES >> 20} MiB are read"
                )
            if not SHORTEST_FRAME_BYTES <= length <= LONGEST_FRAME_BYTES:
                raise ProtocolError(
                    f"announced a frame of {length} bytes, which is not an answer of Kafka; does "
                    "the port use another protocol, or does this listener need TLS? "
                    f"({self.security.names['security_protocol']})"
                )
            frame = await reader.readexactly(length)
            self._handle_frame(frame)

    def _handle_frame(self, frame: bytes) -> None:
        try:
            super()._handle_frame(frame)
        except _NONSENSE as error:
            # For an answer without a request, aiokafka raises a LookupError.
            raise ProtocolError("sent an answer that can't be decoded") from error

    @classmethod
    def _on_read_task_error(
        cls, self_ref: "ref[GuardedConnection]", read_task: asyncio.Task[None]
    ) -> None:
        # Like aiokafka's, without the traceback: the failed calls have the reason.
        if read_task.cancelled() or (error := read_task.exception()) is None:
            return
        if (connection := self_ref()) is not None:
            connection.close(CloseReason.CONNECTION_BROKEN, error)

    def _closed_by_peer(self, error: BaseException) -> bool:
        cause = error.__cause__ if isinstance(error, KafkaConnectionError) else error
        closed = isinstance(cause, EOFError | ConnectionResetError | BrokenPipeError)
        return closed and self._sasl_mechanism is None

    def _unsupported(self, request: AdminRequest) -> str:
        name = request.NAME
        oldest, newest = self._versions.get(request.API_KEY, (None, None))
        supported = f"{name} v{oldest} to v{newest}" if newest is not None else f"no {name}"
        return f"the broker supports {supported}; {request.NEEDED} is needed"


async def dial(
    endpoint: HostPort, security: Security, client_id: str, clock: Callable[[], float]
) -> GuardedConnection:
    """Connects, starts TLS, negotiates versions and logs in.

    Cancelling it leaves no socket open.

    Raises:
        OSError: the network or TLS failed.
        KafkaError: the login was refused, or the connection broke.
        ProtocolError: the peer does not speak Kafka's protocol.
        TokenError: the token endpoint returned no OAUTHBEARER token.
    """
    connection = GuardedConnection(endpoint, security, client_id, clock)
    try:
        await connection.connect()
    except EXPECTED_ERRORS:
        # This comes first, because an untrusted certificate is a ValueError too.
        raise
    except _NONSENSE as error:
        raise ProtocolError("sent an answer while connecting that can't be decoded") from error
    return connection


def _end_of(transport: asyncio.BaseTransport) -> End | None:
    address, port, *_ = transport.get_extra_info("peername") or ("", 0)
    try:
        is_own = ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return None
    return End("localhost" if is_own else address, port)
