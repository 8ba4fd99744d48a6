"""The process above the brokers: it starts, signals and reports processes, and none outlives it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_lab.isolation import Isolation, probe
from kafka_lab.supervisor import Supervisor
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError

pytestmark = pytest.mark.slow

_PLAIN = Isolation("plain folders", (), has_mounts=False)
_SLEEP = ["sleep", "1000"]


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _proc(pid: int, file: str) -> bytes:
    return Path("/proc", str(pid), file).read_bytes()


def _exists(pid: int) -> bool:
    """Whether the process is there and no mere zombie."""
    try:
        return b") Z " not in _proc(pid, "stat")
    # The second error comes when it ends between open and read.
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(params=["plain", "best"])
def supervisor(request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    """It runs without a namespace, and with the best that this machine has."""
    with Supervisor(_PLAIN if request.param == "plain" else probe()) as supervisor:
        yield supervisor


async def _ended(supervisor: Supervisor, name: str) -> int:
    async with deadline(5.0, f"{name} did not end"):
        await until(lambda: supervisor.exit_status(name) is not None)
    status = supervisor.exit_status(name)
    assert status is not None
    return status


async def test_a_process_runs_with_its_output_in_its_log(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """Both outputs are appended; its end is reported with the exit status."""
    log = tmp_path / "log"
    for status in (0, 3):
        await supervisor.spawn("p", ["sh", "-c", f"echo out; echo err >&2; exit {status}"], log)
        assert status == await _ended(supervisor, "p")
    assert "out\nerr\nout\nerr\n" == log.read_text()


async def test_the_pid_is_the_one_that_we_see(supervisor: Supervisor, tmp_path: Path) -> None:
    """It is so outside of a pid namespace, too, where the process has another one inside."""
    pid = await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    assert b"sleep\x001000\x00" == _proc(pid, "cmdline")


@pytest.mark.skipif(
    not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK),
    reason="this machine does not say where pids begin (/proc/sys is read-only)",
)
async def test_no_two_namespaces_count_alike(tmp_path: Path) -> None:
    """A JVM's socket in /tmp is named by its pid inside, and clusters run side by side."""
    pids = set()
    for number in range(3):
        with Supervisor(probe()) as supervisor:
            log = tmp_path / str(number)
            await supervisor.spawn("p", ["sh", "-c", "echo $$"], log)
            await _ended(supervisor, "p")
            pids.add(int(log.read_text()))
    assert 3 == len(pids)


async def test_a_signal_ends_a_process(supervisor: Supervisor, tmp_path: Path) -> None:
    """Its end has the signal; then the name is free again."""
    await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    assert supervisor.exit_status("p") is None
    await supervisor.ask("signal", name="p", signal=int(signal.SIGKILL))
    assert -signal.SIGKILL == await _ended(supervisor, "p")
    await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    assert supervisor.exit_status("p") is None


async def test_a_program_that_is_not_there_says_so(supervisor: Supervisor, tmp_path: Path) -> None:
    """Its log does, and the status is the shell's for it."""
    await supervisor.spawn("p", ["no-such-program"], tmp_path / "log")
    assert 127 == await _ended(supervisor, "p")
    assert "no-such-program: " in (tmp_path / "log").read_text()


async def test_a_name_is_for_one_process(supervisor: Supervisor, tmp_path: Path) -> None:
    """A second of that name is refused while the first runs."""
    await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    with pytest.raises(ClusterError, match="p is still running"):
        await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    with pytest.raises(ClusterError, match="KeyError"):
        await supervisor.ask("signal", name="q", signal=9)


async def test_files_can_be_put_moved_and_removed(supervisor: Supervisor, tmp_path: Path) -> None:
    """What is done to log dirs, which may lie on mounts that only the warden sees."""
    await supervisor.ask("put", path=str(tmp_path / "a/b/file"), text="x")
    await supervisor.ask("rename", path=str(tmp_path / "a/b"), to=str(tmp_path / "a/c"))
    assert "x" == (tmp_path / "a/c/file").read_text()
    for _ in range(2):
        await supervisor.ask("remove", path=str(tmp_path / "a"))
    assert [] == _names(tmp_path)


async def test_space_is_really_occupied_and_freed(supervisor: Supervisor, tmp_path: Path) -> None:
    """It grows and shrinks; what does not fit is refused."""
    file = tmp_path / "ballast"
    for size in (3 << 20, 1 << 20, 2 << 20):
        await supervisor.ask("occupy", path=str(file), bytes=size)
        assert (size, size) == (file.stat().st_size, file.stat().st_blocks * 512)
    await supervisor.ask("occupy", path=str(file), bytes=0)
    assert [] == _names(tmp_path)
    with pytest.raises(ClusterError, match="OSError"):
        await supervisor.ask("occupy", path=str(file), bytes=1 << 60)


async def test_nothing_outlives_the_end(supervisor: Supervisor, tmp_path: Path) -> None:
    """Closing returns when all processes are gone, children of children too; twice is harmless."""
    pid = await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    paused = await supervisor.spawn("q", _SLEEP, tmp_path / "log")
    await supervisor.ask("signal", name="q", signal=int(signal.SIGSTOP))
    supervisor.close()
    assert not _exists(pid)
    assert not _exists(paused)
    supervisor.close()
    with pytest.raises(ClusterError, match="has ended"):
        await supervisor.spawn("r", _SLEEP, tmp_path / "log")


async def test_nothing_outlives_a_killed_warden(supervisor: Supervisor, tmp_path: Path) -> None:
    """SIGKILL of the warden itself ends its processes, and a request then fails at once."""
    pid = await supervisor.spawn("p", _SLEEP, tmp_path / "log")
    parent = int(_proc(pid, "stat").rpartition(b")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    async with deadline(5.0, "it did not end"):
        await until(lambda: not _exists(pid))
    with pytest.raises(ClusterError, match="has ended"):
        await supervisor.ask("usage", path=str(tmp_path))
    assert -signal.SIGKILL == await _ended(supervisor, "p")


async def test_volumes_are_mounted_where_nobody_else_sees_them(tmp_path: Path) -> None:
    """A tmpfs has the size asked for, inside only; without a namespace there is none to test."""
    isolation = probe()
    if not isolation.has_mounts:
        pytest.skip(f"this machine allows no mounts: {isolation.why_not}")
    with Supervisor(isolation) as supervisor:
        path = tmp_path / "volume"
        await supervisor.ask("mount", path=str(path), bytes=8 << 20, kind="tmpfs")
        await supervisor.ask("put", path=str(path / "file"), text="x")
        total, available = await supervisor.ask("usage", path=str(path))
        assert total == 8 << 20
        assert 0 < available < total
        assert [] == _names(path)
