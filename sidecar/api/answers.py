"""How answers are written: JSON at once or in pieces, and times in RFC 3339.

A large cluster's answer is written in pieces, and other requests get their turn between two of
them: 12,000 volumes take some 100 ms of work, a piece of 100 about 1 ms.

Times are in UTC with milliseconds. Example: 0.0015 is ``1970-01-01T00:00:00.001Z``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from msgspec.json import Encoder
from starlette.responses import Response, StreamingResponse

NO_STORE: Final = {"Cache-Control": "no-store"}
"""No cache in between may answer for the sidecar: its answers are of this moment."""

PIECE: Final = 100
"""So many items are written before others get their turn."""

Wall = Callable[[float], float]
"""Steady seconds -> epoch seconds of the machine's clock."""


encode: Final = Encoder().encode
"""A document as JSON: what the API answers is written by this alone."""


def timestamp(wall: Wall, steady_s: float | None) -> str | None:
    """A point in time as text; None stays None."""
    if steady_s is None:
        return None
    text = datetime.fromtimestamp(wall(steady_s), UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def rounded(number: float | None, digits: int) -> float | None:
    """A number with so many decimals; None stays None."""
    return None if number is None else round(number, digits)


def answer(document: object) -> Response:
    """A document as JSON."""
    return Response(encode(document), headers=NO_STORE, media_type="application/json")


def answer_listing(before: Mapping[str, object], name: str, items: Iterable[object]) -> Response:
    """A document whose last member is a long list, written in pieces.

    Args:
        before: the members before the list.
        name: the list's name.
        items: what is in it; read while the answer is written, so from a snapshot.
    """
    return StreamingResponse(
        _listing(encode({**before, name: []}), items),
        headers=NO_STORE,
        media_type="application/json",
    )


async def _listing(empty: bytes, items: Iterable[object]) -> AsyncIterator[bytes]:
    end = len(empty) - len(b"]}")
    yield empty[:end]
    left = iter(items)
    comma = b""
    while piece := list(islice(left, PIECE)):
        yield comma + encode(piece)[1:-1]
        comma = b","
        await asyncio.sleep(0)
    yield empty[end:]
