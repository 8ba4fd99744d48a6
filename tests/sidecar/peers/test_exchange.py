"""Sidecars report producer ids to each other."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from sidecar.http import HttpError
from sidecar.peers import exchange
from sidecar.peers.addresses import Addresses, Resolve
from sidecar.peers.exchange import (
    MOST_ALLOCATED,
    PIECE,
    AllocatedId,
    AllocatedIdLog,
    AllocatedIdPage,
    Peers,
)
from sidecar.quotas.entities import LONGEST_USER
from tests.sidecar.api.build import until
from tests.support.virtual_time import VIRTUAL_TIME

Writer = asyncio.StreamWriter
Answer = Callable[[str, Writer], Awaitable[None]]
"""Gets what was asked for, and writes what it likes."""


def allocated(
    count: int, start_id: str = "a1", clock: Callable[[], float] = time.monotonic
) -> AllocatedIdLog:
    made = AllocatedIdLog(start_id, clock)
    for number in range(count):
        made.add("bob", number)
    return made


def at(*urls: str, resolve: Resolve | None = None) -> Addresses:
    return Addresses(urls, asyncio.get_running_loop().time, resolve)


def ids(*numbers: int) -> list[AllocatedId]:
    return [AllocatedId("bob", number) for number in numbers]


def test_who_begins_gets_what_comes_from_then_on() -> None:
    """An id that was allocated before is counted already, by whoever was there."""
    made = allocated(3)
    page = made.page(None)
    assert [] == page.ids
    made.add("bob", 3)
    page = made.page(page.next)
    assert ids(3) == page.ids
    assert [] == made.page(page.next).ids


@pytest.mark.parametrize(("last_s", "expected"), [(0.0, []), (5.0, [2]), (20.0, [1, 2])])
def test_who_begins_may_ask_for_the_last_seconds(last_s: float, expected: list[int]) -> None:
    """Then the page has these, and the next one follows them."""
    now = [0.0]
    made = allocated(0, clock=lambda: now[0])
    for number, at_s in enumerate((100.0, 115.0, 125.0)):
        now[0] = at_s
        made.add("bob", number)
    now[0] = 127.0
    page = made.page(None, last_s)
    assert (ids(*expected), "a1-3") == (page.ids, page.next)


def test_a_restart_is_read_from_its_first_id() -> None:
    """An id that the one before had allocated was read, or is lost with it."""
    before = allocated(50, "a1").page(None)
    page = allocated(2, "b2").page(before.next)
    assert (ids(0, 1), 0) == (page.ids, page.lost)


def test_pieces_follow_each_other_without_a_gap() -> None:
    """Each is bounded, and the next begins where it ended."""
    made = allocated(0)
    begin = made.page(None).next
    for number in range(PIECE + 5):
        made.add("bob", number)
    first = made.page(begin)
    second = made.page(first.next)
    assert ids(*range(PIECE + 5)) == first.ids + second.ids
    assert PIECE == len(first.ids)


def test_what_is_asked_for_too_late_is_counted_as_lost() -> None:
    """The oldest make room."""
    made = allocated(0)
    begin = made.page(None).next
    for number in range(MOST_ALLOCATED + 7):
        made.add("bob", number)
    page = made.page(begin)
    assert (7, 7) == (page.lost, page.ids[0].producer_id)


@pytest.mark.parametrize(
    "after", ["", "-", "a1-", "a1--5", "a1-x", "x-3", "a1-²", "a1-" + "9" * 30]
)
def test_a_place_that_is_none_is_the_beginning(after: str) -> None:
    """Whatever is asked, the answer is bounded and whole."""
    assert ids(0, 1) == allocated(2).page(after).ids


def test_a_place_that_lies_ahead_has_nothing() -> None:
    """It goes on from the end."""
    page = allocated(2).page("a1-7")
    assert ([], "a1-2") == (page.ids, page.next)


def test_ids_that_wrote_are_reported_in_their_turn() -> None:
    """Each has its owner, where that is known."""
    made = allocated(0)
    begin = made.page(None).next
    made.add("bob", 7)
    made.add("bob", 7, wrote=True)
    made.add(None, 8, wrote=True)
    expected = [
        AllocatedId("bob", 7),
        AllocatedId("bob", 7, wrote=True),
        AllocatedId(None, 8, wrote=True),
    ]
    assert expected == made.page(begin).ids


async def test_all_who_wait_hear_of_the_next_id_and_too_many_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each that waits is a connection: the third of at most two gets its empty page at once."""
    monkeypatch.setattr(exchange, "_MOST_WAITING", 2)
    made = allocated(1)
    last = made.page(None).next
    waiting = [asyncio.create_task(made.wait_for_more(last)) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert [False, False, True] == [task.done() for task in waiting]
    made.add("bob", 1)
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
        # One that was here before has it already.
        await made.wait_for_more(last)


@pytest.mark.parametrize(
    ("message", "seen", "wrote"),
    [
        (AllocatedId("bob", 7), [("bob", 7)], []),
        (AllocatedId("bob", 7, wrote=True), [("bob", 7)], [7]),
        (AllocatedId(None, 7, wrote=True), [], [7]),
        (AllocatedId(None, 7), [], []),
        (AllocatedId("x" * (LONGEST_USER + 1), 7), [], []),
        (AllocatedId("x" * (LONGEST_USER + 1), 7, wrote=True), [], [7]),
    ],
)
async def test_ids_that_wrote_are_taken_as_such(
    message: AllocatedId, seen: list[tuple[str, int]], wrote: list[int]
) -> None:
    """An owner that comes with one is believed first; without an owner it wrote all the same."""
    page = msgspec.json.encode(AllocatedIdPage("a1-1", 0, [message]))
    found: list[tuple[str, int]] = []
    written: list[int] = []
    async with following(says(page)) as (misled, _):
        asking = Peers(
            at(misled.url), lambda user, number: found.append((user, number)), written.append
        )
        await asking.ask(asking.peers[0])
    assert (seen, wrote) == (found, written)


async def test_who_does_not_count_by_writing_passes_over_it() -> None:
    """A sidecar counts ids when they are allocated, its peer when they write."""
    page = msgspec.json.encode(AllocatedIdPage("a1-1", 0, [AllocatedId("bob", 7, wrote=True)]))
    async with following(says(page)) as (misled, asking):
        await asking.ask(asking.peers[0])
    assert [] == misled.seen


def says(body: bytes, status: bytes = b"200 OK") -> Answer:
    """One answer to all that is asked."""

    async def answer(_: str, writer: Writer) -> None:
        head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        writer.write(head + body)

    return answer


def raw(sent: bytes) -> Answer:
    async def answer(_: str, writer: Writer) -> None:
        writer.write(sent)

    return answer


async def nothing(_target: str, _writer: Writer) -> None:
    await asyncio.sleep(60)


def pages_of(made: AllocatedIdLog, asked: list[str]) -> Answer:
    """A sidecar that answers with the pages of its log."""

    async def answer(target: str, writer: Writer) -> None:
        asked.append(target)
        query = dict(parse_qsl(urlsplit(target).query))
        page = made.page(query.get("after"), float(query.get("last_s", 0.0)))
        await says(msgspec.json.encode(page))(target, writer)

    return answer


class Misled:
    """A peer that answers as a test sets it, and who asks it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.seen: list[AllocatedId] = []
        self.in_turn: Counter[int] = Counter()
        self.turn = 0
        self.url = ""
        self._writers: list[Writer] = []

    async def end(self) -> None:
        """Nobody is answered any more, not even who has not taken all of an answer."""
        for writer in self._writers:
            writer.transport.abort()
        # What is lost is told to both ends in the loop's next turn.
        await asyncio.sleep(0)

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self._writers.append(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self.answer(head.split()[1].decode(), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            # Who asks does not wait for the end.
            pass
        finally:
            writer.close()

    def note(self, user: str, producer_id: int) -> None:
        self.seen.append(AllocatedId(user, producer_id))
        self.in_turn[self.turn] += 1

    async def take_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def following(answer: Answer) -> AsyncIterator[tuple[Misled, Peers]]:
    """Asks a server of loopback until the test is over; the task must not end."""
    misled = Misled(answer)
    server = await asyncio.start_server(misled.serve, "127.0.0.1", 0)
    misled.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    asking = Peers(at(misled.url), misled.note)
    task = asyncio.create_task(asking.run())
    try:
        yield misled, asking
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()
        server.close()
        await misled.end()


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers are asked every 20 ms, and have 0.3 s to answer."""
    monkeypatch.setattr(exchange, "_CHECK_S", 0.01)
    monkeypatch.setattr(exchange, "_LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(exchange, "_WAIT_S", 0)
    monkeypatch.setattr(exchange, "_DEADLINE_S", 0.3)


PAGE = b'{"next":"a1-1","lost":0,"ids":[{"user":"bob","producer_id":7}]}'


@pytest.mark.slow
@VIRTUAL_TIME
@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(says(b"{}", b"500 Oops"), "it answers 500", id="500"),
        pytest.param(says(b"{}", b"404 Not Found"), "it answers 404", id="not a sidecar"),
        pytest.param(says(b"garbage"), "JSON is malformed", id="garbage"),
        pytest.param(says(b"[]"), "Expected `object`, got `array`", id="another shape"),
        pytest.param(says(b'{"next":"a-1","lost":0,"ids":[{}]}'), "missing required", id="no id"),
        pytest.param(says(PAGE.replace(b"bob", b"\xff")), "'utf-8' codec", id="not UTF-8"),
        pytest.param(says(b'{"x":' + b"[" * 200_000), "recursion depth", id="nested"),
        pytest.param(
            says(PAGE.replace(b"a1-1", "é".encode())), "matching regex", id="next not ASCII"
        ),
        pytest.param(
            says(PAGE.replace(b"a1-1", b"a b\\r\\nX: 1")), "matching regex", id="a header"
        ),
        pytest.param(says(PAGE.replace(b"a1-1", b"a1-1\\n")), "matching regex", id="its end"),
        pytest.param(says(PAGE.replace(b'"lost":0', b'"lost":-1')), ">= 0", id="lost"),
        pytest.param(says(b" " * (5 << 20)), "too long", id="huge"),
        pytest.param(raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "not HTTP", id="not HTTP"),
        pytest.param(raw(b""), "no answer", id="closes"),
        pytest.param(
            raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), "ends early", id="cut"
        ),
        pytest.param(nothing, "no answer within 0.3 s", id="hangs"),
    ],
)
async def test_a_peer_that_misbehaves_is_reported_once_and_asked_again(
    answer: Answer, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it counts, nothing ends, and what it says later does."""
    caplog.set_level(logging.INFO)
    async with following(answer) as (misled, asking):
        peer = asking.peers[0]
        await until(lambda: peer.failure is not None)
        assert message in str(peer.failure)
        await asyncio.sleep(0.2)
        assert [] == misled.seen
        misled.answer = says(b"{}", b"503 Service Unavailable")
        await until(lambda: peer.failure == "it answers 503")
        misled.answer = says(PAGE)
        await until(lambda: peer.failure is None)
        assert ids(7)[0] in misled.seen
    assert 2 == len(caplog.messages)
    assert "can't be asked for producer ids: " in caplog.messages[0]
    assert "can be asked again" in caplog.messages[1]


@VIRTUAL_TIME
@pytest.mark.usefixtures("_soon")
async def test_a_peer_that_is_down_or_has_a_name_that_is_none_is_reported() -> None:
    """The port is closed, or a label of the name is longer than 63 characters."""
    nobody = Peers(at("http://127.0.0.1:1", f"http://{'x' * 70}.kafka:7070"), lambda *_: None)
    task = asyncio.create_task(nobody.run())
    await until(lambda: all(peer.failure for peer in nobody.peers))
    assert not task.done()
    assert "Connect call failed" in str(nobody.peers[0].failure)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@VIRTUAL_TIME
@pytest.mark.usefixtures("_soon")
async def test_what_comes_is_counted_once_piece_after_piece() -> None:
    """Older ids are not counted; a backlog is fetched without the usual pause."""
    made, asked = allocated(3, clock=asyncio.get_running_loop().time), list[str]()
    async with following(pages_of(made, asked)) as (misled, asking):
        await until(lambda: len(asked) > 2)
        assert [] == misled.seen
        for number in range(2 * PIECE + 5):
            made.add("bob", number)
        async with asyncio.timeout(1.5):
            await until(lambda: len(misled.seen) >= 2 * PIECE + 5)
        await asyncio.sleep(0.1)
        assert ids(*range(2 * PIECE + 5)) == misled.seen
        assert (2 * PIECE + 5, 0) == (asking.peers[0].ids, asking.peers[0].lost)


@pytest.mark.parametrize(
    ("window_s", "gap_s", "expected"),
    [
        (3600.0, 3600.0, [0, 1, 2, 3]),
        (3600.0, 3600.1, [1, 2, 3]),
        (1.0, 60.0, [0, 1, 2, 3]),
        (1.0, 60.1, [2, 3]),
    ],
)
async def test_ids_that_are_older_than_a_window_do_not_count(
    window_s: float, gap_s: float, expected: list[int]
) -> None:
    """After a day without an answer, they would all count in one moment.

    A request alone may take longer than a short window.
    """
    asked, now = list[str](), [100.0]
    made = allocated(0, clock=lambda: now[0])
    async with following(pages_of(made, asked)) as (misled, _):
        seen: list[int] = []
        asking = Peers(
            Addresses([misled.url], lambda: now[0]),
            lambda _, number: seen.append(number),
            window_s=window_s,
        )
        peer = asking.peers[0]
        await asking.ask(peer)
        for number, passes_s in enumerate((gap_s - 10.0, 9.5, 0.5)):
            made.add("bob", number)
            now[0] += passes_s
        while await asking.ask(peer):
            pass
        made.add("bob", 3)
        await asking.ask(peer)
    assert (expected, len(expected)) == (seen, peer.ids)


async def test_ids_count_that_a_sidecar_saw_before_it_first_answered() -> None:
    """It started later than the one that asks, which then waited before it asked again."""
    now = [100.0]
    made = allocated(1, clock=lambda: now[0])
    async with following(raw(b"")) as (misled, _):
        seen: list[int] = []
        asking = Peers(
            Addresses([misled.url], lambda: now[0]), lambda _, number: seen.append(number)
        )
        for at_s in (101.0, 129.0):
            now[0] = at_s
            with pytest.raises(HttpError, match="no answer"):
                await asking.ask(asking.peers[0])
            made.add("bob", int(at_s))
        now[0] = 130.0
        misled.answer = pages_of(made, list[str]())
        await asking.ask(asking.peers[0])
    assert [101, 129] == seen


async def test_a_sidecar_that_restarted_after_a_long_time_is_read_from_its_first_id() -> None:
    """Its broker was down for more than a window, so the ids since the restart are new."""
    asked, now = list[str](), [100.0]
    async with following(pages_of(allocated(3, clock=lambda: now[0]), asked)) as (misled, _):
        seen: list[int] = []
        asking = Peers(
            Addresses([misled.url], lambda: now[0]), lambda _, number: seen.append(number)
        )
        await asking.ask(asking.peers[0])
        now[0] += 4000.0
        misled.answer = pages_of(allocated(2, "b2", lambda: now[0]), asked)
        await asking.ask(asking.peers[0])
    assert [0, 1] == seen


@VIRTUAL_TIME
@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("start_id", ["a1", "b2"])
async def test_ids_of_a_time_without_a_quota_do_not_count(
    start_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was asked, and the other sidecar may have restarted in the meantime."""
    monkeypatch.setattr(exchange, "_LOOK_S", 0.05)
    asked, wanted = list[str](), [True]
    clock = asyncio.get_running_loop().time
    async with following(pages_of(allocated(3, clock=clock), asked)) as (misled, asking):
        asking.is_wanted = lambda: wanted[0]
        await until(lambda: len(asked) > 2)
        wanted[0] = False
        await asyncio.sleep(0.1)
        misled.answer = pages_of(allocated(5, start_id, clock), asked)
        await asyncio.sleep(0.1)
        before, wanted[0] = len(asked), True
        await until(lambda: len(asked) > before + 2)
    assert [] == misled.seen


async def test_what_was_asked_for_too_late_is_added_up() -> None:
    """By peer, and of all of them."""
    page = msgspec.json.encode(AllocatedIdPage("a1-1", 3, []))
    async with following(says(page)) as (_, asking):
        await until(lambda: asking.lost > 0)
        assert asking.lost == asking.peers[0].lost
        assert 0 == asking.lost % 3


@pytest.mark.slow
@pytest.mark.usefixtures("_soon")
async def test_a_peer_that_always_has_more_does_not_take_the_loop() -> None:
    """Full pieces never end: others get their turn, and it is asked 50 times a second at most."""
    page = msgspec.json.encode(exchange.AllocatedIdPage("a1-1", 0, ids(*range(PIECE))))
    asked = 0

    async def more(target: str, writer: Writer) -> None:
        nonlocal asked
        asked += 1
        await says(page)(target, writer)

    async with following(more) as (misled, _):
        await until(lambda: asked > 0)
        before = asked
        other = asyncio.create_task(misled.take_turns())
        await asyncio.sleep(0.5)
        other.cancel()
        assert 2 < asked - before <= 26
        del misled.in_turn[0]
        assert 100 == max(misled.in_turn.values())


@pytest.mark.slow
@VIRTUAL_TIME
@pytest.mark.usefixtures("_soon")
async def test_a_name_with_several_addresses_is_several_peers() -> None:
    """Each pod behind a headless Service is read, a later one too; one that went is not.

    The later one is listed some time after its start; its ids of that time count.
    """
    clock = asyncio.get_running_loop().time
    logs = {f"127.0.0.{number}": AllocatedIdLog(f"a{number}", clock) for number in (1, 2, 3)}
    now = ["127.0.0.1", "127.0.0.2"]
    servers: list[asyncio.Server] = []
    asked = {ip: list[str]() for ip in logs}
    port = 0
    for ip, log in logs.items():
        misled = Misled(pages_of(log, asked[ip]))
        servers.append(await asyncio.start_server(misled.serve, ip, port))
        port = servers[0].sockets[0].getsockname()[1]
    url = f"http://sidecars.invalid:{port}"

    async def resolve(_: str) -> list[str]:
        return now

    seen: list[int] = []
    asking = Peers(at(url, resolve=resolve), lambda _, number: seen.append(number))
    task = asyncio.create_task(asking.run())
    await until(lambda: len(asked["127.0.0.1"]) > 2 and len(asked["127.0.0.2"]) > 2)
    logs["127.0.0.1"].add("bob", 1)
    logs["127.0.0.2"].add("bob", 2)
    await until(lambda: {1, 2} == {*seen})
    assert [f"{url} at 127.0.0.1", f"{url} at 127.0.0.2"] == [str(x.address) for x in asking.peers]
    asking.peers[0].lost = asking.lost = 5
    logs["127.0.0.3"].add("bob", 0)
    now[0] = "127.0.0.3"
    await asyncio.sleep(25.0)
    await until(lambda: len(asked["127.0.0.3"]) > 2)
    before = len(asked["127.0.0.1"])
    logs["127.0.0.1"].add("bob", 4)
    logs["127.0.0.3"].add("bob", 3)
    await until(lambda: 3 in seen)
    assert ([0, 1, 2, 3], before, 5) == (sorted(seen), len(asked["127.0.0.1"]), asking.lost)
    task.cancel()
    await asyncio.wait([task])
    for server in servers:
        server.close()
