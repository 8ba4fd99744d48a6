# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Logs in with Kerberos (GSSAPI, RFC 4752) and a keytab, without kinit.

MIT's library gets the tickets with the keytab, keeps them in this process, and renews them when
half of their time is over; it reads the keytab again then. When a broker refuses a login that
worked before, the tickets are thrown away, because they may be for a former key of the broker. The
package gssapi is imported when this login is configured. All of its calls are in own threads, since
a KDC may not answer; the caller's deadline ends the wait. The next login to that broker waits until
the call has ended.

Example: service kafka at b1.example.org:9092 is the principal kafka/b1.example.org@EXAMPLE.ORG.
"""

from itertools import count
from pathlib import Path
from typing import Any, Final

from aiokafka.conn import BaseSaslAuthenticator

from sidecar.kafka.client.extras import needed
from sidecar.kafka.client.failures import TokenError, one_line
from sidecar.threads import SharedCalls

_CALLS: Final = SharedCalls("Kerberos")
_CACHES: Final = count(1)
_NO_LAYER: Final = b"\x01\x00\x00\x00"
"""The client's choice: no security layer, and so no messages of one."""


class Kerberos:
    """The login of one principal to all brokers.

    Attributes:
        service: the first part of the brokers' principals.
    """

    def __init__(self, keytab: Path, principal: str, service: str) -> None:
        """Import the package.

        Raises:
            SettingsError: it is not installed.
        """
        self.service = service
        self._gssapi = needed("gssapi", "kerberos", "GSSAPI")
        self._keytab = keytab
        self._principal = principal
        self._cache = next(_CACHES)
        self._worked = False

    def login(self, host: str) -> "KerberosLogin":
        """Return the steps of a login to a host."""
        return KerberosLogin(self, f"{self.service}@{host}")

    def refused(self) -> None:
        """Use new tickets for the next login, if these worked before."""
        # Otherwise a refusal of each login would leave a cache behind.
        if self._worked:
            self._worked = False
            self._cache = next(_CACHES)

    def worked(self) -> None:
        """Note that the tickets are good."""
        self._worked = True

    def context(self, broker: str) -> Any:  # noqa: ANN401 - gssapi is not always installed
        """Return the security context for a broker's principal, ``service@host``."""
        gssapi = self._gssapi
        name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        store = {
            "client_keytab": f"FILE:{self._keytab}",
            "ccache": f"MEMORY:throttle-sidecar-{self._cache}",
        }
        return gssapi.SecurityContext(
            name=gssapi.Name(broker, gssapi.NameType.hostbased_service),
            creds=gssapi.Credentials(name=name, usage="initiate", store=store),
            usage="initiate",
        )

    @property
    def errors(self) -> type[Exception]:
        """The base class of gssapi's errors."""
        found: type[Exception] = self._gssapi.exceptions.GSSError
        return found

    def explain(self, error: Exception) -> str:
        """Return what the library says of an error, with keytab and principal."""
        return one_line(
            f"no Kerberos login of {self._principal} with the keytab {self._keytab}: {error}"
        )


class KerberosLogin(BaseSaslAuthenticator):
    """The steps of one login, for aiokafka's connection."""

    def __init__(self, kerberos: Kerberos, broker: str) -> None:
        self._kerberos = kerberos
        self._broker = broker
        self._context: Any = None
        self._is_over = False

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Returns the next message and whether the broker answers it; None at the end.

        Raises:
            TokenError: there is no ticket, or the broker's answer is not valid.
        """
        return await _CALLS.call_after(self._broker, self._next, payload)

    def _next(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        if self._is_over:
            self._kerberos.worked()
            return None
        try:
            if self._context is None:
                self._context = self._kerberos.context(self._broker)
            if not self._context.complete:
                return self._context.step(payload) or b"", True
            # The broker offers layers; the client chooses none, and no other authorization id.
            self._context.unwrap(payload)
            self._is_over = True
            return self._context.wrap(_NO_LAYER, False).message, True
        except self._kerberos.errors as error:
            raise TokenError(self._kerberos.explain(error)) from error
