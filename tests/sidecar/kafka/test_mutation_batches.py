"""Many mutations under a quota, in virtual time: what is asked for again, when, and the results."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from sidecar.kafka.client.controller import Unanswered
from sidecar.kafka.mutation_batches import BATCH_TOPICS, Mutation, MutationBatcher
from sidecar.kafka.topic_results import Outcome, TopicResult
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket
from sidecar.volumes import Failure, FailureKind

LOST = Failure(FailureKind.CONNECT, "b1:9092: the connection was closed")
ALREADY_EXISTS = 36

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]


@dataclass
class Answer:
    """As decoded: code by topic."""

    throttle_time_ms: int
    codes: dict[str, int]


@dataclass
class FakeController:
    """Charges one partition a topic to a bucket, strictly, as a controller does.

    Attributes:
        bucket: None takes all.
        twists: number of a request, from 0 -> what happens instead.
        asked: when, and for which topics.
        left: for how long the answer is waited for, seconds.
        moves: what ``find`` returns, in turn.
    """

    bucket: TokenBucket | None = None
    twists: dict[int, Callable[[Sequence[str]], Any]] = field(default_factory=dict)
    asked: list[tuple[float, list[str]]] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    moves: list[Failure | None] = field(default_factory=list)

    async def call(self, request: Any, deadline: float) -> Any:
        await asyncio.sleep(0)
        now = asyncio.get_running_loop().time()
        assert now < deadline
        number = len(self.asked)
        self.asked.append((now, request))
        self.left.append(deadline - now)
        if number in self.twists:
            return self.twists[number](request)
        codes = {}
        wait_ms = 0
        for name in request:
            if self.bucket is None:
                codes[name] = 0
                continue
            admission = self.bucket.admit(1, round(now * 1000), strict=True)
            codes[name] = 0 if admission.accepted else 89
            wait_ms = max(wait_ms, admission.throttle_ms)
        return Answer(wait_ms, codes)

    async def find(self, deadline: float) -> Failure | None:
        return self.moves.pop(0)


def make(partitions: int = 1) -> Mutation[str]:
    return Mutation(
        lambda batch, _timeout_ms: batch,  # type: ignore[arg-type, return-value] # the fake reads the list itself
        lambda answer: [(name, code, None) for name, code in answer.codes.items()],
        str,
        lambda _: partitions,
    )


def names(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def outcomes(results: Sequence[TopicResult]) -> list[Outcome]:
    return [result.outcome for result in results]


async def run(
    controller: FakeController, topics: list[str], timeout_s: float = 1.0, *, retry: bool = True
) -> Sequence[TopicResult]:
    return await MutationBatcher(make(), topics, timeout_s, retry=retry).run(controller)


def all_with(code: int, throttle_time_ms: int = 0) -> Callable[[Sequence[str]], Answer]:
    """A twist: an error code for all, and a wait."""
    return lambda batch: Answer(throttle_time_ms, dict.fromkeys(batch, code))


def rate_of_one() -> TokenBucket:
    """1 a second, a burst of 11, full."""
    return TokenBucket(1.0, QuotaWindow(), 0)


async def test_what_is_throttled_is_asked_for_again_after_the_wait() -> None:
    """It is the module's example: 12 of 30 are done at once, then one a second, in order."""
    controller = FakeController(rate_of_one())
    reported: list[TopicResult] = []
    batcher = MutationBatcher(make(), names(30), 60.0, reported.append, retry=True)
    results = await batcher.run(controller)
    assert [Outcome.DONE] * 30 == outcomes(results)
    assert names(30) == [result.topic for result in reported]
    # 30 - 12 are left, and each second lets one in.
    assert 18.0 == asyncio.get_running_loop().time()
    assert [float(second) for second in range(19)] == [when for when, _ in controller.asked]
    assert names(30)[12:] == controller.asked[1][1]


async def test_retries_can_be_turned_off() -> None:
    """One request is sent; what was over the quota says how long to wait, and nothing sleeps."""
    controller = FakeController(rate_of_one())
    results = await run(controller, names(30), 60.0, retry=False)
    assert [Outcome.DONE] * 12 + [Outcome.THROTTLED] * 18 == outcomes(results)
    assert {1000} == {result.throttle_time_ms for result in results[12:]}
    assert 1 == len(controller.asked)
    assert 0.0 == asyncio.get_running_loop().time()


async def test_without_retry_later_requests_are_not_sent() -> None:
    """They would be refused too, on a connection that is muted."""
    controller = FakeController(rate_of_one())
    results = await run(controller, names(120), 60.0, retry=False)
    expected = [Outcome.DONE] * 12 + [Outcome.THROTTLED] * 38 + [Outcome.NOT_SENT] * 70
    assert expected == outcomes(results)
    assert "a request before it was throttled" == results[-1].message


async def test_at_the_time_out_each_topic_says_what_became_of_it() -> None:
    """Some are done, some throttled with the wait that is left, some not sent."""
    controller = FakeController(rate_of_one())
    results = await run(controller, names(70), 4.5)
    # 12 at once and 4 in 4 s; the wait for the next ends after the time-out.
    assert [Outcome.DONE] * 16 == outcomes(results[:16])
    assert [Outcome.THROTTLED] * 49 == outcomes(results[16:65])
    assert {1000} == {result.throttle_time_ms for result in results[16:65]}
    assert "ends after the time-out" in results[16].message
    assert [Outcome.NOT_SENT] * 5 == outcomes(results[65:])
    assert 4.0 == asyncio.get_running_loop().time()


