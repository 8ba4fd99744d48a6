"""An event loop whose time is a number: when nobody can run, it is set to the next timer.

Everything that waits, in whatever process of the simulation, waits here, so an hour takes as long
as its callbacks. Callbacks belong to the process in whose context they were made: one that is
frozen (SIGSTOP) has them collected until it is continued, and one that is killed has none any more,
not even those that would clean up.

Example: a process sleeps for 1 s and is frozen from 0.5 s to 9 s: it continues at 9 s.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from inspect import iscoroutine
from itertools import count
from typing import Any, Final

_PROCESS: Final[ContextVar["Process | None"]] = ContextVar("process", default=None)

_RESOLUTION_S: Final = 1e-9

_POOL_THREADS: Final = 6
"""Those of a loop's default executor on a machine of two cores."""


class HangsError(BaseException):
    """A call in a thread does not end, and is made again when it can.

    Attributes:
        waiting: gets the function that makes it again.
    """

    def __init__(self, waiting: list[Callable[[], object]]) -> None:
        super().__init__()
        self.waiting = waiting


class DeadlockError(Exception):
    """Somebody waits, and nothing is left that could happen."""


class Process:
    """A process of the simulated world: what it runs, and whether it does.

    Attributes:
        name: such as "sidecar 1".
        is_alive: False from the kill on.
        is_frozen: whether it is stopped for now.
        runs: whether it is alive and not frozen; asked at each callback.
        thread_s: how long a call in another thread takes, seconds.
        freezes: how often it was stopped.
        in_pool: how many calls are in the threads of the default executor.
        for_pool: the calls that wait for one of these threads.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_frozen = False
        self.runs = True
        self.thread_s = 0.0005
        self.freezes = 0
        self.in_pool = 0
        self.for_pool: deque[Callable[[], object]] = deque()
        self.tasks: list[asyncio.Task[Any]] = []
        self._waiting: list[_Handle] = []
        self.context = copy_context()
        self.context.run(_PROCESS.set, self)

    def __repr__(self) -> str:
        return f"Process({self.name})"

    def start(self, part: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Runs a part of the process as a task."""
        loop = asyncio.get_running_loop()
        return loop.create_task(part, name=name, context=self.context)

    def freeze(self) -> None:
        """Stops it until ``thaw``."""
        self.is_frozen = True
        self.runs = False
        self.freezes += 1

    def thaw(self) -> None:
        """Continues with all that was to be done meanwhile."""
        self.is_frozen = False
        self.runs = self.is_alive
        waiting, self._waiting = self._waiting, []
        for handle in waiting:
            # Not here: a task can't be continued within the one that thaws its process.
            handle.again()

    def kill(self) -> None:
        """Ends it at once; nothing of it runs any more."""
        self.is_alive = self.runs = False
        self._waiting = []
        for task in self.tasks:
            # asyncio would report each of them as forgotten.
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def end(self) -> None:
        """Ends the coroutines of a process that was killed, before the collector does so.

        That may come in another test, and a coroutine that awaits at its end is a warning there.
        """
        ended: set[int] = set()
        while left := [each for each in self.tasks if not each.done() and id(each) not in ended]:
            for task in left:
                ended.add(id(task))
                # What it leaves behind is of this process too, and runs no more.
                self.context.run(_close, task.get_coro())
        self.kill()

    def postpone(self, handle: "_Handle") -> None:
        """A callback must not run now: retains it while frozen; a dead process has none."""
        if self.is_alive:
            self._waiting.append(handle)


def current_process() -> Process | None:
    """Whose code runs."""
    return _PROCESS.get()


class _Handle:
    """As asyncio's, of a callback or a timer; made for speed: an hour has millions of them."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_loop")

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: "VirtualLoop",
        context: Context | None,
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def again(self) -> None:
        """It is due once more."""
        self._loop._due.append(self)


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop; its connections are a network's of ``net``.

    Attributes:
        now: seconds since its start.
        network: what makes connections; set before the first is made.
        processes: all that have had a task, in the order of their first one.
    """

    network: Any

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._due: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._numbers = count()
        self.processes: dict[Process, None] = {}

    def end(self) -> None:
        """Ends what all processes were killed with; called in the loop when nothing else runs."""
        before = logging.root.manager.disable
        logging.disable()
        self.set_exception_handler(lambda *_: None)
        try:
            for process in self.processes:
                process.end()
        finally:
            logging.disable(before)

    def time(self) -> float:
        """See ``now``."""
        return self.now

    def call_at(  # type: ignore[override] # typeshed knows no context here
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> _Handle:
        """As asyncio's, for a process."""
        handle = _Handle(callback, args, self, context)
        heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """As asyncio's, and its process knows it."""
        task = asyncio.Task(coro, loop=self, context=context)
        if name is not None:
            task.set_name(name)
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is not None:
            self.processes[process] = None
            tasks = process.tasks
            tasks.append(task)
            if len(tasks) > 500:
                process.tasks = [each for each in tasks if not each.done()]
        return task

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> _Handle:
        """As asyncio's, for a process."""
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        """As asyncio's, for a process."""
        handle = _Handle(callback, args, self, context)
        self._due.append(handle)
        return handle

    def _run_once(self) -> None:
        due, timers = self._due, self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if not due:
            if not timers:
                raise DeadlockError
            self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now + _RESOLUTION_S:
            due.append(heappop(timers)[2])
        for _ in range(len(due)):
            handle = due.popleft()
            if handle._cancelled:
                continue
            context = handle._context
            process = context.get(_PROCESS)
            if process is not None and not process.runs:
                process.postpone(handle)
                continue
            try:
                context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio's do
                message = f"Exception in callback {handle._callback!r}"
                self.call_exception_handler({"message": message, "exception": error})

    def run_in_executor(  # type: ignore[override] # there are no executors
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Calls a function as if in another thread: after a while, at once.

        A call that hangs occupies its thread. The default executor has few; any other one is
        taken to have a thread for each call.
        """
        process = current_process()
        future: asyncio.Future[Any] = self.create_future()
        pool = process if executor is None else None

        def run() -> None:
            try:
                _call(future, func, *args)
            except HangsError as hangs:
                again = partial(self.call_soon, run, context=copy_context())
                hangs.waiting.append(again)
                return
            if pool is not None:
                pool.in_pool -= 1
                if pool.for_pool:
                    pool.for_pool.popleft()()

        def begin() -> None:
            if pool is not None:
                pool.in_pool += 1
            self.call_later(0.0 if process is None else process.thread_s, run)

        if pool is not None and pool.in_pool >= _POOL_THREADS:
            pool.for_pool.append(begin)
        else:
            begin()
        return future

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """See ``net.Network.connect``."""
        return await self.network.connect(*args, **options)

    async def create_server(self, *args: Any, **options: Any) -> Any:
        """See ``net.Network.serve``."""
        return self.network.serve(*args, **options)

    async def shutdown_default_executor(self) -> None:
        """There is none."""


def _close(coroutine: Any) -> None:
    """Ends a coroutine where it is; each time that it awaits something at its end, once more.

    The one that it awaits is first: else it may end and leave that one in the midst of its end.
    """
    while iscoroutine(coroutine) and coroutine.cr_frame is not None:
        _close(coroutine.cr_await)
        with suppress(Exception):
            coroutine.close()


def _call(future: asyncio.Future[Any], func: Callable[..., Any], *args: Any) -> None:
    """Calls a function, and gives its result to whoever waits for it."""
    try:
        result = func(*args)
    except HangsError:
        raise
    except BaseException as error:  # noqa: BLE001 - as an executor does
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)
