"""What a daemon costs that has little to do: memory, CPU at rest, and the time of its start.

The whole process as it is deployed, with default settings, beside simulated and real brokers. Rest
is half a minute with nobody asking, or with one reader that waits; the poll of each minute, which
takes some milliseconds, may fall into it or not.
"""

import asyncio
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import ProxyHandler, build_opener

from benchmarks.reader import Reader
from benchmarks.requestlog import request_lines
from benchmarks.rows import Row, median_row
from benchmarks.sidecar_process import LIMIT, SidecarProcess
from benchmarks.simulated import simulated_cluster
from kafka_lab.cluster import Cluster

_BROKERS: Final = 3
_VOLUMES: Final = 2
_MANY: Final = (1000, 12)
_STARTS: Final = 7
_SETTINGS: Final = {LIMIT: "1000000"}
_SETTLE_S: Final = 3.0
"""While no fill rate is known the daemon polls again after a second: that is not rest."""
_REST_S: Final = 30.0


def run() -> list[Row]:
    """Measures beside simulated brokers, then beside real ones."""
    with simulated_cluster(_BROKERS, _VOLUMES) as address:
        rows = _starts(str(address), f"{_BROKERS} simulated brokers")
        rows += _at_rest(str(address))
        rows += [_with_everything(str(address))]
    with simulated_cluster(*_MANY) as address:
        rows += [_large(str(address))]
    return rows + asyncio.run(_beside_real_brokers())


async def _beside_real_brokers() -> list[Row]:
    async with Cluster(environ=os.environ, brokers=_BROKERS, volumes=_VOLUMES) as cluster:
        # The cluster needs this loop no more than the daemon does: nothing is asked of it.
        return _starts(cluster.bootstrap, f"{_BROKERS} real brokers")


def _starts(bootstrap: str, brokers: str) -> list[Row]:
    started, cpu, resident = [], [], []
    # One more than are counted: the first reads the disk.
    for count in range(1 + _STARTS):
        with SidecarProcess(bootstrap, _SETTINGS) as sidecar:
            heard = sidecar.wait_observed()
            cpu_s = sidecar.cpu_s()
            # What the first answer itself needed is there by then.
            time.sleep(0.2)
            if count > 0:
                started.append(heard.at - sidecar.spawned_at)
                cpu.append(cpu_s)
                resident.append(sidecar.resident_bytes() / 1e6)
    return [
        median_row(f"start to the first decision by observation, {brokers}", started, "s", 1.0),
        median_row("the same, CPU", cpu, "s"),
        median_row(f"resident memory after start and a poll of {brokers}", resident, "MB", 60.0),
    ]


def _large(bootstrap: str) -> Row:
    with SidecarProcess(bootstrap, _SETTINGS) as sidecar:
        sidecar.wait_observed()
        time.sleep(0.2)
        resident = sidecar.resident_bytes() / 1e6
    return Row(
        "resident memory after start and a poll of {:,} brokers x {} volumes".format(*_MANY),
        resident,
        "MB",
    )


def _with_everything(bootstrap: str) -> Row:
    """Quotas, peers, and a request log of more clients than are remembered."""
    with TemporaryDirectory() as folder:
        log, quotas = Path(folder) / "kafka-request.log", Path(folder) / "ids.toml"
        quotas.write_text("[default]\nproducer_ids_rate = 5\nthrottled_request_percentage = 0.01\n")
        settings = {
            **_SETTINGS,
            "SIDECAR_REQUEST_LOG_FILE": str(log),
            "SIDECAR_PRODUCER_ID_QUOTA_FILE": str(quotas),
            "SIDECAR_PEERS": "http://127.0.0.1:9,http://127.0.0.1:10",
            "SIDECAR_STATE_FILE": str(Path(folder) / "state"),
        }
        with SidecarProcess(bootstrap, settings) as sidecar:
            sidecar.wait_observed()
            count = 0
            with log.open("wb") as file:
                for line in request_lines():
                    file.write(line)
                    count += 1
            while _asked(sidecar, "/v1/producer-ids")["request_log"]["lines"] < count:
                time.sleep(0.2)
            for path in ("/v1/request-usage", "/v1/quotas/producer-ids", "/v1/quota-factors"):
                _asked(sidecar, path)
            resident = sidecar.resident_bytes() / 1e6
    return Row(f"resident memory with all quotas, after {count:,} log lines", resident, "MB", 80.0)


def _asked(sidecar: SidecarProcess, path: str) -> dict[str, Any]:
    # No proxy of the environment's in between.
    opener = build_opener(ProxyHandler({}))
    with opener.open(f"http://{sidecar.address}{path}", timeout=10.0) as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def _at_rest(bootstrap: str) -> list[Row]:
    """Two daemons at the same time, so that it takes half a minute once."""
    with ExitStack() as stack:
        alone, with_reader = (
            stack.enter_context(SidecarProcess(bootstrap, _SETTINGS)) for _ in range(2)
        )
        alone.wait_observed()
        with_reader.wait_observed()
        stack.enter_context(Reader(with_reader.address, wait_s=300.0))
        time.sleep(_SETTLE_S)
        before = alone.cpu_s(), with_reader.cpu_s()
        began = time.monotonic()
        time.sleep(_REST_S)
        took = time.monotonic() - began
        shares = (
            100 * (sidecar.cpu_s() - cpu_s) / took
            for sidecar, cpu_s in zip((alone, with_reader), before, strict=True)
        )
        nobody, one = shares
        return [
            Row(f"CPU at rest over {_REST_S:.0f} s, no reader", nobody, "% of a core", 0.5),
            Row("the same with one reader that waits", one, "% of a core", 0.5),
            Row("threads then", alone.threads(), ""),
            Row("resident memory then", with_reader.resident_bytes() / 1e6, "MB", 60.0),
        ]
