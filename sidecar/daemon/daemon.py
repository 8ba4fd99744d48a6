"""The daemon: runs every part until a signal, or until a vital part ends.

It handles the signals. SIGTERM and SIGINT stop it within 2 s with exit code 0; a second signal
stops it at once. SIGHUP reads TLS material, credentials and the token again. If the poller, the
expiry of decisions or the HTTP server ends, the daemon ends too. Every other part is started again.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from sidecar import logs
from sidecar.api.connections import AcceptErrors, Connections, most_connections
from sidecar.control.capability import Capability, Task
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.journal import log_publication
from sidecar.daemon.composition import Composition, compose
from sidecar.daemon.supervision import supervise
from sidecar.settings import Settings
from sidecar.threads import run_main

_log = logging.getLogger(__name__)

_STOP_S: Final = 1.8
"""After a signal the process ends within 2 s, even if a disk or a peer blocks."""

_LEAVE_S: Final = 1.1
"""The part of these 2 s for all capabilities to finish; the rest is for the state file."""

_HAIR_S: Final = 0.1
"""Added to each capability's own time, since its own message at the end says more."""

_LOG_S: Final = 1.0
"""For the last lines of the log at the end, if nobody reads it."""

_LAST_LINE_S: Final = 0.1
"""The same when a part of the daemon did not stop."""

_OBJECTS_PER_COLLECTION: Final = 10_000
"""At Python's 700 the search for reference cycles is 40 % of the CPU of a poll of 12,000 volumes,
which makes 100,000 objects and retains most until the next poll, none of them in a cycle."""


def run(settings: Settings, load: Callable[[], Settings]) -> int:
    """Run the daemon until a signal ends it.

    Args:
        settings: the loaded settings.
        load: loads the settings again, for SIGHUP; raises SidecarError if they can't be used.

    Returns:
        The exit code.

    Raises:
        SidecarError: the daemon can't start, because an address is taken or a file can't be read.
    """
    # One connection for each broker: the usual soft limit of 1,024 files is soon reached.
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    collect_garbage_rarely()
    code = 2
    try:
        run_main(_run(settings, load, Connections(most_connections(files))))
        _log.info("stopped")
        code = 0
    finally:
        if not logs.flush(_LOG_S):
            # Nobody reads standard error, so an exception could not be written either.
            os._exit(code)
    return code


def collect_garbage_rarely() -> None:
    """Make this process collect reference cycles less often, which suits large observations."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)


async def _run(settings: Settings, load: Callable[[], Settings], connections: Connections) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(AcceptErrors())
    stop = asyncio.Event()
    parts: Composition | None = None

    def on_reload() -> None:
        # While the daemon starts, it reads everything anyway.
        if parts is not None:
            parts.reload()

    # Set before the daemon listens.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_stop, number, stop)
    loop.add_signal_handler(signal.SIGHUP, on_reload)
    parts = await compose(settings, load, connections)
    await serve(parts, stop)


async def serve(parts: Composition, stop: asyncio.Event) -> None:
    """Run every part until the event is set, or until a vital part ends."""
    log_publication(None, parts.board.snapshot)
    async with AsyncExitStack() as stack:
        if parts.source is not None:
            await stack.enter_async_context(parts.source)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        vital = {
            name: group.create_task(_endless(name, part, stop), name=name)
            for name, part in parts.vital.items()
        }
        supervised = [
            group.create_task(supervise(name, what, task, parts.failures), name=f"{name}: {what}")
            for name, what, task in parts.supervised
        ]
        await stop.wait()
        servers = {f"http {server.address}" for server in parts.servers}
        for task in (*supervised, *(task for name, task in vital.items() if name not in servers)):
            task.cancel()
        await _leave(parts)


async def _leave(parts: Composition) -> None:
    """End readers' long polls, then the capabilities, and write the state at the end."""
    parts.board.close()
    for server in parts.servers:
        server.stop()
    await asyncio.gather(*(leave(each, parts.failures) for each in parts.capabilities))
    await parts.leave()


async def leave(capability: Capability, failures: CapabilityFailures) -> None:
    """Let a capability finish; log if it fails or takes too long."""
    timeout_s = min(capability.leave_s, _LEAVE_S)
    try:
        async with asyncio.timeout(timeout_s + _HAIR_S):
            await capability.leave(timeout_s)
    except TimeoutError:
        _log.warning("the capability %s did not end within %g s", capability.name, timeout_s)
    except Exception as error:  # noqa: BLE001 - no optional part is worth the last write
        failures.failed(capability.name, "leave", error)


async def _endless(name: str, part: Task, stop: asyncio.Event) -> None:
    cause: BaseException | None = None
    try:
        await part()
    except asyncio.CancelledError as cancelled:
        current = asyncio.current_task()
        if current is None or current.cancelling():
            raise
        # This task was not cancelled, but something that it awaited was.
        cause = cancelled
    if not stop.is_set():
        raise RuntimeError(f"the task {name} ended by itself") from cause


def _on_stop(number: signal.Signals, stop: asyncio.Event) -> None:
    if stop.is_set():
        logs.flush(_LAST_LINE_S)
        os._exit(128 + number)
    stop.set()
    watchdog = threading.Timer(_STOP_S, _exit)
    watchdog.daemon = True
    watchdog.start()
    _log.info("stopping on %s", number.name)


def _exit() -> None:
    _log.warning(
        "a part of the daemon did not stop in time; the process ends without waiting for it"
    )
    logs.flush(_LAST_LINE_S)
    os._exit(0)
