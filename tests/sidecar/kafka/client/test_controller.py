"""A client of the controller: who is asked, what is sent once, and that nothing is left open."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.client.controller import Controller, Unanswered
from sidecar.kafka.topic_changes import delete_topics
from sidecar.kafka.topic_messages import DELETE_TOPICS_KEY, DeleteTopics
from sidecar.kafka.topic_results import Outcome
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import admin, bootstrap, failed, free_port, hang
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest
from tests.support.raw_server import raw_server
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = VIRTUAL_TIME

REQUEST = DeleteTopics(["a"], 1000)


def deletes(code_of: Callable[[FakeBroker], ErrorCode] = lambda _: ErrorCode.none) -> FakeCluster:
    """Two brokers that answer DeleteTopics; broker 0 is the controller."""

    def answer(broker: FakeBroker, request: FakeRequest) -> bytes:
        result = {"topic_id": None, "error_code": code_of(broker), "error_message": None}
        results = [{"name": topic.name, **result} for topic in request.decoded.topics]
        return kio_answer(DELETE_TOPICS_KEY, 6, responses=results)

    return FakeCluster().add(2).answer(DELETE_TOPICS_KEY, 6, answer)


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


def asked(broker: FakeBroker) -> int:
    """How many DeleteTopics it got."""
    return sum(request.api_key == DELETE_TOPICS_KEY for request in broker.requests)


async def test_the_first_address_that_answers_is_used_again(nothing_left_open: None) -> None:
    """One that is down is passed over; later calls use the connection that is there."""
    async with deletes() as cluster, Controller(admin(free_port(), bootstrap(cluster))) as client:
        for _ in range(3):
            answer = await client.call(REQUEST, soon())
            assert not isinstance(answer, Failure | Unanswered)
        assert 1 == cluster.brokers[0].connected
        assert 3 == asked(cluster.brokers[0])


async def test_no_address_answers(nothing_left_open: None) -> None:
    """A failure names them, and nothing was sent."""
    first, second = free_port(), free_port()
    async with Controller(admin(first, second)) as client:
        answer = await client.call(REQUEST, soon())
    message = failed(answer, FailureKind.CONNECT)
    assert str(first) in message
    assert str(second) in message


async def test_an_answer_that_does_not_come(nothing_left_open: None) -> None:
    """The deadline ends, or the connection is dropped: the request may have been done."""

    def drop(connection: Any, request: FakeRequest, frame: bytes) -> bytes | None:
        if request.api_key != DELETE_TOPICS_KEY:
            return frame
        connection.transport.abort()
        return None

    async with deletes() as cluster, Controller(admin(bootstrap(cluster))) as client:
        broker = cluster.brokers[0]
        broker.twist = lambda _, request, frame: (
            None if request.api_key == DELETE_TOPICS_KEY else frame
        )
        late = await client.call(REQUEST, soon(0.2))
        assert isinstance(late, Unanswered)
        assert FailureKind.TIMEOUT is late.failure.kind
        broker.twist = drop
        dropped = await client.call(REQUEST, soon())
        assert isinstance(dropped, Unanswered)
        assert FailureKind.CONNECT is dropped.failure.kind
        # Each was sent once, and a further one gets a connection of its own.
        assert 2 == asked(broker)
        broker.twist = None
        assert not isinstance(await client.call(REQUEST, soon()), Failure | Unanswered)
        assert 3 == broker.connected


async def test_after_an_answer_that_did_not_come_another_address_is_asked(
    nothing_left_open: None,
) -> None:
    """The broker that did not answer takes connections, but may not answer the next request."""
    async with deletes() as cluster:
        silent, other = cluster.brokers.values()
        silent.twist = lambda _, request, frame: (
            None if request.api_key == DELETE_TOPICS_KEY else frame
        )
        first = bootstrap(cluster)
        async with Controller(admin(first, first._replace(port=other.port))) as client:
            assert isinstance(await client.call(REQUEST, soon(0.2)), Unanswered)
            assert not isinstance(await client.call(REQUEST, soon()), Failure | Unanswered)
        assert [1, 1] == [asked(silent), asked(other)]


async def test_a_broker_without_the_request(nothing_left_open: None) -> None:
    """The failure says what is needed; nothing was sent."""
    async with FakeCluster().add(1) as cluster, Controller(admin(bootstrap(cluster))) as client:
        answer = await client.call(REQUEST, soon())
    assert "v6 (Kafka 2.8)" in failed(answer, FailureKind.UNSUPPORTED)


async def test_a_hung_address_is_left(
    nothing_left_open: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is, after its time, while there is another one."""
    monkeypatch.setattr("sidecar.kafka.client.controller.DIAL_TIMEOUT_S", 0.1)
    async with (
        raw_server(hang) as hung,
        deletes() as cluster,
        Controller(admin(hung, bootstrap(cluster))) as client,
    ):
        assert not isinstance(await client.call(REQUEST, soon()), Failure | Unanswered)


async def test_the_broker_says_where_the_controller_is(nothing_left_open: None) -> None:
    """On ZooKeeper broker 1 does not take it, and names broker 0."""

    def code(broker: FakeBroker) -> ErrorCode:
        return ErrorCode.none if broker.broker_id == 0 else ErrorCode.not_controller

    async with deletes(code) as cluster:
        port = cluster.brokers[1].port
        (result,) = await delete_topics(admin(bootstrap(cluster)._replace(port=port)), ["a"])
        assert Outcome.DONE is result.outcome
        assert [1, 1] == [asked(broker) for broker in cluster.brokers.values()]


async def test_cancelled_while_it_waits(nothing_left_open: None) -> None:
    """Ctrl-C leaves no connection."""
    sent = asyncio.Event()

    def never_answer(_: object, request: FakeRequest, frame: bytes) -> bytes | None:
        if request.api_key != DELETE_TOPICS_KEY:
            return frame
        sent.set()
        return None

    async with deletes() as cluster:
        cluster.brokers[0].twist = never_answer
        call = asyncio.create_task(delete_topics(admin(bootstrap(cluster)), ["a"]))
        await asyncio.wait_for(sent.wait(), 5.0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
