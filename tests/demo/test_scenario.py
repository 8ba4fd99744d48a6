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

import sidecar.demo.scenario as story_module
from sidecar.demo.loads import Load
from sidecar.demo.scenario import Scenario, Step, play
from sidecar.demo.series import Series
from sidecar.demo.sidecar_processes import Answer, Sidecar
from sidecar.demo.traffic import Traffic
from sidecar.errors import ClusterError
from tests.demo.clusters import FakeCluster

# Nothing here comes from outside the loop, so time may move as soon as nothing is ready.
pytestmark = pytest.mark.looptime(noop_cycles=1)


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
    """What a producer has measured; the cluster takes its rate while nothing is full."""

    def __init__(self, cluster: FakeCluster, target: float) -> None:
        self.longest_throttle_s = 0.0
        self.samples = Series()
        self.acknowledged_bytes = 0.0
        self._cluster = cluster
        self._wanted = target

    async def run(self, throttled_share: float, wait_s: float) -> None:
        while True:
            free = min(self._cluster.free.values()) > LIMIT_BYTES
            self.acknowledged_bytes += self._wanted * (1.0 if free else throttled_share) / 10
            if not free:
                self.longest_throttle_s = wait_s
            self.samples.add(asyncio.get_running_loop().time(), self.acknowledged_bytes)
            await asyncio.sleep(0.1)


@dataclass
class Brokers:
    """How the brokers behave.

    Attributes:
        throttled_share: the share of a producer's rate that they take while a volume is full.
        wait_s: the throttle time in their answers to producers.
        tenant_share: how much of its quota the tenant sends.
    """

    throttled_share: float = 0.01
    wait_s: float = 4.0
    tenant_share: float = 1.0


REACTION_S = 0.1
LIMIT_BYTES = 500


@pytest.fixture
def brokers() -> Brokers:
    """Brokers that obey."""
    return Brokers()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, brokers: Brokers) -> FakeCluster:
    """A cluster with volumes of 1,000 bytes, full after 20 s of traffic, which retention frees."""
    cluster = FakeCluster(tmp_path)
    cluster.free = {(2, 0): 1000, (2, 1): 1000}

    @asynccontextmanager
    async def loads(_: FakeCluster) -> AsyncIterator[tuple[Load, ...]]:
        running = [
            Load(f"broker {number}", 6e6, None, cast("Traffic", FakeTraffic(cluster, 6e6)))
            for number in cluster.brokers
        ]
        rate = 1e6 * brokers.tenant_share
        running.append(Load("tenant", 2e6, 1e6, cast("Traffic", FakeTraffic(cluster, rate))))
        asyncio.get_running_loop().call_later(20.0, cluster.free.update, {(2, 1): LIMIT_BYTES})
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    cast("FakeTraffic", load.traffic).run(brokers.throttled_share, brokers.wait_s)
                )
                for load in running
            ]
            yield tuple(running)
            for task in tasks:
                task.cancel()

    async def free_space(_: FakeCluster) -> None:
        cluster.free |= {(2, 0): 1000, (2, 1): 1000}

    monkeypatch.setattr(story_module, "loads", loads)
    monkeypatch.setattr(story_module, "free_space", free_space)
    return cluster


def sidecars(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **always: float
) -> list[dict[str, str]]:
    """Makes these the cluster's sidecars; returns the settings that they are started with."""
    started = []

    async def start(_cluster: FakeCluster, settings: dict[str, str]) -> tuple[Sidecar, ...]:
        started.append(settings)
        return tuple(
            FakeSidecar(number, "", 0, Path("log"), cluster, always.get(f"of_{number}"))
            for number in cluster.brokers
        )

    monkeypatch.setattr(story_module, "start_sidecars", start)
    return started


async def test_the_whole_scenario_is_measured_from_what_the_file_systems_say(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its twenty steps the factor's are as late as a sidecar reacts and a volume is read."""
    started = sidecars(monkeypatch, cluster)
    scenario = Scenario()
    await play(scenario, cluster)
    assert scenario.complete
    assert 20 == len(scenario.steps)
    assert {"limit crossed", "space free"} == set(scenario.moments)
    assert LIMIT_BYTES == min(value for _, value in scenario.free)
    assert [str(LIMIT_BYTES)] == [
        value for settings in started for key, value in settings.items() if "BYTES" in key
    ]
    assert scenario.token_file is not None
    assert [str(scenario.token_file)] == [settings["SIDECAR_TOKEN_FILE"] for settings in started]
    measured = [step for step in scenario.steps if step.title.startswith("factor")]
    assert ["the limit being crossed"] * 3 + ["the space being free"] * 3 == [
        step.measured_from for step in measured
    ]
    for step in measured:
        assert step.seconds is not None
        assert 0.0 <= step.seconds <= 2 * REACTION_S


async def test_what_the_tenant_sent_is_reported_beside_what_its_quota_allows(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are bytes, since within a window it may be faster than its quota."""
    sidecars(monkeypatch, cluster)
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


@pytest.mark.parametrize(
    ("always", "unseen"),
    [
        ({"of_1": 1.0}, "factor 0.0 at the sidecar of broker 1"),
        ({"of_2": 0.0}, "3 sidecars up, factor 1.0 by observation"),
    ],
)
async def test_a_sidecar_that_does_not_see_it_fails_the_scenario(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    always: dict[str, float],
    unseen: str,
) -> None:
    """The error names it; nothing of the rest is reported."""
    sidecars(monkeypatch, cluster, **always)
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
    sidecars(monkeypatch, cluster)
    for name, value in change.items():
        setattr(brokers, name, value)
    scenario = Scenario()
    with pytest.raises(ClusterError, match=says):
        await play(scenario, cluster)
    assert not scenario.complete
