"""Keeps the tasks of optional parts running: a failed task is started again, after a longer pause.

The pause is 1 s, then doubles with each failure, up to 60 s. After a task has run for 60 s, the
next pause is 1 s again. A task that ends by itself has failed too.

Example: a task that fails at once is started at 0, 1, 3, 7, 15, 31, 63 and 123 s.
"""

import asyncio
from typing import Final, NoReturn

from sidecar.control.capability import Task
from sidecar.control.capability_failures import CapabilityFailures

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
STEADY_S: Final = 60.0
"""A task that has run for this long counts as working."""


async def supervise(
    capability: str, what: str, task: Task, failures: CapabilityFailures
) -> NoReturn:
    """Run a task until cancelled.

    Args:
        capability: the capability with the task.
        what: the task's name.
        task: creates the coroutine.
        failures: gets each failure, and when the task works again.
    """
    loop = asyncio.get_running_loop()
    pause_s = FIRST_PAUSE_S
    while True:
        began = loop.time()
        steady = loop.call_later(STEADY_S, failures.works, capability, what)
        try:
            await task()
            error: BaseException = RuntimeError("the task ended by itself")
        except asyncio.CancelledError as cancelled:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            # This task was not cancelled, but something that it awaited was.
            error = cancelled
        except Exception as raised:  # noqa: BLE001 - no optional part is worth the daemon
            error = raised
        finally:
            steady.cancel()
        failures.failed(capability, what, error)
        if loop.time() - began >= STEADY_S:
            pause_s = FIRST_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
