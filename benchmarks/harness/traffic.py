"""Producers of a scene, and looking at it again and again while it runs."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from kafka_lab.series import Series
from kafka_lab.traffic import Traffic


class Producers(Protocol):
    """What ``Traffic`` and ``JavaTraffic`` report."""

    acknowledged_bytes: int
    failed_records: int
    longest_throttle_s: float
    samples: Series


@asynccontextmanager
async def librdkafka(
    count: int,
    bootstrap: str,
    topic: str,
    bytes_per_s: float,
    **more: Any,  # noqa: ANN401 - as Traffic takes them
) -> AsyncIterator[Sequence[Producers]]:
    """So many producers with a rate together; ``more`` is as of ``Traffic``."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                Traffic(bootstrap, topic, bytes_per_s=bytes_per_s / count, **more)
            )
            for _ in range(count)
        ]


@asynccontextmanager
async def looking(look: Callable[[], Awaitable[None]], every_s: float) -> AsyncIterator[None]:
    """Calls ``look`` at a fixed pace inside the context; what it raises ends the context."""

    async def run() -> None:
        due = time.monotonic()
        while True:
            await look()
            due = max(due + every_s, time.monotonic())
            await sleep_until(due)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(), name="looking")
        yield
        task.cancel()


async def wait(is_met: Callable[[], bool], timeout_s: float, every_s: float = 0.5) -> bool:
    """Wait for something that announces nothing; whether it came in time."""
    end = time.monotonic() + timeout_s
    while not is_met():
        if time.monotonic() >= end:
            return False
        await asyncio.sleep(every_s)
    return True


async def sleep_until(at: float) -> None:
    """Sleep until a moment of ``time.monotonic()``."""
    await asyncio.sleep(max(0.0, at - time.monotonic()))


def sum_of(series: Series, producers: Sequence[Producers]) -> Series:
    """What all producers had acknowledged at the moments of a series, by their own clocks.

    A JVM reports it ten times a second and is read up to a tenth of a second later: by the reader's
    clock some seconds would appear a tenth fuller than they were.
    """
    return Series((at, sum(each.samples.at(at) for each in producers)) for at, _ in series)
