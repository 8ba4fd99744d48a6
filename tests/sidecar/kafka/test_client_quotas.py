"""Reading and setting quotas: what the answers mean, and why a quota was not set.

That it works is shown on real clusters, in tests/integration/test_quotas.py.
"""

from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.kafka.client_quotas import (
    MOST_AT_ONCE,
    alter_client_quotas,
    alter_each,
    describe_client_quotas,
)
from sidecar.kafka.quota_messages import (
    ALTER_CLIENT_QUOTAS_KEY,
    DESCRIBE_CLIENT_QUOTAS_KEY,
    Alteration,
)
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import admin, bootstrap, failed, free_port, hang
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas
from tests.support.raw_server import raw_server
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = VIRTUAL_TIME

Parts = dict[str, str | None]


def entity_of(parts: Parts) -> list[Parts]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in parts.items()]


def reported(code: ErrorCode = ErrorCode.none, *entries: tuple[Any, Any]) -> FakeCluster:
    """A broker that answers with entities and their quotas."""
    described = [
        {
            "entity": entity_of(parts),
            "values": [{"key": key, "value": value} for key, value in values.items()],
        }
        for parts, values in entries
    ]
    message = "no" if code is not ErrorCode.none else None
    fields = {"error_code": code, "error_message": message, "entries": described}
    body = kio_answer(DESCRIBE_CLIENT_QUOTAS_KEY, 1, **fields)
    return FakeCluster().add(1).answer(DESCRIBE_CLIENT_QUOTAS_KEY, 1, lambda *_: body)


ANN: Parts = {"user": "ann", "client-id": None}
BOB: Parts = {"user": "bob"}


def altered(*outcomes: tuple[Parts, ErrorCode]) -> FakeCluster:
    """A broker that answers AlterClientQuotas about each of these entities."""
    entries = [
        {
            "error_code": code,
            "error_message": "odd" if code is not ErrorCode.none else None,
            "entity": entity_of(parts),
        }
        for parts, code in outcomes
    ]
    body = kio_answer(ALTER_CLIENT_QUOTAS_KEY, 1, entries=entries)
    return FakeCluster().add(1).answer(ALTER_CLIENT_QUOTAS_KEY, 1, lambda *_: body)


async def test_all_quotas_are_read() -> None:
    """They are of users, client-ids, both and addresses, or default; a kind to come is left out."""
    cluster = reported(
        ErrorCode.none,
        ({"user": "ann", "client-id": None}, {"producer_byte_rate": 1.5e6}),
        ({"user": None}, {"request_percentage": 9.2, "controller_mutation_rate": 5.0}),
        ({"ip": "192.0.2.1"}, {"connection_creation_rate": 2.0}),
        ({"tenant": "north"}, {"request_percentage": 1.0}),
    )
    async with cluster:
        quotas = await describe_client_quotas(admin(bootstrap(cluster)))
    expected = {
        Entity("ann", DEFAULT): {"producer_byte_rate": 1.5e6},
        Entity(DEFAULT): {"request_percentage": 9.2, "controller_mutation_rate": 5.0},
        Entity(ip="192.0.2.1"): {"connection_creation_rate": 2.0},
    }
    assert expected == quotas


async def test_another_address_is_asked(nothing_left_open: None) -> None:
    """The first address is down; the second one answers, and no connection is left."""
    async with reported() as cluster:
        assert {} == await describe_client_quotas(admin(free_port(), bootstrap(cluster)))


async def test_a_refused_read_says_what_to_grant() -> None:
    """Error 31 is of kind authorization, with the operation and the command."""
    async with reported(ErrorCode.cluster_authorization_failed) as cluster:
        answer = await describe_client_quotas(admin(bootstrap(cluster)))
    message = failed(answer, FailureKind.AUTHORIZATION)
    assert message.startswith("no broker reported the client quotas: ")
    assert "--operation DescribeConfigs --cluster; with AWS IAM, allow kafka-cluster:Describe" in (
        message
    )


