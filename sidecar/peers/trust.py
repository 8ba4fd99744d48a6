"""Sends requests to other sidecars, and reads the trusted CA certificates again when they change.

Proxies before sidecars may have certificates of a private CA, which the machine trusts
(``SSL_CERT_FILE``). When that CA is replaced, the next proxy's certificate is not trusted. Then the
CA certificates are read again, in a thread because a disk may hang, and the request is sent again.

Example: the CA and the proxies' certificates are replaced at 0 s. The request at 1 s succeeds at
its second attempt.
"""

import asyncio
import ssl
from typing import TypeVar

import msgspec

from sidecar.http import LONGEST_ANSWER_BYTES, HttpError, Response, request
from sidecar.peers.addresses import Address
from sidecar.threads import OwnThreads

_T = TypeVar("_T")


class Trust:
    """The CA certificates that the machine trusts; one is shared by many requests."""

    def __init__(self) -> None:
        self._context = ssl.create_default_context()
        self._reading: asyncio.Future[ssl.SSLContext] | None = None

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
            TimeoutError: the answer takes too long.
            OSError: the network or TLS failed.
            HttpError: the sidecar refuses, or the answer is not HTTP.
            ValueError: the answer has another form, or the name is invalid.
            RecursionError: the answer is nested too deeply.
        """
        async with asyncio.timeout(wait_s + deadline_s):
            response = await self._response(address, path, wait_s, longest_answer)
        if response.status != 200:
            raise HttpError(f"it answers {response.status}")
        return msgspec.json.decode(response.body, type=form)

    async def _response(
        self, address: Address, path: str, wait_s: int, longest_answer: int
    ) -> Response:
        for may_renew in (True, False):
            try:
                return await request(
                    "GET",
                    f"{address.url}{path}",
                    headers={"Accept": "application/json", "Prefer": f"wait={wait_s}"},
                    ssl_context=self._context,
                    longest_answer=longest_answer,
                    address=address.ip,
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
