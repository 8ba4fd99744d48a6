"""Waiting for what a test wants to see, with a deadline that says what that was."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

SEEN_S = 40.0
"""How long a test waits before it is red, seconds; a busy machine starts a broker in 20 s."""

LOOK_S = 0.02
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
        ask: asked every 20 ms.
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


def until(
    done: Callable[[], bool],
    why_not: Callable[[], str] = lambda: "",
    may_come: Callable[[], bool] = lambda: True,
) -> None:
    """``seen`` for tests that are not async: waits until something is so.

    Args:
        done: whether it is.
        why_not: what to say when it does not become so.
        may_come: whether it still can.
    """
    ends_at = time.monotonic() + SEEN_S
    while not done():
        if time.monotonic() > ends_at or not may_come():
            assert done(), why_not()
            return
        time.sleep(LOOK_S)
