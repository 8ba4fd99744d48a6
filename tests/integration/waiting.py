"""Waiting for what a test wants to see, with a deadline that says what that was."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

SEEN_S = 40.0
"""For what a quick machine shows within a second or two, seconds."""

LOOK_S = 0.05
"""How often it is looked, seconds."""


async def seen(
    what: str,
    ask: Callable[[], Awaitable[T]],
    holds: Callable[[T], bool],
    timeout_s: float = SEEN_S,
) -> T:
    """Ask until the answer is as wanted, and give it back.

    Args:
        what: what is waited for, for the failure's message.
        ask: asked every 50 ms.
        holds: whether the answer is as wanted.
        timeout_s: the deadline, seconds.
    """
    last: T | None = None
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                last = await ask()
                if holds(last):
                    return last
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        pytest.fail(f"not seen within {timeout_s:g} s: {what}; the last answer was {last}")
