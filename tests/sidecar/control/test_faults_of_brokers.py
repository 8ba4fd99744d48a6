"""What a sidecar says of brokers that die, hang, fill up or lose a log dir, from answer to API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from sidecar.control.board import PersistedState
from sidecar.state import StateFile
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from tests.sidecar.api.build import until
from tests.support.documents import Document, VolumeKey
from tests.support.fake_broker import DESCRIBE_CLUSTER, FakeCluster, FakeLogDir
from tests.support.stepped import LIMIT_BYTES, MB, SteppedSidecar, effect, settings_of

HANG_S = 20.0
"""Real seconds; only a hung broker takes that long."""

VALIDITY_S = 300.0

FIRST, SECOND = "/var/lib/kafka/data-0", "/var/lib/kafka/data-1"
FREE_BYTES = 60 * MB


def volume(log_dir: str, available_bytes: int = FREE_BYTES) -> FakeLogDir:
    return FakeLogDir(log_dir, 64 * MB, available_bytes)


def offline(log_dir: str) -> FakeLogDir:
    """A log dir as its broker describes it: KAFKA_STORAGE_ERROR, and no sizes."""
    return FakeLogDir(log_dir, -1, -1, error_code=56)


HEALTHY = (volume(FIRST), volume(SECOND))
FULL = (volume(FIRST, LIMIT_BYTES), volume(SECOND))
OF_THE_FULL = (1, FIRST)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    """Three brokers with two healthy volumes each."""
    cluster = FakeCluster().add(3)
    for broker in cluster.brokers.values():
        broker.log_dirs = HEALTHY
    async with cluster:
        yield cluster


@pytest.fixture
async def sidecar(cluster: FakeCluster) -> AsyncIterator[SteppedSidecar]:
    """A sidecar that has polled once."""
    async with SteppedSidecar(settings_of(cluster)) as sidecar:
        assert (1.0, "observation") == effect(await sidecar.poll())
        yield sidecar


def epoch_s(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def silent(*_: object) -> None:
    """A twist: the broker answers nothing."""


def decided(document: Document) -> tuple[float, str, int]:
    """The effect, and the generation in which it began."""
    return (*effect(document), document["generation"])


def violating(document: Document) -> list[VolumeKey]:
    return [(each["broker_id"], each["log_dir"]) for each in document["violations"]]


async def die(cluster: FakeCluster, broker_id: int) -> None:
    """The broker is killed, and the controller has fenced it."""
    await cluster.brokers[broker_id].stop()
    cluster.fence(broker_id)


async def come_back(cluster: FakeCluster, broker_id: int) -> None:
    """The broker is started anew and registered."""
    await cluster.brokers[broker_id].start()
    cluster.fence()


class TestDead:
    async def test_a_healthy_broker_blocks_nothing(
        self, cluster: FakeCluster, sidecar: SteppedSidecar
    ) -> None:
        """It is killed and fenced: no new decision; it is not in the metrics until it is back."""
        before = await sidecar.factor()
        everything = set(sidecar.metrics.volumes("total_bytes"))
        of_the_dead = {(1, FIRST), (1, SECOND)}
        assert of_the_dead < everything
        await cluster.brokers[1].stop()
        await sidecar.poll()
        refused = (await sidecar.brokers())[1]
        assert ("active", "connect") == (refused["state"], refused["last_failure"]["kind"])
        assert everything == set(sidecar.metrics.volumes("total_bytes"))
        cluster.fence(1)
        await sidecar.poll(after_s=2 * VALIDITY_S)
        assert "fenced" == (await sidecar.brokers())[1]["state"]
        for name in ("total_bytes", "online"):
            assert everything - of_the_dead == set(sidecar.metrics.volumes(name))
        metrics = sidecar.metrics
        assert (2.0, 4.0) == (metrics.value("active_brokers"), metrics.value("active_log_dirs"))
        await come_back(cluster, 1)
        after = await sidecar.poll(after_s=60.0)
        assert everything == set(sidecar.metrics.volumes("total_bytes"))
        assert None is (await sidecar.brokers())[1]["last_failure"]
        assert (1.0, "observation", before["generation"]) == decided(after)
        assert 0.0 == sidecar.metrics.value("fallback_applied_total")

    async def test_a_fenced_full_broker_throttles_until_it_is_forgotten(
        self, cluster: FakeCluster, sidecar: SteppedSidecar
    ) -> None:
        """The throttle outlasts the validity, though nobody answers; an operator ends it."""
        cluster.brokers[1].has(*FULL)
        full = await sidecar.poll()
        assert (0.0, "observation") == effect(full)
        assert 409 == (await sidecar.forget(1)).status_code, "it is active and answers"
        await die(cluster, 1)
        throttled = await sidecar.poll(after_s=2 * VALIDITY_S)
        assert (0.0, "observation", full["generation"]) == decided(throttled)
        assert [OF_THE_FULL] == violating(throttled)
        answer = await sidecar.forget(1)
        assert (200, 1.0) == (answer.status_code, answer.json()["factor"])
        released = await sidecar.factor()
        assert (1.0, "observation") == effect(released)
        assert throttled["generation"] + 1 == released["generation"]
        assert (1.0, "observation") == effect(await sidecar.poll())

    @pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
    async def test_a_restarted_sidecar_throttles_until_the_full_broker_answers(
        self, cluster: FakeCluster, tmp_path: Path, killed: bool
    ) -> None:
        """The throttle outlasts the validity, without a moment of 1.0, until it answers as free."""
        path = tmp_path / "state.json"
        environ = settings_of(cluster, STATE_FILE=str(path))
        async with SteppedSidecar(environ) as before, writing_state(before):
            await before.poll()
            cluster.brokers[1].has(*FULL)
            full = await before.poll()
            await die(cluster, 1)
            await before.poll()
            await until(lambda: factor_in(path) == 0.0)
            if not killed:
                assert before.writer is not None
                await before.writer.write()
        # The space is free again, but the broker that could say so is down.
        cluster.brokers[1].has(*HEALTHY)
        async with SteppedSidecar(environ, before.clock) as sidecar:
            begun = await sidecar.factor()
            assert (0.0, "observation", full["since"]) == (*effect(begun), begun["since"])
            throttled = await sidecar.poll(after_s=2 * VALIDITY_S)
            assert (0.0, "observation", full["since"]) == (*effect(throttled), throttled["since"])
            assert [OF_THE_FULL] == violating(throttled)
            assert [(0.0, "observation")] == await sidecar.effects()
            await come_back(cluster, 1)
            assert (1.0, "observation") == effect(await sidecar.poll())
            assert "active" == (await sidecar.brokers())[1]["state"]

    async def test_a_departed_full_broker_throttles_for_the_validity(
        self, cluster: FakeCluster
    ) -> None:
        """Before Kafka 4.0 none is listed as fenced: it is off the list, its reading expires."""
        cluster.versions[DESCRIBE_CLUSTER] = (0, 1)
        cluster.brokers[1].has(*FULL)
        async with SteppedSidecar(settings_of(cluster)) as sidecar:
            await sidecar.poll()
            await die(cluster, 1)
            await sidecar.poll()
            departed = (await sidecar.brokers())[1]
            assert "departed" == departed["state"]
            read_at = epoch_s(departed["last_seen"])
            last = await sidecar.poll(after_s=read_at + VALIDITY_S - sidecar.clock())
            assert (0.0, "observation") == effect(last)
            assert [OF_THE_FULL] == violating(last)
            assert (1.0, "observation") == effect(await sidecar.poll(after_s=0.001))
            assert {0, 2} == set(await sidecar.brokers())
            assert {0, 2} == {broker_id for broker_id, _ in await sidecar.volumes()}


@contextlib.asynccontextmanager
async def writing_state(sidecar: SteppedSidecar) -> AsyncIterator[None]:
    """Runs a sidecar's state writer, which at the end writes no last time."""
    assert sidecar.writer is not None
    task = asyncio.create_task(sidecar.writer.run())
    yield
    task.cancel()
    await asyncio.wait([task])


