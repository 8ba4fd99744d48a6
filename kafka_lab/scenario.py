"""The demo's scenario: steps that are observed on the real cluster, or fail.

Sidecars start, and producers send at full speed to every broker. One volume reaches the limit, the
factor falls at every sidecar, and the brokers throttle every producer. Then retention frees space,
the factor rises, and the throughput recovers. The same is repeated with the scope of volumes: only
the tenant that fills the volume is throttled, and another tenant of the same broker is not. A
tenant with a quota never exceeds it. Times are measured from the moment when the volume's own file
system crosses the limit, in either direction. ``acts.py`` has further acts.

Example of an observed step: ``Step("factor 0.0 at the sidecar of broker 1", seconds=0.11)``.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kafka_lab.cluster import Cluster
from kafka_lab.loads import (
    FILLER,
    LITTLE_BYTES,
    MUCH_BYTES,
    OTHER,
    QUOTA_WINDOW_S,
    Load,
    loads,
    retain,
)
from kafka_lab.nodes import Broker
from kafka_lab.series import Series
from kafka_lab.sidecar_processes import (
    Answer,
    Sidecar,
    start_sidecars,
    stop_sidecars,
    write_token,
)
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError

MINIMUM_INTERVAL: Final = "PT0.1S"
INTERVAL: Final = "PT1S"
PAUSE_MAX_S: Final = 4.0
"""The default of client.quota.callback.sidecar.pause.max.ms, a broker's longest pause."""
THROTTLED_SHARE: Final = 0.2
BACK_SHARE: Final = 0.9
_THROTTLED_S: Final = 6.0
"""How long the throttle is observed before space is freed."""
_AFTERWARDS_S: Final = 3.0
_STEP_TIMEOUT_S: Final = 60.0
"""Kafka 3.3 takes 20 s to free deleted space; everything else takes seconds."""
_SCENARIO_TIMEOUT_S: Final = 600.0
"""More than all steps together; each step has a deadline of its own."""
_SAMPLE_S: Final = 0.02
_WAIT_S: Final = 1.0
"""How long a reader's request waits for a change; leaving the demo may take as long."""


@dataclass(slots=True)
class Step:
    """A step of the scenario; ``seconds`` is None until the step was observed."""

    title: str
    measured_from: str
    seconds: float | None = None
    failed: bool = False


@dataclass(slots=True)
class VolumeNow:
    """The space of a volume, by its file system."""

    name: str
    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class ReceivedFactor:
    """The last factor that a waiting reader received from a sidecar, and when (loop seconds)."""

    factor: float
    at: float


@dataclass(slots=True)
class Scenario:
    """The observations so far, which a view draws.

    Attributes:
        steps: the steps, in order.
        limit_bytes: available bytes at which a volume violates the limit; 0 before it is chosen.
        volumes: the volumes of the broker that is filled.
        crossed: whether one of them is at or below the limit now.
        crossed_at: when ``crossed`` last changed, in loop seconds.
        received: by broker id, the last factor that its sidecar published.
        notes: other messages for the user.
        sidecars: the running daemons.
        loads: the producers.
        free: available bytes of the fullest volume, over loop seconds.
        factors: by broker id, the factor that its sidecar published, at each of its answers.
        captions: sentences on what happens and why, each with its loop seconds.
        further: more acts, after the others; None for none.
        moments: named times, in loop seconds.
        token_file: the bearer token that sidecars require for changes; None before it is written.
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
    factors: dict[int, Series] = field(default_factory=dict)
    captions: list[tuple[float, str]] = field(default_factory=list)
    further: "Callable[[Scenario, Cluster], Awaitable[None]] | None" = None
    moments: dict[str, float] = field(default_factory=dict)
    token_file: Path | None = None

    @property
    def complete(self) -> bool:
        """Return whether every step was observed."""
        return bool(self.steps) and all(step.seconds is not None for step in self.steps)

    def say(self, text: str, at: float | None = None) -> None:
        """Say what happens, at a time in loop seconds; None for now."""
        self.captions.append((asyncio.get_running_loop().time() if at is None else at, text))

    @asynccontextmanager
    async def step(
        self, title: str, measured_from: str = "its start", timeout_s: float = _STEP_TIMEOUT_S
    ) -> AsyncIterator[Step]:
        """Run a step, which is observed when the block ends, and fails if that takes too long.

        Raises:
            ClusterError: the step was not observed in time.
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
    """Play the scenario on a running cluster.

    Raises:
        ClusterError: a step was not observed.
    """
    broker_id = max(cluster.brokers)
    await _choose_limit(scenario, cluster, broker_id)
    async with scenario.step(f"{len(cluster.brokers)} sidecars up, factor 1.0 by observation"):
        scenario.token_file = write_token(cluster)
        await start_observing(scenario, cluster)
    async with (
        deadline(_SCENARIO_TIMEOUT_S, "the scenario did not end"),
        loads(cluster) as scenario.loads,
        meanwhile({"volumes": _watch_volumes(scenario, cluster, broker_id)}),
    ):
        async with meanwhile(readers(scenario)):
            await _all_are_throttled(scenario, cluster, broker_id)
        title = f"{len(cluster.brokers)} sidecars restarted with SIDECAR_THROTTLE_SCOPE=volume"
        async with scenario.step(title):
            await stop_sidecars(cluster)
            await start_observing(scenario, cluster, {"SIDECAR_THROTTLE_SCOPE": "volume"})
        scenario.moments["scope"] = asyncio.get_running_loop().time()
        scenario.say("New sidecars: now only those who write to a full volume will be paused.")
        async with meanwhile(readers(scenario)):
            await _who_fills_it_is_throttled(scenario, cluster, broker_id)
        await _quotas_were_held_to(scenario)
        if scenario.further is not None:
            await scenario.further(scenario, cluster)


