"""The real daemon as tests run it: a process beside a cluster's brokers or alone, asked over HTTP.

Example: ``async with started(tmp_path, settings("127.0.0.1:9092")) as daemon`` starts one, and
``await daemon.decides(1.0)`` waits for its decision. It has no environment but its settings, and
ends with the test, also with one that is killed.
"""

import os
import re
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

import httpx
from prometheus_client.parser import text_string_to_metric_families

from kafka_lab.isolation import Isolation
from kafka_lab.supervisor import Supervisor
from tests.support.documents import Document, Documents, Metrics
from tests.support.waiting import SEEN_S, seen

QUICK = {
    "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0.2S",
    "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.1S",
}
"""So that a change is seen soon, whether or not volumes fill. A poll's deadline is then 2 s."""

LIMIT_BYTES = 40 << 20
"""The limit of ``settings``, of the clusters' volumes of 64 MiB."""

FULL_BYTES = 32 << 20
"""So many more bytes on a free volume violate that limit."""

_LISTENS = re.compile(r"listens on (https?://[^\s\",]+)(?: and (https?://[^\s\",]+))?")


def settings(bootstrap: str, **more: str) -> dict[str, str]:
    """SIDECAR_* for a cluster; ``more`` without that prefix."""
    return {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap,
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
        # The volumes are so small that every leak would be an emergency.
        "SIDECAR_THROTTLE_EMERGENCY_HORIZON": "PT0.001S",
        **QUICK,
        **{f"SIDECAR_{name}": value for name, value in more.items()},
    }


class Beside(Protocol):
    """What can run a daemon beside itself, such as a ``Cluster``."""

    async def run_beside(self, name: str, argv: Sequence[str], log: Path) -> int:
        """Start a process; its pid."""

    def ended(self, name: str) -> int | None:
        """How it ended; None while it runs."""