def factor_in(path: Path) -> float | None:
    """The factor in a state file; None while there is no file."""
    loaded = StateFile(path, Rules(MinAvailableBytes(LIMIT_BYTES), 300.0)).load(0.0)
    return loaded.factor if isinstance(loaded, PersistedState) else None


class TestOffline:
    async def test_a_healthy_log_dir_blocks_nothing(
        self, cluster: FakeCluster, sidecar: SteppedSidecar
    ) -> None:
        """API and metrics show it as offline, with its last sizes; there is no new decision."""
        key = (1, SECOND)
        before = await sidecar.factor()
        cluster.brokers[1].has(volume(FIRST), offline(SECOND))
        after = await sidecar.poll(after_s=2 * VALIDITY_S)
        assert (1.0, "observation", before["generation"]) == decided(after)
        volumes = await sidecar.volumes()
        shown = volumes[key]
        assert "offline" == shown["state"]
        assert "error 56" in shown["unread_reason"]
        sizes = {"total_bytes": 64 * MB, "available_bytes": FREE_BYTES, "limit_violated": False}
        assert sizes.items() <= shown.items()
        assert before["computed_at"] == shown["read_at"]
        assert {each: float(each != key) for each in volumes} == sidecar.metrics.volumes("online")
        assert volumes.keys() - {key} == sidecar.metrics.volumes("fill_bytes_per_second").keys()
        assert 6.0 == sidecar.metrics.value("active_log_dirs")

    async def test_a_full_log_dir_throttles_until_it_is_back(
        self, cluster: FakeCluster, sidecar: SteppedSidecar
    ) -> None:
        """The throttle outlasts the validity while the broker answers; a free log dir ends it."""
        cluster.brokers[1].has(*FULL)
        full = await sidecar.poll()
        cluster.brokers[1].has(offline(FIRST), volume(SECOND))
        throttled = await sidecar.poll(after_s=2 * VALIDITY_S)
        assert (0.0, "observation", full["generation"]) == decided(throttled)
        assert [OF_THE_FULL] == violating(throttled)
        assert 0.0 == sidecar.metrics.volumes("online")[OF_THE_FULL]
        cluster.brokers[1].has(*HEALTHY)
        assert (1.0, "observation") == effect(await sidecar.poll())
        assert "online" == (await sidecar.volumes())[OF_THE_FULL]["state"]

    async def test_a_full_log_dir_throttles_until_it_is_forgotten(
        self, cluster: FakeCluster, tmp_path: Path
    ) -> None:
        """Beyond the validity and over a restart, while its broker lives; and never again."""
        environ = settings_of(cluster, STATE_FILE=str(tmp_path / "state.json"))
        async with SteppedSidecar(environ) as before:
            cluster.brokers[1].has(*FULL)
            await before.poll()
            cluster.brokers[1].has(offline(FIRST), volume(SECOND))
            assert 409 == (await before.forget(1)).status_code, "its broker answers"
            assert before.writer is not None
            await before.writer.write()
        async with SteppedSidecar(environ, before.clock) as sidecar:
            throttled = await sidecar.poll(after_s=2 * VALIDITY_S)
            assert (0.0, "observation") == effect(throttled)
            assert [OF_THE_FULL] == violating(throttled)
            answer = await sidecar.forget(*OF_THE_FULL)
            assert (200, 1.0) == (answer.status_code, answer.json()["factor"])
            assert sidecar.writer is not None
            await sidecar.writer.write()
            assert OF_THE_FULL not in sidecar.metrics.volumes("limit_violated")
        async with SteppedSidecar(environ, before.clock) as again:
            assert (1.0, "observation") == effect(await again.factor())
            assert (1.0, "observation") == effect(await again.poll(after_s=2 * VALIDITY_S))
            assert "offline" == (await again.volumes())[OF_THE_FULL]["state"]


