"""Waiting with a deadline whose error states the awaited event."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sidecar.errors import ClusterError

POLL_S = 0.05
"""The interval in seconds for checks of conditions that cause no event."""


async def until(holds: Callable[[], bool]) -> None:
    """Check a condition every 50 ms until it holds; the caller sets a deadline."""
    while not holds():  # noqa: ASYNC110 - files and other processes cause no events
        await asyncio.sleep(POLL_S)


@asynccontextmanager
async def deadline(timeout_s: float, what: str) -> AsyncIterator[None]:
    """Set a deadline whose error states the awaited event.

    Raises:
        ClusterError: "{what} within {timeout_s} s". A task group's ``ExceptionGroup`` of only
            ``ClusterError`` is replaced by its first error, because brokers fail for the same
            reason.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise ClusterError(f"{what} within {timeout_s:.0f} s") from error
    except ExceptionGroup as group:
        cluster_errors, others = group.split(ClusterError)
        if cluster_errors is None or others is not None:
            raise
        raise _first(cluster_errors) from group


def _first(group: ExceptionGroup[ClusterError]) -> ClusterError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
