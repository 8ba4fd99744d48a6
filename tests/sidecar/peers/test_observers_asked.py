"""Observers are asked over HTTP, each at its own address."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from sidecar.peers.addresses import Addresses
from sidecar.peers.observations import ObservationLog, ObservationPage
from sidecar.peers.observers import Observer, Observers, Sight
from sidecar.volumes import Membership, Observation, Reading
from tests.support.raw_server import raw_server
from tests.support.waiting import seen


async def follow(
    status: bytes, until: Callable[[list[Observation], list[bytes]], bool]
) -> tuple[list[Observation], list[bytes]]:
    """What is taken from one of a name's two addresses that answers so, and what it is asked."""
    clock = asyncio.get_running_loop().time
    log = ObservationLog("other", clock)
    log.add(Observation(clock(), "poll", Membership("A", {1: "h:1"}), {1: Reading(1, clock(), ())}))
    body = log.page(None)
    taken: list[Observation] = []
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()

    async def addresses(_: str) -> list[str]:
        return ["127.0.0.1", "127.0.0.2"]

    own = ObservationLog("own", clock)
    sight = Sight(own, taken.append, lambda: "A", lambda: None, 60.0, lambda _: None)
    async with raw_server(answer) as address:
        url = f"http://sidecars.invalid:{address.port}"
        observers = Observers(Addresses([url], clock, addresses), 2, sight)
        task = asyncio.create_task(observers.run())
        try:
            await seen("what was waited for", lambda: until(taken, asked))
        finally:
            task.cancel()
            await asyncio.wait([task])
    return taken, asked


async def test_at_its_own_address_by_the_names_host() -> None:
    """So that a certificate of the name is good for each."""
    taken, asked = await follow(b"200 OK", lambda taken, _: bool(taken))
    assert {1} == taken[0].answers.keys()
    head = asked[0].lower()
    assert head.startswith(b"get /v1/observations http/1.1\r\n")
    assert b"\r\nhost: sidecars.invalid:" in head


async def test_another_status_is_no_page(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever body it has."""
    caplog.set_level(logging.WARNING)
    said = "at 127.0.0.1 can't be followed: it answers 503"
    taken, _ = await follow(b"503 Service Unavailable", lambda *_: said in caplog.text)
    assert [] == taken


@pytest.mark.looptime
async def test_an_observer_that_can_hold_no_more_requests_is_asked_once_a_second() -> None:
    """It answers a follower too many at once, without an observation."""
    clock = asyncio.get_running_loop().time
    asked = list[float]()

    async def ask(_: Observer) -> ObservationPage:
        asked.append(clock())
        return ObservationPage("other", 1, 0, 60_000, [])

    async def one(_: str) -> list[str]:
        return ["127.0.0.1"]

    own = ObservationLog("own", clock)
    sight = Sight(own, lambda _: None, lambda: "A", lambda: None, 60.0, lambda _: None)
    observers = Observers(Addresses(["http://a:1"], clock, one), 1, sight, ask=ask)
    task = asyncio.create_task(observers.run())
    await asyncio.sleep(30.0)
    task.cancel()
    await asyncio.wait([task])
    assert 29 <= len(asked) <= 31