async def test_the_wait_that_is_reported_is_what_is_left_of_it() -> None:
    """Nothing is left after a second that was waited for, with no broker then."""
    controller = FakeController(twists={0: all_with(89, 1000), 1: lambda _: LOST})
    results = await run(controller, ["a"], 5.0)
    message = f"error 89 (THROTTLING_QUOTA_EXCEEDED); {LOST.message}"
    assert [TopicResult("a", Outcome.THROTTLED, message, 0)] == list(results)


async def test_a_refusal_without_a_wait_does_not_spin() -> None:
    """Kafka rounds less than half a millisecond to 0; there is a pause all the same."""
    controller = FakeController(twists=dict.fromkeys(range(3), all_with(89)))
    results = await run(controller, ["a"])
    assert [Outcome.DONE] == outcomes(results)
    assert [0.0, 0.01, 0.02, 0.03] == pytest.approx([when for when, _ in controller.asked])


async def test_other_errors_are_final() -> None:
    """They are reported by name and not asked for again; the others go on."""

    def exists(batch: Sequence[str]) -> Answer:
        return Answer(0, {name: ALREADY_EXISTS if name == "t1" else 0 for name in batch})

    controller = FakeController(twists={0: exists})
    results = await run(controller, names(3))
    assert [Outcome.DONE, Outcome.FAILED, Outcome.DONE] == outcomes(results)
    assert "error 36 (TOPIC_ALREADY_EXISTS)" == results[1].message
    assert 1 == len(controller.asked)


async def test_a_throttled_answer_is_waited_for_even_if_all_was_done() -> None:
    """It is an old client's wait, or the request quota's: the next request comes after it."""
    controller = FakeController(twists={0: all_with(0, 1500)})
    results = await run(controller, names(60), 10.0, retry=False)
    assert [Outcome.DONE] * 60 == outcomes(results)
    assert [(0.0, 50), (1.5, 10)] == [(when, len(batch)) for when, batch in controller.asked]


async def test_what_was_not_answered_is_not_sent_again() -> None:
    """It may have been done; the next batch goes out."""
    controller = FakeController(twists={0: lambda _: Unanswered(LOST)})
    results = await run(controller, names(60), 10.0)
    assert [Outcome.UNKNOWN] * 50 + [Outcome.DONE] * 10 == outcomes(results)
    assert LOST.message == results[0].message
    assert [50, 10] == [len(batch) for _, batch in controller.asked]


async def test_one_request_does_not_use_up_the_time() -> None:
    """Its answer is waited for a minute, of ten; and in the last minute until the time-out."""
    controller = FakeController(twists={0: all_with(0, 570_000)})
    await run(controller, names(60), 600.0)
    assert [60.0, 30.0] == controller.left


async def test_a_request_without_an_answer_is_no_move_of_the_controller() -> None:
    """After each, another broker is asked first, and says that it is not the controller."""
    twists: dict[int, Callable[[Sequence[str]], Any]] = {}
    for number in range(0, 8, 2):
        twists[number] = lambda request: Answer(0, dict.fromkeys(request, 41))
        twists[number + 1] = lambda _: Unanswered(LOST)
    controller = FakeController(twists=twists, moves=[None] * 8)
    outcomes = [each.outcome for each in await run(controller, names(250), 600.0)]
    assert [Outcome.UNKNOWN] * 200 + [Outcome.DONE] * 50 == outcomes


async def test_a_time_out_of_the_controller_is_unknown_too() -> None:
    """With error 7 the controller may still do it."""
    controller = FakeController(twists={0: lambda _: Answer(0, {"a": 7})})
    results = await run(controller, ["a"])
    assert [Outcome.UNKNOWN] == outcomes(results)


async def test_what_an_answer_leaves_out_is_unknown() -> None:
    """A name that was not asked for is ignored."""
    controller = FakeController(twists={0: lambda _: Answer(0, {"other": 0})})
    results = await run(controller, ["a"])
    assert [TopicResult("a", Outcome.UNKNOWN, "the answer does not name it")] == list(results)


async def test_without_a_broker_nothing_is_sent() -> None:
    """The first failure ends it."""
    controller = FakeController(twists={0: lambda _: LOST})
    results = await run(controller, names(60))
    assert {TopicResult(name, Outcome.NOT_SENT, LOST.message) for name in names(60)} == set(results)
    assert 1 == len(controller.asked)


async def test_the_controller_is_followed() -> None:
    """On ZooKeeper the same topics are sent again, to the controller."""
    controller = FakeController(twists={0: all_with(41)}, moves=[None])
    results = await run(controller, names(2), retry=False)
    assert [Outcome.DONE] * 2 == outcomes(results)


async def test_a_controller_that_is_never_found_ends_it() -> None:
    """It does after some moves in a row."""
    controller = FakeController(twists=dict.fromkeys(range(9), all_with(41)), moves=[None] * 9)
    results = await run(controller, names(2))
    assert [Outcome.NOT_SENT] * 2 == outcomes(results)
    assert "the controller was not found" in results[0].message


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [(1, [BATCH_TOPICS, 20]), (-1, [BATCH_TOPICS, 20]), (500, [4] * 17 + [2]), (9000, [1] * 70)],
)
async def test_batches_are_full_and_no_fuller(partitions: int, expected: list[int]) -> None:
    """A batch has 50 topics or 2,000 partitions at most; a larger topic goes alone."""
    controller = FakeController()
    await MutationBatcher(make(partitions), names(70), 1.0, retry=True).run(controller)
    assert expected == [len(batch) for _, batch in controller.asked]


async def test_a_name_that_comes_twice_is_a_mistake() -> None:
    """Nothing is sent."""
    with pytest.raises(ValueError, match="named twice"):
        MutationBatcher(make(), ["a", "a"], 1.0, retry=True)
