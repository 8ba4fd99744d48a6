"""The line of a request of ``request-log on`` in a file, in virtual time."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sidecar.cli.request_log_line import SEND_S, WAIT_S, OwnLine, Seen
from tests.sidecar.requestlog.lines import line

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

MINE = "throttle-sidecar-request-log-1"
DESCRIBED = line(32, client_id=MINE, request={"resources": [{"resourceName": "3"}]}) + b"\n"


async def wait(file: Path, *written: bytes) -> tuple[Seen, float]:
    """What is seen when each request makes the broker write one of these, and after how long."""
    loop = asyncio.get_running_loop()
    began, left = loop.time(), list(written)

    async def send() -> None:
        if left and (text := left.pop(0)):
            with file.open("ab") as opened:
                opened.write(text)

    seen = await OwnLine(file, MINE).wait(send, asyncio.Event())
    return seen, loop.time() - began


async def test_the_line_is_there(tmp_path: Path) -> None:
    """It names the broker that was asked, whether the file was there or not."""
    file = tmp_path / "kafka-request.log"
    expected = Seen(
        is_there=True, text=f"the line of this command's request to broker 3 is in {file}"
    )
    for _ in range(2):
        seen, _ = await wait(file, DESCRIBED)
        assert expected == seen


async def test_an_earlier_line_does_not_count(tmp_path: Path) -> None:
    """Only what is written from then on does."""
    file = tmp_path / "kafka-request.log"
    file.write_bytes(DESCRIBED)
    seen, _ = await wait(file)
    assert not seen.is_there


async def test_a_buffered_line_is_waited_for(tmp_path: Path) -> None:
    """The request is sent again until the appender writes."""
    seen, after_s = await wait(tmp_path / "a.log", b"", b"", b"", DESCRIBED)
    assert seen.is_there
    assert 3 * SEND_S <= after_s < WAIT_S


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ((b"",), "{file} can't be read: it does not exist"),
        ((b"[2026-03-04 05:06:07,101] INFO x (y)\n",), "{file} got lines, but no request: "),
        (
            (line(32) + b"\n" + line(60, client_id=MINE) + b"\n",),
            "{file} got requests, but none of this command: the file may be another broker's",
        ),
    ],
)
async def test_the_line_is_not_there(
    tmp_path: Path, written: Sequence[bytes], expected: str
) -> None:
    """After the deadline, the text says what the file got instead."""
    file = tmp_path / "a.log"
    seen, after_s = await wait(file, *written)
    assert (False, WAIT_S) == (seen.is_there, after_s)
    assert seen.text.startswith(expected.format(file=file))


async def test_an_appender_that_drops_every_line(tmp_path: Path) -> None:
    """The file is there, and nothing is written to it."""
    file = tmp_path / "a.log"
    file.touch()
    seen, _ = await wait(file)
    assert not seen.is_there
    assert "nothing was written" in seen.text
    assert "threshold or a filter" in seen.text


async def test_a_line_that_can_not_be_read_is_there(tmp_path: Path) -> None:
    """The text says why it can't be read."""
    file = tmp_path / "a.log"
    seen, _ = await wait(file, b"at five: " + DESCRIBED)
    assert seen.is_there
    assert "but it can't be read (layout: " in seen.text


async def test_a_layout_of_its_own(tmp_path: Path) -> None:
    """With its pattern, the line can be read, and names the broker."""
    file = tmp_path / "a.log"

    async def send() -> None:
        file.write_bytes(b"1795165200123 " + DESCRIBED.partition(b"] ")[2])

    pattern = "%d{UNIX_MILLIS} %p %m (%c)%n"
    seen = await OwnLine(file, MINE, pattern).wait(send, asyncio.Event())
    assert Seen(True, f"the line of this command's request to broker 3 is in {file}") == seen


async def test_it_ends_early(tmp_path: Path) -> None:
    """A signal does not have to wait for the deadline."""
    ended = asyncio.Event()

    async def send() -> None:
        ended.set()

    seen = await OwnLine(tmp_path / "a.log", MINE).wait(send, ended)
    assert not seen.is_there
    assert asyncio.get_running_loop().time() < WAIT_S