@pytest.mark.parametrize("validate_only", [False, True])
async def test_validating_is_asked_for(validate_only: bool) -> None:
    """The broker reads the flag as it was meant."""
    async with altered((BOB, ErrorCode.none)) as cluster:
        done = await alter_client_quotas(
            admin(bootstrap(cluster)), [(BOB, {"x": 1.0})], validate_only=validate_only
        )
        *_, request = cluster.brokers[0].requests
    assert done is None
    assert validate_only is request.decoded.validate_only


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (
            ErrorCode.invalid_request,
            "BROKER",
            "of user 'ann', client-id the default returned error 42",
        ),
        (ErrorCode.cluster_authorization_failed, "AUTHORIZATION", "--operation AlterConfigs"),
    ],
)
async def test_a_refusal_says_what_was_refused(code: ErrorCode, kind: str, words: str) -> None:
    """It says whose quota, or which right is missing."""
    async with altered((ANN, code)) as cluster:
        answer = await alter_client_quotas(admin(bootstrap(cluster)), [(ANN, {"x": 1})])
    assert words in failed(answer, FailureKind[kind])


async def test_each_alteration_has_its_own_outcome() -> None:
    """They are in the order asked, whatever the answer's; the first failure is reported."""
    asked: list[Alteration] = [(ANN, {"x": 1.0}), (BOB, {"x": 1.0})]
    async with altered((BOB, ErrorCode.none), (ANN, ErrorCode.invalid_request)) as cluster:
        outcomes = await alter_each(admin(bootstrap(cluster)), asked)
        failure = await alter_client_quotas(admin(bootstrap(cluster)), asked)
    assert isinstance(outcomes, list)
    assert [True, False] == [isinstance(each, Failure) for each in outcomes]
    assert outcomes[0] == failure


async def test_an_answer_that_leaves_one_out_is_no_answer() -> None:
    """What became of bob's quota is not known, and not guessed."""
    async with altered((ANN, ErrorCode.none)) as cluster:
        asked: list[Alteration] = [(ANN, {"x": 1.0}), (BOB, {"x": 1.0})]
        answer = await alter_each(admin(bootstrap(cluster)), asked)
    assert "user 'bob'" in failed(answer, FailureKind.PROTOCOL)


@pytest.mark.slow
async def test_thousands_are_set_in_several_requests() -> None:
    """Kafka refuses more than 10,000 records at once. What was set before a failure is told."""
    quotas = FakeQuotas(drops={Entity(f"user-{MOST_AT_ONCE + 5}")})
    asked: list[Alteration] = [
        ({"user": f"user-{number}"}, {"producer_byte_rate": 1e6})
        for number in range(2 * MOST_AT_ONCE + 1)
    ]
    async with quotas.of(FakeCluster().add(1)) as cluster:
        partly = await alter_each(admin(bootstrap(cluster)), asked)
        quotas.drops.clear()
        done = await alter_each(admin(bootstrap(cluster)), asked)
    assert [None] * len(asked) == done
    assert [MOST_AT_ONCE, MOST_AT_ONCE, 1] == [count for count, _ in quotas.requests[-3:]]
    assert isinstance(partly, list)
    assert len(asked) == len(partly)
    assert [None] * MOST_AT_ONCE == partly[:MOST_AT_ONCE]
    assert all(isinstance(each, Failure) for each in partly[MOST_AT_ONCE:])


@pytest.mark.parametrize("silent", [0, 1, 6])
async def test_setting_asks_another_address(silent: int, nothing_left_open: None) -> None:
    """The first addresses are down, or accept and say nothing; the last one does it."""
    async with altered((BOB, ErrorCode.none)) as cluster, AsyncExitStack() as servers:
        first = [await servers.enter_async_context(raw_server(hang)) for _ in range(silent)]
        addresses = admin(*first or [free_port()], bootstrap(cluster))
        assert await alter_client_quotas(addresses, [(BOB, {"x": 1.0})], timeout_s=1.0) is None


