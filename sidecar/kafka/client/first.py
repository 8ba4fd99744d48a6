"""The first of several attempts that succeeds.

They start one after another: the next when the one before has failed, or has been silent for a
while; what was started continues. So a hung broker costs one pause, not the whole deadline.

Example: with a stagger of 0.25 s, a hung first attempt and a second that takes 0.01 s, the answer
is there after 0.26 s, and the first attempt is cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from sidecar.volumes import Failure

T = TypeVar("T")


async def first_success(
    attempts: Iterable[Callable[[], Awaitable[T | Failure]]], stagger_s: float
) -> T | list[Failure]:
    """Runs attempts until one succeeds, and cancels the others.

    Args:
        attempts: started in this order, each bounded by a deadline of its own.
        stagger_s: how long the newest attempt may be silent before the next one is started too.

    Returns:
        The first success; else all failures, in the order in which they came.
    """
    waiting = iter(attempts)
    running: set[asyncio.Task[T | Failure]] = set()
    failures: list[Failure] = []
    try:
        while True:
            attempt = next(waiting, None)
            if attempt is not None:
                running.add(asyncio.ensure_future(attempt()))
            elif not running:
                return failures
            timeout_s = stagger_s if attempt is not None else None
            done, running = await asyncio.wait(
                running, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                result = task.result()
                if not isinstance(result, Failure):
                    return result
                failures.append(result)
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
