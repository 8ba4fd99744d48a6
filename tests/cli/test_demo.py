"""``demo`` as a person runs it: the whole story, Ctrl-C and kill -9 at any time, --keep."""

import asyncio
import os
import re
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from sidecar.demo.folders import PREFIX
from sidecar.demo.waiting import deadline, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

STORY_S = 120.0
"""A story takes 15 s; a busy machine may take longer."""


class Demo:
    """A demo that runs in a temporary folder of its own or a shared one."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, output: Path) -> None:
        self.process = process
        self.folder = folder
        self._output = output

    def said(self) -> str:
        return self._output.read_text()

    async def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Until this holds, unless the demo ends before."""
        async with deadline(STORY_S, f"not seen: {what}"):
            await until(lambda: holds() or self.process.returncode is not None)
        assert holds(), f"the demo ended with {self.process.returncode}:\n{self.said()}"

    async def told(self, text: str) -> None:
        """Until it has said this."""
        await self.wait(text, lambda: text in self.said())

    async def end(self, number: signal.Signals) -> int:
        """Send it a signal and wait for its end."""
        self.process.send_signal(number)
        async with asyncio.timeout(15):
            return await self.process.wait()


@asynccontextmanager
async def demo(folder: Path, *options: str) -> AsyncIterator[Demo]:
    """Start a demo whose temporary files go to a folder; killed at the end if it still runs."""
    output = folder.with_name(f"{folder.name}-output-{len(list(folder.parent.iterdir()))}")
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "sidecar", "demo", *options),
            env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "80"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        yield Demo(process, folder, output)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a demo's temporary files go."""
    made = tmp_path / "demo"
    made.mkdir()
    return made


def entries(folder: Path) -> list[str]:
    """What is left there."""
    return [path.name for path in folder.iterdir()]


def owned(folder: Path) -> list[Path]:
    """The folders of demos, living or dead."""
    return sorted(folder.glob(f"{PREFIX}*"))


def processes(mark: Path) -> set[int]:
    """Whose command line or environment names a folder; zombies have neither."""
    return set(_where(mark, "cmdline")) | set(_where(mark, "environ"))


def mounts(mark: Path) -> set[int]:
    """The processes that see a mount in a folder."""
    return set(_where(mark, "mountinfo"))


def _where(mark: Path, file: str) -> Iterator[int]:
    for entry in Path("/proc").glob(f"[0-9]*/{file}"):
        try:
            if str(mark).encode() in entry.read_bytes():
                yield int(entry.parent.name)
        except OSError:
            continue  # It ended meanwhile.


async def no_process_nor_mount(mark: Path) -> None:
    async with deadline(5.0, "processes or mounts stayed"):
        await until(lambda: not processes(mark) and not mounts(mark))


async def filling(it: Demo) -> None:
    """Wait until the story is in its middle: the sidecars are up, messages are produced."""

    def listens() -> bool:
        logs = [log.read_text() for log in it.folder.glob(f"{PREFIX}*/sidecar-*/sidecar.log")]
        return 3 == sum("(observation)" in log for log in logs)

    await it.wait("three sidecars that observe", listens)
    # Or nothing could be left behind.
    assert len(processes(it.folder)) > 8
    assert mounts(it.folder)


async def test_the_whole_story_is_seen(folder: Path) -> None:
    """Exit code 0, every step in the table with its seconds, and nothing stays."""
    async with demo(folder) as it:
        async with asyncio.timeout(STORY_S):
            assert 0 == await it.process.wait(), it.said()
        said = it.said()
    table = said[said.index("What was seen") :]
    assert "not seen" not in table
    seconds = re.findall(r"│ +(\d+\.\d\d) │", table)
    steps = 1 + 1 + 1 + 3 + 1 + 1 + 3 + 1
    assert steps == len(seconds)
    for factor in ("0.0", "1.0"):
        for broker_id in range(3):
            assert f"factor {factor} at the sidecar of broker {broker_id}" in table
    assert [] == entries(folder)
    assert (set(), set()) == (processes(folder), mounts(folder))


async def test_nothing_outlives_a_killed_demo_and_the_next_one_cleans_up(folder: Path) -> None:
    """By kill -9 in the middle: no process, no mount; the next start removes the folder; Ctrl-C."""
    async with demo(folder) as first:
        await filling(first)
        (left,) = owned(folder)
        assert -signal.SIGKILL == await first.end(signal.SIGKILL)
    await no_process_nor_mount(folder)
    assert [left] == owned(folder)
    async with demo(folder) as second:
        await second.wait("the folder removed", lambda: left not in owned(folder))
        await filling(second)
        assert 130 == await second.end(signal.SIGINT)
        assert "Traceback" not in second.said()
    assert (set(), set()) == (processes(folder), mounts(folder))
    assert [] == entries(folder)


async def test_two_that_are_kept_go_on_until_they_are_ended(folder: Path) -> None:
    """Side by side: each says what to try; one is killed, the other lives until Ctrl-C."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(demo(folder, "--keep"))
        other = await stack.enter_async_context(demo(folder, "--keep"))
        urls = []
        for it in (one, other):
            await it.told("Log of sidecar 2")
            urls.append(re.findall(r"curl -s (\S+/v1/throttle-factor)", it.said()))
            assert "not seen" not in it.said()
        assert 2 == len(owned(folder))
        assert -signal.SIGKILL == await one.end(signal.SIGKILL)
        (url,) = urls[1]
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: ASYNC210 - on loopback
            assert 200 == answer.status
        (kept,) = [path for path in owned(folder) if processes(path)]
        assert 130 == await other.end(signal.SIGINT)
        assert "Traceback" not in other.said()
    await no_process_nor_mount(folder)
    # What was killed is left for the next start to remove.
    assert kept not in owned(folder)
    assert 1 == len(owned(folder))