@pytest.mark.parametrize(("brokers", "takes_s"), [(1, 9.0), (8, 4.0)])
async def test_a_slow_controller_is_waited_for(brokers: int, takes_s: float) -> None:
    """The only address may take all the time, and the first of many half of it."""
    quotas = FakeQuotas()
    async with quotas.of(FakeCluster().add(brokers)) as cluster:
        for broker in cluster.brokers.values():
            broker.takes_s = {ALTER_CLIENT_QUOTAS_KEY: takes_s}
        ports = [HostPort("127.0.0.1", each.port) for each in cluster.brokers.values()]
        assert await alter_client_quotas(admin(*ports), [(BOB, {"x": 1.0})]) is None


async def test_a_broker_without_a_controller_is_not_waited_for_until_the_end(
    nothing_left_open: None,
) -> None:
    """It answers all but the request that it forwards. The next call begins with another one."""
    quotas = FakeQuotas()
    async with quotas.of(FakeCluster().add(3)) as cluster:
        cluster.brokers[0].takes_s = {ALTER_CLIENT_QUOTAS_KEY: 60.0}
        addresses = admin(*(HostPort("127.0.0.1", each.port) for each in cluster.brokers.values()))
        platform = KafkaQuotas.of(lambda: addresses)
        for _ in range(2):
            assert [None] == await platform.alter([(BOB, {"x": 1.0})])
        got = {
            key: sum(each.api_key == ALTER_CLIENT_QUOTAS_KEY for each in broker.requests)
            for key, broker in cluster.brokers.items()
        }
    assert {0: 1, 1: 2, 2: 0} == got


async def test_a_failure_names_the_addresses_that_were_asked(nothing_left_open: None) -> None:
    """All have a part of the time, and those that did not answer are asked last next time."""
    unanswered = Counter[HostPort]()
    async with AsyncExitStack() as servers:
        silent = [await servers.enter_async_context(raw_server(hang)) for _ in range(6)]
        asked: list[Alteration] = [(BOB, {"x": 1.0})]
        answer = await alter_each(admin(*silent), asked, 4.0, unanswered=unanswered)
    message = failed(answer, FailureKind.TIMEOUT)
    assert silent == [each for each in silent if str(each) in message]
    assert dict.fromkeys(silent, 1) == unanswered


async def test_only_the_known_cluster_is_read_and_set(nothing_left_open: None) -> None:
    """Another cluster answers at the first address; without the known one, that is the failure."""
    own, other = FakeQuotas(), FakeQuotas()
    stranger = other.of(FakeCluster(cluster_id="other-cluster").add(1))
    async with own.of(FakeCluster().add(1)) as cluster, stranger:
        both = admin(bootstrap(stranger), bootstrap(cluster))
        both = both.model_copy(update={"cluster_id": "fake-cluster"})
        assert await alter_client_quotas(both, [(BOB, {"request_percentage": 1.0})]) is None
        read = await describe_client_quotas(both)
        alone = both.model_copy(update={"bootstrap_servers": (bootstrap(stranger),)})
        answers = (
            await describe_client_quotas(alone),
            await alter_client_quotas(alone, [(BOB, {"x": 1.0})]),
        )
    expected = {Entity(user="bob"): {"request_percentage": 1.0}}
    assert (expected, {}) == (own.quotas, other.quotas)
    assert expected == read
    for answer in answers:
        message = failed(answer, FailureKind.OTHER_CLUSTER)
        assert "belongs to cluster other-cluster, not to fake-cluster" in message
    assert [] == other.requests


async def test_a_broker_that_is_not_there() -> None:
    """It is a failure as of every other call, and no exception."""
    answer = await alter_client_quotas(admin(free_port()), [({"client-id": "a"}, {"x": 1.0})])
    failed(answer, FailureKind.CONNECT)
