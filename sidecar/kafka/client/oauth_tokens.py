# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Gets OAUTHBEARER tokens with client credentials (RFC 6749, section 4.4; KIP-768), or from a file.

All connections use one token until a fifth of its life is left. Connections that need a token at
the same time share one request. If the request fails, all calls get that failure for a second, so
that a broken endpoint does not get a request for each broker. A token that a broker refuses is
replaced at the next login, after a second at the earliest. The secret is only in the request's
header, as in the Java client. In place of the secret, a request may have a signed assertion from a
file (RFC 7523, section 2.2; KIP-1258). A file with an assertion, or with the token itself, is read
each time, because somebody else renews it, such as Kubernetes.

Example: a token for 300 s is used for 240 s. A connection made at second 241 requests a new token.
"""

import asyncio
import base64
import json
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import OAuthAuthenticator
from pydantic import SecretStr

from sidecar.http import HttpError, Response, request
from sidecar.kafka.client.failures import TokenError
from sidecar.threads import SharedCalls

USED_SHARE = 0.8
"""The share of a token's life in which new connections use it, as in the Java client."""
FAILURE_STANDS_S = 1.0
DEFAULT_LIFE_S = 60.0
"""A token's assumed life if the endpoint does not state one (expires_in is optional)."""

_JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_READS = SharedCalls("tokens")
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and until when new connections use it, seconds of the clock."""

    value: str = field(repr=False)
    usable_until: float


class TokenLogin(OAuthAuthenticator):
    """The steps of a login with a token, for aiokafka's connection.

    A broker that refuses a token answers why, and fails the login at the next message (RFC 7628,
    section 3.2.3). aiokafka takes that answer for a success.
    """

    _is_refused = False

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Returns the next message and whether the broker answers it; None at the end."""
        if payload and not self._is_refused:
            self._is_refused = True
            return b"\x01", True
        message: tuple[bytes, bool] | None = await super().step(payload)
        return message


class SharedTokens(AbstractTokenProvider, ABC):
    """Provides tokens for aiokafka's connections, which share one while it is valid."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._requested_at = 0.0
        self._failure: TokenError | None = None
        self._failure_stands_until = 0.0

    async def token(self) -> str:
        """Returns a valid token for a login.

        Raises:
            TokenError: there is none. The message contains no secret.
        """
        async with self._lock:
            now = self._clock()
            if self._token is not None and now <= self._token.usable_until:
                return self._token.value
            if self._failure is not None and now <= self._failure_stands_until:
                raise TokenError(str(self._failure)) from self._failure
            try:
                self._token = await self._request()
                self._requested_at = self._clock()
            except TokenError as error:
                self._failure = error
                self._failure_stands_until = self._clock() + FAILURE_STANDS_S
                raise
            self._failure = None
            return self._token.value

    def refused(self) -> None:
        """Request a new token for the next login, if this one is older than a second.

        A broker refuses a token before its end if the endpoint's key or the client was replaced.
        """
        if self._token is not None:
            until = min(self._token.usable_until, self._requested_at + FAILURE_STANDS_S)
            self._token = replace(self._token, usable_until=until)

    @abstractmethod
    async def _request(self) -> Token:
        """Return a new token, or raise TokenError."""


class ClientCredentials(SharedTokens):
    """Requests tokens of an endpoint."""

    def __init__(
        self,
        url: str,
        *,
        client_id: str | None,
        client_secret: SecretStr,
        scope: str | None,
        ssl_context: ssl.SSLContext,
        clock: Callable[[], float],
        assertion_file: Path | None = None,
    ) -> None:
        super().__init__(clock)
        self._url = url
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        self._ssl_context = ssl_context
        self._assertion_file = assertion_file

    def __repr__(self) -> str:
        return f"ClientCredentials(client_id={self._client_id!r})"

    async def _request(self) -> Token:
        form = {"grant_type": "client_credentials"}
        if self._scope is not None:
            form["scope"] = self._scope
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if self._assertion_file is None:
            pair = f"{self._client_id}:{self._client_secret.get_secret_value()}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_assertion_type"] = _JWT_BEARER
            form["client_assertion"] = await _read(self._assertion_file, "client assertion")
            if self._client_id is not None:
                form["client_id"] = self._client_id
        asked_at = self._clock()
        try:
            response = await request(
                "POST",
                self._url,
                headers=headers,
                body=urlencode(form).encode(),
                ssl_context=self._ssl_context,
            )
        except (OSError, HttpError) as error:
            raise TokenError(f"no OAUTHBEARER token, the endpoint failed: {error}") from error
        return _parse(response, asked_at)


class TokenFile(AbstractTokenProvider):
    """Reads the token from a file for each login."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def token(self) -> str:
        """Returns the token that the file has now.

        Raises:
            TokenError: the file can't be read, or has none.
        """
        return await _read(self._file, "OAUTHBEARER token")


async def _read(file: Path, what: str) -> str:
    try:
        text = (await _READS.call(file, file.read_text, encoding="ascii")).strip()
    except OSError as error:
        raise TokenError(f"no {what}, {file} can't be read: {error.strerror}") from error
    except ValueError:
        # The exception contains the file's bytes, so it is not chained.
        raise TokenError(f"no {what}, {file} is not ASCII text") from None
    if not text:
        raise TokenError(f"no {what}, {file} is empty")
    return text


def _parse(response: Response, asked_at: float) -> Token:
    try:
        answer = json.loads(response.body)
    except (ValueError, RecursionError):
        # An answer that is not JSON, or is nested too deeply, contains no token.
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    value = answer.get("access_token")
    if response.status == 200 and isinstance(value, str) and value:
        life_s = answer.get("expires_in")
        if not isinstance(life_s, int | float) or life_s <= 0:
            life_s = DEFAULT_LIFE_S
        return Token(value, asked_at + USED_SHARE * life_s)
    # Show only the error code of the answer: the rest could repeat the request's secret.
    code = answer.get("error")
    message = f" ({code})" if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
    raise TokenError(f"no OAUTHBEARER token, the endpoint answered {response.status}{message}")
