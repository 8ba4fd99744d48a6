"""The zones of sidecars: whom each sidecar asks, when, and what becomes of the answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from sidecar.peers.addresses import Address, Addresses
from sidecar.peers.zones import Zones
from tests.sidecar.kafka.servers import server_context
from tests.support.raw_server import raw_server
from tests.support.waiting import seen

URLS = [f"http://sidecar-{number}" for number in range(45)]


class World:
    """Sidecars that answer with a zone, or not."""

    def __init__(self) -> None:
        self.zones: dict[str, str | None] = {url: f"zone-{url[-1]}" for url in URLS}
        self.asked: list[str] = []
        self.ips: dict[str, list[str]] = {}
        clock = asyncio.get_running_loop().time
        self.addresses = Addresses(URLS, clock, self._resolve)
        self.asking = Zones(self.addresses, ask=self._ask)

    async def _resolve(self, url: str) -> list[str]:
        return self.ips.get(url, [url])

    async def _ask(self, address: Address) -> str | None:
        self.asked.append(address.url)
        await asyncio.sleep(0.01)
        if address.url not in self.zones:
            raise ConnectionRefusedError(111, "Connection refused")
        return self.zones[address.url]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Zones]:
        task = asyncio.create_task(self.asking.run())
        yield self.asking
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.looptime
async def test_each_is_asked_once_before_any_zone_counts() -> None:
    """The order of observers changes once; ten minutes later each is asked again."""
    world = World()
    async with world.running() as zones:
        await asyncio.sleep(0.7)
        assert (40, {}) == (len(world.asked), zones.known)
        await asyncio.sleep(1.5)
        assert world.zones == zones.known
        await asyncio.sleep(590.0)
        assert 45 == len(world.asked)
        await asyncio.sleep(15.0)
        assert 90 == len(world.asked)


@pytest.mark.looptime
async def test_a_sidecar_without_an_answer_keeps_its_zone(caplog: pytest.LogCaptureFixture) -> None:
    """It is down, or has just started and does not know its broker's rack; who moved counts."""
    caplog.set_level(logging.INFO)
    world = World()
    async with world.running() as zones:
        await asyncio.sleep(3.0)
        before = dict(zones.known)
        del world.zones[URLS[0]]
        world.zones |= {URLS[1]: None, URLS[2]: "moved"}
        await asyncio.sleep(610.0)
        assert before | {URLS[2]: "moved"} == zones.known
    assert 2 == caplog.text.count("the zones of the sidecars")


@pytest.mark.looptime
async def test_a_sidecar_without_a_zone_is_asked_ever_more_rarely() -> None:
    """After 15, 30, 60 s and so on; its zone counts when it comes."""
    world = World()
    world.zones[URLS[0]] = None
    del world.zones[URLS[1]]
    async with world.running() as zones:
        await asyncio.sleep(300.0)
        assert [5, 5, 1] == [world.asked.count(url) for url in URLS[:3]]
        assert {*URLS[2:]} == zones.known.keys()
        world.zones |= {URLS[0]: "a", URLS[1]: "b"}
        await asyncio.sleep(300.0)
        assert ("a", "b") == (zones.known[URLS[0]], zones.known[URLS[1]])


@pytest.mark.slow
@pytest.mark.looptime
async def test_the_wait_is_bounded_and_begins_anew_after_an_answer() -> None:
    """A sidecar that was down for hours is asked every ten minutes, and soon if it fails again."""
    world = World()
    del world.zones[URLS[0]]
    async with world.running():
        await asyncio.sleep(7200.0)
        before = world.asked.count(URLS[0])
        assert before > 14
        world.zones[URLS[0]] = "back"
        await asyncio.sleep(630.0)
        assert world.asked.count(URLS[0]) == before + 1
        del world.zones[URLS[0]]
        await asyncio.sleep(630.0)
        assert world.asked.count(URLS[0]) >= before + 3


@pytest.mark.looptime
async def test_a_sidecar_that_left_has_no_zone() -> None:
    """Its address is no longer among those of its name."""
    world = World()
    world.ips[URLS[0]] = ["10.0.0.1", "10.0.0.2"]
    await world.addresses.look_up()
    async with world.running() as zones:
        await asyncio.sleep(3.0)
        assert {f"{URLS[0]} at 10.0.0.{number}" for number in (1, 2)} <= zones.known.keys()
        world.ips[URLS[0]] = ["10.0.0.2", "10.0.0.3"]
        await asyncio.sleep(30.0)
        await world.addresses.look_up()
        await asyncio.sleep(30.0)
        assert f"{URLS[0]} at 10.0.0.1" not in zones.known
        assert 46 == len(zones.known)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "zone"),
    [
        (b'200 OK\r\nContent-Length: 12\r\n\r\n{"zone":"a"}', {"": "a"}),
        (b'200 OK\r\nContent-Length: 13\r\n\r\n{"zone":null}', {}),
        (b'404 Not Found\r\nContent-Length: 12\r\n\r\n{"zone":"a"}', {}),
        (b"200 OK\r\nContent-Length: 2\r\n\r\n[]", {}),
        (b"200 OK\r\nContent-Length: 99\r\n\r\n{", {}),
    ],
)
async def test_over_http(
    answer: bytes, zone: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """An older version answers 404, and what makes no sense is no zone."""
    caplog.set_level(logging.DEBUG, "sidecar.peers.zones")
    asked: list[bytes] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 " + answer)
        await writer.drain()
        writer.close()

    clock = asyncio.get_running_loop().time
    async with raw_server(reply) as address:
        url = f"http://127.0.0.1:{address.port}"
        zones = Zones(Addresses([url], clock))
        task = asyncio.create_task(zones.run())
        said = "1 in a" if zone else "can't be asked" if b"null" not in answer else ""
        await seen("an answer", lambda: bool(asked) and said in caplog.text)
        task.cancel()
        await asyncio.wait([task])
    assert asked[0].lower().startswith(b"get /v1/zone http/1.1\r\n")
    assert list(zone.values()) == list(zones.known.values())


async def test_zones_behind_proxies_whose_ca_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request trusts the new CA."""
    file = tmp_path / "ca.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    first, second = trustme.CA(), trustme.CA()
    first.cert_pem.write_to_path(str(file))
    clock = asyncio.get_running_loop().time
    zones = Zones(Addresses([], clock))
    second.cert_pem.write_to_path(str(file))

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"zone":"a"}')
        await writer.drain()

    async with raw_server(reply, server_context(second)) as address:
        assert "a" == await zones._ask_by_http(Address(f"https://{address}"))
