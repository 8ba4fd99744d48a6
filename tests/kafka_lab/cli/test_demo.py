"""``demo`` as a person runs it: the whole story, Ctrl-C and kill -9 at any time, --keep."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import httpx
import pytest
from click.testing import CliRunner, Result

from kafka_lab.cluster import Cluster
from kafka_lab.folders import PREFIX
from kafka_lab.scenario import Scenario
from sidecar.cli import group
from sidecar.errors import ClusterError
from tests.docs.blocks import run as run_blocks
from tests.kafka_lab.clusters import FakeCluster
from tests.support.command import command
from tests.support.waiting import SEEN_S, seen

STORY_S = 150.0
"""A story takes 40 s; a busy machine may take longer."""


class Demo:
    """A demo that runs in a temporary folder of its own or a shared one."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, output: Path) -> None:
        self.process = process
        self.folder = folder
        self._output = output

    def said(self) -> str:
        return self._output.read_text()

    async def wait(self, what: str, is_seen: Callable[[], bool]) -> None:
        """Waits until this is true, unless the demo ends before."""
        await seen(what, lambda: is_seen() or self.process.returncode is not None, bool, STORY_S)
        assert is_seen(), f"the demo ended with {self.process.returncode}:\n{self.said()}"

    async def printed(self, text: str) -> None:
        """Waits until it has printed this."""
        await self.wait(text, lambda: text in self.said())

    async def end(self, number: signal.Signals) -> int:
        """Sends it a signal and waits for its end."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), SEEN_S)


@asynccontextmanager
async def demo(folder: Path, *options: str) -> AsyncIterator[Demo]:
    """Start a demo whose temporary files go to a folder; killed at the end if it still runs."""
    output = folder.with_name(f"{folder.name}-output-{len(list(folder.parent.iterdir()))}")
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "sidecar", "demo", f"--svg={folder.with_suffix('.svg')}", *options),
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
    """The folder for a demo's temporary files."""
    made = tmp_path / "demo"
    made.mkdir()
    return made


def entries(folder: Path) -> list[str]:
    """The entries that are left there."""
    return [path.name for path in folder.iterdir()]


def owned(folder: Path) -> list[Path]:
    """The folders of demos, living or dead."""
    return sorted(folder.glob(f"{PREFIX}*"))


def processes(mark: Path) -> set[int]:
    """Processes whose command line or environment names a folder; zombies have neither."""
    return set(_where(mark, "cmdline")) | set(_where(mark, "environ"))


def alive(folder: Path) -> list[Path]:
    """The folders of demos that have processes."""
    return [path for path in owned(folder) if processes(path)]


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
    await seen("nothing is left", lambda: not processes(mark) and not mounts(mark))


async def filling(it: Demo) -> None:
    """Wait until the story is in its middle: the sidecars are up, messages are produced."""

    def listens() -> bool:
        logs = [log.read_text() for log in it.folder.glob(f"{PREFIX}*/sidecar-*/sidecar.log")]
        return 3 == sum("(observation)" in log for log in logs)

    await it.wait("three sidecars that observe", listens)
    # Otherwise nothing could be left behind.
    assert len(processes(it.folder)) > 8
    assert mounts(it.folder)


@pytest.mark.demo
@pytest.mark.timeout(240)
async def test_the_whole_scenario_is_seen(folder: Path) -> None:
    """The exit code is 0, the table has every step with its seconds, and only the picture stays."""
    async with demo(folder) as it:
        async with asyncio.timeout(STORY_S):
            assert 0 == await it.process.wait(), it.said()
        said = it.said()
    table = said[said.index("What was seen") :]
    assert "not seen" not in table
    seconds = re.findall(r"│ +(\d+\.\d\d) │", table)
    everyone_is_throttled = 3 + 1 + (3 + 1) + (4 + 1) + 1 + (3 + 1) + 4
    who_fills_it_is = 1 + 1 + 2 + 1 + 1
    assert everyone_is_throttled + who_fills_it_is + 1 == len(seconds)
    assert 4 + 1 == table.count("trickle")
    assert folder.with_suffix(".svg").read_text().startswith("<svg ")
    for factor in ("0.0", "1.0"):
        seen = re.findall(rf"factor {factor} .*broker (\d)", table)
        assert ["0", "1", "2"] == sorted(seen)
    assert [] == entries(folder)
    assert (set(), set()) == (processes(folder), mounts(folder))


@pytest.mark.demo
@pytest.mark.timeout(480)
async def test_the_further_acts_are_seen(folder: Path) -> None:
    """Who fills the volume, an owner at its budget, and room made; the film has these captions."""
    film = folder.with_suffix(".html")
    async with demo(folder, "--more", f"--film={film}") as it:
        async with asyncio.timeout(2 * STORY_S):
            assert 0 == await it.process.wait(), it.said()
        steps = " ".join(re.findall(r"^│ (.*?) +│", it.said(), re.MULTILINE))
    for seen_step in (
        r"topic demo-2 \(partitions led here\) grows by .* % of the growth; written by etl",
        r"etl has used 10\d % of 45\.0 MB, its storage budget",
        r"web, logs and the others have (9\d|100)% of their rate",
        r"about \d+ MB of the oldest logs deleted",
        r"no volume reached its limit: the factor stayed 1\.0",
        r"etl keeps less, and writes again",
    ):
        assert re.search(seen_step, steps), (seen_step, steps)
    page = film.read_text()
    captions = ("is at its limit", "Who fills it? Topic demo-2", "is paused alone", "were deleted")
    assert sorted(map(page.index, captions)) == [*map(page.index, captions)]
    assert len(page) < 200_000


