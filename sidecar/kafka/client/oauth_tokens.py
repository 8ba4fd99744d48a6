# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Gets OAUTHBEARER tokens with client credentials (RFC 6749, section 4.4; KIP-768).

All connections use one token until a fifth of its life is left. Connections that need a token at
the same time share one request. If the request fails, all calls get that failure for a second, so
that a broken endpoint does not get a request for each broker. The secret is only in the request's
header, as in the Java client.

Example: a token for 300 s is used for 240 s. A connection made at second 241 requests a new token.
"""

import asyncio
import base64
import json
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from aiokafka.abc import AbstractTokenProvider
from pydantic import SecretStr

from sidecar.http import HttpError, Response, request
from sidecar.kafka.client.failures import TokenError

USED_SHARE = 0.8
"""The share of a token's life in which new connections use it, as in the Java client."""
FAILURE_STANDS_S = 1.0
DEFAULT_LIFE_S = 60.0
"""A token's assumed life if the endpoint does not state one (expires_in is optional)."""

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    usable_until: float


class ClientCredentials(AbstractTokenProvider):
    """Provides tokens for aiokafka's connections."""

    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: SecretStr,
        scope: str | None,
        ssl_context: ssl.SSLContext,
        clock: Callable[[], float],
    ) -> None:
        self._url = url
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        self._ssl_context = ssl_context
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token: _Token | None = None
        self._failure: TokenError | None = None
        self._failure_stands_until = 0.0

    def __repr__(self) -> str:
        return f"ClientCredentials(client_id={self._client_id!r})"

    async def token(self) -> str:
        """Returns a valid token for a login.

        Raises:
            TokenError: the endpoint returned none. The message contains no secret.
        """
        async with self._lock:
            now = self._clock()
            if self._token is not None and now <= self._token.usable_until:
                return self._token.value
            if self._failure is not None and now <= self._failure_stands_until:
                raise TokenError(str(self._failure)) from self._failure
            try:
                self._token = await self._request()
            except TokenError as error:
                self._failure = error
                self._failure_stands_until = self._clock() + FAILURE_STANDS_S
                raise
            self._failure = None
            return self._token.value

    async def _request(self) -> _Token:
        form = {"grant_type": "client_credentials"}
        if self._scope is not None:
            form["scope"] = self._scope
        pair = f"{self._client_id}:{self._client_secret.get_secret_value()}"
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
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


def _parse(response: Response, asked_at: float) -> _Token:
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
        return _Token(value, asked_at + USED_SHARE * life_s)
    # Show only the error code of the answer: the rest could repeat the request's secret.
    code = answer.get("error")
    message = f" ({code})" if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
    raise TokenError(f"no OAUTHBEARER token, the endpoint answered {response.status}{message}")
