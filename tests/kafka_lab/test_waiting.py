"""The error of a deadline says what was waited for."""

import asyncio

import pytest

from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError


@pytest.mark.slow
@pytest.mark.looptime
async def test_an_expired_deadline_says_what_for() -> None:
    """The error states the awaited event and the time."""
    began = asyncio.get_running_loop().time()
    with pytest.raises(ClusterError, match="the moon was not full within 30 s"):
        async with deadline(30.0, "the moon was not full"):
            await until(lambda: False)
    assert pytest.approx(30.0) == asyncio.get_running_loop().time() - began


async def _fail(error: Exception) -> None:
    raise error


async def _fail_together(*errors: Exception) -> None:
    async with deadline(30.0, "x"), asyncio.TaskGroup() as outer:
        for error in errors:
            outer.create_task(_fail(error))


async def test_what_several_tasks_refuse_is_one_refusal() -> None:
    """Three brokers fail of one cause: the error is one line, the first's."""
    with pytest.raises(ClusterError, match="first"):
        await _fail_together(ClusterError("first"), ClusterError("second"))


async def test_a_bug_among_refusals_is_not_hidden() -> None:
    """Anything else in the group stays a group, with its traceback."""
    with pytest.raises(ExceptionGroup):
        await _fail_together(ClusterError("first"), ZeroDivisionError())
