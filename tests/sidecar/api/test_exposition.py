"""Metrics in pieces are what the encoders of prometheus_client write at once."""

import asyncio
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Message

from sidecar.api.exposition import AT_ONCE, exposition
from sidecar.control.metric_source import MetricSource
from sidecar.metrics.board_collector import build_registry
from sidecar.metrics.broker_metrics import broker_metrics
from tests.sidecar.api.build import FakeSidecar, until
from tests.sidecar.throttle.build import reading, whole

SCOPE = {"type": "http", "method": "GET", "path": "/metrics", "query_string": b"", "headers": []}
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class _Large(Collector):
    """A family of 1,200 samples and an empty one."""

    def collect(self) -> list[Metric]:
        large = GaugeMetricFamily("large_bytes", "A large # one\nin two lines.", labels=["log_dir"])
        for number in range(1200):
            large.add_metric([f'# HELP "{number}"\n\\'], number)
        return [large, GaugeMetricFamily("empty", "None.", labels=["x"])]


@pytest.mark.parametrize(
    "accept", ["", "text/plain;version=0.0.4", "text/plain;version=1.0.0", OPENMETRICS]
)
async def test_the_pieces_make_the_whole(accept: str) -> None:
    """They make it byte for byte, in each format, and others get turns between them."""
    registry = CollectorRegistry()
    Histogram("some_seconds", "Some.", registry=registry).observe(0.3)
    registry.register(_Large())
    encoder, _ = choose_encoder(accept)
    pieces = [piece async for piece in exposition(registry, encoder)]
    assert encoder(registry) == b"".join(pieces)
    assert max(map(len, pieces)) < sum(map(len, pieces)) / 3


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=foo", "text/plain; version=0.0.4; charset=utf-8"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ],
)
async def test_the_format_is_negotiated(accept: str, expected: str) -> None:
    """Whoever accepts OpenMetrics gets it, with its end mark; a version must be numbers."""
    sidecar = FakeSidecar()
    fresh = FakeSidecar(registry=build_registry(sidecar.board, sidecar.wall))
    response = await fresh.get("/metrics", accept=accept)
    assert response.headers["content-type"].startswith(expected)
    assert (accept == OPENMETRICS) is response.text.endswith("# EOF\n")


async def test_a_scrape_is_of_one_moment() -> None:
    """What is published while it is written is in the next one, with all that belongs to it."""
    sidecar = FakeSidecar()
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    registry = build_registry(sidecar.board, sidecar.wall)
    registry.register(MetricSource(partial(broker_metrics, sidecar.board)))
    encoder, _ = choose_encoder("")
    before = encoder(registry)
    pieces = exposition(registry, encoder)
    written = [await anext(pieces)]
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d": 5})], silent=[2]))
    written += [piece async for piece in pieces]
    ours = [line for line in before.splitlines() if line.startswith(b"kafka_")]
    assert ours == [line for line in b"".join(written).splitlines() if line.startswith(b"kafka_")]


@pytest.mark.slow
async def test_a_scrape_lets_others_have_their_turn() -> None:
    """While 3,000 volumes are written the loop turns often."""
    sidecar = FakeSidecar()
    dirs = {f"/d{number}": 50 for number in range(3000)}
    sidecar.see(whole(0.0, [reading(1, 0.0, dirs)]))
    fresh = FakeSidecar(registry=build_registry(sidecar.board, sidecar.wall))
    scrape: asyncio.Task[Any] = asyncio.create_task(fresh.get("/metrics"))
    turns = 0
    while not scrape.done():
        turns += 1
        await asyncio.sleep(0)
    assert 3000 == (await scrape).text.count("kafka_throttle_volume_total_bytes{")
    assert turns > 50


class _Client:
    """A client that reads the head of an answer, but none of its body until it leaves."""

    def __init__(self, sidecar: FakeSidecar) -> None:
        self.head: Message = {}
        self.left = asyncio.Event()
        self.scrape = asyncio.create_task(sidecar.app({**SCOPE}, self._receive, self._send))

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.head = message
        elif self.head["status"] == 200:
            await self.left.wait()


async def test_few_are_scraped_for_at_once() -> None:
    """Others are told when to try again, until one of those that read nothing has left."""
    board = FakeSidecar()
    sidecar = FakeSidecar(registry=build_registry(board.board, board.wall))
    clients = [_Client(sidecar) for _ in range(AT_ONCE)]
    await until(lambda: all(each.head for each in clients))
    refused = await sidecar.get("/metrics")
    assert (503, "5") == (refused.status_code, refused.headers["retry-after"])
    clients[0].left.set()
    await clients[0].scrape
    assert 200 == (await sidecar.get("/metrics")).status_code
    for each in clients:
        each.left.set()
        await each.scrape
    assert {200} == {each.head["status"] for each in clients}
