"""The story that the demo shows, step by step, each step seen on the real cluster or failed.

Sidecars up, producers at full speed on every broker, one broker's volumes reach the limit, the
factor falls at every sidecar and the brokers throttle every producer; retention frees the space,
the factor rises and the throughput is back; a tenant never had more than its own quota. Times are
from when a volume's own file system says that the limit is crossed, or that it no longer is.

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

from sidecar.demo.cluster import Cluster
from sidecar.demo.loads import QUOTA_WINDOW_S, Load, free_space, loads
from sidecar.demo.series import Series
from sidecar.demo.sidecar_processes import Answer, Sidecar, start_sidecars, write_token
from sidecar.demo.waiting import deadline, until
from sidecar.errors import ClusterError

MINIMUM_INTERVAL: Final = "PT0.1S"
INTERVAL: Final = "PT1S"
PAUSE_MAX_S: Final = 4.0
"""The longest pause of brokers by default, client.quota.callback.sidecar.pause.max.ms."""
THROTTLED_SHARE: Final = 0.2
BACK_SHARE: Final = 0.9
_THROTTLED_S: Final = 6.0
"""How long the throttle is watched before space is freed, and the traffic afterwards."""
_STEP_TIMEOUT_S: Final = 60.0
"""Kafka 3.3 takes 20 s to free what is deleted; all else here is a matter of seconds."""
_SCENARIO_TIMEOUT_S: Final = 600.0
"""More than all steps may take: they have deadlines of their own."""
_SAMPLE_S: Final = 0.02
_WAIT_S: Final = 1.0
"""How long a reader's request waits for a change: also what leaving the demo may cost."""


@dataclass(slots=True)
class Step:
    """One thing to be seen; ``seconds`` are None until it was."""

    title: str
    measured_from: str
    seconds: float | None = None
    failed: bool = False


@dataclass(slots=True)
class VolumeNow:
    """A volume by its file system."""

    name: str
    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class ReceivedFactor:
    """What a reader that waits at a sidecar last received, and when (loop seconds)."""

    factor: float
    at: float


@dataclass(slots=True)
class Scenario:
    """What has been seen so far; a view draws it.

    Attributes:
        steps: in order.
        limit_bytes: available bytes at which a volume violates; 0 until it is known.
        volumes: those of the broker that is filled.
        crossed: whether one of them is at or below the limit now.
        crossed_at: when that last changed, loop seconds.
        received: broker id -> what its sidecar last published.
        notes: what has to be said besides.
        sidecars: the running daemons.
        loads: the producers.
        free: available bytes of the fullest volume, loop seconds.
        moments: name -> when it was seen, loop seconds.
        token_file: the bearer token that they want for changes; None until there is one.
    """

    steps: list[Step] = field(default_factory=list)
    limit_bytes: int = 0
    volumes: list[VolumeNow] = field(default_factory=list)
    crossed: bool = False
    crossed_at: float = 0.0
    received: dict[int, ReceivedFactor] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sidecars: tuple[Sidecar, ...] = ()
    loads: tuple[Load, ...] = ()
    free: Series = field(default_factory=Series)
    moments: dict[str, float] = field(default_factory=dict)
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


async def play(scenario: Scenario, cluster: Cluster) -> None:
    """Play the story on a cluster that is up.

    Raises:
        ClusterError: a step was not seen.
    """
    broker_id = max(cluster.brokers)
    await _choose_limit(scenario, cluster, broker_id)
    async with scenario.step(f"{len(cluster.brokers)} sidecars up, factor 1.0 by observation"):
        scenario.token_file = write_token(cluster)
        scenario.sidecars = await start_sidecars(
            cluster,
            {
                "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
                "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
                "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(scenario.limit_bytes),
                "SIDECAR_TOKEN_FILE": str(scenario.token_file),
            },
        )
        for sidecar in scenario.sidecars:
            await _until_reported(sidecar, "/v1/throttle-factor", _observes_no_violation)
    async with (
        deadline(_SCENARIO_TIMEOUT_S, "the story was not over"),
        asyncio.TaskGroup() as group,
    ):
        watching = [
            group.create_task(_watch_volumes(scenario, cluster, broker_id), name="volumes"),
            *(
                group.create_task(_listen(scenario, sidecar), name=f"reader {sidecar.broker_id}")
                for sidecar in scenario.sidecars
            ),
        ]
        await _fill_and_free(scenario, cluster, broker_id)
        for task in watching:
            task.cancel()


