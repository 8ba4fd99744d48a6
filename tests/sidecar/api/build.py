"""A sidecar's API over a board that a test moves by hand."""

import asyncio
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from sidecar.api.readiness import Polling
from sidecar.budgets.capability import BudgetCapability
from sidecar.client_quotas.routes import add_writers
from sidecar.client_quotas.writers import BrokerWriters
from sidecar.control.board import Board, Listener, Snapshot
from sidecar.control.capability import Capability, Services
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.persistence import Persistence
from sidecar.control.tokens import Tokens
from sidecar.control.volume_contents import FetchContents, VolumeContents
from sidecar.daemon.application import build_app
from sidecar.growth.capability import GrowthCapability
from sidecar.mutations.routes import Admit, add_admissions
from sidecar.peers.exchange import AllocatedIdLog
from sidecar.peers.observations import ObservationLog
from sidecar.producer_ids.retained import Retained
from sidecar.producer_ids.routes import IdParts, add_producer_ids
from sidecar.producer_ids.service import ProducerIdWatch
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota
from sidecar.relief.capability import ReliefCapability
from sidecar.request_time.routes import add_usage
from sidecar.status.inputs import ToolSettings
from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.readers import Refusals, Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import FakeClock

TOKEN = "s3cr3t-t0k3n"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 0.5)
"""Limit 10 bytes, validity 300 s, fallback 0.5."""

WALL_OFFSET_S = 1_700_000_000.0
"""The machine's clock at steady second 0: 2023-11-14T22:13:20Z."""


@dataclass
class Disk:
    """Stands for the state file: whether there is one, and what was published when it was written.

    Attributes:
        there: what ``persist`` answers.
        written: the snapshots that were published at each write.
    """

    there: Persistence = Persistence.WRITTEN
    written: list[Snapshot] = field(default_factory=list)


class Routed(Capability):
    """A capability that has routes alone."""

    def __init__(self, name: str, add: Callable[[FastAPI], None]) -> None:
        self.name = name
        self._add = add

    def add_routes(self, app: FastAPI) -> None:
        """Adds its routes."""
        self._add(app)


class FakeSidecar:
    """A board and the app over it.

    Attributes:
        clock: what time it is; the running loop's when built for virtual time.
        board: what the app reads and changes.
        disk: what it persists to.
        tokens: what changes need.
        wall_offset_s: how the machine's clock is set against the steady one.
        ids: what knows of producer ids: no log and no other sidecar.
        failures: what failed of its capabilities.
        contents: what lies on volumes, which nobody runs; None: no broker can be asked.
        app: the whole API.
    """

    def __init__(
        self,
        *,
        factors: VolumeLimit | None = FACTORS,
        board: Board | None = None,
        clock: Callable[[], float] | None = None,
        registry: CollectorRegistry | None = None,
        stuck_after_s: float = 100.0,
        admit: Admit | None = None,
        ids: IdParts | None = None,
        ask: FetchContents | None = None,
        peers: Sequence[str] = (),
        growth: GrowthCapability | None = None,
        budgets: BudgetCapability | None = None,
        more: Sequence[Capability] = (),
        listeners: tuple[Listener, ...] = (),
        user_header: str | None = None,
        tools: ToolSettings | None = None,
        refusal: Callable[[], str] = lambda: "",
    ) -> None:
        self.clock = FakeClock()
        self.board = board or Board(factors or Disabled(), clock or self.clock, listeners=listeners)
        self.disk = Disk()
        self.tokens = Tokens(TOKEN, self.clock)
        self.wall_offset_s = WALL_OFFSET_S
        watch = ProducerIdWatch(
            self.board, Retained(self.board), ProducerIdSettings(), ProducerIdQuota(None), 60.0
        )
        self.ids = ids or IdParts(
            watch,
            AllocatedIdLog(self.board.start_id, self.board.now),
            None,
            factors is not None,
            user_header=user_header,
        )
        self.failures = CapabilityFailures(["producer_ids"])
        self.contents = VolumeContents(ask, self.clock) if ask is not None else None
        self._services = Services(
            self.board,
            self.wall,
            self.tokens,
            self._persist,
            None,
            self.failures,
            contents=self.contents,
        )
        self.app: FastAPI = build_app(
            self._services,
            Polling(factors is not None, stuck_after_s, reaction_s=79.0),
            capabilities=[
                *self._routed(admit),
                growth or GrowthCapability(None, self.wall),
                budgets or BudgetCapability(None, None, self.wall),
                ReliefCapability(),
                *more,
            ],
            peers=peers,
            observations=ObservationLog(self.board.start_id, self.clock),
            registry=registry,
            user_header=user_header,
            tools=tools,
            refusal=refusal,
        )

    def takes(self, token: str | None) -> None:
        """Only this token allows changes from now on; None refuses them."""
        self.tokens.replace(token, ends_former=True)

    def _routed(self, admit: Admit | None) -> Iterator[Capability]:
        yield Routed("producer_ids", lambda app: add_producer_ids(app, self._services, self.ids))
        yield Routed("request_time", lambda app: add_usage(app, None))
        yield Routed("mutations", lambda app: add_admissions(app, admit))
        untold = BrokerWriters(None, None, False, [])
        yield Routed("client_quotas", lambda app: add_writers(app, lambda: untold))

    def see(self, observation: Observation) -> Snapshot:
        """Publishes an observation."""
        return self.board.observe(observation)

    def read_by(self, broker_id: int, refusals: Refusals | None = None) -> None:
        """A broker's quota callback reads the sidecar, with an authorizer if it has refusals."""
        report = Report(broker_id, False, 0, None, refusals)
        self.board.readers.record(report, None, self.clock.now)

    def client(self) -> httpx.AsyncClient:
        """A client of the app, without a server between."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://sidecar")

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """One GET; an underscore in a header's name stands for a hyphen."""
        async with self.client() as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.get(path, headers=named)

    def wall(self, steady_s: float) -> float:
        """Steady seconds -> epoch seconds."""
        return steady_s + self.wall_offset_s

    async def _persist(self) -> Persistence:
        await asyncio.sleep(0)
        self.disk.written.append(self.board.snapshot)
        return self.disk.there


def assert_problem(response: httpx.Response, status: int) -> dict[str, object]:
    """The response must be a problem of that status."""
    assert status == response.status_code
    assert response.headers["content-type"] == "application/problem+json"
    message: dict[str, object] = response.json()
    assert status == message["status"]
    return message


def http_scope(path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> dict[str, Any]:
    """The scope of a request, for tests that play the server."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": list(headers),
        "client": None,
        "server": ("sidecar", 80),
        "state": {},
    }


async def read_until(
    gone: asyncio.Event, sidecar: FakeSidecar, path: str, *headers: tuple[bytes, bytes]
) -> None:
    """Sends one GET of a client whose connection ends then."""

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_message: MutableMapping[str, Any]) -> None: ...

    await sidecar.app(http_scope(path, *headers), receive, send)


async def until(condition: Callable[[], bool]) -> None:
    """Lets time pass until something is so; 10 s at most."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 10 s")
