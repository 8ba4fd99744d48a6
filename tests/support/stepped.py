"""A sidecar in the test's own loop: it polls when the test says so, on a clock that the test moves.

Everything from the brokers' answers to the API, the metrics, the log and the state file is the
daemon's own. The schedule of polls, the signals and the HTTP server are not here:
``tests/sidecar/daemon/test_daemon.py`` starts the daemon as a process.

Example: ``await sidecar.poll(after_s=60.0)`` is the answer of /v1/throttle-factor after a poll that
began a minute after the last one, and takes some milliseconds.
"""

from collections.abc import Mapping
from typing import Self

import httpx

from sidecar.control.board import Board, PersistedState
from sidecar.control.journal import log_publication
from sidecar.control.poller import Poller
from sidecar.kafka import KafkaVolumeSource
from sidecar.metrics.board_collector import build_registry
from sidecar.settings import load
from sidecar.state import StateFile
from sidecar.state.writer import StateWriter
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.schedule import Timing
from tests.sidecar.api.build import BEARER, FakeSidecar
from tests.sidecar.throttle.build import FakeClock
from tests.support.background import bootstrap
from tests.support.documents import Document, Documents, Metrics
from tests.support.fake_broker import FakeCluster

MB = 1_000_000
LIMIT_BYTES = 40 * MB

START_S = 1_700_000_000.0
"""Epoch seconds when a clock of these tests starts."""


def settings_of(cluster: FakeCluster, **more: str) -> dict[str, str]:
    """SIDECAR_* for a cluster; ``more`` without that prefix. The limit is ``LIMIT_BYTES``."""
    return settings_at(bootstrap(cluster), **more)


def settings_at(addresses: str, **more: str) -> dict[str, str]:
    """The same settings, with addresses to begin from."""
    return {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": addresses,
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
        **{f"SIDECAR_{name}": value for name, value in more.items()},
    }


class SteppedSidecar(Documents):
    """A sidecar that polls when a test says so; an async context manager.

    Attributes:
        clock: what time it is, epoch seconds.
        writer: writes the state file; None without one. A test that wants it written runs it.
    """

    def __init__(self, environ: Mapping[str, str], clock: FakeClock | None = None) -> None:
        settings = load(environ=environ).settings
        assert settings.kafka_admin is not None
        self.clock = clock or FakeClock(START_S)
        factors = VolumeLimit(settings.rules, settings.fallback)
        path = settings.state_file
        file = StateFile(path, factors.rules) if path else None
        restored = file.load(self.clock()) if file else None
        assert restored is None or isinstance(restored, PersistedState)
        self._board = Board(factors, self.clock, restored=restored, listeners=(log_publication,))
        self._registry = build_registry(self._board, lambda steady_s: steady_s)
        self._api = FakeSidecar(factors=factors, board=self._board, registry=self._registry)
        self._api.wall_offset_s = 0.0
        self.writer = StateWriter(self._board, file, self._api.wall) if file else None
        self._source = KafkaVolumeSource(settings.kafka_admin, clock=self.clock)
        self._timing = Timing(settings.check_interval_s, settings.check_interval_minimum_s)
        self._poller = Poller(
            self._source, self._board, self._timing, lambda _: None, lambda _: None
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._source.close()

    async def poll(self, after_s: float = 1.0, deadline_s: float | None = None) -> Document:
        """Poll the whole cluster once; the factor's document then.

        Args:
            after_s: how far the clock is moved before, seconds.
            deadline_s: of the poll, real seconds; the daemon's longest without it.
        """
        self.clock.now += after_s
        await self._poller.poll(None, deadline_s or self._timing.deadline_s)
        return await self.factor()

    async def get(self, path: str) -> Document:
        """The JSON object at a path of the API."""
        answer = await self._api.get(path)
        assert 200 == answer.status_code, answer.text
        document: Document = answer.json()
        return document

    async def effects(self) -> list[tuple[float, str]]:
        """Factor and source of each decision since the start, the oldest first."""
        document = await self.get("/v1/decisions")
        return [effect(each) for each in reversed(document["decisions"])]

    async def forget(self, broker_id: int, log_dir: str | None = None) -> httpx.Response:
        """An operator's request to forget a broker's last volumes, or one of them."""
        url = f"/v1/brokers/{broker_id}"
        if log_dir is not None:
            url += f"/log-dirs?path={log_dir}"
        async with self._api.client() as client:
            return await client.delete(url, headers=BEARER)

    @property
    def metrics(self) -> Metrics:
        """What a scrape would have."""
        return Metrics.of(self._registry.collect())


def effect(document: Document) -> tuple[float, str]:
    """Factor and source of a decision."""
    return document["factor"], document["source"]
