"""The story that the demo shows, step by step, each step seen on the real cluster or failed.

Sidecars up, real messages fill the volumes of one broker, the factor falls at every sidecar, the
topic is deleted, the factor rises at every sidecar. Times are from when a volume's own file system
says that the limit is crossed to when a reader that waits at a sidecar hears of it.

Example of a step that was seen: ``Step("factor 0.0 at the sidecar of broker 1", seconds=0.11)``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.demo.sidecars import Answer, Sidecar, start_sidecars, write_token
from sidecar.demo.traffic import Traffic
from sidecar.demo.waiting import deadline, until

FILL_BYTES_PER_S: Final = 16e6
MINIMUM_INTERVAL: Final = "PT0.1S"
INTERVAL: Final = "PT1S"
TOPIC: Final = "throttle-demo"
_STEP_TIMEOUT_S: Final = 60.0
"""Kafka 3.3 takes 20 s to free what is deleted; all else here is a matter of seconds."""
_STORY_TIMEOUT_S: Final = 600.0
"""More than all steps may take: they have deadlines of their own."""
_SAMPLE_S: Final = 0.02
_WAIT_S: Final = 1.0
"""How long a reader's request waits for a change: also what leaving the demo may cost."""


@dataclass(slots=True)
class Step:
    """One thing to be seen.

    Attributes:
        title: what.
        measured_from: what the seconds are counted from.
        seconds: how long it took to be seen; None until then.
        failed: it was not seen.
    """

    title: str
    measured_from: str
    seconds: float | None = None
    failed: bool = False


@dataclass(slots=True)
class VolumeNow:
    """A volume as its file system tells.

    Attributes:
        name: broker and log dir, short.
        total_bytes: its size.
        available_bytes: what is left.
    """

    name: str
    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class Heard:
    """What a reader that waits at a sidecar last heard.

    Attributes:
        factor: the throttle factor.
        at: when, loop seconds.
    """

    factor: float
    at: float


@dataclass(slots=True)
class Story:
    """What has been seen so far; a view draws it.

    Attributes:
        steps: in order.
        limit_bytes: available bytes at which a volume violates; 0 until it is known.
        volumes: those of the broker that is filled.
        crossed: whether one of them is at or below the limit now.
        crossed_at: when that last changed, loop seconds.
        heard: broker id -> what was last heard from its sidecar.
        notes: what has to be said besides.
        sidecars: the running daemons.
        token_file: the bearer token that they want for changes; None until there is one.
    """

    steps: list[Step] = field(default_factory=list)
    limit_bytes: int = 0
    volumes: list[VolumeNow] = field(default_factory=list)
    crossed: bool = False
    crossed_at: float = 0.0
    heard: dict[int, Heard] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sidecars: tuple[Sidecar, ...] = ()
    token_file: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether every step was seen."""
        return bool(self.steps) and all(step.seconds is not None for step in self.steps)

    @asynccontextmanager
    async def step(
        self, title: str, measured_from: str = "its start", timeout_s: float = _STEP_TIMEOUT_S
    ) -> AsyncIterator[Step]:
        """A step: it is seen when the block ends, and failed when that takes too long.

        Raises:
            ClusterError: it was not seen in time.
        """
        now = asyncio.get_running_loop().time
        began = now()
        step = Step(title, measured_from)
        self.steps.append(step)
        try:
            async with deadline(timeout_s, f"not seen: {title}"):
                yield step
        except BaseException:
            step.failed = True
            raise
        if step.seconds is None:
            step.seconds = now() - began


async def tell(story: Story, cluster: Cluster) -> None:
    """Let the story happen on a cluster that is up.

    Args:
        story: filled as things are seen.
        cluster: its sidecars run beside its brokers afterwards.

    Raises:
        ClusterError: a step was not seen.
    """
    broker_id = max(cluster.brokers)
    await _choose_limit(story, cluster, broker_id)
    async with story.step(f"{len(cluster.brokers)} sidecars up, factor 1.0 by observation"):
        story.token_file = write_token(cluster)
        story.sidecars = await start_sidecars(
            cluster,
            {
                "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
                "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
                "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(story.limit_bytes),
                "SIDECAR_TOKEN_FILE": str(story.token_file),
            },
        )
        for sidecar in story.sidecars:
            await _until_told(sidecar, "/v1/throttle-factor", _observes_no_violation)
    async with deadline(_STORY_TIMEOUT_S, "the story was not over"), asyncio.TaskGroup() as group:
        watching = [
            group.create_task(_watch_volumes(story, cluster, broker_id), name="volumes"),
            *(
                group.create_task(_listen(story, sidecar), name=f"reader {sidecar.broker_id}")
                for sidecar in story.sidecars
            ),
        ]
        await _fill_and_free(story, cluster, broker_id)
        for task in watching:
            task.cancel()


async def _choose_limit(story: Story, cluster: Cluster, broker_id: int) -> None:
    """Half of what is free on a volume of its own; on a shared disk, a little less than is free."""
    volumes = range(len(cluster.brokers[broker_id].volumes))
    free = min([(await cluster.usage(broker_id, index))[1] for index in volumes])
    if cluster.volumes_are_real:
        story.limit_bytes = free // 2
    else:
        story.limit_bytes = free - cluster.brokers[broker_id].volumes[0].size_bytes
        story.notes.append(
            "tmpfs can't be mounted here (neither as root nor in a user namespace): the brokers "
            "share this machine's disk, and the limit is set relative to the space found free"
        )


async def _fill_and_free(story: Story, cluster: Cluster, broker_id: int) -> None:
    assignment = [[broker_id] for _ in cluster.brokers[broker_id].volumes]
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(TOPIC, assignment=assignment)
        traffic = Traffic(
            cluster.bootstrap,
            TOPIC,
            bytes_per_s=FILL_BYTES_PER_S,
            partitions=range(len(assignment)),
        )
        async with traffic:
            rate = f"{FILL_BYTES_PER_S / 1e6:.0f} MB/s of real messages"
            async with story.step(f"{rate} fill broker {broker_id} down to the limit"):
                await until(lambda: story.crossed)
            await _heard_everywhere(story, 0.0, "the limit being crossed")
        story.notes.append(
            "the demo itself stops its producer here: a broker obeys the factor by itself once it "
            "has a quota callback that reads it"
        )
        await _in_all_metrics(story, 0.0)
        async with story.step("the topic is deleted and its space is free"):
            await admin.delete_topic(TOPIC)
            await until(lambda: not story.crossed)
        await _heard_everywhere(story, 1.0, "the space being free")
        await _in_all_metrics(story, 1.0)


async def _watch_volumes(story: Story, cluster: Cluster, broker_id: int) -> None:
    """Ask the file systems themselves, so that the sidecars are measured by another's clock."""
    now = asyncio.get_running_loop().time
    broker = cluster.brokers[broker_id]
    while True:
        volumes = []
        for index in range(len(broker.volumes)):
            total, available = await cluster.usage(broker_id, index)
            volumes.append(VolumeNow(f"broker {broker_id} volume {index}", total, available))
        story.volumes = volumes
        crossed = any(volume.available_bytes <= story.limit_bytes for volume in volumes)
        if crossed != story.crossed:
            story.crossed, story.crossed_at = crossed, now()
        await asyncio.sleep(_SAMPLE_S)


