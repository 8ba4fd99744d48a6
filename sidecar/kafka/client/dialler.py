"""Logs in to brokers, with the former password, certificate and key while a broker requires them.

Secrets change in the sidecar's files and at the brokers at different times. A broker that refuses
the new ones may still accept the former ones, so they are tried next. They stay in memory until the
next change, and no former CA certificate is trusted.

Example: the file has a new password at 0 s, and the brokers at 60 s. A connection at 30 s is made
with the former password, after the new one was refused; a connection at 90 s with the new one.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from sidecar.kafka.client.connection import GuardedConnection, dial
from sidecar.kafka.client.failures import EXPECTED_ERRORS, kind_of
from sidecar.kafka.client.security import Security, load_security
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.threads import OwnThreads
from sidecar.volumes import Failure, FailureKind

_FILES: Final = ("ssl_truststore_location", "ssl_keystore_location", "ssl_keystore_key_location")
_THREADS: Final = OwnThreads("certificates")
_REFUSALS: Final = (FailureKind.AUTHENTICATION, FailureKind.TLS)


@dataclass(slots=True, eq=False)
class Dialler:
    """Connects to any address of a cluster, with the same settings.

    Attributes:
        security: the encryption and login.
        client_id: the client id.
        clock: steady seconds.
        former: the same with the former password, certificate and key; None if there are none.
        changed_at: when these settings replaced others, steady seconds; -inf for the first ones.
    """

    security: Security
    client_id: str
    clock: Callable[[], float]
    former: Security | None = None
    changed_at: float = -math.inf

    @classmethod
    def of(cls, admin: KafkaAdmin, clock: Callable[[], float]) -> Self:
        """Reads the certificates and credentials of the settings; errors as ``load_security``."""
        former = None if admin.former is None else load_security(admin.former, clock)
        return cls(load_security(admin, clock), admin.client_id, clock, former)

    @classmethod
    async def read(cls, admin: KafkaAdmin, timeout_s: float) -> Self | Failure:
        """Like ``of``, but reads the files in a thread, since a disk may hang.

        Args:
            admin: the settings. If no file is left to read, no thread is needed.
            timeout_s: the time for the files, seconds.
        """
        clock = asyncio.get_running_loop().time
        files = [str(each) for name in _FILES if (each := getattr(admin, name)) is not None]
        if not admin.trusts_system and (admin.files is not None or not files):
            return cls.of(admin, clock)
        try:
            async with asyncio.timeout(timeout_s):
                return await _THREADS.call(cls.of, admin, clock)
        except TimeoutError:
            names = ", ".join(files) or "the machine's CA certificates"
            text = f"{names}: not read within {timeout_s:g} s: does the disk hang?"
            return Failure(FailureKind.TIMEOUT, text)

    async def __call__(self, endpoint: HostPort) -> GuardedConnection:
        """Connects to an address; see ``dial``."""
        return await self._with(self.security, endpoint)

    async def again(self, endpoint: HostPort, refusal: Exception) -> GuardedConnection:
        """Connects after a refusal, with the former credentials.

        Raises:
            The refusal, if the broker accepts neither.
        """
        if self.former is None:
            raise refusal
        attempts = [self.former, self.security]
        if kind_of(refusal) is FailureKind.CONNECT:
            # It may have been dropped for another reason, and work now.
            attempts.reverse()
        for security in attempts:
            with suppress(*EXPECTED_ERRORS):
                return await self._with(security, endpoint)
        raise refusal

    async def either(self, endpoint: HostPort) -> GuardedConnection:
        """Connects with the new or the former credentials; errors as ``dial``."""
        try:
            return await self(endpoint)
        except EXPECTED_ERRORS as error:
            if not self.may_be_refused(kind_of(error)):
                raise
            return await self.again(endpoint, error)

    def may_be_refused(self, kind: FailureKind) -> bool:
        """Whether another password, certificate or key could mend a failure of this kind."""
        # A broker may drop the connection of a certificate that it does not accept.
        return kind in _REFUSALS or (
            kind is FailureKind.CONNECT and self.security.ssl_context is not None
        )

    async def _with(self, security: Security, endpoint: HostPort) -> GuardedConnection:
        return await dial(endpoint, security, self.client_id, self.clock)