@asynccontextmanager
async def meanwhile(watches: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run watchers, by the names of their tasks, until the end of the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(watch, name=name) for name, watch in watches.items()]
        yield
        for task in tasks:
            task.cancel()


async def start_observing(
    scenario: Scenario,
    cluster: Cluster,
    more: Mapping[str, str] | None = None,
    settings_of: Callable[[Broker], Mapping[str, str]] | None = None,
) -> None:
    """Start sidecars, with more settings; returns when each sees that no volume is full."""
    settings = {
        "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
        "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(scenario.limit_bytes),
        "SIDECAR_TOKEN_FILE": str(scenario.token_file),
        **(more or {}),
    }
    scenario.sidecars = await start_sidecars(cluster, settings, settings_of)
    for sidecar in scenario.sidecars:
        await _until_reported(sidecar, "/v1/throttle-factor", _observes_no_violation)


async def _choose_limit(scenario: Scenario, cluster: Cluster, broker_id: int) -> None:
    """Use half of a volume's free space; on a shared disk, use a little less than is free."""
    volumes = range(len(cluster.brokers[broker_id].volumes))
    free = min([(await cluster.usage(broker_id, index))[1] for index in volumes])
    if cluster.volumes_are_real:
        scenario.limit_bytes = free // 2
    else:
        scenario.limit_bytes = free - cluster.brokers[broker_id].volumes[0].size_bytes
        scenario.notes.append(
            "tmpfs can't be mounted here (neither as root nor in a user namespace): the brokers "
            "share this machine's disk, and the limit is relative to its free space"
        )


async def _all_are_throttled(scenario: Scenario, cluster: Cluster, broker_id: int) -> None:
    others = without_quota(scenario)
    rate = f"{sum(load.target for load in others) / 1e6:.0f} MB/s of real messages"
    async with scenario.step(f"{rate} to {len(cluster.brokers)} brokers, at full speed"):
        await until(lambda: all(load.rate() >= BACK_SHARE * load.target for load in others))
    scenario.say(f"Producers write at full speed. {FILLER} fills a volume of broker {broker_id}.")
    await _limit_is_crossed(
        scenario, cluster, f"broker {broker_id} is filled down to the limit", "limit crossed"
    )
    await _received_everywhere(scenario, 0.0, "the limit being crossed")
    scenario.say("Every sidecar publishes the factor 0.0: brokers are to pause all producers.")
    await _in_all_metrics(scenario, 0.0)
    for load in others:
        await _seen_since(
            scenario,
            f"producers to {load.name} throttled to a trickle by their broker",
            "the limit being crossed",
            partial(_is_throttled, load),
        )
    scenario.say("Brokers pause all producers. Only a trickle is written.")
    await _waits_were_reported(scenario, others)
    await _space_is_freed(scenario, cluster, MUCH_BYTES, "space free")
    await _received_everywhere(scenario, 1.0, "the space being free")
    await _in_all_metrics(scenario, 1.0)
    for load in others:
        await _is_back_again(scenario, load)
    scenario.say("All producers have their full speed again.")


async def _who_fills_it_is_throttled(scenario: Scenario, cluster: Cluster, broker_id: int) -> None:
    filler = next(load for load in scenario.loads if FILLER in load.name)
    others = [load for load in without_quota(scenario) if load is not filler]
    await _limit_is_crossed(
        scenario, cluster, f"broker {broker_id} is filled again, by {FILLER}", "crossed"
    )
    await _seen_since(
        scenario,
        f"producers to {filler.name} throttled to a trickle, no others",
        "the limit being crossed",
        partial(_is_throttled, filler),
    )
    await _others_have_their_throughput(scenario, others)
    scenario.say(f"Only {FILLER} is paused. {OTHER}, on the same broker, writes on.")
    await _space_is_freed(scenario, cluster, LITTLE_BYTES, "free")
    await _is_back_again(scenario, filler)
    # The picture shows this time too.
    await asyncio.sleep(_AFTERWARDS_S)


