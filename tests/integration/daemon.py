"""The real daemon as tests run it: a process beside a cluster's brokers, asked over HTTP."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.waiting import SEEN_S, seen

Document = dict[str, Any]
Labels = frozenset[tuple[str, str]]

QUICK = {
    "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0.2S",
    "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.1S",
}
"""So that a change is seen soon, whether or not volumes fill. A poll's deadline is then 2 s."""

LIMIT_BYTES = 40 << 20
"""The limit of ``settings``, of the clusters' volumes of 64 MiB."""

FULL_BYTES = 32 << 20
"""So many more bytes on a free volume violate that limit."""

_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of it."""
        return self.out + self.err

    def document(self) -> Document:
        """The JSON object on standard output."""
        document: Document = json.loads(self.out)
        return document


async def command(*words: str, environ: Mapping[str, str], timeout_s: float = 30.0) -> Done:
    """Run ``throttle-sidecar WORDS`` with this environment and nothing else."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "sidecar", *words],
        env=dict(environ),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def settings(bootstrap: str, **more: str) -> dict[str, str]:
    """SIDECAR_* for a cluster; ``more`` without that prefix."""
    return {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap,
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
        **QUICK,
        **{f"SIDECAR_{name}": value for name, value in more.items()},
    }


@dataclass(frozen=True, slots=True)
class Metrics:
    """One scrape."""

    samples: Mapping[tuple[str, Labels], float]

    def value(self, name: str, **labels: object) -> float | None:
        """One series; None when there is none."""
        wanted = frozenset((label, str(value)) for label, value in labels.items())
        return self.samples.get((f"kafka_throttle_{name}", wanted))

    def volumes(self, name: str) -> dict[tuple[int, str], float]:
        """One of the volumes' metrics, by broker and log dir."""
        return {
            (int(dict(labels)["broker"]), dict(labels)["log_dir"]): value
            for (sample, labels), value in self.samples.items()
            if sample == f"kafka_throttle_volume_{name}"
        }


class Beside(Protocol):
    """What holds a daemon that runs beside it: a ``Cluster``, or a ``Node``."""

    async def run_beside(self, name: str, argv: Sequence[str], log: Path) -> int:
        """Start a process; its pid."""

    def ended(self, name: str) -> int | None:
        """How it ended; None while it runs."""


class Daemon:
    """A daemon that runs, or ran.

    Attributes:
        url: where it listens.
        log: its log file.
    """

    def __init__(self, cluster: Beside, name: str, environ: Mapping[str, str], log: Path) -> None:
        self.url = ""
        self.log = log
        self._cluster = cluster
        self._name = name
        self._environ = dict(environ)
        self._pid = 0

    async def start(self) -> None:
        """Start it, again with the same settings; returns when it listens."""
        self.log.unlink(missing_ok=True)
        environ = {"SIDECAR_HTTP_LISTEN": "127.0.0.1:0", **self._environ}
        argv = ["env", "-i", *(f"{name}={value}" for name, value in environ.items())]
        self._pid = await self._cluster.run_beside(
            self._name, [*argv, sys.executable, "-m", "sidecar", "run"], self.log
        )

        async def listening() -> str:
            assert self._cluster.ended(self._name) is None, self.said()
            return self.said()

        text = await seen(
            "the daemon listens", listening, lambda text: _LISTENS.search(text) is not None
        )
        found = _LISTENS.search(text)
        assert found is not None
        self.url = f"http://127.0.0.1:{found[1]}"

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text() if self.log.exists() else ""

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self._pid, number)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int | None:
        """End it by a signal.

        Returns:
            How it ended (negative: by that signal); None when it had ended before.
        """
        if self._cluster.ended(self._name) is not None or not self._pid:
            return None
        self.send(number)

        async def status() -> int | None:
            return self._cluster.ended(self._name)

        return await seen(
            f"the daemon's end after {number.name}", status, lambda ended: ended is not None
        )

    async def ask(self, path: str, method: str = "GET", token: str = "") -> httpx.Response:
        """One request."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(base_url=self.url, timeout=SEEN_S) as client:
            return await client.request(method, path, headers=headers)

    async def put(self, path: str, body: object, token: str) -> httpx.Response:
        """One change."""
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=self.url, timeout=SEEN_S) as client:
            return await client.put(path, headers=headers, json=body)

    async def get(self, path: str) -> Document:
        """The JSON object at a path."""
        answer = await self.ask(path)
        assert 200 == answer.status_code, answer.text
        document: Document = answer.json()
        return document

    async def factor(self) -> Document:
        """The factor in force."""
        return await self.get("/v1/throttle-factor")

    async def volumes(self) -> dict[tuple[int, str], Document]:
        """The volumes, by broker and log dir."""
        document = await self.get("/v1/volumes")
        return {(each["broker_id"], each["log_dir"]): each for each in document["volumes"]}

    async def brokers(self) -> dict[int, Document]:
        """The brokers, by id."""
        document = await self.get("/v1/brokers")
        return {each["broker_id"]: each for each in document["brokers"]}

    async def decisions(self) -> list[Document]:
        """The changes of the decision, the oldest first."""
        document = await self.get("/v1/decisions")
        return list(reversed(document["decisions"]))

    async def metrics(self) -> Metrics:
        """One scrape."""
        answer = await self.ask("/metrics")
        return Metrics(
            {
                (sample.name, frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(answer.text)
                for sample in family.samples
            }
        )

    async def decides(
        self, factor: float, source: str = "observation", timeout_s: float = SEEN_S
    ) -> Document:
        """Wait until this factor of this source is in force; its document."""
        return await seen(
            f"factor {factor} by {source}",
            self.factor,
            lambda document: (factor, source) == (document["factor"], document["source"]),
            timeout_s,
        )

    async def shows_broker(
        self, broker_id: int, what: str, holds: Callable[[Document], bool]
    ) -> Document:
        """Wait until a broker is shown as wanted; its document."""
        brokers = await seen(
            f"broker {broker_id} {what}",
            self.brokers,
            lambda brokers: broker_id in brokers and holds(brokers[broker_id]),
        )
        return brokers[broker_id]

    async def shows_state(self, broker_id: int, state: str) -> Document:
        """Wait until a broker is active, fenced or departed in its eyes."""
        return await self.shows_broker(broker_id, state, lambda broker: state == broker["state"])


def seconds(earlier: str, later: str) -> float:
    """How long it is from one time of the API's to another, seconds."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
