"""How long after a volume crosses its limit a waiting reader has the factor: on real brokers.

Three brokers with a daemon beside each, as deployed, and a reader that waits at each daemon. A
crossing counts from the last moment at which the volume's own file system was seen on the other
side of the limit, to the moment at which the last of the three readers has the answer; so what is
reported is rather too long, by a sample of some milliseconds.

A volume crosses its limit in two ways:
- at once, out of a standstill: a file takes the space. Nothing announces that, so daemons that
  watch a volume that does not fill see it at their next poll: here every 100 ms, fixed.
- by real messages, 16 MB/s: daemons see the volume fill and poll sooner as the limit comes nearer,
  from once a second down to every 100 ms.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from benchmarks.reader import Reader
from benchmarks.rows import Row, median_row
from benchmarks.sidecar_process import LIMIT, SidecarProcess
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic

_BROKERS: Final = 3
_VOLUMES: Final = 2
_VOLUME_BYTES: Final = 64 << 20
_AT_ONCE: Final = 12
_BY_MESSAGES: Final = 5
_FILL_BYTES_PER_S: Final = 16e6
_SAMPLE_S: Final = 0.002
_TIMEOUT_S: Final = 30.0
_FILLED: Final = 2
"""The broker whose volumes are filled; all daemons watch it."""
_TARGET_S: Final = 0.5

_INTERVAL: Final = "SIDECAR_STORAGE_CHECK_INTERVAL"
_MINIMUM: Final = "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM"


def run() -> list[Row]:
    """Starts a cluster and crosses the limit there and back."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    cluster = Cluster(
        environ=os.environ, brokers=_BROKERS, volumes=_VOLUMES, volume_bytes=_VOLUME_BYTES
    )
    async with cluster:
        scene = await _scene(cluster)
        async with _readers(scene, {_INTERVAL: "PT0.1S"}) as readers:
            fallen, risen = await _cross_at_once(scene, readers)
        rows = _rows("a full volume out of a standstill", fallen)
        rows += _rows("its space freed", risen)
        async with _readers(scene, {_INTERVAL: "PT1S", _MINIMUM: "PT0.1S"}) as readers:
            fallen, risen = await _cross_by_messages(scene, readers)
        rows += _rows("a volume filled by messages", fallen)
        rows += _rows("their topic deleted", risen)
    return rows


def _rows(what: str, times: list[float]) -> list[Row]:
    name = f"{what}: the factor at the last of {_BROKERS} waiting readers"
    return [
        median_row(name, times, "s", _TARGET_S),
        Row(f"{what}: the slowest of {len(times)}", max(times), "s", _TARGET_S),
    ]


class _Scene:
    """The cluster, the limit, and which side of it the volumes are on."""

    def __init__(self, cluster: Cluster, limit_bytes: int) -> None:
        self.cluster = cluster
        self.limit_bytes = limit_bytes

    async def crosses(self, *, violated: bool) -> float:
        """Waits for the file systems to be at or below the limit, or all above it again.

        Returns:
            When they were last seen on the other side, ``time.monotonic()`` seconds.
        """
        async with asyncio.timeout(_TIMEOUT_S):
            before = time.monotonic()
            while True:
                began = time.monotonic()
                if await self._is_violated() == violated:
                    return before
                before = began
                await asyncio.sleep(_SAMPLE_S)

    async def _is_violated(self) -> bool:
        usages = [await self.cluster.usage(_FILLED, index) for index in range(_VOLUMES)]
        return any(available <= self.limit_bytes for _, available in usages)


async def _scene(cluster: Cluster) -> _Scene:
    """The limit is half of a volume; on a disk that all share, relative to what is free there."""
    _, free = await cluster.usage(_FILLED, 0)
    half = _VOLUME_BYTES // 2
    return _Scene(cluster, half if cluster.volumes_are_real else free - half)


@asynccontextmanager
async def _readers(scene: _Scene, settings: dict[str, str]) -> AsyncIterator[Sequence[Reader]]:
    """A daemon for each broker and a reader at each, all of which have seen that there is space."""
    settings = {LIMIT: str(scene.limit_bytes), **settings}
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(_BROKERS):
            sidecar = stack.enter_context(SidecarProcess(scene.cluster.bootstrap, settings))
            sidecar.wait_observed()
            readers.append(stack.enter_context(Reader(sidecar.address)))
        await _heard(readers, 1.0)
        yield readers


async def _heard(readers: Sequence[Reader], factor: float) -> float:
    """When the last of them had heard the factor, ``time.monotonic()`` seconds."""
    async with asyncio.timeout(_TIMEOUT_S):
        while True:
            heard = [reader.last for reader in readers]
            times = [each.at for each in heard if each is not None and each.factor == factor]
            if len(times) == len(readers):
                return max(times)
            await asyncio.sleep(_SAMPLE_S)


async def _cross(scene: _Scene, readers: Sequence[Reader], *, violated: bool) -> float:
    crossed_at = await scene.crosses(violated=violated)
    return await _heard(readers, 0.0 if violated else 1.0) - crossed_at


async def _cross_at_once(
    scene: _Scene, readers: Sequence[Reader]
) -> tuple[list[float], list[float]]:
    fallen, risen = [], []
    for count in range(_AT_ONCE):
        # Not in step with the polls.
        await asyncio.sleep(0.3 + 0.1 * count / _AT_ONCE)
        async with asyncio.TaskGroup() as group:
            crossing = group.create_task(_cross(scene, readers, violated=True))
            await asyncio.sleep(0)
            await scene.cluster.occupy(_FILLED, 0, _VOLUME_BYTES * 3 // 4)
        fallen.append(crossing.result())
        await asyncio.sleep(0.3 + 0.1 * count / _AT_ONCE)
        async with asyncio.TaskGroup() as group:
            crossing = group.create_task(_cross(scene, readers, violated=False))
            await asyncio.sleep(0)
            await scene.cluster.occupy(_FILLED, 0, 0)
        risen.append(crossing.result())
    return fallen, risen


async def _cross_by_messages(
    scene: _Scene, readers: Sequence[Reader]
) -> tuple[list[float], list[float]]:
    fallen, risen = [], []
    bootstrap = scene.cluster.bootstrap
    async with Admin(bootstrap) as admin:
        for count in range(_BY_MESSAGES):
            topic = f"reaction-{count}"
            await admin.create_topic(topic, assignment=[[_FILLED]] * _VOLUMES)
            traffic = Traffic(
                bootstrap, topic, bytes_per_s=_FILL_BYTES_PER_S, partitions=range(_VOLUMES)
            )
            async with traffic:
                fallen.append(await _cross(scene, readers, violated=True))
            async with asyncio.TaskGroup() as group:
                crossing = group.create_task(_cross(scene, readers, violated=False))
                await admin.delete_topic(topic)
            risen.append(crossing.result())
    return fallen, risen
