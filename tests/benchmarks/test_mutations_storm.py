"""The storm in virtual time: its pace, its repetitions, and the endpoint that it asks first."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from benchmarks.mutations.__main__ import as_before, wait_calm
from benchmarks.mutations.others import Operation
from benchmarks.mutations.storm import Load, Order, Request, Storm, admitted
from sidecar.errors import ClusterError
from sidecar.http import HttpError
from sidecar.kafka.client.controller import Unanswered
from sidecar.kafka.topic_messages import CreateTopicsRequestV7
from sidecar.volumes import Failure, FailureKind
from tests.support.background import Canned, reply, serving

pytestmark = pytest.mark.slow

LOST = Failure(FailureKind.CONNECT, "b1:9092: closed")
SMALL = Load(seconds=0.5, requests=3, topics=2)


@dataclass
class Answer:
    """As decoded."""

    topics: list[tuple[object, ...]]


@dataclass
class FakeKafka:
    """Connections to a controller that takes 0.3 s for each request.

    Attributes:
        codes: of a topic's name, the error code.
        twists: number of a request, from 0 -> the answer instead.
        asked: when, and for which topics, with their partitions and replicas.
    """

    codes: Callable[[str], int] = lambda _: 0
    twists: dict[int, object] = field(default_factory=dict)
    asked: list[tuple[float, list[tuple[str, int, int]]]] = field(default_factory=list)

    @asynccontextmanager
    async def one(self) -> AsyncIterator["FakeKafka"]:
        yield self

    async def call(self, request: Any, deadline: float) -> Any:
        now = asyncio.get_running_loop().time()
        number = len(self.asked)
        built = request.build(CreateTopicsRequestV7)
        topics = [(name, partitions, replicas) for name, partitions, replicas, *_ in built.topics]
        self.asked.append((round(now, 6), topics))
        await asyncio.sleep(0.3)
        if number in self.twists:
            return self.twists[number]
        return Answer([(name, bytes(16), self.codes(name), None) for name, *_ in topics])

    def names(self) -> list[list[str]]:
        return [[name for name, *_ in topics] for _, topics in self.asked]


async def _run(
    kafka: FakeKafka, admit: Any = None, load: Load = SMALL, patience_s: float = 60.0
) -> list[Request]:
    return await Storm(load, kafka, admit, patience_s).run(begin=1.0)


@pytest.mark.looptime
async def test_it_keeps_its_pace() -> None:
    """It sends a request each 0.1 s, though each takes 0.3 s; three are all that there are."""
    kafka = FakeKafka()
    done = await _run(kafka)
    expected = [
        (1.0, [("storm-0", 4, 3), ("storm-1", 4, 3)]),
        (1.1, [("storm-2", 4, 3), ("storm-3", 4, 3)]),
        (1.2, [("storm-4", 4, 3), ("storm-5", 4, 3)]),
    ]
    assert expected == kafka.asked
    assert [1.0, 1.1, 1.2] == pytest.approx([each.due for each in done])
    assert [1.3, 1.4, 1.5] == pytest.approx([each.answered for each in done])
    assert {(2, 2, 2, 0, "")} == {
        (each.asked, each.admitted, each.created, each.throttled, each.error) for each in done
    }


@pytest.mark.looptime
async def test_what_was_rejected_is_asked_for_first() -> None:
    """It is sent at the next tick after the answer, before new ones, while there is time."""
    kafka = FakeKafka(codes=lambda name: 89 if name == "storm-0" else 0)
    done = await _run(kafka, load=Load(seconds=1.0, requests=4, topics=2, per_s=2.0))
    assert [["storm-0", "storm-1"], ["storm-0", "storm-2"]] == kafka.names()
    assert [(1, 1), (1, 1)] == [(each.created, each.throttled) for each in done]


@pytest.mark.looptime
async def test_only_what_was_admitted_goes_to_kafka() -> None:
    """Nothing is sent when nothing was; what was not admitted comes again."""
    answers = [["storm-1"], [], ["storm-0", "storm-2"]]
    asked = []

    async def admit(names: Sequence[str], partitions: int) -> list[str]:
        assert 4 == partitions
        asked.append(names)
        return answers.pop(0)

    kafka = FakeKafka()
    done = await _run(kafka, admit, Load(seconds=0.3, requests=9, topics=2))
    assert [["storm-1"], ["storm-0", "storm-2"]] == kafka.names()
    assert [["storm-0", "storm-1"], ["storm-0", "storm-2"], ["storm-0", "storm-2"]] == asked
    assert [(2, 1, 1), (2, 0, 0), (2, 2, 2)] == [
        (each.asked, each.admitted, each.created) for each in done
    ]
    assert pytest.approx(1.1) == done[1].answered


@pytest.mark.looptime
async def test_what_goes_wrong_is_reported_of_the_request() -> None:
    """It fails, its answer is lost, or Kafka answers an error; the other requests continue."""
    kafka = FakeKafka(
        codes=lambda name: 41 if name == "storm-4" else 0, twists={0: LOST, 1: Unanswered(LOST)}
    )
    done = await _run(kafka)
    assert [(0, None, LOST.message), (0, None, LOST.message)] == [
        (each.created, each.answered, each.error) for each in done[:2]
    ]
    assert (1, "errors [41]") == (done[2].created, done[2].error)


@pytest.mark.looptime
async def test_it_does_not_wait_for_ever() -> None:
    """A client that asks first and gets no answer gives up after its patience."""

    async def admit(names: Sequence[str], partitions: int) -> list[str]:
        await asyncio.sleep(3600.0)
        return []

    done = await _run(FakeKafka(), admit, patience_s=5.0)
    assert {(None, "TimeoutError")} == {(each.answered, each.error) for each in done}


def test_an_order_survives_the_way_to_its_process() -> None:
    """It carries its load, as JSON."""
    order = Order(SMALL, ["b1:9092"], "storm", 5.0, 60.0, None, "")
    assert order == Order.read(json.loads(json.dumps(asdict(order))))


ADMISSIONS = "/v1/admissions/controller-mutations"


async def test_a_portal_sends_what_was_accepted() -> None:
    """It asks for its user, an operation for each topic."""
    results = [{"topic": "a", "accepted": True}, {"topic": "b", "accepted": False}]
    with serving(Canned({f"POST {ADMISSIONS}": reply({"results": results})})) as sidecar:
        assert ["a"] == await admitted(sidecar.url, "storm", "portal", ["a", "b"], 4)
    expected = {
        "user": "storm",
        "client_id": "portal",
        "operations": [
            {"kind": "create_topic", "topic": "a", "partitions": 4},
            {"kind": "create_topic", "topic": "b", "partitions": 4},
        ],
    }
    assert expected == json.loads(sidecar.asked[0].body)


async def test_a_portal_that_must_wait_sends_nothing() -> None:
    """429 admits nothing; any other answer is no answer."""
    with serving(Canned({f"POST {ADMISSIONS}": reply({}, 429)})) as sidecar:
        assert [] == await admitted(sidecar.url, "storm", "portal", ["a"], 4)
        sidecar.answers.clear()
        with pytest.raises(HttpError, match="404"):
            await admitted(sidecar.url, "storm", "portal", ["a"], 4)


@pytest.mark.looptime
async def test_it_is_calm_when_ten_in_a_row_are_quick() -> None:
    """Ten were due after 3 s and took 0.1 s: the poll after the last of them sees it."""
    loop = asyncio.get_running_loop()
    slow = [Operation(at / 5, at / 5, 9.0) for at in range(15)]
    quick = [Operation(3 + at / 5, 3 + at / 5, 3.1 + at / 5) for at in range(20)]
    await wait_calm([*slow, *quick], most=0.25)
    assert pytest.approx(5.5) == loop.time()


@pytest.mark.looptime
async def test_it_is_not_waited_for_calm_for_ever() -> None:
    """The limit is a minute; fewer than ten are not enough."""
    loop = asyncio.get_running_loop()
    await wait_calm([Operation(0.0, 0.1, 0.1)] * 9, most=0.25)
    assert 60.0 <= loop.time() <= 61.0


def testas_before_is_of_the_quiet_time() -> None:
    """Slow operations before the quiet time and after it do not count."""
    operations = [
        *[Operation(1.0, 1.0, 90.0)] * 3,
        *(Operation(at, at, at + 0.2) for at in (9.0, 9.5)),
    ]
    assert pytest.approx(0.6) == as_before([*operations, Operation(12.0, 12.0, 90.0)], begin=10.0)
    with pytest.raises(ClusterError, match="no record got through"):
        as_before([Operation(9.0, 9.0)], begin=10.0)
