"""A decision that no broker reads is logged once, in virtual time."""

import asyncio
import logging
from dataclasses import replace

import pytest

from sidecar.control.board import Board
from sidecar.control.reader_watch import LOOK_S, PATIENCE_S, ReaderWatch
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.memory import BudgetThrottle
from sidecar.throttle.readers import Enforcement, Report
from sidecar.throttle.rules import Rules
from tests.support.scripted import LIMIT, reading, run_for, whole

pytestmark = pytest.mark.looptime


def full(caplog: pytest.LogCaptureFixture) -> Board:
    """The board of a sidecar that sees a full volume."""
    caplog.set_level(logging.INFO, "sidecar.control.reader_watch")
    clock = asyncio.get_running_loop().time
    board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), clock)
    board.observe(whole(clock(), reading(clock(), 1, 0)))
    return board


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The logged lines, up to their first punctuation mark."""
    return [each.getMessage().partition(":")[0] for each in caplog.records]


async def test_it_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """After a minute; a reader is logged too, and a released throttle is not."""
    board = full(caplog)
    task = asyncio.create_task(ReaderWatch(board).run())
    await asyncio.sleep(PATIENCE_S - 1.0)
    assert [] == lines(caplog)
    await asyncio.sleep(200.0)
    assert ["this sidecar throttles nobody"] == lines(caplog)
    board.readers.record(Report(1, False, 0), None, board.now())
    await asyncio.sleep(LOOK_S)
    assert "broker 1 reads the throttle factor" == lines(caplog)[-1]
    board.observe(whole(board.now(), reading(board.now(), 1, 900)))
    await asyncio.sleep(2000.0)
    assert 2 == len(lines(caplog))
    task.cancel()


async def test_a_reader_that_comes_in_time(caplog: pytest.LogCaptureFixture) -> None:
    """After a restart of the sidecar, callbacks need a moment."""
    board = full(caplog)
    board.readers.record(Report(1, False, 0), None, board.now())
    await run_for(300.0, ReaderWatch(board).run())
    assert [] == caplog.records


@pytest.mark.parametrize("enforcement", ["callback", "client-quotas"])
async def test_a_throttle_of_a_single_user(
    caplog: pytest.LogCaptureFixture, enforcement: Enforcement
) -> None:
    """Without a reader, it throttles nobody either, although the factor is 1.0.

    Client quotas do not throttle single users.
    """
    board = full(caplog)
    board.readers.enforcement = enforcement
    board.observe(whole(board.now(), reading(board.now(), 1, 900)))
    board.throttle_users("producer_ids", {"etl": (1000.0, "too many ids")})
    await run_for(PATIENCE_S + 2 * LOOK_S, ReaderWatch(board).run())
    assert 1.0 == board.snapshot.decision.factor
    assert ["this sidecar throttles nobody"] == lines(caplog)


async def test_a_storage_budget(caplog: pytest.LogCaptureFixture) -> None:
    """Without a reader, it slows nobody, although the factor is 1.0."""
    board = full(caplog)
    board.observe(whole(board.now(), reading(board.now(), 1, 900)))
    past = {"etl": BudgetThrottle(0.0, ("t",), board.now())}
    board.update(lambda memory: replace(memory, budgets=past))
    await run_for(PATIENCE_S + 2 * LOOK_S, ReaderWatch(board).run())
    assert ["this sidecar throttles nobody"] == lines(caplog)


async def test_without_the_callback_nothing_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    """Client quotas throttle without a reader; with no enforcement, the operator knows."""
    board = full(caplog)
    board.readers.enforcement = "client-quotas"
    await run_for(PATIENCE_S + 2 * LOOK_S, ReaderWatch(board).run())
    assert [] == caplog.records
