"""GET /metrics, in pieces: the scrape of a large cluster must not delay readers of the factor.

12,000 volumes are 72,000 lines, which take the encoders of prometheus_client a second. So they
encode one family at a time, and large families in parts. The comments that they write before each
part are removed except before the first.

Example: a family of 250 samples is encoded as 100, 100 and 50, under one HELP and TYPE.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sidecar.api.answers import NO_STORE

_PIECE: Final = 100
_END: Final = b"# EOF\n"


def scrape(registry: CollectorRegistry, request: Request) -> Response:
    """Answer with the registry's metrics in the format that the request prefers."""
    try:
        encoder, media_type = choose_encoder(request.headers.get("accept", ""))
    except (TypeError, ValueError):
        # The header has a version that is not numbers.
        encoder, media_type = choose_encoder("")
    return StreamingResponse(
        exposition(registry, encoder),
        headers={**NO_STORE, "Content-Type": media_type},
    )


async def exposition(
    registry: Collector, encoder: Callable[[Collector], bytes]
) -> AsyncIterator[bytes]:
    """Yield the encoded registry in pieces that are written one by one."""
    ends = encoder(_Piece(())).endswith(_END)
    for metric in registry.collect():
        first = True
        for piece in _pieces(metric):
            text = encoder(_Piece((piece,))).removesuffix(_END)
            yield text if first else _without_comments(text)
            first = False
            await asyncio.sleep(0)
    if ends:
        yield _END


class _Piece(Collector):
    """A registry of a few families."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _pieces(metric: Metric) -> Iterator[Metric]:
    if len(metric.samples) <= _PIECE:
        yield metric
        return
    for start in range(0, len(metric.samples), _PIECE):
        piece = Metric(metric.name, metric.documentation, metric.type, metric.unit)
        piece.samples = metric.samples[start : start + _PIECE]
        yield piece


def _without_comments(text: bytes) -> bytes:
    while text.startswith(b"# "):
        text = text[text.index(b"\n") + 1 :]
    return text
