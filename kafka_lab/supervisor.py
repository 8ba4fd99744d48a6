"""Starts the process that runs the brokers (``supervisor_process.py``) and communicates with it.

Nothing here belongs to an event loop: a thread reads the process's output, and every request is a
future that any loop can await. So a cluster that was started in one loop, of a session's fixture,
can be used from another loop, of a test.

The thread that creates a Supervisor must outlive it: Linux signals a parent's death to a child when
the thread that started the child ends.
"""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from kafka_lab.closing import Closing
from kafka_lab.isolation import Isolation
from sidecar.errors import ClusterError

_GONE = "the process that runs the brokers has ended"
_REQUEST_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0


class Supervisor(Closing):
    """The supervisor process, as this process sees it."""

    def __init__(self, isolation: Isolation) -> None:
        """Start the process; returns at once.

        Raises:
            ClusterError: the process can't be started.
        """
        script = Path(__file__).with_name("supervisor_process.py")
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                [*isolation.prefix, sys.executable, "-I", "-S", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C reaches only this process, which ends the brokers
            )
        except OSError as error:
            raise ClusterError(f"the process that runs the brokers can't start: {error}") from error
        self._lock = threading.Lock()
        self._waiting: deque[Future[Any]] = deque()
        self._ended: dict[str, int] = {}
        self._gone = False
        assert self._process.stdout is not None  # noqa: S101 - PIPE above
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout,), name="supervisor-reader", daemon=True
        )
        self._reader.start()

    async def ask(self, do: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON
        """Send a request (see ``supervisor_process``) and return its answer.

        Raises:
            ClusterError: the request failed, or was not answered within 10 s.
        """
        future = self._send(do, arguments)
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            raise ClusterError(f"{do}: no answer from the process that runs the brokers") from error

    async def spawn(self, name: str, argv: list[str], log: Path) -> int:
        """Start a process and return its pid."""
        self._ended.pop(name, None)
        pid: int = await self.ask("spawn", name=name, argv=argv, log=str(log))
        return pid

    def exit_status(self, name: str) -> int | None:
        """Return how a process ended (negative: the signal); None while it runs."""
        # When the supervisor process ended, it killed all processes that still ran.
        return self._ended.get(name, -signal.SIGKILL if self._gone else None)

    def close(self) -> None:
        """End all processes inside and wait for their end; it can be called more than once."""
        process = self._process
        assert process.stdin is not None  # noqa: S101 - PIPE
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join()
        assert process.stdout is not None  # noqa: S101 - PIPE
        process.stdout.close()

    def _send(self, do: str, arguments: dict[str, object]) -> "Future[Any]":
        future: Future[Any] = Future()
        line = json.dumps({"do": do, **arguments}).encode() + b"\n"
        with self._lock:
            if self._gone or self._process.stdin is None or self._process.stdin.closed:
                raise ClusterError(_GONE)
            self._waiting.append(future)
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except OSError as error:
                raise ClusterError(_GONE) from error
        return future

    def _read(self, answers: IO[bytes]) -> None:
        for line in answers:
            message = json.loads(line)
            if "ended" in message:
                self._ended[message["ended"]] = message["status"]
                continue
            with self._lock:
                future = self._waiting.popleft()
            # The caller may have stopped waiting.
            with suppress(InvalidStateError):
                if "error" in message:
                    future.set_exception(ClusterError(message["error"]))
                else:
                    future.set_result(message["ok"])
        with self._lock:
            self._gone = True
        for future in self._waiting:
            with suppress(InvalidStateError):
                future.set_exception(ClusterError(_GONE))
