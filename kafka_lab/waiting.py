"""Waiting with a deadline that says what was waited for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sidecar.errors import ClusterError

POLL_S = 0.05
"""How often a condition that nobody announces is checked, seconds."""


async def until(holds: Callable[[], bool]) -> None:
    """Check every 50 ms; the caller has the deadline."""
    while not holds():  # noqa: ASYNC110 - files and other processes announce nothing
        await asyncio.sleep(POLL_S)


@asynccontextmanager
async def deadline(timeout_s: float, what: str) -> AsyncIterator[None]:
    """A time-out whose expiry says what was waited for.

    Raises:
        ClusterError: "{what} within {timeout_s} s"; also in place of a task group's
            ``ExceptionGroup`` of nothing else, since several brokers fail of one cause.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise ClusterError(f"{what} within {timeout_s:.0f} s") from error
    except ExceptionGroup as group:
        refused, others = group.split(ClusterError)
        if refused is None or others is not None:
            raise
        raise _first(refused) from group


def _first(group: ExceptionGroup[ClusterError]) -> ClusterError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
