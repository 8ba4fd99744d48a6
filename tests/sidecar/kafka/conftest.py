"""What tests of connections share: a clock that they move, and a check for what was left open."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest
import trustme

from tests.sidecar.kafka.servers import Clock, open_sockets


@pytest.fixture
def clock() -> Clock:
    """Steady time, which moves when a test says so."""
    return Clock()


@pytest.fixture(scope="session")
def ca() -> trustme.CA:
    """Signs certificates; a key takes a while to make, so there is one."""
    return trustme.CA()


@pytest.fixture
async def nothing_left_open() -> AsyncIterator[None]:
    """Fails the test when a socket or a task is still there after it."""
    sockets = open_sockets()
    # What is there already is not scanned by the collector, which takes half a second each time.
    gc.freeze()
    yield
    # Closing is done by the loop, a few turns later.
    for _ in range(10):
        await asyncio.sleep(0)
    # The one task is this fixture's own.
    assert [asyncio.current_task()] == list(asyncio.all_tasks())
    gc.collect()
    assert sockets >= open_sockets()
