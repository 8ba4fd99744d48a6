"""Waiting for what a test wants to see, with a deadline that says what that was."""

import asyncio
import inspect
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import pytest

T = TypeVar("T")

SEEN_S = 60.0
"""How long a test waits before it is red, seconds; a busy machine starts a broker in 20 s."""

POLL_S = 0.02
"""How often a test asks, seconds."""


@overload
async def seen(
    what: str,
    ask: Callable[[], Awaitable[T]],
    accepts: Callable[[T], bool] = ...,
    timeout_s: float = ...,
) -> T: ...


@overload
async def seen(
    what: str, ask: Callable[[], T], accepts: Callable[[T], bool] = ..., timeout_s: float = ...
) -> T: ...


async def seen(
    what: str,
    ask: Callable[[], Any],
    accepts: Callable[[Any], bool] = bool,
    timeout_s: float = SEEN_S,
) -> Any:
    """Ask until the answer is accepted, and return it.

    Args:
        what: what is waited for, for the failure's message.
        ask: asked every 20 ms; its answer may be awaitable.
        accepts: returns whether an answer is accepted; without it, a true one is.
        timeout_s: the deadline, seconds.
    """
    last = None
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                answer = ask()
                last = await answer if inspect.isawaitable(answer) else answer
                if accepts(last):
                    return last
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        pytest.fail(f"not seen within {timeout_s:g} s: {what}; the last answer was {last}")


def listens(port: int) -> bool:
    """Whether somebody accepts a connection on loopback, to wait for."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
