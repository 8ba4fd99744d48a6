"""Sends requests to other sidecars, and reads the trusted CA certificates again when they change.

Sidecars, and proxies before them, may have certificates of a private CA, by a setting or because
the machine trusts it (``SSL_CERT_FILE``). When that CA is replaced, the next certificate is not
trusted. Then the files are read again, in a thread because a disk may hang, and the request is sent
again.

Example: the CA and the proxies' certificates are replaced at 0 s. The request at 1 s succeeds at
its second attempt.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from sidecar.errors import SettingsError
from sidecar.http import LONGEST_ANSWER_BYTES, HttpError, Response, request
from sidecar.peers.addresses import Address
from sidecar.threads import OwnThreads

_T = TypeVar("_T")

ASK_ERRORS: Final = (OSError, HttpError, ValueError, RecursionError)
"""Why a sidecar gives no answer: it takes too long, the network or TLS failed, the sidecar refuses,
the answer is not HTTP or has another form, the name is invalid, or the answer is nested too deeply.
None of them may end the daemon."""


class Trust:
    """The CA certificates to trust, and the own one if set; one is shared by many requests."""

    def __init__(self, load: Callable[[], ssl.SSLContext] = ssl.create_default_context) -> None:
        """Read nothing before the first request over TLS.

        Args:
            load: reads the files; raises SettingsError.
        """
        self._load = load
        self._context: ssl.SSLContext | None = None
        self._reading: asyncio.Future[ssl.SSLContext] | None = None

    def use(self, context: ssl.SSLContext) -> None:
        """Use what was read again, for new requests."""
        self._context = context

    async def get(
        self,
        address: Address,
        path: str,
        form: type[_T],
        *,
        deadline_s: float,
        wait_s: int = 0,
        longest_answer: int = LONGEST_ANSWER_BYTES,
    ) -> _T:
        """Ask a sidecar once, and return its answer.

        Args:
            address: the sidecar's address.
            path: the path and the query.
            form: the form of the answer.
            deadline_s: the deadline of the answer beyond the wait, seconds.
            wait_s: how long the answer may wait for news, seconds.
            longest_answer: the most bytes of the answer.

        Raises:
            ``ASK_ERRORS``
        """
        async with asyncio.timeout(wait_s + deadline_s):
            response = await self.request(
                "GET",
                f"{address.url}{path}",
                headers={"Accept": "application/json", "Prefer": f"wait={wait_s}"},
                longest_answer=longest_answer,
                address=address.ip,
            )
        if response.status != 200:
            raise HttpError(f"it answers {response.status}")
        return msgspec.json.decode(response.body, type=form)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        longest_answer: int = LONGEST_ANSWER_BYTES,
        address: str | None = None,
        needs_body: bool = True,
    ) -> Response:
        """Send a request, as ``sidecar.http.request``; the deadline is the caller's."""
        for may_renew in (True, False):
            if self._context is None and url.startswith("https:"):
                self._context = self._load()
            try:
                return await request(
                    method,
                    url,
                    headers=headers,
                    ssl_context=self._context,
                    body=body,
                    longest_answer=longest_answer,
                    address=address,
                    needs_body=needs_body,
                )
            except ssl.SSLCertVerificationError:
                if not may_renew:
                    raise
                await self._renew()
        raise AssertionError("the second attempt has either returned or raised")

    async def _renew(self) -> None:
        # One thread for all requests that fail meanwhile, and while a disk hangs.
        if self._reading is None or self._reading.done():
            call = OwnThreads("trusted CAs").call(self._load)
            self._reading = asyncio.ensure_future(call)
        # Files that can't be used are logged where they are followed.
        with contextlib.suppress(SettingsError):
            self._context = await asyncio.shield(self._reading)