async def _choose_limit(scenario: Scenario, cluster: Cluster, broker_id: int) -> None:
    """Half of what is free on a volume of its own; on a shared disk, a little less than is free."""
    volumes = range(len(cluster.brokers[broker_id].volumes))
    free = min([(await cluster.usage(broker_id, index))[1] for index in volumes])
    if cluster.volumes_are_real:
        scenario.limit_bytes = free // 2
    else:
        scenario.limit_bytes = free - cluster.brokers[broker_id].volumes[0].size_bytes
        scenario.notes.append(
            "tmpfs can't be mounted here (neither as root nor in a user namespace): the brokers "
            "share this machine's disk, and the limit is set relative to the space found free"
        )


async def _fill_and_free(scenario: Scenario, cluster: Cluster, broker_id: int) -> None:
    async with loads(cluster) as scenario.loads:
        others = [load for load in scenario.loads if load.quota is None]
        rate = f"{sum(load.target for load in others) / 1e6:.0f} MB/s of real messages"
        async with scenario.step(f"{rate} to {len(others)} brokers, each at full speed"):
            await until(lambda: all(load.rate() >= BACK_SHARE * load.target for load in others))
        async with scenario.step(f"broker {broker_id} is filled down to the limit"):
            await until(lambda: scenario.crossed)
        scenario.moments["limit crossed"] = scenario.crossed_at
        await _received_everywhere(scenario, 0.0, "the limit being crossed")
        await _in_all_metrics(scenario, 0.0)
        for load in others:
            await _seen_since(
                scenario,
                f"producers to {load.name} throttled to a trickle by their broker",
                "the limit being crossed",
                partial(_is_throttled, load),
            )
        await _waits_were_reported(scenario, others)
        async with scenario.step("retention frees the space"):
            await free_space(cluster)
            await until(lambda: not scenario.crossed)
        scenario.moments["space free"] = scenario.crossed_at
        await _received_everywhere(scenario, 1.0, "the space being free")
        await _in_all_metrics(scenario, 1.0)
        for load in others:
            await _seen_since(
                scenario,
                f"{BACK_SHARE:.0%} of the throughput to {load.name} is back",
                "the space being free",
                partial(_is_back, load),
            )
        await asyncio.sleep(_THROTTLED_S)
        await _quotas_were_held_to(scenario)


def _is_throttled(load: Load) -> bool:
    return load.rate() <= THROTTLED_SHARE * load.target


def _is_back(load: Load) -> bool:
    return load.rate(0.5) >= BACK_SHARE * load.target


async def _seen_since(
    scenario: Scenario, title: str, measured_from: str, holds: Callable[[], bool]
) -> None:
    """A step whose seconds count from when the limit was crossed, or no longer was."""
    now = asyncio.get_running_loop().time
    async with scenario.step(title, measured_from) as step:
        await until(holds)
        step.seconds = now() - scenario.crossed_at


async def _waits_were_reported(scenario: Scenario, others: list[Load]) -> None:
    title = f"throttle_cb makes every producer wait, never more than {PAUSE_MAX_S:.0f} s"
    async with scenario.step(title):
        await until(lambda: all(load.traffic.longest_throttle_s > 0.0 for load in others))
        await asyncio.sleep(_THROTTLED_S)
        longest = max(load.traffic.longest_throttle_s for load in others)
        # Kafka counts from when the request came, and a busy machine is late.
        if longest > PAUSE_MAX_S + 1.0:
            raise ClusterError(f"a producer had to wait for {longest:.1f} s")


