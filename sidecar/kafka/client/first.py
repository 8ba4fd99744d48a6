"""Runs several attempts until the first one succeeds.

The next attempt starts when the previous one has failed, or after a pause (the stagger). Started
attempts continue. So a broker that hangs costs one pause, and not the whole deadline.

Example: the stagger is 0.25 s, the first attempt hangs, and the second takes 0.01 s. The result is
there after 0.26 s, and the first attempt is cancelled.
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
        attempts: the attempts in their order, each with its own deadline.
        stagger_s: how long to wait for the newest attempt before the next one starts too.

    Returns:
        The first success, or all failures in the order in which they happened.
    """
    waiting = iter(attempts)
    running: list[asyncio.Task[T | Failure]] = []
    failures: list[Failure] = []
    try:
        while True:
            attempt = next(waiting, None)
            if attempt is not None:
                running.append(asyncio.ensure_future(attempt()))
            elif not running:
                return failures
            timeout_s = stagger_s if attempt is not None else None
            await asyncio.wait(running, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            # In the order of the attempts; what ``wait`` returns is in none.
            for task in [each for each in running if each.done()]:
                running.remove(task)
                result = task.result()
                if not isinstance(result, Failure):
                    return result
                failures.append(result)
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
