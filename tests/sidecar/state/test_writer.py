"""The state writer: when it writes, one write at a time, and its log when a disk fails."""

import asyncio
import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from sidecar.control.board import Board, PersistedState
from sidecar.control.persistence import Persistence
from sidecar.state import StateFile
from sidecar.state.writer import StateWriter
from sidecar.threads import OwnThreads
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.memory import Override
from sidecar.throttle.rules import Rules
from tests.support.scripted import LIMIT, reading, run_for, whole

PATIENCE_S = 10.0
"""How long a test waits for a thread before it is red."""

Save = Callable[[StateFile, PersistedState, Callable[[float], float]], None]


def see(board: Board, available: int) -> None:
    """Publishes an observation of one broker."""
    at = board.now()
    board.observe(whole(at, reading(at, 1, available)))


def loaded_from(path: Path) -> PersistedState:
    loaded = StateFile(path, Rules(LIMIT, 300.0)).load(1e12)
    assert isinstance(loaded, PersistedState)
    return loaded


def available_in(path: Path) -> int:
    """The bytes that broker 1 has available by the file."""
    return loaded_from(path).memory.brokers[1].volumes[0].volume.available_bytes


def inode_of(path: Path) -> int:
    """The file's inode, another one after each write, since the file is replaced."""
    return path.stat().st_ino


def new_board(validity_s: float = 300.0) -> Board:
    return Board(VolumeLimit(Rules(LIMIT, validity_s), 1.0), asyncio.get_running_loop().time)


