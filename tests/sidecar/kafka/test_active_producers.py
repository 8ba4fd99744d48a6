"""Leaders are asked who is active on their partitions; what they can't answer is a failure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka import active_producers, leaders
from sidecar.kafka.active_producers import ActiveProducers, ScanResult
from sidecar.kafka.leaders import DOUBTED_S, LEADERS_S, Partition
from sidecar.kafka.producer_messages import ProducerStates
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.servers import (
    PATIENCE_S,
    Clock,
    admin,
    bootstrap,
    failed,
    free_port,
    succeeded,
)
from tests.support.fake_broker import FakeCluster
from tests.support.fake_producers import FakeProducers
from tests.support.virtual_time import VIRTUAL_TIME

A, B, C = ("a", 0), ("a", 1), ("b", 0)

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]


class Taken:
    """What a scan reported."""

    def __init__(self) -> None:
        self.states: dict[Partition, list[tuple[int, int, int]]] = {}

    def __call__(self, partition: Partition, states: ProducerStates) -> None:
        assert partition not in self.states
        self.states[partition] = list(states)


@asynccontextmanager
async def scanner(
    cluster: FakeCluster, clock: Clock, broker_id: int | None = None
) -> AsyncIterator[ActiveProducers]:
    """A scanner of a running cluster."""
    source = ActiveProducers(admin(bootstrap(cluster)), broker_id, clock)
    try:
        yield source
    finally:
        await source.close()


def kinds(result: ScanResult) -> dict[Partition, FailureKind]:
    """What kind of failure each partition has."""
    return {partition: failure.kind for partition, failure in result.failures.items()}


async def test_every_leader_answers_for_its_own_partitions(clock: Clock) -> None:
    """Internal topics and partitions without a leader are not asked for."""
    fake = FakeProducers(
        {A: 0, B: 1, C: 1, ("c", 0): -1, ("__consumer_offsets", 0): 0},
        {A: [(7, 0, 5)], C: [(7, 0, 1), (8, 2, 0)]},
        internal={"__consumer_offsets"},
    )
    async with fake.of(FakeCluster().add(2)) as cluster, scanner(cluster, clock) as source:
        taken = Taken()
        result = succeeded(await source.scan(taken, PATIENCE_S))
    assert {A: [(7, 0, 5)], B: [], C: [(7, 0, 1), (8, 2, 0)]} == taken.states
    assert {(0, (A,)), (1, (B, C))} == {(broker, tuple(named)) for broker, named in fake.asked}
    assert ScanResult(3, 3, {}, 0) == result


async def test_only_the_broker_beside_the_sidecar_is_asked(clock: Clock) -> None:
    """It alone is asked, if it is known which that is."""
    fake = FakeProducers({A: 0, B: 1})
    async with fake.of(FakeCluster().add(2)) as cluster, scanner(cluster, clock, 1) as source:
        taken = Taken()
        await source.scan(taken, PATIENCE_S)
    assert [(1, [B])] == fake.asked
    assert {B: []} == taken.states


async def test_a_broker_that_is_not_active_is_a_failure(clock: Clock) -> None:
    """It names the setting; a broker that is active and leads nothing is none."""
    fake = FakeProducers({A: 0})
    async with fake.of(FakeCluster().add(2)) as cluster:
        async with scanner(cluster, clock, 7) as source:
            failure = await source.scan(Taken(), PATIENCE_S)
        async with scanner(cluster, clock, 1) as source:
            assert 0 == succeeded(await source.scan(Taken(), PATIENCE_S)).partitions
    assert Failure(FailureKind.CONNECT, "broker 7 (SIDECAR_BROKER_ID) is not active") == failure


async def test_a_partition_that_is_made_later_or_moves_here_is_scanned(clock: Clock) -> None:
    """One without a leader is not, until it has one."""
    fake = FakeProducers({A: 0, B: 1})
    async with fake.of(FakeCluster().add(2)) as cluster, scanner(cluster, clock, 0) as source:
        scans = []
        for changed in ({}, {B: 0, C: -1}, {A: 1, C: 0}):
            fake.leaders |= changed
            clock.now += LEADERS_S
            await source.scan(taken := Taken(), PATIENCE_S)
            scans.append(set(taken.states))
    assert [{A}, {A, B}, {B, C}] == scans


async def test_leaders_are_asked_for_seldom_and_soon_after_one_changed(clock: Clock) -> None:
    """What a partition's former leader says is that partition's failure."""
    fake = FakeProducers({A: 0, B: 0})
    async with fake.of(FakeCluster().add(2)) as cluster, scanner(cluster, clock) as source:
        await source.scan(Taken(), PATIENCE_S)
        clock.now += LEADERS_S - 0.1
        await source.scan(Taken(), PATIENCE_S)
        assert 1 == fake.listed
        fake.leaders[B] = 1
        result = succeeded(await source.scan(Taken(), PATIENCE_S))
        assert {B: FailureKind.BROKER} == kinds(result)
        clock.now = 1000.0 + DOUBTED_S
        result = succeeded(await source.scan(Taken(), PATIENCE_S))
    assert (2, 2, {}) == (fake.listed, result.partitions, result.failures)


async def test_a_topic_that_may_not_be_read_says_what_is_needed(clock: Clock) -> None:
    """It is the command that grants the ACL; other topics are reported."""
    fake = FakeProducers({A: 0, C: 0}, refused={C: ErrorCode.topic_authorization_failed})
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        result = succeeded(await source.scan(Taken(), PATIENCE_S))
    assert 1 == result.partitions
    message = failed(result.failures[C], FailureKind.AUTHORIZATION)
    assert "error 29" in message
    assert "--allow-principal 'User:<name>' --operation Read --topic '*'" in message
    assert message.endswith("; with AWS IAM, allow kafka-cluster:ReadData in its policy instead")


async def test_no_topic_at_all_may_be_a_right_that_is_missing(clock: Clock) -> None:
    """Metadata leaves out what may not be described; it is asked again soon."""
    fake = FakeProducers()
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        answer = await source.scan(Taken(), PATIENCE_S)
        message = failed(answer, FailureKind.AUTHORIZATION)
        assert "--operation Read --topic '*'" in message
        fake.leaders[A] = 0
        clock.now += DOUBTED_S
        taken = Taken()
        await source.scan(taken, PATIENCE_S)
    assert {A} == set(taken.states)


async def test_a_broker_that_hangs_times_out_and_the_others_are_reported(clock: Clock) -> None:
    """Each partition that it leads has the one failure."""
    fake = FakeProducers({A: 0, B: 1, C: 1})
    async with fake.of(FakeCluster().add(2)) as cluster, scanner(cluster, clock) as source:
        await source.scan(Taken(), PATIENCE_S)
        cluster.brokers[1].twist = lambda *_: None
        taken = Taken()
        result = succeeded(await source.scan(taken, 0.5))
    assert {A} == set(taken.states)
    assert {B: FailureKind.TIMEOUT, C: FailureKind.TIMEOUT} == kinds(result)


async def test_nobody_answers_at_all(clock: Clock) -> None:
    """There is one failure."""
    source = ActiveProducers(admin(free_port()), None, clock)
    answer = await source.scan(Taken(), PATIENCE_S)
    await source.close()
    failed(answer, FailureKind.CONNECT)


async def test_another_cluster_is_not_scanned(clock: Clock) -> None:
    """Its producers are of other users; nobody of them is counted."""
    known = "fake-cluster"
    fake = FakeProducers({A: 0}, {A: [(7, 0, 5)]})
    async with fake.of(FakeCluster().add(1)) as cluster:
        source = ActiveProducers(admin(bootstrap(cluster)), None, clock, cluster_id=lambda: known)
        assert 1 == succeeded(await source.scan(Taken(), PATIENCE_S)).producers
        known = "other-cluster"
        answer = await source.scan(Taken(), PATIENCE_S)
        await source.close()
    assert {A: FailureKind.OTHER_CLUSTER} == kinds(succeeded(answer))


async def test_a_partition_that_is_left_out_of_an_answer_is_a_failure(clock: Clock) -> None:
    """Nothing counts as seen that is not."""
    fake = FakeProducers({A: 0, B: 0}, silent={B})
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        result = succeeded(await source.scan(Taken(), PATIENCE_S))
    assert {B: FailureKind.PROTOCOL} == kinds(result)


async def test_questions_grow_and_shrink_with_the_answers(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question has twice as many partitions each time, until its answer has the longest size."""
    every = [("a", index) for index in range(500)]
    fake = FakeProducers(dict.fromkeys(every, 0))
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        await source.scan(Taken(), PATIENCE_S)
        assert [100, 200, 200] == [len(named) for _, named in fake.asked]
        fake.asked.clear()
        fake.producers = {each: [(7, 0, 0)] for each in every}
        monkeypatch.setattr(active_producers, "PIECE_BYTES", 50 * 37)
        taken = Taken()
        await source.scan(taken, PATIENCE_S)
        assert [400, 50, 50] == [len(named) for _, named in fake.asked]
        assert set(every) == set(taken.states)