def without_quota(scenario: Scenario) -> list[Load]:
    """Return the producers without a quota, so that only a throttle makes them wait."""
    return [load for load in scenario.loads if load.quota is None]


async def _limit_is_crossed(scenario: Scenario, cluster: Cluster, title: str, moment: str) -> None:
    async with scenario.step(title):
        await retain(cluster, None)
        await until(lambda: scenario.crossed)
    scenario.moments[moment] = scenario.crossed_at
    scenario.say("The volume is at its limit.", scenario.crossed_at)


async def _space_is_freed(
    scenario: Scenario, cluster: Cluster, left_bytes: int, moment: str
) -> None:
    async with scenario.step("retention frees the space"):
        await retain(cluster, left_bytes)
        await until(lambda: not scenario.crossed)
    scenario.moments[moment] = scenario.crossed_at
    scenario.say("Retention has freed space: the volume is above its limit.", scenario.crossed_at)


async def _others_have_their_throughput(scenario: Scenario, others: list[Load]) -> None:
    """Observe the others while the tenant that fills the volume is throttled."""
    async with scenario.step("the others have their throughput", "the limit being crossed") as step:
        await asyncio.sleep(_THROTTLED_S)
        now = asyncio.get_running_loop().time()
        step.seconds = now - scenario.crossed_at
        least = min(load.rate(step.seconds) / load.target for load in others)
        step.title = f"{OTHER} and the others have {min(least, 1.0):.0%} of their throughput"
        if least < BACK_SHARE:
            step.seconds = None
            raise ClusterError(f"not seen: another tenant had {least:.0%} of its throughput")


async def _is_back_again(scenario: Scenario, load: Load) -> None:
    await _seen_since(
        scenario,
        f"{BACK_SHARE:.0%} of the throughput to {load.name} is back",
        "the space being free",
        partial(_is_back, load),
    )


def _is_throttled(load: Load) -> bool:
    return load.rate() <= THROTTLED_SHARE * load.target


def _is_back(load: Load) -> bool:
    return load.rate(0.5) >= BACK_SHARE * load.target


async def _seen_since(
    scenario: Scenario, title: str, measured_from: str, holds: Callable[[], bool]
) -> None:
    """Run a step whose seconds count from the last crossing of the limit."""
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
        # Kafka counts from the arrival of the request, and a busy machine is late.
        if longest > PAUSE_MAX_S + 1.0:
            raise ClusterError(f"a producer had to wait for {longest:.1f} s")


async def _quotas_were_held_to(scenario: Scenario) -> None:
    """Check Kafka's own guarantee: at most the quota, and the window's worth at once."""
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
    """Query the file systems, so that times do not depend on the sidecars' own clocks."""
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


def readers(scenario: Scenario) -> dict[str, Coroutine[Any, Any, None]]:
    """Return a watcher for each sidecar that waits for its factor, by the names of their tasks."""
    return {
        f"reader {sidecar.broker_id}": _listen(scenario, sidecar) for sidecar in scenario.sidecars
    }


async def _listen(scenario: Scenario, sidecar: Sidecar) -> None:
    """Wait for changes at a sidecar, like the quota callback."""
    now = asyncio.get_running_loop().time
    headers: dict[str, str] = {}
    while True:
        answer = await sidecar.get("/v1/throttle-factor", headers, _WAIT_S)
        headers = {"If-None-Match": answer.etag or "", "Prefer": f"wait={_WAIT_S:.0f}"}
        if answer.status == HTTPStatus.OK:
            scenario.received[sidecar.broker_id] = ReceivedFactor(
                answer.document()["factor"], now()
            )
        factors = scenario.factors.setdefault(sidecar.broker_id, Series())
        factors.add(now(), scenario.received[sidecar.broker_id].factor)


async def _received_everywhere(scenario: Scenario, factor: float, measured_from: str) -> None:
    """Run a step for each sidecar: a reader that waits there receives the factor."""
    for sidecar in scenario.sidecars:
        title = f"factor {factor} at the sidecar of broker {sidecar.broker_id}"
        async with scenario.step(title, measured_from) as step:
            await until(partial(_has_received, scenario, sidecar.broker_id, factor))
            # The file systems are sampled every 20 ms, so a sidecar may notice a change earlier.
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
