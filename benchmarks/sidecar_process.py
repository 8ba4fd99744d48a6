"""The daemon as anyone runs it, in a process of its own, seen from outside."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.harness.machine import process_cpu_s
from benchmarks.reader import Reader, ReceivedFactor
from sidecar.settings import HostPort

LIMIT: Final = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"

_LISTENS: Final = re.compile(r"listens on http://([0-9.]+):(\d+)")
_START_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 5.0


class SidecarProcess:
    """``python -m sidecar run``, from entry to exit of its context.

    Attributes:
        spawned_at: when its process was asked for, ``time.monotonic()`` seconds.
        address: where it listens.
    """

    def __init__(self, bootstrap: str, settings: Mapping[str, str]) -> None:
        """Starts it, and returns when it listens.

        Args:
            bootstrap: the brokers' addresses.
            settings: SIDECAR_* variables besides; nothing else of this process's environment is
                passed on, and a port is taken that is free.

        Raises:
            RuntimeError: it did not start.
        """
        environment = {
            "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap,
            "SIDECAR_HTTP_LISTEN": "127.0.0.1:0",
            **settings,
        }
        self.spawned_at = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "run"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.address = self._listens()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            # Reads what is left of its log, too.
            self._process.communicate(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def cpu_s(self) -> float:
        """The CPU time that it has used so far, seconds."""
        return process_cpu_s(self._process.pid)

    def resident_bytes(self) -> int:
        """Its resident memory, shared libraries included."""
        rollup = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(encoding="ascii")
        found = re.search(r"^Rss:\s+(\d+) kB$", rollup, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    def threads(self) -> int:
        """How many threads it has."""
        return len(list(Path(f"/proc/{self._process.pid}/task").iterdir()))

    def wait_observed(self) -> ReceivedFactor:
        """The first answer to a waiting reader that comes from an observation."""
        with Reader(self.address) as reader:
            return wait_heard(reader, lambda heard: heard.source == "observation")

    def _listens(self) -> HostPort:
        assert self._process.stderr is not None
        said = ""
        for line in self._process.stderr:
            said += line
            if (found := _LISTENS.search(line)) is not None:
                return HostPort(found[1], int(found[2]))
        self._process.wait()
        raise RuntimeError(f"the daemon did not start:\n{said}")


def wait_heard(
    reader: Reader, is_met: Callable[[ReceivedFactor], bool], timeout_s: float = _START_TIMEOUT_S
) -> ReceivedFactor:
    """What a reader has heard, once it is what is waited for.

    Raises:
        TimeoutError: it was not heard in time.
    """
    deadline = time.monotonic() + timeout_s
    while (heard := reader.last) is None or not is_met(heard):
        if time.monotonic() > deadline:
            raise TimeoutError(f"what was waited for was not heard; last: {heard}")
        time.sleep(0.001)
    return heard