class TestOutOfSight:
    async def test_a_violation_is_seen_while_another_broker_hangs(
        self, cluster: FakeCluster, sidecar: SteppedSidecar
    ) -> None:
        """The silent one counts as last read; the poll ends at its deadline."""
        everything = set(await sidecar.volumes())
        cluster.brokers[2].twist = silent
        cluster.brokers[1].has(*FULL)
        assert (0.0, "observation") == effect(await sidecar.poll(deadline_s=0.1))
        shown = (await sidecar.brokers())[2]
        assert ("active", "timeout") == (shown["state"], shown["last_failure"]["kind"])
        assert everything == set(await sidecar.volumes())

    async def test_a_broker_that_hangs_delays_one_poll_only(
        self, cluster: FakeCluster, sidecar: SteppedSidecar, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once it has missed a deadline, a violation elsewhere is seen as soon as without it."""
        monkeypatch.setattr("sidecar.kafka.source.ANSWER_TIMEOUT_S", 3 * HANG_S)
        cluster.brokers[2].twist = silent
        await sidecar.poll(deadline_s=0.1)
        cluster.brokers[1].has(*FULL)
        async with asyncio.timeout(HANG_S):
            document = await sidecar.poll(deadline_s=3 * HANG_S)
        assert (0.0, "observation") == effect(document)
        shown = (await sidecar.brokers())[2]
        assert ("active", "timeout") == (shown["state"], shown["last_failure"]["kind"])

    async def test_no_broker_at_all_is_the_fallback_after_the_validity(
        self, cluster: FakeCluster
    ) -> None:
        """All are killed: 1.0 for the validity, then the fallback, counted once; then observed."""
        async with SteppedSidecar(settings_of(cluster, THROTTLE_FACTOR_FALLBACK="0.0")) as sidecar:
            seen = await sidecar.poll()
            for broker in cluster.brokers.values():
                await broker.stop()
            last = await sidecar.poll(after_s=VALIDITY_S)
            assert (1.0, "observation") == effect(last)
            assert VALIDITY_S == epoch_s(last["valid_until"]) - epoch_s(seen["computed_at"])
            assert 1 == (await sidecar.get("/v1/brokers"))["failed_polls"]
            for _ in range(2):
                fallen = await sidecar.poll(after_s=0.001)
                assert (0.0, "fallback") == effect(fallen)
            assert 3 == (await sidecar.get("/v1/brokers"))["failed_polls"]
            assert (0.0, 1.0, 1.0) == (
                sidecar.metrics.value("factor"),
                sidecar.metrics.value("fallback_applied_total"),
                sidecar.metrics.value("source", source="fallback"),
            )
            for broker in cluster.brokers.values():
                await broker.start()
            assert (1.0, "observation") == effect(await sidecar.poll(after_s=60.0))
            assert (1.0, 1.0) == (
                sidecar.metrics.value("factor"),
                sidecar.metrics.value("fallback_applied_total"),
            )
            assert [
                (0.0, "fallback"),
                (1.0, "observation"),
                (0.0, "fallback"),
                (1.0, "observation"),
            ] == await sidecar.effects()


async def test_the_one_full_volume_is_named_and_released(
    cluster: FakeCluster, sidecar: SteppedSidecar
) -> None:
    """One of six volumes is at the limit: 0.0 with its numbers, in API and metrics."""
    cluster.brokers[1].has(*FULL)
    document = await sidecar.poll()
    assert (0.0, "observation") == effect(document)
    (named,) = document["violations"]
    sizes = {"total_bytes": 64 * MB, "available_bytes": LIMIT_BYTES}
    assert ({"broker_id": 1, "log_dir": FIRST} | sizes).items() <= named.items()
    keys = set(await sidecar.volumes())
    assert 6 == len(keys)
    for name, of_the_full, of_others in (
        ("limit_violated", 1.0, 0.0),
        ("available_bytes", LIMIT_BYTES, FREE_BYTES),
        ("total_bytes", 64 * MB, 64 * MB),
        ("online", 1.0, 1.0),
    ):
        expected = dict.fromkeys(keys, of_others) | {OF_THE_FULL: of_the_full}
        assert expected == sidecar.metrics.volumes(name)
    totals = {"factor": 0.0, "active_brokers": 3.0, "active_log_dirs": 6.0}
    assert totals == {name: sidecar.metrics.value(name) for name in totals}
    assert 1.0 == sidecar.metrics.value("limit_violated_total")
    cluster.brokers[1].has(*HEALTHY)
    document = await sidecar.poll()
    assert (1.0, "observation", []) == (*effect(document), document["violations"])
    assert 1.0 == sidecar.metrics.value("factor")
    assert {0.0} == set(sidecar.metrics.volumes("limit_violated").values())
