"""The tables of a folder as a run sees them: its own new days, and the last good others.

A stage reads what the stages before it wrote, committed or not; days that the run replaces are
never read as they were. Only ``sidecar.pipeline.batch.job`` makes one.

Example: with 19 and 20 November in the tables, a run of the 20th reads the 19th as it is and the
20th as it has just written it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sidecar.errors import SidecarError
from sidecar.pipeline.runtime.by_workers import Batches
from sidecar.pipeline.tables.commits import Change, Pinned, commit
from sidecar.pipeline.tables.parquet_files import (
    TableFile,
    Target,
    Written,
    day_of,
    merged,
    read_by_workers,
    written_by_tasks,
)
from sidecar.pipeline.tables.schemas import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS: Final = 1 << 16


class FewerRowsError(SidecarError):
    """A day would lose rows."""


@dataclass(slots=True)
class _New:
    """What a run has written of a table; ``days`` are those that it replaces."""

    files: list[Written] = field(default_factory=list)
    days: set[date] = field(default_factory=set)


class Store:
    """Reads and writes the tables of one run."""

    __slots__ = ("_before", "_kept", "_new", "_run", "_spark", "_superseded")

    def __init__(self, spark: "SparkSession", before: Pinned) -> None:
        self._spark = spark
        self._before = before
        self._run = uuid4().hex[:12]
        self._kept: dict[Table, list[Written]] = {}
        self._new: dict[Table, _New] = {}
        self._superseded: list[str] = []

    def __repr__(self) -> str:
        return f"Store({self._before.folder}, {len(self._new)} tables written)"

    def target(self, table: Table) -> Target:
        """Where tasks write a table."""
        return Target(self._before.folder, table, self._run)

    def write(self, table: Table, frame: "DataFrame", days: Iterable[date] = ()) -> None:
        """Writes a table, in place of what this run has written of it.

        Args:
            table: which.
            frame: with its columns.
            days: that are replaced, besides those of the rows.
        """
        files = written_by_tasks(frame, self.target(table))
        self.leave_out(table, self._new.pop(table, _New()).files)
        self.add(table, files, days)

    def add(self, table: Table, files: Sequence[Written], days: Iterable[date] = ()) -> None:
        """Takes note of files that tasks have written, and of the days that they replace."""
        new = self._new.setdefault(table, _New())
        new.files += files
        new.days.update(days, (day for file in files if (day := day_of(table, file))))

    def leave_out(self, table: Table, files: Iterable[Written]) -> None:
        """Takes note of files that tasks have written, and that are removed when the run ends."""
        self._superseded += (f"{table.name}/{file.path}" for file in files)

    def files(self, table: Table, days: Iterable[date] | None = None) -> tuple[TableFile, ...]:
        """The files of a table as it will be once the run has committed.

        Args:
            table: which.
            days: of its rows; None: all.
        """
        requested = None if days is None else set(days)
        return tuple(
            TableFile(self._before.folder, table, file)
            for file in (*self._kept_files(table), *self._new.get(table, _New()).files)
            if requested is None or day_of(table, file) in requested
        )

    def read(self, table: Table, days: Iterable[date] | None = None) -> "DataFrame":
        """A table as it will be once the run has committed; empty when there is none."""
        files = self.files(table, days)
        return rows_of(self._spark, table, files)

    def rows(self, table: Table) -> int:
        """How many rows this run has written of a table."""
        return sum(file.rows for file in self._new[table].files)

    def has(self, table: Table) -> bool:
        """Whether the table will be there once the run has committed."""
        return table in self._new or table.name in self._before.versions

    def days_of(self, table: Table) -> tuple[date, ...]:
        """The days that a table will have once the run has committed."""
        days = {day_of(table, file.written) for file in self.files(table)}
        return tuple(sorted(day for day in days if day is not None))

    def written_days(self, table: Table | None = None) -> tuple[date, ...]:
        """The days that this run replaces in a table; None: in any."""
        tables = self._new if table is None else (table,)
        return tuple(sorted({day for one in tables for day in self._new.get(one, _New()).days}))

    def written(self) -> tuple[Table, ...]:
        """The tables that this run has written."""
        return tuple(self._new)

    def commit(self, by: str, at: datetime, keeps_rows: Table | None = None) -> Pinned:
        """Puts what was written in place of what was, all or none.

        Args:
            by: who the run is, for a person.
            at: when it began, UTC.
            keeps_rows: no day of this table may have fewer rows than it has; None for no such one.

        Raises:
            FewerRowsError: one would; nothing is replaced.
            SidecarError: it can't be done; nothing is replaced.
        """
        if keeps_rows is not None and keeps_rows in self._new:
            self._refuse_fewer(keeps_rows)
        self._remove(self._superseded)
        files = merged(
            self._spark, [(self.target(table), new.files) for table, new in self._new.items()]
        )
        changes = [
            Change(table.name, files[table], _days(table, self._new[table]))
            for table in TABLES
            if table in self._new and (not table.partitions or self._new[table].days)
        ]
        # From here on a record may name the files, also where an error says that it was not made.
        self._new.clear()
        self._superseded.clear()
        return commit(self._before, changes, by, at)

    def discard(self) -> None:
        """Removes what was written and is refused; nothing once the run has begun to commit."""
        self._remove(self._superseded)
        for table, new in self._new.items():
            self._remove(f"{table.name}/{file.path}" for file in new.files)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._before.folder.remove(path)

    def _kept_files(self, table: Table) -> list[Written]:
        """Those that the run doesn't replace."""
        if table not in self._kept:
            self._kept[table] = self._before.files(table)
        new = self._new.get(table)
        if new is None:
            return self._kept[table]
        if not table.partitions:
            return []
        return [file for file in self._kept[table] if day_of(table, file) not in new.days]

    def _refuse_fewer(self, table: Table) -> None:
        self._kept_files(table)
        replaced = self._new[table].days
        before = _by_day(table, self._kept[table], replaced)
        after = _by_day(table, self._new[table].files, replaced)
        lost = [
            f"{day} has {count:,} rows and would have {after.get(day, 0):,}"
            for day, count in sorted(before.items())
            if after.get(day, 0) < count
        ]
        if lost:
            raise FewerRowsError(
                f"{'; '.join(lost)}. A day is replaced whole: give all logs of it, leave it out"
                " with --since or --until, or say --allow-fewer"
            )


def rows_of(spark: "SparkSession", table: Table, files: Sequence[TableFile]) -> "DataFrame":
    """Files as rows, which workers read: Spark itself needs no way to where the tables are."""
    names = table.names

    def of_files(some: Iterable[TableFile]) -> Batches:
        for file in some:
            with file.open() as opened:
                for batch in opened.iter_batches(_ROWS, use_threads=False):
                    yield file.completed(batch, names)

    return read_by_workers(spark, files, of_files, table.schema, 1)


def _days(table: Table, new: _New) -> list[str] | None:
    return [day.isoformat() for day in sorted(new.days)] if table.partitions else None


def _by_day(table: Table, files: Iterable[Written], days: set[date]) -> Mapping[date, int]:
    rows: Counter[date] = Counter()
    for file in files:
        day = day_of(table, file)
        if day is not None and day in days:
            rows[day] += file.rows
    return rows
