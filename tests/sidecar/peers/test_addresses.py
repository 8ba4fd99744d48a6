"""Names are looked up again and again."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

import pytest

from sidecar.peers.addresses import Address, Addresses, Requests

NAMED, ALONE = "http://sidecars:7070", "https://kafka-0.kafka"


async def test_a_name_that_cannot_be_looked_up_is_where_it_was() -> None:
    """It has one address, several, or others than before; a lookup is good for half a minute."""
    ips: dict[str, Sequence[str]] = {NAMED: ["10.0.0.1", "10.0.0.2"], ALONE: ["10.0.0.9"]}
    now = 100.0

    async def resolve(url: str) -> Sequence[str]:
        return ips[url]

    addresses = Addresses([NAMED, ALONE], lambda: now, resolve)
    assert [Address(NAMED), Address(ALONE)] == addresses.known
    assert await addresses.look_up()
    both = [Address(NAMED, "10.0.0.1"), Address(NAMED, "10.0.0.2"), Address(ALONE)]
    assert both == addresses.known
    ips[NAMED] = []
    now += 29.0
    assert not await addresses.look_up()
    now += 1.0
    assert await addresses.look_up()
    assert both == addresses.known
    ips[NAMED] = ["10.0.0.2", "10.0.0.3"]
    now += 30.0
    assert await addresses.look_up()
    assert ["10.0.0.2", "10.0.0.3", None] == [each.ip for each in addresses.known]


async def test_a_name_is_looked_up_by_the_machine() -> None:
    """One that is none has no address."""
    urls = ["http://127.0.0.1:1", f"http://{'x' * 70}.kafka", "http://b1:70700", "http://[::1"]
    addresses = Addresses(urls, lambda: 0.0)
    await addresses.look_up()
    assert [None] * 4 == [each.ip for each in addresses.known]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"], ["10.0.0.1", "10.0.0.2"]),
        (["10.0.0.1", "fd00::1"], [None]),
        (["10.0.0.1", "fd00::1", "fd00::2"], ["fd00::1", "fd00::2"]),
        (["fd00::1", "fd00::2"], ["fd00::1", "fd00::2"]),
    ],
)
async def test_a_sidecar_with_two_families_of_addresses_counts_once(
    monkeypatch: pytest.MonkeyPatch, found: list[str], expected: list[str | None]
) -> None:
    """Only the family with more addresses counts, and IPv4 if both have as many."""

    async def getaddrinfo(*_: object) -> list[tuple[object, ...]]:
        inet, inet6 = socket.AF_INET, socket.AF_INET6
        return [(inet6 if ":" in ip else inet, 1, 6, "", (ip, 7070)) for ip in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    addresses = Addresses([NAMED], lambda: 0.0)
    await addresses.look_up()
    assert expected == [each.ip for each in addresses.known]


async def test_each_is_asked_by_one_task() -> None:
    """Who is not wanted any more is cut off; who ended is asked anew; a bug reaches the caller."""
    asked, cut = list[str](), list[str]()

    def asks(name: str) -> dict[Address, Callable[[], Coroutine[None, None, None]]]:
        async def ask() -> None:
            asked.append(name)
            try:
                await asyncio.sleep(60.0 if name == "waits" else 0.0)
            except asyncio.CancelledError:
                cut.append(name)
                raise
            if name == "breaks":
                raise KeyError(name)

        return {Address(name): ask}

    requests = Requests()
    for _ in range(3):
        requests.retain(asks("waits") | asks("ends"))
        await asyncio.sleep(0.01)
    assert (1, 3, []) == (asked.count("waits"), asked.count("ends"), cut)
    requests.retain(asks("breaks"))
    await asyncio.sleep(0.01)
    assert ["waits"] == cut
    with pytest.raises(KeyError):
        requests.retain(asks("breaks"))
    requests.retain(asks("waits"))
    await asyncio.sleep(0.0)
    await requests.end()
    assert ["waits", "waits"] == cut


async def test_requests_begin_in_the_order_of_the_sidecars() -> None:
    """So two runs of the same simulated world have the same trace."""
    asked: list[str] = []

    async def ask(name: str) -> None:
        asked.append(name)

    names = [f"sidecar-{number}" for number in range(8)]
    requests = Requests()
    requests.retain({Address(name): partial(ask, name) for name in names})
    await asyncio.sleep(0.0)
    await requests.end()
    assert names == asked
