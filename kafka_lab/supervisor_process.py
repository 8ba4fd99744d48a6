"""The process that runs the brokers, started by path inside the namespace; standard library only.

It is the namespace's first process, so all processes inside end with it. It ends when its standard
input is closed, which means that the process that started it has ended. Requests are JSON lines on
standard input. They are answered in order on standard output. Between the answers, the process
reports there which of its children have ended, as ``{"ended": name, "status": n}``; a negative
status is a signal.

A request is ``{"do": operation, ...}``, its answer ``{"ok": result}`` or ``{"error": text}``:

- mount(path, bytes, kind): mounts a new file system of that size on a new folder: tmpfs, or ext4 or
  xfs in an image file beside the folder, which need root and loop devices.
- put(path, text), rename(path, to), remove(path): change files inside the namespace.
- occupy(path, bytes): allocates a file of that many bytes; 0 removes it.
- usage(path): [total bytes, available bytes] of the file system.
- spawn(name, argv, log): starts a process; returns its pid as this process's parent sees it.
- signal(name, signal): sends a signal.
"""

import ctypes
import json
import os
import random
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_FIRST_PID = 1000
_libc = ctypes.CDLL(None)


class Supervisor:
    """The processes, and a method for each operation."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out a request."""
        request = json.loads(line)
        operations: dict[str, Callable[..., Any]] = {
            "mount": self.mount,
            "put": self.put,
            "rename": self.rename,
            "remove": self.remove,
            "occupy": self.occupy,
            "usage": self.usage,
            "spawn": self.spawn,
            "signal": self.signal,
        }
        try:
            return {"ok": operations[request.pop("do")](**request)}
        except subprocess.CalledProcessError as error:
            return {"error": f"{error}: {error.stderr.strip()}"}
        except (OSError, LookupError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def mount(self, path: str, bytes: int, kind: str) -> None:  # noqa: A002 - the protocol's word
        """Mount a new file system of that size on a new folder."""
        Path(path).mkdir(parents=True)
        if kind == "tmpfs":
            # Many inodes cost nothing, and a volume should run out of bytes first.
            source, options = "kafka-volume", f"size={bytes},nr_inodes=1000000,mode=700"
        else:
            source, options = f"{path}.{kind}", "loop"
            Path(source).touch()
            os.truncate(source, bytes)
            # By default, ext4 reserves 5 % for root, which runs the brokers here.
            make = ["mkfs.ext4", "-q", "-m", "0"] if kind == "ext4" else [f"mkfs.{kind}", "-q"]
            _run([*make, source])
        _run(["mount", "-t", kind, "-o", options, source, path])

    def put(self, path: str, text: str) -> None:
        """Write a file and the folders above it."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    def rename(self, path: str, to: str) -> None:
        """Rename a file or folder."""
        Path(path).rename(to)

    def remove(self, path: str) -> None:
        """Remove a file or folder, if it exists."""
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def occupy(self, path: str, bytes: int) -> None:  # noqa: A002 - the protocol's word
        """Allocate a file of that many bytes, or remove it."""
        if bytes == 0:
            self.remove(path)
            return
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Of what is allocated already, tmpfs would check each page, half a second for GBs, and
            # XFS would need as much space again.
            size = os.fstat(fd).st_size
            if bytes <= size:
                os.ftruncate(fd, bytes)
            else:
                os.posix_fallocate(fd, size, bytes - size)
        finally:
            os.close(fd)

    def usage(self, path: str) -> list[int]:
        """Return the total and the available bytes of the file system."""
        space = os.statvfs(path)
        return [space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize]

    def spawn(self, name: str, argv: list[str], log: str) -> int:
        """Start a process; its output is appended to ``log``."""
        if name in self._pids:
            raise LookupError(f"{name} is still running")
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(argv, log, writer)
        os.close(writer)
        with os.fdopen(reader) as commands:
            seen_outside = commands.read()
        self._pids[name] = pid
        return int(seen_outside or pid)

    def signal(self, name: str, signal: int) -> None:
        """Send a signal to one process."""
        os.kill(self._pids[name], signal)

    def reap(self) -> list[dict[str, Any]]:
        """Collect ended processes, also orphans, which the namespace's first process inherits."""
        ended: list[dict[str, Any]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ended
            if pid == 0:
                return ended
            for name in [name for name, known in self._pids.items() if known == pid]:
                del self._pids[name]
                ended.append({"ended": name, "status": os.waitstatus_to_exitcode(status)})

    def end(self) -> None:
        """Kill all processes and wait for them, as a pid namespace would do."""
        for pid in self._pids.values():
            os.kill(pid, signal.SIGKILL)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _run(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603 - our own words


def _become(argv: list[str], log: str, writer: int) -> None:
    """Turn the forked child into the program; never returns."""
    try:
        # Without a pid namespace, this ends a broker when this process is killed.
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # /proc is that of the parents, so this is the pid that they see.
        os.write(writer, str(Path("/proc/self").readlink()).encode())
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{argv[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _count_from_anywhere() -> None:
    """Let the namespace's pids begin with a random number, if the kernel allows it.

    A JVM listens for tools at /tmp/.java_pid<its own pid>, and removes an existing file when it
    starts. Two clusters that count from 1 would remove each other's files.
    """
    if os.getpid() != 1:
        return
    with suppress(OSError, ValueError):
        pids = int(Path("/proc/sys/kernel/pid_max").read_text())
        first = random.randrange(_FIRST_PID, pids - _FIRST_PID)  # noqa: S311 - no secret
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(first))


def main() -> None:
    """Serve requests until standard input ends."""
    _count_from_anywhere()
    supervisor = Supervisor()
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(wake_reader, selectors.EVENT_READ)
    buffer = b""
    while True:
        for key, _ in selector.select():
            if key.fd == wake_reader:
                os.read(wake_reader, 4096)
                for ended in supervisor.reap():
                    _write(ended)
                continue
            chunk = os.read(0, 65536)
            if not chunk:
                supervisor.end()
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                _write(supervisor.answer(line))


def _write(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(1)
