"""GET /metrics, in pieces: the scrape of a large cluster must not delay readers of the factor.

12,000 volumes are 72,000 lines, which take the encoders of prometheus_client a second. So they
encode one family at a time, and large families in parts. The comments that they write before each
part are removed except before the first.

Each scrape in progress takes memory and CPU, so only a few are answered at once. A client that
reads nothing keeps a place for at most 30 s; then its connection is closed (``protocol.py``).

Example: a family of 250 samples is encoded as 100, 100 and 50, under one HELP and TYPE.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from sidecar.api.answers import NO_STORE
from sidecar.api.problems import problem

AT_ONCE: Final = 4
"""The most scrapes at once: two servers of Prometheus, and two commands of operators."""

_BUSY_S: Final = 5
"""The Retry-After beyond it. A client that reads takes less for its scrape."""

_PIECE: Final = 100
_END: Final = b"# EOF\n"


def scrape(registry: CollectorRegistry, request: Request, limit: asyncio.Semaphore) -> Response:
    """Answer with the registry's metrics in the format that the request prefers.

    Args:
        registry: the metrics.
        request: the request.
        limit: has a place for each scrape at once.
    """
    try:
        encoder, media_type = choose_encoder(request.headers.get("accept", ""))
    except (TypeError, ValueError):
        # The header has a version that is not numbers.
        encoder, media_type = choose_encoder("")
    return _Scrape(
        exposition(registry, encoder),
        limit,
        headers={**NO_STORE, "Content-Type": media_type},
    )


class _Scrape(StreamingResponse):
    """Metrics, or 503 if too many scrapes are in progress."""

    def __init__(
        self, pieces: AsyncIterator[bytes], limit: asyncio.Semaphore, headers: Mapping[str, str]
    ) -> None:
        super().__init__(pieces, headers=headers)
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with a place of the limit until the client has the answer or has left."""
        if self._limit.locked():
            retry = {"Retry-After": str(_BUSY_S)}
            refusal = problem(503, f"{AT_ONCE} scrapes are in progress; try again.", headers=retry)
            await refusal(scope, receive, send)
            return
        async with self._limit:
            await super().__call__(scope, receive, send)


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
