"""The quotas of a quota source in Kafka: only what differs, and only what the source names."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from sidecar.control.board import Board
from sidecar.daemon.quota_writer import QuotaWriter, changes
from sidecar.daemon.sources import Source, read_quotas
from sidecar.quotas.entities import Entity
from sidecar.quotas.producer_ids.throttle_signature import signed
from sidecar.throttle.decision import Decider, Disabled, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import FailureKind
from tests.sidecar.kafka.servers import admin, bootstrap
from tests.sidecar.throttle.build import FakeClock, whole
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas
from tests.support.virtual_time import VIRTUAL_TIME

ANN, BOB = Entity(user="ann"), Entity(user="bob")
LIMIT = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)


def entry(user: str, **quotas: float | None) -> dict[str, object]:
    return {"entity": {"user": user}, "quotas": quotas}


def writer(
    cluster: FakeCluster, *returned: object, decider: Decider = LIMIT, is_wanted: bool = True
) -> QuotaWriter:
    """A writer of a source that returns these values, one after the other."""
    values = iter(returned)
    source = Source("the quota source my:quotas", lambda: next(values), read_quotas)
    reach = admin(bootstrap(cluster)) if cluster.brokers else None
    return QuotaWriter(source, Board(decider, FakeClock()), lambda: reach, lambda: is_wanted)


async def test_only_what_differs_is_set() -> None:
    """A null removes a quota; quotas that the source does not name stay as they are."""
    kafka = FakeQuotas(
        {
            ANN: {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0},
            BOB: {"producer_byte_rate": 1.0, "request_percentage": 9.0},
        }
    )
    wanted = [
        entry("ann", producer_byte_rate=5, consumer_byte_rate=None),
        entry("bob", producer_byte_rate=2.5),
    ]
    async with kafka.of(FakeCluster().add(1)) as cluster:
        writing = writer(cluster, wanted, wanted, [])
        assert [None, None, None] == [await writing.settle() for _ in range(3)]
    assert {
        ANN: {"producer_byte_rate": 5.0},
        BOB: {"producer_byte_rate": 2.5, "request_percentage": 9.0},
    } == kafka.quotas
    assert [(2, False)] == kafka.requests


def test_the_throttle_of_a_user_is_not_removed() -> None:
    """Null removes an operator's quota; one that a sidecar set ends with the throttle."""
    wanted = {user: {"request_percentage": None} for user in (ANN, BOB)}
    current = {ANN: {"request_percentage": signed(0.01)}, BOB: {"request_percentage": 0.01}}
    assert [(BOB.parts(), {"request_percentage": None})] == changes(current, wanted)


@VIRTUAL_TIME
async def test_only_the_known_cluster_has_its_quotas_set() -> None:
    """The volumes that are remembered are another cluster's than the one that answers."""
    kafka = FakeQuotas()
    async with kafka.of(FakeCluster().add(1)) as cluster:
        writing = writer(cluster, *2 * [[entry("bob", producer_byte_rate=2)]])
        writing.board.observe(whole(0.0, cluster_id="other-cluster"))
        failure = await writing.settle()
        assert failure is not None
        assert FailureKind.OTHER_CLUSTER is failure.kind
        assert {} == kafka.quotas
        writing.board.observe(whole(1.0, cluster_id="fake-cluster"))
        assert await writing.settle() is None
    assert {BOB: {"producer_byte_rate": 2.0}} == kafka.quotas


async def test_a_failure_changes_nothing_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The log names the source, once for each failure, and says when it works again."""
    caplog.set_level(logging.INFO)
    kafka = FakeQuotas({BOB: {"producer_byte_rate": 1.0}})
    good = [entry("bob", producer_byte_rate=2)]
    async with kafka.of(FakeCluster().add(1)) as cluster:
        writing = writer(cluster, None, None, good)
        for _ in range(3):
            writing._note(await writing.settle())
    nonsense = "the quota source my:quotas returned None, which is no list of quotas"
    assert [
        f"the quota source my:quotas: its quotas are not set: {nonsense}",
        "set the quotas of 1 entities in Kafka",
        "the quota source my:quotas: its quotas are set again",
    ] == [record.getMessage() for record in caplog.records]
    assert 2 == writing.board.tally.failures[FailureKind.SOURCE]
    assert {BOB: {"producer_byte_rate": 2.0}} == kafka.quotas


async def test_another_failure_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    """The log would otherwise have the first failure only."""
    writing = writer(FakeCluster(), None, [])
    for _ in range(2):
        writing._note(await writing.settle())
    first, second = (record.getMessage() for record in caplog.records)
    assert first.endswith("which is no list of quotas")
    assert second.endswith("no brokers are configured")


@pytest.mark.parametrize("call", ["describe", "set"])
async def test_brokers_that_refuse_are_a_failure(call: str) -> None:
    """Nothing is set, and the failure is Kafka's."""
    kafka = FakeQuotas({BOB: {"producer_byte_rate": 1.0}})
    if call == "describe":
        kafka.describe_error = ErrorCode.cluster_authorization_failed
    else:
        kafka.refused = {BOB}
    async with kafka.of(FakeCluster().add(1)) as cluster:
        failure = await writer(cluster, [entry("bob", producer_byte_rate=2)]).settle()
    assert failure is not None
    assert failure.kind in {FailureKind.AUTHORIZATION, FailureKind.BROKER}
    assert {BOB: {"producer_byte_rate": 1.0}} == kafka.quotas


async def test_credentials_that_can_not_be_read_are_a_failure(tmp_path: Path) -> None:
    """The next minute's attempt may find them."""
    async with FakeCluster().add(1) as cluster:
        writing = writer(cluster, [entry("bob", producer_byte_rate=2)])
        reach = admin(bootstrap(cluster)).model_copy(
            update={"security_protocol": "SSL", "ssl_truststore_location": tmp_path / "none.pem"}
        )
        writing.admin = lambda: reach
        failure = await writing.settle()
    assert failure is not None
    assert FailureKind.AUTHENTICATION is failure.kind
    assert "none.pem" in failure.message


@VIRTUAL_TIME
@pytest.mark.parametrize(
    ("decider", "is_wanted"),
    [(LIMIT, False), (replace(LIMIT, is_enforced=False), True), (Disabled(), True)],
)
async def test_a_follower_or_a_sidecar_that_only_observes_writes_nothing(
    decider: Decider, is_wanted: bool
) -> None:
    """It does not even call the source."""
    called = []
    writing = writer(FakeCluster(), decider=decider, is_wanted=is_wanted)
    writing.source.call = lambda: called.append(1)
    running = asyncio.create_task(writing.run())
    await asyncio.sleep(600.0)
    running.cancel()
    assert [] == called