class Daemon(Documents):
    """A daemon that runs, or ran.

    Attributes:
        urls: where it listens: its API, and its metrics where they have an address of their own.
        pid: its process.
        tls: how requests reach it over https.
    """

    tls: ssl.SSLContext | bool = False

    def __init__(
        self,
        beside: Beside,
        environ: Mapping[str, str],
        log: Path,
        *words: str,
        files: int | None = None,
        program: Sequence[str] = (sys.executable, "-m", "sidecar"),
    ) -> None:
        """Nothing is started yet.

        Args:
            beside: what starts it and ends it.
            environ: its environment.
            log: the file of its output; unlike any other daemon's.
            words: options of ``run``.
            files: how many it may have open, by its hard limit.
            program: an installed one, or this checkout's.
        """
        self.urls: list[str] = []
        self.pid = 0
        self._beside = beside
        self._log = log
        environ = {"SIDECAR_HTTP_LISTEN": "127.0.0.1:0", **environ}
        limit = ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"'] if files is not None else []
        variables = [f"{name}={value}" for name, value in environ.items()]
        self._argv = [*limit, "env", "-i", *variables, *program, "run", *words]

    async def start(self) -> None:
        """Start it, again with the same settings; returns when it listens, or has ended."""
        self._log.unlink(missing_ok=True)
        self.pid = await self._beside.run_beside(str(self._log), self._argv, self._log)
        await self._writes(_LISTENS, 1)
        found = _LISTENS.search(self.output)
        self.urls = [url for url in found.groups() if url] if found is not None else []

    @property
    def url(self) -> str:
        """Where its API listens."""
        assert self.urls, f"the daemon does not listen:\n{self.output}"
        return self.urls[0]

    @property
    def address(self) -> str:
        """The same as "host:port"."""
        return self.url.removeprefix("http://")

    @property
    def output(self) -> str:
        """What it has written so far, to standard output and error."""
        return self._log.read_text() if self._log.exists() else ""

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._beside.ended(str(self._log)) is None

    def send(self, *signals: signal.Signals) -> None:
        """Send it signals."""
        for number in signals:
            os.kill(self.pid, number)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int | None:
        """End it by a signal.

        Returns:
            How it ended (negative: by that signal); None when it had ended before.
        """
        if not self.is_running or not self.pid:
            return None
        self.send(number)
        return await self.exit_code()

    async def exit_code(self) -> int:
        """Wait for its end: how it ended (negative: by a signal)."""
        name = str(self._log)
        await seen("the daemon's end", lambda: self._beside.ended(name) is not None)
        ended = self._beside.ended(name)
        assert ended is not None
        return ended

    async def logs(self, pattern: str | re.Pattern[str], count: int = 1) -> None:
        """Wait until it has logged something so often."""
        await self._writes(pattern, count)
        assert len(re.findall(pattern, self.output)) >= count, self.output

    async def _writes(self, pattern: str | re.Pattern[str], count: int) -> None:
        """Wait until something is in its output so often, or it has ended."""
        await seen(
            f"the daemon writes {pattern!r}",
            lambda: self.output,
            lambda text: len(re.findall(pattern, text)) >= count or not self.is_running,
        )

    async def ask(
        self,
        path: str,
        method: str = "GET",
        token: str = "",
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> httpx.Response:
        """One request, on a connection of its own; a path, or a whole URL."""
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        # Mostly there is no TLS here, and reading the certificates takes longer than a request.
        async with httpx.AsyncClient(base_url=self.url, timeout=SEEN_S, verify=self.tls) as client:
            return await client.request(
                method, path, headers={**bearer, **(headers or {})}, json=body
            )

    async def put(self, path: str, body: object, token: str) -> httpx.Response:
        """One change."""
        return await self.ask(path, "PUT", token, body=body)

    async def override(self, token: str, factor: float = 0.5) -> httpx.Response:
        """Set an override of an hour."""
        body = {"factor": factor, "reason": "a migration", "duration": "PT1H"}
        return await self.put("/v1/override", body, token)

    async def get(self, path: str) -> Document:
        """The JSON object at a path."""
        answer = await self.ask(path)
        assert 200 == answer.status_code, answer.text
        document: Document = answer.json()
        return document

    async def metrics(self) -> Metrics:
        """One scrape."""
        text = (await self.ask("/metrics")).text
        return Metrics.of(text_string_to_metric_families(text))

    async def decides(self, factor: float, source: str = "observation") -> Document:
        """Wait until this factor of this source is in force; its document."""
        return await seen(
            f"factor {factor} by {source}",
            self.factor,
            lambda document: (factor, source) == (document["factor"], document["source"]),
        )

    async def shows_broker(
        self, broker_id: int, what: str, accepts: Callable[[Document], bool]
    ) -> Document:
        """Wait until ``accepts`` is true of a broker's document, and return that."""
        brokers = await seen(
            f"broker {broker_id} {what}",
            self.brokers,
            lambda brokers: broker_id in brokers and accepts(brokers[broker_id]),
        )
        return brokers[broker_id]

    async def shows_state(self, broker_id: int, state: str) -> Document:
        """Wait until a broker is active, fenced or departed in its eyes."""
        return await self.shows_broker(broker_id, state, lambda broker: state == broker["state"])


def seconds(earlier: str, later: str) -> float:
    """How long it is from one time of the API's to another, seconds."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


Start = Callable[[Beside, Mapping[str, str]], Awaitable[Daemon]]
"""Starts a daemon with these SIDECAR_* variables; returns when it listens."""


class _Alone:
    """Runs a daemon beside no cluster."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def run_beside(self, name: str, argv: Sequence[str], log: Path) -> int:
        return await self._supervisor.spawn(name, list(argv), log)

    def ended(self, name: str) -> int | None:
        return self._supervisor.exit_status(name)


@asynccontextmanager
async def started(
    folder: Path, environ: Mapping[str, str], *words: str, files: int | None = None
) -> AsyncIterator[Daemon]:
    """Starts a daemon without a cluster beside it; kills it at the end, if it still runs.

    Args:
        folder: for its log.
        environ: its environment.
        words: options of ``run``.
        files: how many it may have open.
    """
    with Supervisor(Isolation("plain folders", (), has_mounts=False)) as supervisor:
        log = folder / f"daemon-{time.monotonic_ns()}.log"
        daemon = Daemon(_Alone(supervisor), environ, log, *words, files=files)
        await daemon.start()
        yield daemon


async def all_decide(daemons: Sequence[Daemon], factor: float) -> None:
    """Wait until every one decides so."""
    for daemon in daemons:
        await daemon.decides(factor)