@pytest.mark.demo
@pytest.mark.timeout(240)
async def test_nothing_outlives_a_killed_demo_and_the_next_one_cleans_up(folder: Path) -> None:
    """After kill -9 no process or mount is left; the next start removes the folder; Ctrl-C."""
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


@pytest.mark.demo
@pytest.mark.timeout(240)
async def test_two_with_keep_run_until_they_are_ended(folder: Path) -> None:
    """Each says what to try; one is killed, the other lives until Ctrl-C.

    Six brokers at full speed may be more than the machine has: that all is seen is for one alone.
    """
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(demo(folder, "--keep"))
        other = await stack.enter_async_context(demo(folder, "--keep"))
        urls = []
        for it in (one, other):
            await it.printed("Log of sidecar 2")
            urls.append(re.findall(r"curl -s (\S+/v1/throttle-factor)", it.said()))
        assert 2 == len(owned(folder))
        assert -signal.SIGKILL == await one.end(signal.SIGKILL)
        (url,) = urls[1]
        async with httpx.AsyncClient(timeout=SEEN_S) as client:
            assert 200 == (await client.get(url)).status_code
        await overridden(other)
        await seen("what was killed is gone", lambda: len(alive(folder)) == 1)
        (remaining,) = alive(folder)
        assert 130 == await other.end(signal.SIGINT)
        assert "Traceback" not in other.said()
    await no_process_nor_mount(folder)
    # What was killed is left for the next start to remove.
    assert remaining not in owned(folder)
    assert 1 == len(owned(folder))


@pytest.mark.demo
@pytest.mark.timeout(300)
async def test_the_tutorial_can_be_followed(folder: Path) -> None:
    """Its commands fill a volume of a demo that is left running, and free it."""
    place = folder.with_name("tutorial")
    place.mkdir()
    async with demo(folder, "--keep") as it:
        await it.printed("Log of sidecar 2")
        assert "not seen" not in it.said()
        environ = {
            "BROKERS": re.findall(r"Brokers: (\S+)", it.said())[0],
            "SIDECAR": re.findall(r"curl -s (\S+)/v1/throttle-factor", it.said())[0],
        }
        await asyncio.to_thread(run_blocks, "docs/tutorial.md", "demo", place, {}, environ)
        assert 130 == await it.end(signal.SIGINT)
    await no_process_nor_mount(folder)


async def overridden(it: Demo) -> None:
    """Try the overrides that it says can be tried, as they stand there."""
    said = re.findall(r"^  throttle-sidecar (override .*)$", it.said(), re.MULTILINE)
    answers = []
    for line in said:
        done = await command(*shlex.split(line), "--json", environ=os.environ)
        assert 0 == done.code, done.said
        answers.append([each["answer"] for each in done.document()["sidecars"]])
    set_, shown, cleared = answers
    assert [3, 3, 3] == [len(set_), len(shown), len(cleared)]
    assert [(0.5, "override")] * 3 == [(each["factor"], each["source"]) for each in shown]
    assert [True] * 3 == [each["cleared"] for each in cleared]


class ClusterInWords(FakeCluster):
    """A cluster that is up at once."""

    def __init__(self, *, version: str, volumes: int, **_: object) -> None:
        super().__init__(None)
        self.asked = (version, volumes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


Tell = Callable[[Scenario, Cluster], Awaitable[None]]

ANY_JAR = ["--callback-jar", __file__]
"""A cluster in words loads none, so none has to be built."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Tell], Result]:
    """Runs the command with a story of a test's own."""

    def run_with(tell: Tell) -> Result:
        monkeypatch.setattr("kafka_lab.cluster.Cluster", ClusterInWords)
        monkeypatch.setattr("kafka_lab.scenario.play", tell)
        return CliRunner().invoke(group, ["demo", "--kafka-version", "3.9.1", *ANY_JAR])

    return run_with


def test_a_step_that_was_not_seen_is_exit_code_1(run: Callable[[Tell], Result]) -> None:
    """The table shows that it was not seen, and the error stands under it."""

    async def tell(scenario: Scenario, cluster: Cluster) -> None:
        assert isinstance(cluster, ClusterInWords)
        assert "3.9.1" == cluster.asked[0]
        async with scenario.step("factor 0.0 everywhere"):
            raise ClusterError("the sidecar was not there")

    result = run(tell)
    assert (1, True) == (result.exit_code, isinstance(result.exception, SystemExit))
    (row,) = [line for line in result.output.splitlines() if line.startswith("│ factor 0.0")]
    assert "not seen" in row
    assert "Note: the sidecar was not there" in result.output


def test_a_scenario_that_was_seen_is_exit_code_0(run: Callable[[Tell], Result]) -> None:
    """Its notes stand under the table."""

    async def tell(scenario: Scenario, cluster: Cluster) -> None:
        scenario.notes.append("a note")
        async with scenario.step("factor 0.0 everywhere"):
            pass

    result = run(tell)
    assert 0 == result.exit_code
    assert "Kafka 3.9.1: three brokers ready" in result.output
    assert "Note: a note" in result.output


def test_a_cluster_that_does_not_start_is_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn ends its line, and the error is a line of its own."""

    class NoCluster(ClusterInWords):
        async def __aenter__(self) -> Self:
            raise ClusterError("Kafka 9.9.9 can't be resolved")

    monkeypatch.setattr("kafka_lab.cluster.Cluster", NoCluster)
    result = CliRunner().invoke(group, ["demo", "--kafka-version", "9.9.9", *ANY_JAR])
    assert 2 == result.exit_code
    assert "Kafka 9.9.9 can't be resolved\n" == result.stderr
    (drawn,) = result.stdout.splitlines(keepends=True)
    assert drawn.endswith("\n")
