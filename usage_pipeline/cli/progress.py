"""Shows the progress of a job on standard error, so that results can be piped.

Example: a terminal shows ``usage  31/64 tasks  0:04`` while the stage runs, and completed stages
with their times. Without a terminal, each completed stage prints a line. An incomplete stage prints
``usage not done, after 4.2 s``.
"""

import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    # Not at run time, because the import is slow.
    from pyspark.sql import SparkSession

_REFRESH_S: Final = 0.5


class Progress:
    """Consecutive steps of a job."""

    __slots__ = ("_bars", "_console", "_current", "_ended", "_spark", "_watcher")

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._bars = Bars(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description:<10} {task.fields[tasks]:>16}"),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._current: TaskID | None = None
        self._spark: SparkSession | None = None
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __repr__(self) -> str:
        return f"Progress({len(self._bars.tasks)} steps)"

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._watcher.is_alive():
            self._watcher.join()
        if kind is None:
            self._finish()
        elif self._current is not None:
            task = self._bars.tasks[self._current]
            self._bars.update(self._current, tasks="not done")
            if not self._console.is_terminal:
                self._console.print(f"{task.description} not done, after {task.elapsed or 0:.1f} s")
        if self._console.is_terminal:
            self._bars.stop()

    def step(self, name: str) -> None:
        """End the previous step and start this one."""
        self._finish()
        self._current = self._bars.add_task(name, total=1, tasks="")

    def watch(self, spark: "SparkSession") -> None:
        """Show the number of completed Spark tasks from now on."""
        self._spark = spark
        if self._console.is_terminal:
            self._watcher.start()

    def _finish(self) -> None:
        if self._current is None:
            return
        self._bars.update(self._current, completed=1, tasks="")
        if not self._console.is_terminal:
            task = self._bars.tasks[self._current]
            self._console.print(f"{task.description} {task.finished_time or 0:.1f} s")
        self._current = None

    def _watch(self) -> None:
        from py4j.protocol import (  # type: ignore[import-untyped]  # noqa: PLC0415 - of the extra
            Py4JError,
        )

        # The work calls the JVM too, and reports that it has ended.
        with suppress(Py4JError, OSError):
            self._follow()

    def _follow(self) -> None:
        if self._spark is None:
            return
        tracker = self._spark.sparkContext.statusTracker()
        while not self._ended.wait(_REFRESH_S):
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            done = sum(each.numCompletedTasks for each in stages if each is not None)
            total = sum(each.numTasks for each in stages if each is not None)
            if self._current is not None and total:
                self._bars.update(self._current, tasks=f"{done:,}/{total:,} tasks")
