"""From an installed sidecar to a producer that waits, on a broker which had no quota callback.

Example: the README's block of two properties, and a jar that ``callback copy`` has written, make
the broker of ``one_small_volume`` obey.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kafka_lab.admin import Admin
from kafka_lab.callback import asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from tests.support.daemon import Daemon
from tests.support.waiting import seen

README: Final = (Path(__file__).parents[2] / "README.md").read_text("utf-8")

_TO_LIMIT: Final = 16 << 20
"""So many bytes may be written before the volume reaches its limit."""


def table_row(where: str) -> list[str]:
    """The commands in a row of the README's install table."""
    (row,) = re.findall(rf"^\| \[{where}\]\(.*$", README, re.MULTILINE)
    return re.findall(r"`([^`]+)`", row)


@asynccontextmanager
async def one_small_volume() -> AsyncIterator[Cluster]:
    """A broker as it was before: without the jar."""
    async with Cluster(
        environ=os.environ, brokers=1, volumes=1, volume_bytes=64 << 20, combined=True
    ) as cluster:
        yield cluster


async def readme_settings(cluster: Cluster) -> dict[str, str]:
    """The variables that the README names, for this broker and the size of its volume."""
    _, available = await cluster.usage(0, 0)
    return {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": cluster.bootstrap,
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(available - _TO_LIMIT),
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT1S",
        "SIDECAR_HTTP_LISTEN": cluster.brokers[0].sidecar_url.removeprefix("http://"),
    }


async def add_callback(cluster: Cluster, jar: Path) -> None:
    """Add the jar and the README's properties to the broker, and restart it."""
    (lines,) = re.findall(r"^```properties\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    properties: Mapping[str, str] = dict(line.split("=", 1) for line in lines.splitlines())
    cluster.configure(properties, asks_its_sidecar, [jar])
    await cluster.stop_broker(0)
    await cluster.start_broker(0)


async def throttles(cluster: Cluster, daemon: Daemon) -> None:
    """Produce without a pause until the volume is at its limit; then the producer must wait."""
    await seen("a reader", lambda: daemon.get("/v1/readers"), lambda found: bool(found["readers"]))
    await daemon.decides(1.0)
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic("first")
    async with Traffic(cluster.bootstrap, "first", bytes_per_s=4e6) as traffic:
        await seen("records", lambda: traffic.acknowledged_bytes)
        assert 0.0 == traffic.longest_throttle_s
        await daemon.decides(0.0)
        await seen("a producer that waits", lambda: traffic.longest_throttle_s)
