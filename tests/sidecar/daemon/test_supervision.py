"""Tasks of optional parts are restarted, later each time, and end nobody else."""

import asyncio
import contextlib

import pytest

from sidecar.control.capability import Task
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.daemon.supervision import supervise
from tests.support.scripted import run_for

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def starts(task: Task, for_s: float, failures: CapabilityFailures | None = None) -> list[int]:
    """The times at which a task is started, seconds from the beginning."""
    began, found = now(), []

    async def noted() -> None:
        found.append(round(now() - began))
        await task()

    failures = failures or CapabilityFailures(["history"])
    await run_for(for_s, supervise("history", "writing", noted, failures))
    return found


async def fails() -> None:
    raise RecursionError("maximum recursion depth exceeded")


async def test_the_pause_doubles_up_to_a_minute() -> None:
    """The pauses are those of the module's example."""
    failures = CapabilityFailures(["history"])
    assert [0, 1, 3, 7, 15, 31, 63, 123, 183] == await starts(fails, 200, failures)
    assert 9 == failures.count("history")


async def test_a_task_that_ran_for_a_while_begins_with_a_short_pause_again() -> None:
    """It fails three times at once, then after 70 s of work each: it waits 1 s, and not 16 s."""
    begun = 0

    async def works_later() -> None:
        nonlocal begun
        begun += 1
        if begun > 3:
            await asyncio.sleep(70)
        await fails()

    assert [0, 1, 3, 7, 78, 149] == await starts(works_later, 200)


async def test_a_task_that_ends_or_is_cancelled_from_within_is_started_again() -> None:
    """Both are failures: nobody asked for it."""

    async def ends() -> None:
        pass

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    for task in (ends, cancels_itself):
        failures = CapabilityFailures(["history"])
        assert [0, 1, 3] == await starts(task, 5, failures)
        assert 3 == failures.count("history")


async def test_what_fails_is_shown_until_it_has_run_for_a_while() -> None:
    """A minute after the restart it works, by what can be known."""
    failures = CapabilityFailures(["history"])
    begun = 0

    async def fails_once() -> None:
        nonlocal begun
        begun += 1
        await (fails() if begun == 1 else asyncio.sleep(1000))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervise("history", "writing", fails_once, failures))
        await asyncio.sleep(50)
        assert ["RecursionError"] == [each.kind for each in failures.failing]
        await asyncio.sleep(20)
        assert () == failures.failing
        task.cancel()


async def test_it_ends_when_it_is_cancelled() -> None:
    """The task runs, or waits to be restarted; the others go on."""

    async def works() -> None:
        await asyncio.sleep(1000)

    for task in (works, fails):
        failures = CapabilityFailures(["history"])
        supervised = asyncio.create_task(supervise("history", "writing", task, failures))
        await asyncio.sleep(0.5)
        supervised.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await supervised
        assert supervised.cancelled()
