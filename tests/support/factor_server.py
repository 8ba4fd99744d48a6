"""A sidecar that says what a test sets, to a callback that follows it."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Final, Self

from tests.support.raw_server import raw_server

_HOLD_S: Final = 1.0
"""How long a request waits for news."""


class FactorServer:
    """Listens from entry to exit of its async context.

    Attributes:
        factor: the one in force; ``decide`` changes it.
        reports: the ``Throttle-Reader`` headers that came, the last one last.
        refusals: the ``Throttle-Refused`` headers likewise.
    """

    def __init__(self, port: int, factor: float = 1.0) -> None:
        """Nothing listens yet; the port is where the callback asks."""
        self.factor = factor
        self.reports: list[str] = []
        self.refusals: list[str] = []
        self._stops = False
        self._port = port
        self._generation = 1
        self._changed = asyncio.Event()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(raw_server(self._answer, port=self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def decide(self, factor: float, *, stops: bool = False) -> None:
        """Publish another factor, or the stop line; callbacks hear of it at once."""
        self.factor = factor
        self._stops = stops
        self._generation += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        if "throttle-reader" in headers:
            self.reports.append(headers["throttle-reader"])
        if "throttle-refused" in headers:
            self.refusals.append(headers["throttle-refused"])
        if headers.get("if-none-match") == self._tag:
            changed = self._changed
            try:
                async with asyncio.timeout(_HOLD_S):
                    await changed.wait()
            except TimeoutError:
                pass
        document = {
            "factor": self.factor,
            "stop": self._stops,
            "users": {},
            "generation": self._generation,
            "valid_for_ms": 60_000,
        }
        body = json.dumps(document).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"ETag: %s\r\nContent-Length: %d\r\n\r\n%s" % (self._tag.encode(), len(body), body)
        )
        await writer.drain()

    @property
    def _tag(self) -> str:
        return f'"{self._generation}"'