async def _quotas_were_held_to(scenario: Scenario) -> None:
    """Kafka's own promise: never more than the quota, and the window's worth at once."""
    for load in scenario.loads:
        if load.quota is None:
            continue
        samples = list(load.traffic.samples)
        seconds = samples[-1][0] - samples[0][0] if samples else 0.0
        sent = load.traffic.acknowledged_bytes
        most = load.quota * (seconds + QUOTA_WINDOW_S)
        title = (
            f"the {load.name} sent {sent / 1e6:.1f} MB, its quota of {load.quota / 1e6:.0f} MB/s "
            f"allows {most / 1e6:.1f} MB"
        )
        async with scenario.step(title, "the producers' start") as step:
            if not 0 < sent <= most:
                raise ClusterError(f"the {load.name} sent {sent / 1e6:.1f} MB in {seconds:.1f} s")
            step.seconds = seconds


async def _watch_volumes(scenario: Scenario, cluster: Cluster, broker_id: int) -> None:
    """Query the file systems themselves, so that the sidecars are measured by another's clock."""
    now = asyncio.get_running_loop().time
    broker = cluster.brokers[broker_id]
    while True:
        volumes = []
        for index in range(len(broker.volumes)):
            total, available = await cluster.usage(broker_id, index)
            volumes.append(VolumeNow(f"broker {broker_id} volume {index}", total, available))
        scenario.volumes = volumes
        scenario.free.add(now(), min(volume.available_bytes for volume in volumes))
        crossed = any(volume.available_bytes <= scenario.limit_bytes for volume in volumes)
        if crossed != scenario.crossed:
            scenario.crossed, scenario.crossed_at = crossed, now()
        await asyncio.sleep(_SAMPLE_S)


async def _listen(scenario: Scenario, sidecar: Sidecar) -> None:
    """A reader that waits for changes, as the quota callback does."""
    now = asyncio.get_running_loop().time
    headers: dict[str, str] = {}
    while True:
        answer = await sidecar.get("/v1/throttle-factor", headers, _WAIT_S)
        headers = {"If-None-Match": answer.etag or "", "Prefer": f"wait={_WAIT_S:.0f}"}
        if answer.status == HTTPStatus.OK:
            scenario.received[sidecar.broker_id] = ReceivedFactor(
                answer.document()["factor"], now()
            )


async def _received_everywhere(scenario: Scenario, factor: float, measured_from: str) -> None:
    """One step for each sidecar: a reader that waits there receives the factor."""
    for sidecar in scenario.sidecars:
        title = f"factor {factor} at the sidecar of broker {sidecar.broker_id}"
        async with scenario.step(title, measured_from) as step:
            await until(partial(_has_received, scenario, sidecar.broker_id, factor))
            # The file systems are sampled every 20 ms: a sidecar may know before this process does.
            step.seconds = max(0.0, scenario.received[sidecar.broker_id].at - scenario.crossed_at)


def _has_received(scenario: Scenario, broker_id: int, factor: float) -> bool:
    received = scenario.received.get(broker_id)
    return received is not None and received.factor == factor


def _observes_no_violation(answer: Answer) -> bool:
    document = answer.document()
    return (document["factor"], document["source"]) == (1.0, "observation")


async def _until_reported(sidecar: Sidecar, path: str, matches: Callable[[Answer], bool]) -> None:
    while not matches(await sidecar.get(path)):  # noqa: ASYNC110 - it is a request over HTTP
        await asyncio.sleep(_SAMPLE_S)


async def _in_all_metrics(scenario: Scenario, factor: float) -> None:
    line = f"kafka_throttle_factor {factor}"
    async with scenario.step(f"{line!r} in the metrics of every sidecar"):
        for sidecar in scenario.sidecars:
            await _until_reported(sidecar, "/metrics", lambda answer: line in answer.lines())
