"""Threads for calls that may hang, such as reads and writes of a disk.

The loop's default pool has few threads, and name lookups use them too. When a name server hangs,
its lookups fill the pool, and a write that waits behind them does not begin. A disk that hangs
would stop the lookups in the same way.

Example: 12 lookups hang for 20 s. A write to the state file takes some milliseconds all the same.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


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
        """See ``Executor``."""
        future: Future[_R] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the caller of the future gets it
                future.set_exception(error)

        threading.Thread(target=run, name=self._name, daemon=True).start()
        return future


class _Loop(asyncio.SelectorEventLoop):
    async def getaddrinfo(
        self,
        host: object,
        port: object,
        **options: Any,  # noqa: ANN401 - as in asyncio
    ) -> Any:  # noqa: ANN401 - as in asyncio
        look_up = partial(socket.getaddrinfo, **options)
        return await OwnThreads("name lookup").call(look_up, host, port)


def run_command(main: Coroutine[Any, Any, _R]) -> _R:
    """Like ``asyncio.run``, which would wait at its end for lookups of a name server that hangs."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
