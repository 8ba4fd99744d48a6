"""The process that ``benchmarks.api`` measures: the API over a board of a set size.

``python -m benchmarks.api_server --brokers 3 --volumes 2`` prints its address, then for each line
on standard input either changes the decision ("change") and prints when, by the system-wide
monotonic clock, or prints what it has used ("usage"); at the end of the input it ends.
"""

import argparse
import asyncio
import json
import sys
import time

from fastapi import FastAPI

from sidecar.api.connections import Connections
from sidecar.api.readiness import Polling
from sidecar.api.server import HttpServer
from sidecar.clock import SteadyClock
from sidecar.control.board import Board
from sidecar.control.capability import Capability, Services
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.persistence import Persistence
from sidecar.control.tokens import Tokens
from sidecar.daemon.application import build_app
from sidecar.daemon.capabilities import CAPABILITIES, build_all, prepare_all
from sidecar.metrics.board_collector import build_registry
from sidecar.mutations.routes import Admit, add_admissions
from sidecar.quotas.entities import DEFAULT, Entity, QuotaKey
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, MutationAdmissions, Muted
from sidecar.quotas.rate import QuotaWindow
from sidecar.settings import HostPort, load
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import Membership, Observation, Reading, Volume

_GB = 10**9
_FACTORS = VolumeLimit(Rules(MinAvailableBytes(10 * _GB), 300.0), 1.0)


class _Cluster:
    """A board that sees a cluster, every second one of its polls with a full volume."""

    def __init__(self, brokers: int, volumes: int) -> None:
        self.clock = SteadyClock()
        self.board = Board(_FACTORS, self.clock.now)
        self._brokers = brokers
        self._volumes = volumes
        self._polls = 0

    def poll(self) -> float:
        """Publishes an observation that changes the decision; when, monotonic seconds."""
        self._polls += 1
        now = self.clock.now()
        readings = {key: self._reading(key, now) for key in range(self._brokers)}
        active = {key: f"broker-{key}.example:9092" for key in range(self._brokers)}
        observation = Observation(now, "poll", Membership("cluster", active, {}), dict(readings))
        at = time.monotonic()
        self.board.observe(observation)
        return at

    def _reading(self, broker_id: int, now: float) -> Reading:
        full = broker_id == 0 and self._polls % 2 == 0
        sizes = [_GB if full and number == 0 else 500 * _GB for number in range(self._volumes)]
        volumes = (
            Volume(broker_id, f"/var/lib/kafka/data-{number}", 1000 * _GB, size - self._polls)
            for number, size in enumerate(sizes)
        )
        return Reading(broker_id, now, tuple(volumes))


def _usage() -> dict[str, float]:
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - as short as it gets
        resident = next(line for line in status if line.startswith("VmRSS:"))
    return {"cpu_s": time.process_time(), "resident_mb": int(resident.split()[1]) * 1024 / 1e6}


def _admit(cluster: _Cluster) -> Admit:
    """Every user has a quota, and none is over it: a client that must wait costs less."""
    admissions = MutationAdmissions("token-bucket", QuotaWindow())
    admissions.set_quotas({Entity(DEFAULT): {QuotaKey.CONTROLLER_MUTATION: 1e9}})

    async def admit(asked: AdmissionRequest) -> Judged | Muted:
        return admissions.admit(asked, int(cluster.clock.now() * 1000))

    return admit


class _Admissions(Capability):
    name = "mutations"

    def __init__(self, cluster: _Cluster) -> None:
        self._admit = _admit(cluster)

    def add_routes(self, app: FastAPI) -> None:
        add_admissions(app, self._admit)


async def _serve(brokers: int, volumes: int) -> None:
    cluster = _Cluster(brokers, volumes)
    board, wall = cluster.board, cluster.clock.wall

    async def persist() -> Persistence:
        return Persistence.NONE

    settings = load(environ={"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}).settings
    failures = CapabilityFailures(CAPABILITIES)
    services = Services(board, wall, Tokens(None, board.now), persist, None, failures)
    others = build_all(prepare_all(settings), services)
    app = build_app(
        services,
        Polling(enabled=True, stuck_after_s=300.0, reaction_s=79.0),
        capabilities=[_Admissions(cluster), *(each for each in others if each.name != "mutations")],
        registry=build_registry(board, wall),
    )
    cluster.poll()
    server = HttpServer(app, HostPort("127.0.0.1", 0), Connections(2048))
    serving = asyncio.create_task(server.serve())
    keeping = asyncio.create_task(board.publish_expiries())
    print(server.address.port, flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    while command := (await lines.readline()).decode().strip():
        print(json.dumps(cluster.poll() if command == "change" else _usage()), flush=True)
    board.close()
    keeping.cancel()
    server.stop()
    await serving


def main() -> None:
    """Serves until its input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--volumes", type=int, default=2)
    allocated = parser.parse_args()
    asyncio.run(_serve(allocated.brokers, allocated.volumes))


if __name__ == "__main__":
    main()
