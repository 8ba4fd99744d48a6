"""What is seen is written without holding a poll up, and what the log says of a disk that fails."""

import asyncio
import errno
import json
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.history import Folder, History
from sidecar.history.capability import HistoryCapability
from sidecar.history.recorder import MOST_WAITING
from sidecar.volumes import Observation, Reading, Volume
from tests.sidecar.api.build import until
from tests.support.scripted import reading, whole

PATIENCE_S = 10.0
"""How long a test waits for a thread before it is red."""

WALL_S = 1_767_600_000.0
"""2026-01-05T08:00:00Z, when the steady clock is at 0."""


def history(path: Path, max_bytes: int = 1 << 20) -> History:
    return History(Folder(path, "k", max_bytes), lambda steady_s: WALL_S + steady_s)


def seen(at_s: float, available: int = 5) -> Observation:
    return whole(at_s, reading(at_s, 1, available))


def times(path: Path) -> list[str]:
    """The times of the lines in a folder."""
    return fields(path, "time")


def fields(path: Path, name: str) -> list[str]:
    """What the lines in a folder have in a field."""
    return [
        json.loads(line)[name]
        for file in sorted(path.glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]


async def test_what_is_heard_is_written(tmp_path: Path) -> None:
    """Lines have wall time; what was heard last is written when the daemon stops."""
    own = history(tmp_path)
    capability = HistoryCapability(own)
    (task,) = capability.tasks().values()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(task())
        capability.observed(seen(0.5))
        await until(lambda: own.counts.written == 1)
        writing.cancel()
    capability.observed(seen(61.25))
    await capability.leave(PATIENCE_S)
    assert ["2026-01-05T08:00:00.500Z", "2026-01-05T08:01:01.250Z"] == times(tmp_path)


async def test_a_disk_that_hangs_delays_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten observations come while one is written: three wait, six are lost, and it goes on."""
    freed = threading.Event()
    real = Folder.append

    def append(folder: Folder, line: bytes, at_s: float) -> None:
        assert freed.wait(PATIENCE_S)
        real(folder, line, at_s)

    monkeypatch.setattr(Folder, "append", append)
    own = history(tmp_path)
    with caplog.at_level(logging.INFO):
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(own.run())
            own.record(seen(0))
            await asyncio.sleep(0.05)
            for second in range(1, 10):
                own.record(seen(second))
            freed.set()
            await until(lambda: own.counts.written == 1 + MOST_WAITING)
            writing.cancel()
    assert 9 - MOST_WAITING == own.counts.lost
    assert ["00", "07", "08", "09"] == [time[17:19] for time in times(tmp_path)]
    warned, over = [record.getMessage() for record in caplog.records]
    assert (
        warned == f"the volume history in {tmp_path} loses observations: the disk does not keep up"
    )
    assert over.endswith("loses observations: this is over")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left"), "No space left"),
        (ValueError("a bug"), "ValueError('a bug')"),
    ],
)
async def test_what_is_not_written_is_reported_once_and_again_when_it_is_over(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    reason: str,
) -> None:
    """Three lines are lost and counted, nothing is raised, and the next one is written."""

    def fail(folder: Folder, line: bytes, at_s: float) -> None:
        raise error

    own = history(tmp_path)
    with caplog.at_level(logging.INFO):
        with monkeypatch.context() as patched:
            patched.setattr(Folder, "append", fail)
            for second in range(3):
                own.record(seen(second))
            await own.flush()
        own.record(seen(60))
        await own.flush()
    assert (1, 3) == (own.counts.written, own.counts.lost)
    start = f"the volume history in {tmp_path} loses observations: "
    assert [("WARNING", start + reason), ("INFO", f"{start}this is over")] == [
        (record.levelname, record.getMessage()) for record in caplog.records
    ]


async def test_what_can_not_be_packed_is_reported_and_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The line is in its file: nothing is lost."""

    def denied(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    own = history(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", denied)
        for second in range(2):
            own.record(seen(second))
        await own.flush()
    assert (2, 0) == (own.counts.written, own.counts.lost)
    assert [f"the volume history in {tmp_path} is not packed or bounded: Permission denied"] == [
        record.getMessage() for record in caplog.records
    ]


async def test_the_bound_makes_space_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator may lower it because the disk is full."""
    for hour in range(5):
        (tmp_path / f"volumes-k-20260104T{hour:02}.jsonl.gz").write_bytes(b"x" * 1000)
    own = history(tmp_path, max_bytes=3000)
    append = Folder.append

    def fails_when_full(folder: Folder, line: bytes, at_s: float) -> None:
        if sum(file.stat().st_size for file in tmp_path.iterdir()) >= 5000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(folder, line, at_s)

    monkeypatch.setattr(Folder, "append", fails_when_full)
    for at_s in (1.0, 2.0):
        own.record(seen(at_s))
        await own.flush()
    assert (1, 1) == (own.counts.lost, own.counts.written)


async def test_a_bound_that_is_reached_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is, however many files go."""
    own = history(tmp_path, max_bytes=300)
    with caplog.at_level(logging.INFO):
        for hour in range(8):
            own.record(seen(3600 * hour))
            await own.flush()
    assert 4 <= own.folder.removed
    assert [f"the volume history in {tmp_path} has reached its bound"] == [
        record.getMessage().partition(":")[0] for record in caplog.records
    ]


class TestLeave:
    async def test_the_last_line_comes_after_the_one_that_is_being_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A write in its thread can't be cancelled: two at once would tear each other's lines."""
        began, freed = threading.Event(), threading.Event()
        writing: list[float] = []
        most: list[int] = []
        real = Folder.append

        def append(folder: Folder, line: bytes, at_s: float) -> None:
            writing.append(at_s)
            most.append(len(writing))
            began.set()
            assert freed.wait(PATIENCE_S)
            real(folder, line, at_s)
            writing.remove(at_s)

        monkeypatch.setattr(Folder, "append", append)
        own = history(tmp_path)
        running = asyncio.create_task(own.run())
        own.record(seen(0))
        await until(began.is_set)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        own.record(seen(1))
        leaving = asyncio.create_task(own.leave(PATIENCE_S))
        await asyncio.sleep(0.05)
        freed.set()
        await leaving
        assert [1, 1] == most
        assert ["00", "01"] == [time[17:19] for time in times(tmp_path)]

    async def test_a_disk_that_hangs_is_left_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is, after the time that a stop has for it."""
        freed = threading.Event()

        def hang(folder: Folder, line: bytes, at_s: float) -> None:
            freed.wait(PATIENCE_S)

        monkeypatch.setattr(Folder, "append", hang)
        own = history(tmp_path)
        own.record(seen(0))
        await own.leave(0.01)
        freed.set()
        assert "is left behind" in caplog.text
        await own.flush()


class TestPlace:
    @pytest.mark.parametrize("shift", [0, 4096], ids=["same", "another"])
    async def test_a_data_volume_is_warned_of(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, shift: int
    ) -> None:
        """It is, when path and size say so; of another size it is another container's path."""
        sizes = os.statvfs(tmp_path)
        total = sizes.f_blocks * sizes.f_frsize + shift
        volume = Volume(7, str(tmp_path), total, 0)
        own = history(tmp_path)
        for second in range(2):
            own.record(whole(second, Reading(7, second, (volume,))))
        await own.flush()
        expected = (
            f"the volume history in {tmp_path} is on the volume of broker 7's log dir {tmp_path}:"
            " SIDECAR_HISTORY_DIR belongs on another"
        )
        assert ([] if shift else [expected]) == [each.getMessage() for each in caplog.records]


async def test_a_line_names_the_cluster_that_was_last_named(tmp_path: Path) -> None:
    """A look at some brokers alone names none."""
    own = history(tmp_path)
    named = seen(0.5)
    assert named.membership is not None
    own.record(replace(named, membership=replace(named.membership, cluster_id="MkU3")))
    own.record(replace(seen(1.5), membership=None))
    await own.leave(PATIENCE_S)
    assert ["MkU3", "MkU3"] == fields(tmp_path, "cluster_id")
