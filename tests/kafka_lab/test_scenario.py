"""The demo's story: steps that are seen or fail, and the limit that is chosen."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

import kafka_lab.scenario as story_module
from kafka_lab.loads import Load
from kafka_lab.scenario import Scenario, Step, play
from kafka_lab.series import Series
from kafka_lab.sidecar_processes import Answer, Sidecar
from kafka_lab.traffic import Traffic
from sidecar.errors import ClusterError
from tests.kafka_lab.clusters import FakeCluster

# Nothing here comes from outside the loop, so time may move as soon as nothing is ready.
pytestmark = [pytest.mark.slow, pytest.mark.looptime(noop_cycles=1)]


async def test_a_step_is_seen_when_its_block_ends() -> None:
    """It has the seconds that it took."""
    scenario = Scenario()
    async with scenario.step("brokers ready"):
        assert [Step("brokers ready", "its start")] == scenario.steps
        await asyncio.sleep(3.5)
    assert [Step("brokers ready", "its start", 3.5)] == scenario.steps
    assert scenario.complete


async def test_a_step_s_seconds_may_be_counted_from_elsewhere() -> None:
    """The seconds that the block sets stay."""
    scenario = Scenario()
    async with scenario.step("factor 0.0", "a crossing") as step:
        await asyncio.sleep(3.5)
        step.seconds = 0.1
    assert ("a crossing", 0.1) == (step.measured_from, step.seconds)


async def test_a_step_that_is_not_seen_in_time_fails_the_scenario() -> None:
    """The error says which; it is not seen later either."""
    scenario = Scenario()
    began = asyncio.get_running_loop().time()
    with pytest.raises(ClusterError, match=r"not seen: factor 0\.0 within 60 s"):
        async with scenario.step("factor 0.0"):
            await asyncio.sleep(1000)
    assert 60.0 == asyncio.get_running_loop().time() - began
    assert (None, True) == (scenario.steps[0].seconds, scenario.steps[0].failed)
    assert not scenario.complete


async def test_a_step_that_breaks_fails_the_scenario() -> None:
    """Several errors at once fail it too, and the first of them is reported."""
    scenario = Scenario()
    with pytest.raises(ClusterError, match="broker 1 ended"):
        async with scenario.step("brokers ready"), asyncio.TaskGroup():
            raise ClusterError("broker 1 ended")
    assert scenario.steps[0].failed
    assert not scenario.complete


async def test_a_scenario_is_complete_only_with_every_step_seen() -> None:
    """A scenario without steps is not, nor is one that still runs."""
    scenario = Scenario()
    assert not scenario.complete
    scenario.steps = [Step("brokers ready", "its start", 3.5), Step("sidecars up", "its start")]
    assert not scenario.complete
    scenario.steps[1].seconds = 1.0
    assert scenario.complete


async def test_the_limit_is_half_of_the_fuller_volume() -> None:
    """It is of the last broker, which is filled, where volumes are file systems of their own."""
    scenario, cluster = Scenario(), FakeCluster(None)
    cluster.free = {(0, 0): 10, (2, 0): 800, (2, 1): 600}
    with pytest.raises(ClusterError, match="not up"):
        await play(scenario, cluster)
    assert 300 == scenario.limit_bytes
    assert [] == scenario.notes


async def test_on_a_shared_disk_the_limit_is_a_volume_s_size_below_what_is_free() -> None:
    """It is so whatever the disk's size is, and it is reported."""
    scenario, cluster = Scenario(), FakeCluster(None, real=False)
    cluster.free = {(2, 0): 500_000, (2, 1): 500_000}
    with pytest.raises(ClusterError, match="not up"):
        await play(scenario, cluster)
    assert 499_000 == scenario.limit_bytes
    (note,) = scenario.notes
    assert "share this machine's disk" in note