def new_state_writer(board: Board, path: Path) -> StateWriter:
    return StateWriter(board, StateFile(path, board.rules), lambda steady_s: steady_s)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times of all writes, which take no time: threads don't live in the loop's time."""
    times: list[float] = []
    real: Save = StateFile.save

    def save(file: StateFile, state: PersistedState, wall: Callable[[float], float]) -> None:
        times.append(asyncio.get_running_loop().time())
        real(file, state, wall)

    def inline(_: OwnThreads, call: Callable[..., None], *args: object) -> Future[None]:
        done: Future[None] = Future()
        try:
            call(*args)
            done.set_result(None)
        except OSError as error:
            done.set_exception(error)
        return done

    monkeypatch.setattr(StateFile, "save", save)
    monkeypatch.setattr(OwnThreads, "submit", inline)
    return times


@pytest.mark.looptime
class TestWhen:
    """When it writes, in virtual time."""

    async def test_what_is_published_at_the_start_is_written_at_once(
        self, path: Path, writes: list[float]
    ) -> None:
        """An unwritable folder is reported at the start, too."""
        await run_for(1, new_state_writer(new_board(), path).run())
        assert [0] == writes
        assert Source.FALLBACK == loaded_from(path).source

    async def test_a_change_is_written_at_once(self, path: Path, writes: list[float]) -> None:
        """The factor falls at 3 s and is on disk at 3 s."""
        board = new_board()

        async def fill() -> None:
            await asyncio.sleep(1)
            see(board, 500)
            await asyncio.sleep(2)
            see(board, 50)

        await run_for(9, new_state_writer(board, path).run(), fill())
        assert [0, 1, 3] == writes
        assert (0.0, Source.OBSERVATION, 3.0) == (
            loaded_from(path).factor,
            loaded_from(path).source,
            loaded_from(path).since,
        )

    async def test_a_user_throttle_that_gets_longer_is_written_within_a_second(
        self, path: Path, writes: list[float]
    ) -> None:
        """One that gets longer by less waits for the next write; one that begins does not."""
        board = new_board()
        see(board, 500)

        async def lengthen() -> None:
            for pause_s, ends_at in ((2, 100.0), (2.5, 172.0), (2, 172.9)):
                await asyncio.sleep(pause_s)
                board.throttle_users("one", {"bob": (ends_at, "too many ids")})

        await run_for(16, new_state_writer(board, path).run(), lengthen())
        assert [0, 2, 5, 15] == pytest.approx(writes)
        ends_at = loaded_from(path).memory.user_throttles["bob", "one"].ends_at
        assert 172.9 == pytest.approx(ends_at)

    @pytest.mark.slow
    async def test_moving_bytes_alone_are_written_every_ten_seconds(
        self, path: Path, writes: list[float]
    ) -> None:
        """600 polls a minute make 6 writes."""
        board = new_board()
        see(board, 499)

        async def move() -> None:
            for n in range(600):
                see(board, 500 + n)
                await asyncio.sleep(0.1)

        await run_for(59.5, new_state_writer(board, path).run(), move())
        assert [0, 10, 20, 30, 40, 50] == pytest.approx(writes)
        assert 1000 == available_in(path)

    async def test_with_a_short_validity_they_are_written_more_often(
        self, path: Path, writes: list[float]
    ) -> None:
        """A kill -9 leaves what is still valid on disk."""
        board = new_board(validity_s=4.0)
        see(board, 499)

        async def move() -> None:
            for n in range(100):
                see(board, 500 + n)
                await asyncio.sleep(0.1)

        await run_for(3.5, new_state_writer(board, path).run(), move())
        assert [0, 1, 2, 3] == pytest.approx(writes)

    async def test_nothing_new_is_not_written_again(self, path: Path, writes: list[float]) -> None:
        """An idle disabled minute costs no write."""
        await run_for(60, new_state_writer(new_board(), path).run())
        assert [0] == writes

    async def test_it_ends_when_the_board_is_closed(self, path: Path, writes: list[float]) -> None:
        """Nobody is left waiting for a board that publishes no more."""
        board = new_board()
        task = asyncio.create_task(new_state_writer(board, path).run())
        await asyncio.sleep(1)
        board.close()
        await asyncio.wait_for(task, 1)


class TestKeep:
    """The result and the log of ``write``."""

    async def test_true_once_the_override_is_on_disk(self, path: Path) -> None:
        """The API says whether an override outlasts a restart: it is read back here."""
        board = new_board()
        override = Override(0.5, "a migration", board.now(), board.now() + 60)
        board.set_override(override)
        assert await new_state_writer(board, path).write()
        assert override == loaded_from(path).memory.override

    async def test_true_without_writing_when_it_is_on_disk_already(self, path: Path) -> None:
        """The same snapshot twice is one write."""
        state_writer = new_state_writer(new_board(), path)
        assert await state_writer.write()
        inode = inode_of(path)
        assert await state_writer.write()
        assert inode == inode_of(path)


def full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestADiskThatFails:
    async def test_a_full_disk_is_reported_once_and_reported_when_it_is_over(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Three failed writes are one line, the next that succeeds is one more; and again."""
        board = new_board()
        state_writer = new_state_writer(board, path)
        real = os.fsync
        said = []
        with caplog.at_level(logging.DEBUG, "sidecar.state.writer"):
            for works in (True, False, False, False, True, True, False):
                monkeypatch.setattr(os, "fsync", real if works else full)
                see(board, 500)
                said.append(await state_writer.write())
        assert [True, False, False, False, True, True, False] == said
        why = os.strerror(errno.ENOSPC)
        lost = f"the state can't be written to {path}: {why}; a restart would forget"
        assert [
            (logging.WARNING, f"{lost} it"),
            (logging.INFO, f"the state is written to {path} again"),
            (logging.WARNING, f"{lost} it"),
        ] == [(record.levelno, record.getMessage()) for record in caplog.records]

    @pytest.mark.looptime
    async def test_a_folder_that_went_away_ends_nothing(
        self, tmp_path: Path, writes: list[float], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The state writer goes on, and writes again once the folder is back."""
        board, folder = new_board(), tmp_path / "folder"
        path = folder / "state.json"

        async def happen() -> None:
            await asyncio.sleep(1)
            see(board, 500)
            folder.mkdir()
            await asyncio.sleep(1)
            see(board, 50)

        caplog.set_level(logging.INFO, "sidecar.state.writer")
        await run_for(3, new_state_writer(board, path).run(), happen())
        assert [0, 1, 2] == writes
        assert 50 == available_in(path)
        assert ["WARNING", "INFO"] == [record.levelname for record in caplog.records]


class Disk:
    """A disk that finishes a write only when released, and counts concurrent writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.writing = 0
        self.most = 0
        real: Save = StateFile.save

        def save(file: StateFile, state: PersistedState, wall: Callable[[float], float]) -> None:
            self.writing += 1
            self.most = max(self.most, self.writing)
            self.begun.release()
            assert self.let.acquire(timeout=PATIENCE_S)
            real(file, state, wall)
            self.writing -= 1

        monkeypatch.setattr(StateFile, "save", save)

    async def write_begun(self) -> None:
        """Waits for the next write to begin."""
        assert await asyncio.get_running_loop().run_in_executor(
            None, lambda: self.begun.acquire(timeout=PATIENCE_S)
        )


class TestOneWriteAtATime:
    async def test_two_who_ask_at_once_write_one_after_the_other(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They don't race for the file, and the loop turns meanwhile: else the disk waits."""
        disk, board = Disk(monkeypatch), new_board()
        state_writer = new_state_writer(board, path)
        first = asyncio.create_task(state_writer.write())
        await disk.write_begun()
        see(board, 500)
        second = asyncio.create_task(state_writer.write())
        await asyncio.sleep(0.02)
        disk.let.release(2)
        assert await first
        assert await second
        assert 1 == disk.most
        assert 500 == available_in(path)

    async def test_a_write_whose_asker_is_cancelled_is_still_the_only_one(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At a stop the writer is cancelled, and the last state is written after it, not beside.

        A thread can't be cancelled: were the last write begun beside it, the older state might be
        renamed over the newer.
        """
        disk, board = Disk(monkeypatch), new_board()
        state_writer = new_state_writer(board, path)
        run = asyncio.create_task(state_writer.run())
        await disk.write_begun()
        run.cancel()
        see(board, 500)
        last = asyncio.create_task(state_writer.write())
        await asyncio.sleep(0.02)
        disk.let.release(2)
        assert await last
        with contextlib.suppress(asyncio.CancelledError):
            await run
        assert 1 == disk.most
        assert 500 == available_in(path)


class TestADiskThatHangs:
    async def test_an_answer_does_not_wait_for_it(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """However many ask, one write waits; it has the newest state when the disk answers."""
        monkeypatch.setattr("sidecar.state.writer._PERSIST_S", 0.05)
        monkeypatch.setattr("sidecar.state.writer._HUNG_S", 0.01)
        caplog.set_level(logging.INFO, "sidecar.state.writer")
        disk, board = Disk(monkeypatch), new_board()
        state_writer = new_state_writer(board, path)
        assert Persistence.PENDING is await state_writer.persist()
        tasks = len(asyncio.all_tasks())
        for available in (500, 400, 300):
            see(board, available)
            assert Persistence.PENDING is await state_writer.persist()
        assert tasks + 1 == len(asyncio.all_tasks())
        disk.let.release(2)
        assert await state_writer.write()
        assert 1 == disk.most
        assert 300 == available_in(path)
        assert Persistence.WRITTEN is await state_writer.persist()
        warning, again, *_ = caplog.messages
        assert warning.startswith(f"writing the state to {path} has not ended after 0.01 s: ")
        assert f"the state is written to {path} again" == again

    async def test_lookups_that_hang_do_not_delay_a_write(self, path: Path) -> None:
        """They fill the loop's own pool of threads, in which asyncio looks names up."""
        over = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        lookup = loop.run_in_executor(None, over.wait, PATIENCE_S)
        try:
            assert Persistence.WRITTEN is await new_state_writer(new_board(), path).persist()
        finally:
            over.set()
            await lookup

    async def test_a_disk_that_fails(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The answer has it."""
        monkeypatch.setattr(os, "fsync", full)
        assert Persistence.FAILED is await new_state_writer(new_board(), path).persist()
