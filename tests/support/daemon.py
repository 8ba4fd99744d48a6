"""The real daemon as a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.waiting import SEEN_S, until

DECIDED = re.compile(r"throttle factor \S+ \(observation\)")


@dataclass
class Daemon:
    """A running ``python -m sidecar run``."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        """All that it wrote, to standard output and error."""
        return self.log.read_text()

    def wait_for(self, pattern: str | re.Pattern[str], count: int = 1) -> re.Match[str]:
        """Waits until something was logged so often; gives the last of it."""
        found: list[re.Match[str]] = []

        def there() -> bool:
            found[:] = re.finditer(pattern, self.output)
            return len(found) >= count

        until(there, lambda: f"no {pattern!r} in:\n{self.output}", self.is_running)
        return found[count - 1]

    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def urls(self) -> list[str]:
        """Where it listens, by its log."""
        line = self.wait_for(r"listens on (http://\S+?)(?: and (http://[^\s\"]+))?[\s\"]")
        return [url.rstrip('",') for url in line.groups() if url is not None]

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def address(self) -> str:
        """host:port."""
        return self.url.removeprefix("http://")

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return get(self.url + path, headers)

    def factor(self) -> dict[str, Any]:
        """What /v1/throttle-factor says."""
        document: dict[str, Any] = self.get("/v1/throttle-factor").json()
        return document

    def override(self, token: str, factor: float = 0.5) -> httpx.Response:
        """Sets an override of an hour."""
        body = {"factor": factor, "reason": "a migration", "duration": "PT1H"}
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.put(f"{self.url}/v1/override", json=body, headers=headers, timeout=SEEN_S)

    def send(self, *signals: signal.Signals) -> None:
        for number in signals:
            self.process.send_signal(number)

    def ended(self) -> int:
        """Waits for its end: the exit code."""
        return self.process.wait(SEEN_S)

    def records(self) -> list[dict[str, Any]]:
        """Its lines, when it logs JSON."""
        return [json.loads(line) for line in self.output.splitlines()]


def get(url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """One request, on a connection of its own."""
    return httpx.get(url, headers=headers, timeout=SEEN_S)


@contextmanager
def started(
    folder: Path, settings: Mapping[str, str], *args: str, files: int | None = None
) -> Iterator[Daemon]:
    """Starts a daemon with nothing of ours in its environment, and kills it at the end.

    Args:
        folder: for its log.
        settings: its environment.
        args: of its command.
        files: how many it may have open, by its hard limit.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("SIDECAR_")}
    log = folder / f"daemon-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", "sidecar", "run", *args]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"', *command]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            env=inherited | {"SIDECAR_HTTP_LISTEN": "127.0.0.1:0"} | dict(settings),
            stdout=stream,
            stderr=stream,
        )
    try:
        yield Daemon(process, log)
    finally:
        process.kill()
        process.wait()