async def test_other_answers_are_reported_when_one_makes_no_sense(
    clock: Clock,
) -> None:
    """It is asked for in ever smaller pieces, and the one partition at fault last."""
    every = [("a", index) for index in range(8)]
    fake = FakeProducers(dict.fromkeys(every, 0), refused={})
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        await source.scan(Taken(), PATIENCE_S)

        def cut(_: object, request: object, frame: bytes) -> bytes:
            named = fake.asked[-1][1] if fake.asked else []
            is_at_fault = ("a", 0) in named and len(frame) > 8
            return frame[:4] + b"\xff" * (len(frame) - 4) if is_at_fault else frame

        cluster.brokers[0].twist = cut
        taken = Taken()
        result = await source.scan(taken, PATIENCE_S)
        for _ in range(4):
            clock.now += 20.0
            fake.asked.clear()
            taken = Taken()
            result = await source.scan(taken, PATIENCE_S)
        assert set(every[1:]) == set(taken.states)
        assert {("a", 0)} == set(succeeded(result).failures)


async def test_partitions_are_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is counted."""
    monkeypatch.setattr(leaders, "MOST_PARTITIONS", 2)
    fake = FakeProducers({A: 0, B: 0, C: 0})
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        taken = Taken()
        result = succeeded(await source.scan(taken, PATIENCE_S))
    assert ({A, B}, 1) == (set(taken.states), result.skipped)


async def test_new_credentials_are_used(clock: Clock) -> None:
    """They are, from the next scan on."""
    fake = FakeProducers({A: 0})
    async with fake.of(FakeCluster().add(1)) as cluster, scanner(cluster, clock) as source:
        await source.scan(Taken(), PATIENCE_S)
        source.reload(admin(bootstrap(cluster), client_id="another"))()
        assert 1 == succeeded(await source.scan(Taken(), PATIENCE_S)).partitions
        assert 2 == cluster.brokers[0].connected
