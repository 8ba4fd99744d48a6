"""Writes answers: JSON at once or in pieces, and times in RFC 3339.

A large cluster's answer is written in pieces, and other requests are served between two pieces:
12,000 volumes take about 100 ms of work, a piece of 100 volumes about 1 ms.

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
"""Every answer is only true at its moment, so no cache may store it."""

PIECE: Final = 100
"""The number of items in a piece, after which other requests are served."""

Wall = Callable[[float], float]
"""Steady seconds -> epoch seconds of the machine's clock."""


encode: Final = Encoder().encode
"""Converts every document of the API to JSON."""


def timestamp(wall: Wall, steady_s: float | None) -> str | None:
    """Write a point in time; None stays None."""
    if steady_s is None:
        return None
    text = datetime.fromtimestamp(wall(steady_s), UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def rounded(number: float | None, digits: int) -> float | None:
    """Round a number to a number of decimals; None stays None."""
    return None if number is None else round(number, digits)


def answer(document: object) -> Response:
    """Answer with a document as JSON."""
    return Response(encode(document), headers=NO_STORE, media_type="application/json")


def answer_listing(before: Mapping[str, object], name: str, items: Iterable[object]) -> Response:
    """Answer with a document whose last member is a long list, written in pieces.

    Args:
        before: the members before the list.
        name: the list's name.
        items: the list's items. They are read while the answer is written, so from a snapshot.
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
