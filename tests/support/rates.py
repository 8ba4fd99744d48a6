"""How much producers land, each compared with itself or with another in the same run.

A busy machine slows all of them alike, so no test compares a rate with a number of its own.

Example: a producer that landed 2 MB/s while nobody was throttled flows again at 1.4 MB/s.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from kafka_lab.waiting import deadline

BACK_S = 40.0
"""For a producer to be at its own rate again, on a busy machine. Less than a minute, after which
librdkafka dials anew, whatever its throttle time."""

THROTTLED_S = 60.0
"""For producers to be at a trickle, over several of the periods that are measured."""

LARGEST_BATCH = 1_000_000
"""Of librdkafka, bytes: batch.size."""

FLOWS = 0.7
"""A producer that nobody throttles has this share of its own rate, or more."""

TRICKLE = 0.15
"""One that is throttled has less, besides one request."""


class Counted(Protocol):
    """A producer that says what it has landed, such as ``Traffic``."""

    acknowledged_bytes: int


_own: WeakKeyDictionary[Counted, float] = WeakKeyDictionary()
"""Bytes a second of each while nobody was throttled."""


async def rates(producers: Sequence[Counted], until: float | Awaitable[object]) -> list[float]:
    """Acknowledged bytes a second, from now on, for so many seconds or until something is done."""
    now = asyncio.get_running_loop().time
    began, before = now(), [each.acknowledged_bytes for each in producers]
    await (asyncio.sleep(until) if isinstance(until, int | float) else until)
    took_s = now() - began
    return [
        (each.acknowledged_bytes - then) / took_s
        for each, then in zip(producers, before, strict=True)
    ]


async def shares(producers: Sequence[Counted], until: float | Awaitable[object]) -> list[float]:
    """The same, as a share of each one's own rate."""
    found = await rates(producers, until)
    return [rate / _own[each] for each, rate in zip(producers, found, strict=True)]


async def flows(*producers: Counted) -> None:
    """Wait until each lands what it lands unthrottled; the first time that is measured."""
    new = [each for each in producers if each not in _own]
    async with deadline(BACK_S, "not every producer was at its own rate"):
        while new and min(await rates(new, 1.2)) == 0.0:
            pass
        if new:
            _own.update(zip(new, await rates(new, 1.2), strict=True))
        while len(new) < len(producers) and min(await shares(producers, 1.2)) < FLOWS:
            pass


async def trickle(*producers: Counted, over_s: float = 5.0, like: float = 0.0) -> list[float]:
    """Wait until each lands next to nothing: a share of its own rate, and one batch.

    One request of each may land between two pauses, and a batch has up to 1 MB.

    Args:
        producers: which.
        over_s: what their rates are taken over, seconds.
        like: the own rate of those that never flowed, bytes/s.

    Returns:
        Their rates.
    """
    most = [TRICKLE * _own.get(each, like) + LARGEST_BATCH / over_s for each in producers]
    async with deadline(THROTTLED_S, "not every producer was at a trickle"):
        while True:
            found = await rates(producers, over_s)
            if all(rate < bound for rate, bound in zip(found, most, strict=True)):
                return found