@dataclass(frozen=True, slots=True)
class FakeSidecar(Sidecar):
    """A sidecar that sees what is free at once, or always answers the same.

    Attributes:
        cluster: whose free space it reads.
        always: what it says instead.
    """

    cluster: FakeCluster
    always: float | None = None

    async def get(
        self, path: str, headers: dict[str, str] | None = None, wait_s: float = 0.0
    ) -> Answer:
        await asyncio.sleep(REACTION_S if wait_s else 0.0)
        free = min(free for (broker_id, _), free in self.cluster.free.items() if broker_id == 2)
        factor = float(free > LIMIT_BYTES) if self.always is None else self.always
        etag = f'"{factor}"'
        if path == "/metrics":
            return Answer(200, None, f"# HELP\nkafka_throttle_factor {factor}\n".encode())
        if headers and headers.get("If-None-Match") == etag:
            return Answer(304, etag, b"")
        body = json.dumps({"factor": factor, "source": "observation"}).encode()
        return Answer(200, etag, body)


class FakeTraffic:
    """A producer's samples; the cluster accepts its rate while it is not throttled."""

    def __init__(self, cluster: FakeCluster, target: float, *, fills: bool = False) -> None:
        self.longest_throttle_s = 0.0
        self.samples = Series()
        self.acknowledged_bytes = 0.0
        self._cluster = cluster
        self._wanted = target
        self._fills = fills

    async def run(self, brokers: "Brokers") -> None:
        while True:
            full = min(self._cluster.free.values()) <= LIMIT_BYTES
            in_scope = self._fills or brokers.scope == "cluster"
            share = brokers.throttled_share if in_scope else brokers.spared_share
            self.acknowledged_bytes += self._wanted * (share if full else 1.0) / 10
            if full and in_scope:
                self.longest_throttle_s = brokers.wait_s
            self.samples.add(asyncio.get_running_loop().time(), self.acknowledged_bytes)
            await asyncio.sleep(0.1)


@dataclass
class Brokers:
    """How the brokers behave.

    Attributes:
        throttled_share: the share of a producer's rate that they take while a volume is full.
        wait_s: the throttle time in their answers to producers.
        tenant_share: how much of its quota the tenant sends.
        spared_share: the share of its rate that they take of a producer out of scope.
        scope: what the sidecars were last started with.
    """

    throttled_share: float = 0.01
    wait_s: float = 4.0
    tenant_share: float = 1.0
    spared_share: float = 1.0
    scope: str = "cluster"


REACTION_S = 0.1
LIMIT_BYTES = 500


@pytest.fixture
def brokers() -> Brokers:
    """Brokers that obey."""
    return Brokers()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, brokers: Brokers) -> FakeCluster:
    """A cluster with volumes of 1,000 bytes, full 20 s after all is retained, else free."""
    cluster = FakeCluster(tmp_path)
    cluster.free = {(2, 0): 1000, (2, 1): 1000}

    @asynccontextmanager
    async def loads(_: FakeCluster) -> AsyncIterator[tuple[Load, ...]]:
        running = [
            Load(name, 6e6, None, cast("Traffic", FakeTraffic(cluster, 6e6, fills=fills)))
            for name, fills in (("broker 0", False), ("broker 2 (etl)", True), ("web", False))
        ]
        rate = 1e6 * brokers.tenant_share
        running.append(Load("tenant", 2e6, 1e6, cast("Traffic", FakeTraffic(cluster, rate))))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(cast("FakeTraffic", load.traffic).run(brokers))
                for load in running
            ]
            yield tuple(running)
            for task in tasks:
                task.cancel()

    async def retain(_: FakeCluster, most_bytes: int | None) -> None:
        if most_bytes is None:
            loop = asyncio.get_running_loop()
            loop.call_later(20.0, cluster.free.update, {(2, 1): LIMIT_BYTES})
        else:
            cluster.free |= {(2, 0): 1000, (2, 1): 1000}

    monkeypatch.setattr(story_module, "loads", loads)
    monkeypatch.setattr(story_module, "retain", retain)
    return cluster


def sidecars(
    monkeypatch: pytest.MonkeyPatch,
    cluster: FakeCluster,
    brokers: Brokers,
    **always: float,
) -> list[dict[str, str]]:
    """Makes these the cluster's sidecars; returns the settings that they are started with."""
    started = []

    async def start(
        _cluster: FakeCluster, settings: dict[str, str], _settings_of: object
    ) -> tuple[Sidecar, ...]:
        started.append(settings)
        brokers.scope = settings.get("SIDECAR_THROTTLE_SCOPE", "cluster")
        return tuple(
            FakeSidecar(number, "", 0, Path("log"), cluster, always.get(f"of_{number}"))
            for number in cluster.brokers
        )

    async def stop(_: FakeCluster) -> None:
        assert started, "what does not run can't be stopped"

    monkeypatch.setattr(story_module, "start_sidecars", start)
    monkeypatch.setattr(story_module, "stop_sidecars", stop)
    return started


