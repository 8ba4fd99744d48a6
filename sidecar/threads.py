"""Threads for calls that may hang, such as reads and writes of a disk.

The loop's default pool has few threads, and name lookups use them too. When a name server hangs,
its lookups fill the pool, and a write that waits behind them does not begin. A disk that hangs
would stop the lookups in the same way. So both have threads of their own, of which a call that
hangs keeps one, however often its caller gives up and tries again.

Example: the lookups of 12 names hang for 20 s and have 12 threads. A write to the state file takes
some milliseconds all the same.
"""

import asyncio
import errno
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LATE_NAME_S: Final = 30.0
"""How long the addresses of a name are used that came after their caller had given up; Java's
clients use addresses as long."""


class OwnThreads(Executor):
    """Runs each call in a new thread, which does not delay the end of the process.

    The caller limits the number of calls at a time.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def call(self, fn: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Like ``asyncio.to_thread``, but in a new thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self, partial(fn, *args, **kwargs))

    def submit(self, fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """See ``Executor``; OSError if the process may have no more threads."""
        future: Future[_R] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the caller of the future gets it
                future.set_exception(error)

        try:
            threading.Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError as error:
            # Python's word for a pids limit, which callers do not expect.
            raise OSError(errno.EAGAIN, str(error)) from error
        return future


class SharedCalls:
    """Runs each call in a new thread, but only one with the same key at a time.

    A call outlives a caller that gives up. The next caller with its key waits for the same call.
    Without this, each attempt would leave another thread for as long as a disk hangs, and a call
    that takes longer than one attempt waits would never succeed.
    """

    def __init__(self, name: str, late_s: float = 0.0) -> None:
        """Start nothing yet.

        Args:
            name: the threads' name.
            late_s: how long a result that came too late for all callers is for the next one.
        """
        self._threads = OwnThreads(name)
        self._late_s = late_s
        self._calls: dict[Hashable, Future[tuple[Any, float]]] = {}

    async def call(
        self, key: Hashable, fn: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        """Return the result of the call with this key that is in flight, or else of this one."""
        call = self._calls.get(key)
        if call is None or not self._is_good(call):
            call = self._calls[key] = self._threads.submit(_timed, partial(fn, *args, **kwargs))
        # Cancelling this wait does not cancel the call, because it runs already.
        try:
            result, _ = await asyncio.wrap_future(call)
        finally:
            if call.done() and self._calls.get(key) is call:
                del self._calls[key]
        return result  # type: ignore[no-any-return] # of calls of all types

    async def call_after(
        self, key: Hashable, fn: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        """Make this call when the one with its key that is in flight has ended."""
        while (call := self._calls.get(key)) is not None and not call.done():
            with suppress(Exception):
                await asyncio.wrap_future(call)
        self._calls.pop(key, None)
        return await self.call(key, fn, *args, **kwargs)

    def _is_good(self, call: Future[tuple[Any, float]]) -> bool:
        if not call.done():
            return True
        return call.exception() is None and time.monotonic() <= call.result()[1] + self._late_s


def _timed(fn: Callable[[], _R]) -> tuple[_R, float]:
    return fn(), time.monotonic()


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._lookups = SharedCalls("name lookup", _LATE_NAME_S)

    async def getaddrinfo(
        self,
        host: object,
        port: object,
        **options: Any,  # noqa: ANN401 - as in asyncio
    ) -> Any:  # noqa: ANN401 - as in asyncio
        key = (host, port, *sorted(options.items()))
        look_up = partial(socket.getaddrinfo, **options)
        return await self._lookups.call(key, look_up, host, port)


def run_main(main: Coroutine[Any, Any, _R]) -> _R:
    """Like ``asyncio.run``, but a name server that hangs delays only who needs its names.

    ``asyncio.run`` has few threads for lookups and for steps of logins, and waits for them at its
    end.
    """
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
