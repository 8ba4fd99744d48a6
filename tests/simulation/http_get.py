"""One GET with its answer's head, over the loop's connections; as the quota callback sends it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import h11

_PIECE: Final = 65_536


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whole.

    Attributes:
        status: such as 200.
        headers: by name in lower case.
        body: without its framing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


async def http_get(
    url: str, headers: Mapping[str, str], timeout_s: float, method: str = "GET", body: bytes = b""
) -> Answer | None:
    """The answer; None when there is none in time, or no whole one."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _exchange(url, headers, method, body)
    except (OSError, h11.RemoteProtocolError, TimeoutError):
        return None


async def _exchange(
    url: str, headers: Mapping[str, str], method: str, body: bytes
) -> Answer | None:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    connection = h11.Connection(h11.CLIENT)
    fields = {"Host": parts.netloc, "Content-Length": str(len(body)), **headers}
    events = (
        h11.Request(method=method, target=parts.path, headers=list(fields.items())),
        h11.Data(data=body),
        h11.EndOfMessage(),
    )
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        for event in events:
            writer.write(connection.send(event) or b"")
        head: h11.Response | None = None
        received = b""
        while True:
            came = connection.next_event()
            if came is h11.NEED_DATA:
                connection.receive_data(await reader.read(_PIECE))
            elif isinstance(came, h11.Response):
                head = came
            elif isinstance(came, h11.Data):
                received += bytes(came.data)
            elif isinstance(came, h11.EndOfMessage) and head is not None:
                found = {name.decode(): value.decode() for name, value in head.headers}
                return Answer(head.status_code, found, received)
            else:
                return None
    finally:
        writer.transport.abort()
