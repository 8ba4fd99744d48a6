"""A session of the request log, on brokers that a test moves, in virtual time."""

import asyncio
from collections.abc import Mapping

import pytest

from sidecar.cli.request_log_session import (
    BACK_PAUSE_S,
    BACK_TRIES,
    CHECK_S,
    Session,
    Turned,
)
from sidecar.kafka.broker_loggers import Levels
from sidecar.volumes import Failure, FailureKind

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

DOWN = Failure(FailureKind.CONNECT, "broker 9: nothing listens")
UNLISTED = Failure(FailureKind.CONNECT, "nobody lists them")


class Brokers:
    """Levels that are read and written, and what goes wrong with it.

    Attributes:
        levels: of each broker.
        unread: brokers whose level can't be read.
        unwritten: brokers whose level can't be written.
        lost: brokers that set a level, and whose answer does not come.
        deaf: brokers that say they have set a level, and have not.
        listed: whether the brokers can be listed.
        pause: lets others run before something is written.
        written: what was to be set, in order.
    """

    def __init__(self, *levels: str) -> None:
        self.levels = dict(enumerate(levels))
        self.unread: set[int] = set()
        self.unwritten: set[int] = set()
        self.lost: set[int] = set()
        self.deaf: set[int] = set()
        self.listed = True
        self.pause = False
        self.written: list[dict[int, str]] = []
        self.reported: list[str] = []
        self.session = Session(self.read, self.write, self.reported.append)

    async def read(self) -> Levels | Failure:
        if not self.listed:
            return UNLISTED
        return {key: DOWN if key in self.unread else level for key, level in self.levels.items()}

    async def write(self, levels: Mapping[int, str]) -> Levels | Failure:
        self.written.append(dict(levels))
        if self.pause:
            await asyncio.sleep(0)
        if not self.listed:
            return UNLISTED
        answers: Levels = {}
        for key, level in levels.items():
            if key not in self.unwritten | self.deaf:
                self.levels[key] = level
            answers[key] = DOWN if key in self.unwritten | self.lost else level
        return answers


async def test_it_is_turned_on_and_back_to_what_it_was() -> None:
    """Each broker gets its own level again."""
    brokers = Brokers("WARN", "INFO")
    assert {0: Turned("WARN", "DEBUG"), 1: Turned("INFO", "DEBUG")} == await brokers.session.on()
    assert brokers.session.has_changes
    assert {0: "DEBUG", 1: "DEBUG"} == brokers.levels
    assert {} == await brokers.session.back()
    assert {0: "WARN", 1: "INFO"} == brokers.levels
    assert not brokers.session.has_changes


@pytest.mark.parametrize("level", ["DEBUG", "TRACE", "ALL"])
async def test_one_that_was_on_is_left_on(level: str) -> None:
    """Whoever turned it on may still need it."""
    brokers = Brokers("WARN", level)
    turned = await brokers.session.on()
    assert not isinstance(turned, Failure)
    assert Turned(level, level) == turned[1]
    assert turned[1].is_on
    await brokers.session.back()
    assert {0: "WARN", 1: level} == brokers.levels
    assert [{0: "DEBUG"}, {0: "WARN"}] == brokers.written


async def test_one_that_can_not_be_read_is_not_touched() -> None:
    """What it would have to be set back to is not known."""
    brokers = Brokers("WARN", "WARN")
    brokers.unread.add(1)
    assert {0: Turned("WARN", "DEBUG"), 1: Turned(DOWN, DOWN)} == await brokers.session.on()
    assert [{0: "DEBUG"}] == brokers.written


async def test_no_list_of_brokers_is_a_failure() -> None:
    """Nothing is done, and there is nothing to undo."""
    brokers = Brokers("WARN")
    brokers.listed = False
    assert UNLISTED == await brokers.session.on()
    assert {} == await brokers.session.back()
    assert [] == brokers.written


async def test_one_that_refused_is_off_and_is_not_set_back() -> None:
    """It says why; nothing is to be undone there."""
    brokers = Brokers("WARN")
    brokers.unwritten.add(0)
    turned = await brokers.session.on()
    assert {0: Turned("WARN", DOWN)} == turned
    assert not brokers.session.has_changes
    assert {} == await brokers.session.back()
    assert [{0: "DEBUG"}] == brokers.written


