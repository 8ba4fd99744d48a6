"""What a poll of all volumes costs the brokers, with 4,000 partitions on each.

CPU time of the three broker processes over some time, less that of brokers without any callback
over as long, for each poll of the whole cluster. The plugin's polls are three too, one by each
broker; its own work is in the brokers' processes and counted, the sidecars' is counted apart.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.enforcement.contenders import EVERY_2_S, NOTHING, OURS, PEER, Contender
from benchmarks.enforcement.scene import start
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.java import beans

PARTITIONS: Final = 4_000
_BROKERS: Final = 3
_TOPICS: Final = 40
_SETTLE_S: Final = 30.0
_MEASURED_S: Final = 60.0
_VOLUME_BYTES: Final = 512 << 20
_LIMIT_BYTES: Final = 16 << 20
_HEAP_MB: Final = 768
_QUIET: Final = {
    # Two indexes of this size for each partition, as files and as maps.
    "log.index.size.max.bytes": "4096",
    # Kafka's defaults again: what brokers do by themselves is not to hide what is measured.
    "log.retention.check.interval.ms": "300000",
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "log.flush.start.offset.checkpoint.interval.ms": "60000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
}
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=DescribeLogDirs,*"


@dataclass(frozen=True, slots=True)
class Cost:
    """What was measured of one contender.

    Attributes:
        seconds: how long.
        broker_cpu_s: CPU time of all brokers.
        sidecar_cpu_s: CPU time of all sidecars.
        requests: DescribeLogDirs requests that the brokers answered.
    """

    seconds: float
    broker_cpu_s: float
    sidecar_cpu_s: float
    requests: float


async def measure(contenders: Sequence[Contender] = (NOTHING, PEER, OURS)) -> dict[str, object]:
    """Contender -> its ``Cost``, as a dict."""
    return {contender.key: asdict(await _measure(contender)) for contender in contenders}


async def _measure(contender: Contender) -> Cost:
    cluster = await start(
        contender,
        EVERY_2_S,
        _LIMIT_BYTES,
        brokers=_BROKERS,
        volumes=2,
        volume_bytes=_VOLUME_BYTES,
        properties=_QUIET,
        heap_mb=_HEAP_MB,
    )
    async with cluster, Admin(cluster.bootstrap, timeout_s=60.0) as admin:
        for topic in range(_TOPICS):
            await admin.create_topic(
                f"topic-{topic}", partitions=_BROKERS * PARTITIONS // _TOPICS, replication=1
            )
        await contender.obey(cluster, EVERY_2_S, _LIMIT_BYTES)
        await asyncio.sleep(_SETTLE_S)
        # Asking for the count costs a broker more than a poll does, so it is not in between; polls
        # while it is asked for are few.
        asked, requests = time.monotonic(), await _requests(cluster)
        began, before = time.monotonic(), _cpu(cluster)
        await asyncio.sleep(_MEASURED_S)
        after, ended = _cpu(cluster), time.monotonic()
        rate = (await _requests(cluster) - requests) / (time.monotonic() - asked)
    cpu = [last - first for first, last in zip(before, after, strict=True)]
    return Cost(ended - began, cpu[0], cpu[1], rate * (ended - began))


def _cpu(cluster: Cluster) -> tuple[float, float]:
    """CPU seconds so far, of the brokers and of the sidecars."""
    brokers = sum(_cpu_s(broker.pid) for broker in cluster.brokers.values())
    return brokers, sum(map(_cpu_s, _sidecars(cluster)))


def _cpu_s(pid: int) -> float:
    # Linux's clock of another process: clock_getcpuclockid(3), to the nanosecond.
    return time.clock_gettime((~pid << 3) | 2)


def _sidecars(cluster: Cluster) -> list[int]:
    """The processes that have a state file in this cluster's folder."""
    mark = os.fsencode(f"SIDECAR_STATE_FILE={cluster.folder}/")
    found = []
    for entry in Path("/proc").iterdir():
        # Others' processes, or gone meanwhile: an OSError.
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


async def _requests(cluster: Cluster) -> float:
    """How many DescribeLogDirs requests all brokers have answered."""
    total = 0.0
    for broker_id in cluster.brokers:
        for each in (await beans(cluster, broker_id, _REQUESTS)).values():
            total += float(each["Count"] or 0)
    return total
