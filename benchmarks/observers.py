"""What the polls of 30 sidecars cost a real broker, when all of them ask it and when three do.

CPU time of the broker's threads that read, handle and answer requests, less that without sidecars,
for each interval. (What its other threads take depends on how busy the cores are.) The sidecars are
as they are deployed but for their interval, which is short so that there are many polls.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.harness.machine import threads_cpu_s
from benchmarks.rows import Row
from benchmarks.sidecar_process import LIMIT, SidecarProcess
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.ports import Ports

_SIDECARS: Final = 30
_OBSERVERS: Final = 3
_PARTITIONS: Final = 1_000
_INTERVAL_S: Final = 2
_SETTLE_S: Final = 60.0
"""Sidecars that start one after another need that long until three of them observe."""
_MEASURED_S: Final = 30.0
_THREADS: Final = ("data-plane-kafk",)
_HEAP_MB: Final = 512
_TENTH: Final = 0.1


def run() -> list[Row]:
    """Starts a broker, and measures it without sidecars, with all asking, and with three."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=256 << 20,
        heap_mb=_HEAP_MB,
        # Two indexes of this size for each partition, as files and as maps.
        properties={"log.index.size.max.bytes": "4096"},
    )
    async with cluster, Admin(cluster.bootstrap, timeout_s=60.0) as admin:
        await admin.create_topic("many", partitions=_PARTITIONS, replication=1)
        alone = await _cpu_ms(cluster)
        with _sidecars(cluster.bootstrap, {}):
            all_ask = await _cpu_ms(cluster) - alone
        with _sidecars(cluster.bootstrap, {"SIDECAR_OBSERVERS": str(_OBSERVERS)}):
            some_ask = await _cpu_ms(cluster) - alone
    what = f"a broker's CPU for the polls of {_SIDECARS} sidecars, {_PARTITIONS:,} partitions"
    return [
        Row(f"{what}, each interval", all_ask, "ms"),
        Row(f"the same with SIDECAR_OBSERVERS={_OBSERVERS}", some_ask, "ms"),
        Row("the latter over the former", some_ask / all_ask, "x", _TENTH),
    ]


async def _cpu_ms(cluster: Cluster) -> float:
    """CPU time of the broker's request threads for each interval, once all have settled, ms."""
    await asyncio.sleep(_SETTLE_S)
    pid = cluster.brokers[0].pid
    before = threads_cpu_s(pid, _THREADS)
    await asyncio.sleep(_MEASURED_S)
    return 1000 * (threads_cpu_s(pid, _THREADS) - before) * _INTERVAL_S / _MEASURED_S


@contextmanager
def _sidecars(bootstrap: str, more: dict[str, str]) -> Iterator[None]:
    """That know one another, and have all seen the broker."""
    with Ports() as ports, ExitStack() as stack:
        listens = [f"127.0.0.1:{ports.reserve()}" for _ in range(_SIDECARS)]
        settings = {
            LIMIT: "1000000",
            "SIDECAR_PEERS": ",".join(f"http://{each}" for each in listens),
            "SIDECAR_STORAGE_CHECK_INTERVAL": f"PT{_INTERVAL_S}S",
            # With peers each would also ask every two seconds which producer ids write.
            "SIDECAR_PRODUCER_ID_QUOTA_COUNTS": "allocated",
            **more,
        }
        sidecars = [
            stack.enter_context(
                SidecarProcess(bootstrap, {**settings, "SIDECAR_HTTP_LISTEN": each})
            )
            for each in listens
        ]
        for each in sidecars:
            each.wait_observed()
        yield