async def test_the_whole_scenario_is_measured_from_what_the_file_systems_say(
    cluster: FakeCluster, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its 26 steps the factor's are as late as a sidecar reacts and a volume is read."""
    started = sidecars(monkeypatch, cluster, brokers)
    scenario = Scenario()
    await play(scenario, cluster)
    assert scenario.complete
    assert 26 == len(scenario.steps)
    assert ["limit crossed", "space free", "scope", "crossed", "free"] == list(scenario.moments)
    assert LIMIT_BYTES == min(value for _, value in scenario.free)
    assert [str(LIMIT_BYTES)] * 2 == [
        value for settings in started for key, value in settings.items() if "BYTES" in key
    ]
    assert [None, "volume"] == [settings.get("SIDECAR_THROTTLE_SCOPE") for settings in started]
    assert scenario.token_file is not None
    assert [str(scenario.token_file)] * 2 == [
        settings["SIDECAR_TOKEN_FILE"] for settings in started
    ]
    measured = [step for step in scenario.steps if step.title.startswith("factor")]
    assert ["the limit being crossed"] * 3 + ["the space being free"] * 3 == [
        step.measured_from for step in measured
    ]
    for step in measured:
        assert step.seconds is not None
        assert 0.0 <= step.seconds <= 2 * REACTION_S


async def test_what_the_tenant_sent_is_reported_beside_what_its_quota_allows(
    cluster: FakeCluster, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are bytes, since within a window it may be faster than its quota."""
    sidecars(monkeypatch, cluster, brokers)
    scenario = Scenario()
    await play(scenario, cluster)
    step = scenario.steps[-1]
    reported = re.fullmatch(
        r"the tenant sent ([\d.]+) MB, its quota of 1 MB/s allows ([\d.]+) MB", step.title
    )
    assert reported is not None, step.title
    assert step.seconds is not None
    sent = scenario.loads[-1].traffic.acknowledged_bytes
    assert pytest.approx(sent / 1e6, abs=0.3) == float(reported[1])
    assert pytest.approx(step.seconds + 11.0, abs=0.1) == float(reported[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("always", "unseen"),
    [
        ({"of_1": 1.0}, "factor 0.0 at the sidecar of broker 1"),
        ({"of_2": 0.0}, "3 sidecars up, factor 1.0 by observation"),
    ],
)
async def test_a_sidecar_that_does_not_see_it_fails_the_scenario(
    cluster: FakeCluster,
    brokers: Brokers,
    monkeypatch: pytest.MonkeyPatch,
    always: dict[str, float],
    unseen: str,
) -> None:
    """The error names it; nothing of the rest is reported."""
    sidecars(monkeypatch, cluster, brokers, **always)
    scenario = Scenario()
    with pytest.raises(ClusterError, match=re.escape(f"not seen: {unseen} within 60 s")):
        await play(scenario, cluster)
    assert not scenario.complete
    assert [unseen] == [step.title for step in scenario.steps if step.failed]
    assert unseen == scenario.steps[-1].title


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"throttled_share": 0.3}, "not seen: producers to broker 0 throttled to a trickle"),
        ({"wait_s": 0.0}, "not seen: throttle_cb makes every producer wait"),
        ({"wait_s": 5.1}, "a producer had to wait for 5.1 s"),
        ({"tenant_share": 2.0}, r"the tenant sent \d+"),
        ({"spared_share": 0.8}, r"another tenant had \d\d% of its throughput"),
    ],
)
async def test_brokers_that_do_not_obey_fail_the_scenario(
    cluster: FakeCluster,
    brokers: Brokers,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, float],
    says: str,
) -> None:
    """Each failure has a message of its own."""
    sidecars(monkeypatch, cluster, brokers)
    for name, value in change.items():
        setattr(brokers, name, value)
    scenario = Scenario()
    with pytest.raises(ClusterError, match=says):
        await play(scenario, cluster)
    assert not scenario.complete
