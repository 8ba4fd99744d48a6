"""Samples are made of what volumes, sidecars and callbacks say, and of their silence."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from kafka_lab.ports import Ports
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.claims import full_at
from tests.chaos.course import Course
from tests.chaos.made import course
from tests.chaos.samples import SidecarSight
from tests.chaos.watch import Watch
from tests.kafka_lab.clusters import FakeCluster
from tests.support.raw_server import raw_server


class Volumes(FakeCluster):
    """One broker with two volumes; the second has what each look gives, the first 1 MB more."""

    def __init__(self, sidecar_port: int, looks: list[int]) -> None:
        super().__init__(Path("/nowhere"), brokers=1)
        self._fakes = {0: replace(self._fakes[0], sidecar_port=sidecar_port)}
        self._looks = looks

    async def usage(self, broker_id: int, index: int) -> tuple[int, int]:
        return 10_000_000, self._looks.pop(0) if index else self._looks[0] + 1_000_000

    def is_running(self, broker_id: int) -> bool:
        return False


async def watched(port: int, looks: list[int]) -> Course:
    """A run until the volume is full."""
    run = course()
    since = {"broker 0": 1.0}
    cluster = Volumes(port, looks)
    watch = Watch(
        run,
        cluster,
        CallbackWatch(),
        since,
        now=lambda: 5.0,
        is_over=lambda: bool(run.samples) and full_at(run.samples[-1]) is not None,
        look_s=0.01,
    )
    await watch.run()
    return run


async def test_who_is_silent_has_nothing() -> None:
    """The sidecar's port is nobody's, and no callback was named."""
    with Ports() as ports:
        run = await watched(
            ports.reserve(), [9_000_000, 3_000_000, 7_000_000, 8_000_000, 9_000_000, *[0] * 5]
        )
    first, last = run.samples
    assert ({0: 9_000_000}, {0: 3_000_000}) == (first.available, first.least)
    assert {0: 0} == last.least
    assert ({0: None}, {0: None}, {"broker 0": 4.0}) == (
        first.sidecars,
        first.callbacks,
        first.steady_s,
    )


async def test_a_process_that_ended_by_itself_is_told_once() -> None:
    """No fault had taken it."""
    with Ports() as ports:
        run = await watched(ports.reserve(), [*[9_000_000] * 10, *[0] * 5])
    assert [(5.0, "broker 0 ended by itself")] == run.ended


async def test_what_a_sidecar_says() -> None:
    """Whether it is ready, its factor, and where that comes from."""
    async with answering({"factor": 0.0, "source": "fallback"}) as port:
        run = await watched(port, [*[0] * 5])
    assert SidecarSight(is_ready=True, factor=0.0, source="fallback") == run.samples[0].sidecars[0]


@asynccontextmanager
async def answering(document: dict[str, object]) -> AsyncIterator[int]:
    """A port that answers everything with this document."""
    body = json.dumps(document).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()

    async with raw_server(answer) as address:
        yield address.port
