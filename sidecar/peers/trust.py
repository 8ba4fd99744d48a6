"""Sends requests to other sidecars, and reads the trusted CA certificates again when they change.

Proxies before sidecars may have certificates of a private CA, which the machine trusts
(``SSL_CERT_FILE``). When that CA is replaced, the next proxy's certificate is not trusted. Then the
CA certificates are read again, in a thread because a disk may hang, and the request is sent again.

Example: the CA and the proxies' certificates are replaced at 0 s. The request at 1 s succeeds at
its second attempt.
"""

import asyncio
import ssl
from typing import Final

from sidecar.http import LONGEST_ANSWER_BYTES, Response, request
from sidecar.threads import OwnThreads

_HEADERS: Final = {"Accept": "application/json"}


class Trust:
    """The CA certificates that the machine trusts; one is shared by many requests."""

    def __init__(self) -> None:
        self._context = ssl.create_default_context()
        self._reading: asyncio.Future[ssl.SSLContext] | None = None

    async def get(
        self,
        url: str,
        *,
        wait_s: int | None = None,
        longest_answer: int = LONGEST_ANSWER_BYTES,
        address: str | None,
    ) -> Response:
        """Send a GET; the deadline, the other arguments and the errors as in ``request``.

        Args:
            url: an http or https URL.
            wait_s: how long the answer may wait for news, seconds; None is no long poll.
            longest_answer: the most bytes of the answer.
            address: the address to connect to.
        """
        headers = _HEADERS if wait_s is None else {**_HEADERS, "Prefer": f"wait={wait_s}"}
        for may_renew in (True, False):
            try:
                return await request(
                    "GET",
                    url,
                    headers=headers,
                    ssl_context=self._context,
                    longest_answer=longest_answer,
                    address=address,
                )
            except ssl.SSLCertVerificationError:
                if not may_renew:
                    raise
                await self._renew()
        raise AssertionError("the second attempt has either returned or raised")

    async def _renew(self) -> None:
        # One thread for all requests that fail meanwhile, and while a disk hangs.
        if self._reading is None or self._reading.done():
            call = OwnThreads("trusted CAs").call(ssl.create_default_context)
            self._reading = asyncio.ensure_future(call)
        self._context = await asyncio.shield(self._reading)