async def test_one_whose_answer_was_lost_is_set_back() -> None:
    """It has set the level all the same, and that is what counts."""
    brokers = Brokers("WARN")
    brokers.lost.add(0)
    assert {0: Turned("WARN", "DEBUG")} == await brokers.session.on()
    brokers.lost.clear()
    assert {} == await brokers.session.back()
    assert {0: "WARN"} == brokers.levels


async def test_one_that_can_not_be_asked_any_more_is_set_back() -> None:
    """It may be on."""
    brokers = Brokers("WARN")
    asyncio.get_running_loop().call_soon(brokers.unread.add, 0)
    brokers.pause = True
    assert {0: Turned("WARN", DOWN)} == await brokers.session.on()
    assert brokers.session.has_changes
    assert {} == await brokers.session.back()
    assert {0: "WARN"} == brokers.levels


async def test_one_that_only_says_it_is_on_is_not() -> None:
    """Kafka answers with success also when log4j did not do it."""
    brokers = Brokers("WARN")
    brokers.deaf.add(0)
    turned = await brokers.session.on()
    assert not isinstance(turned, Failure)
    assert Turned("WARN", "WARN") == turned[0]
    assert not turned[0].is_on
    assert not brokers.session.has_changes


@pytest.mark.parametrize("signal_s", [600.0, 3.0])
async def test_it_lasts_as_long_as_was_said(signal_s: float) -> None:
    """It ends at that moment, or at a signal, and waits for no check."""
    brokers = Brokers("WARN")
    await brokers.session.on()
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.call_later(signal_s, ended.set)
    began = loop.time()
    await brokers.session.wait(2.5 * CHECK_S, ended)
    assert min(signal_s, 2.5 * CHECK_S) == loop.time() - began
    assert [] == brokers.reported


async def test_a_broker_that_is_off_meanwhile_is_reported_once_and_not_set_back() -> None:
    """Somebody restarted it or turned it off: it must not get a level that it no longer had."""
    brokers = Brokers("INFO", "WARN")
    await brokers.session.on()
    brokers.levels[0] = "ERROR"
    await brokers.session.wait(3.5 * CHECK_S, asyncio.Event())
    (line,) = brokers.reported
    assert line.startswith("Broker 0 is at ERROR again")
    assert "Strimzi's operator" in line
    await brokers.session.back()
    assert {0: "ERROR", 1: "WARN"} == brokers.levels


async def test_it_ends_when_it_is_off_everywhere() -> None:
    """``request-log off`` in another shell ends it."""
    brokers = Brokers("WARN", "WARN")
    await brokers.session.on()
    brokers.levels = {0: "WARN", 1: "WARN"}
    began = asyncio.get_running_loop().time()
    await brokers.session.wait(600.0, asyncio.Event())
    assert CHECK_S == asyncio.get_running_loop().time() - began
    assert "The request log is off on every broker" in brokers.reported[-1]


async def test_out_of_sight_is_not_off() -> None:
    """Neither a broker that does not answer nor a cluster that can't be listed ends it."""
    brokers = Brokers("WARN", "WARN")
    await brokers.session.on()
    brokers.unread.add(0)
    loop = asyncio.get_running_loop()
    loop.call_later(2.5 * CHECK_S, lambda: setattr(brokers, "listed", False))
    loop.call_later(3.5 * CHECK_S, lambda: setattr(brokers, "listed", True))
    await brokers.session.wait(5 * CHECK_S, asyncio.Event())
    assert [] == brokers.reported
    await brokers.session.back()
    assert {0: "WARN", 1: "WARN"} == brokers.levels


async def test_back_is_tried_again() -> None:
    """It is tried only where it failed, until it works."""
    brokers = Brokers("WARN", "WARN")
    await brokers.session.on()
    brokers.unwritten.add(1)
    loop = asyncio.get_running_loop()
    loop.call_later(1.5 * BACK_PAUSE_S, brokers.unwritten.clear)
    began = loop.time()
    assert {} == await brokers.session.back()
    assert 2 * BACK_PAUSE_S == loop.time() - began
    assert {0: "WARN", 1: "WARN"} == brokers.levels
    assert [{0: "WARN", 1: "WARN"}, {1: "WARN"}, {1: "WARN"}] == brokers.written[1:]


async def test_back_says_where_it_may_still_be_on() -> None:
    """It says so after a bounded number of tries."""
    brokers = Brokers("WARN", "WARN")
    await brokers.session.on()
    brokers.unwritten.add(1)
    assert {1: DOWN} == await brokers.session.back()
    assert BACK_TRIES == len(brokers.written) - 1
    brokers.listed = False
    assert {1: UNLISTED} == await brokers.session.back()
