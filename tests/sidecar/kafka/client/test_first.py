"""The first of several attempts that succeeds, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sidecar.kafka.client.first import first_success
from sidecar.volumes import Failure, FailureKind

pytestmark = pytest.mark.looptime

Attempt = Callable[[], Awaitable[str | Failure]]


class Attempts:
    """Attempts that take their time, and when each began or was cancelled."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, float]] = []
        self.cancelled: list[str] = []

    def make(self, name: str, after_s: float, result: str | Failure) -> Attempt:
        async def attempt() -> str | Failure:
            self.begun.append((name, asyncio.get_running_loop().time()))
            try:
                await asyncio.sleep(after_s)
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            return result

        return attempt


def failure(text: str) -> Failure:
    return Failure(FailureKind.CONNECT, text)


async def test_the_first_alone_is_run_when_it_answers() -> None:
    """A broker that answers is the only one that is asked."""
    attempts = Attempts()
    made = [attempts.make("a", 0.2, "A"), attempts.make("b", 0.0, "B")]
    assert await first_success(made, 0.25) == "A"
    assert attempts.begun == [("a", 0.0)]


async def test_a_hung_one_costs_one_pause() -> None:
    """The second begins after the pause, wins, and the first is cancelled and awaited."""
    attempts = Attempts()
    made = [attempts.make("a", 1000.0, "A"), attempts.make("b", 0.01, "B")]
    assert await first_success(made, 0.25) == "B"
    assert asyncio.get_running_loop().time() == pytest.approx(0.26)
    assert attempts.cancelled == ["a"]


async def test_what_fails_at_once_is_in_the_order_of_the_attempts() -> None:
    """A message names the same failure first, whatever the addresses of objects in memory are."""
    names = [str(number) for number in range(30)]
    fails = asyncio.Event()

    def make(name: str) -> Attempt:
        async def attempt() -> str | Failure:
            if name == names[-1]:
                fails.set()
            await fails.wait()
            return failure(name)

        return attempt

    failures = await first_success([make(name) for name in names], 0.25)
    assert names == [each.message for each in failures if isinstance(each, Failure)]


async def test_a_slow_one_may_still_win() -> None:
    """What was started goes on: the first answers while the second hangs."""
    attempts = Attempts()
    made = [attempts.make("a", 0.4, "A"), attempts.make("b", 1000.0, "B")]
    assert await first_success(made, 0.25) == "A"
    assert attempts.cancelled == ["b"]


async def test_a_failure_starts_the_next_at_once() -> None:
    """Refused addresses cost no pause."""
    attempts = Attempts()
    made = [attempts.make("a", 0.0, failure("refused")), attempts.make("b", 0.0, "B")]
    assert await first_success(made, 0.25) == "B"
    assert asyncio.get_running_loop().time() == 0.0


async def test_all_failures_are_reported_in_their_order() -> None:
    """When none succeeds the caller learns why each did not."""
    attempts = Attempts()
    slow, quick = failure("slow"), failure("quick")
    made = [attempts.make("a", 0.3, slow), attempts.make("b", 0.0, quick)]
    assert await first_success(made, 0.25) == [quick, slow]


async def test_cancelling_it_cancels_what_it_started() -> None:
    """Nothing goes on behind a caller that was cancelled."""
    attempts = Attempts()
    made = [attempts.make("a", 1000.0, "A"), attempts.make("b", 1000.0, "B")]
    task = asyncio.ensure_future(first_success(made, 0.25))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(attempts.cancelled) == ["a", "b"]
    assert len(asyncio.all_tasks()) == 1