async def _listen(story: Story, sidecar: Sidecar) -> None:
    """A reader that waits for changes, as the quota callback does."""
    now = asyncio.get_running_loop().time
    headers: dict[str, str] = {}
    while True:
        answer = await sidecar.get("/v1/throttle-factor", headers, _WAIT_S)
        headers = {"If-None-Match": answer.etag or "", "Prefer": f"wait={_WAIT_S:.0f}"}
        if answer.status == HTTPStatus.OK:
            story.heard[sidecar.broker_id] = Heard(answer.document()["factor"], now())


async def _heard_everywhere(story: Story, factor: float, measured_from: str) -> None:
    """One step for each sidecar: a reader that waits there hears the factor."""
    for sidecar in story.sidecars:
        title = f"factor {factor} at the sidecar of broker {sidecar.broker_id}"
        async with story.step(title, measured_from) as step:
            await until(partial(_hears, story, sidecar.broker_id, factor))
            # The file systems are sampled every 20 ms: a sidecar may know before this process does.
            step.seconds = max(0.0, story.heard[sidecar.broker_id].at - story.crossed_at)


def _hears(story: Story, broker_id: int, factor: float) -> bool:
    heard = story.heard.get(broker_id)
    return heard is not None and heard.factor == factor


def _observes_no_violation(answer: Answer) -> bool:
    document = answer.document()
    return (document["factor"], document["source"]) == (1.0, "observation")


async def _until_told(sidecar: Sidecar, path: str, tells: Callable[[Answer], bool]) -> None:
    while not tells(await sidecar.get(path)):  # noqa: ASYNC110 - it is a question over HTTP
        await asyncio.sleep(_SAMPLE_S)


async def _in_all_metrics(story: Story, factor: float) -> None:
    line = f"kafka_throttle_factor {factor}"
    async with story.step(f"{line!r} in the metrics of every sidecar"):
        for sidecar in story.sidecars:
            await _until_told(sidecar, "/metrics", lambda answer: line in answer.lines())
