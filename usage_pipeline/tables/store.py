"""A cluster's tables as a run sees them: its own new days, and the last good others.

A stage reads what the stages before it wrote, committed or not; days that the run replaces are
never read as they were. Only ``usage_pipeline.batch.job`` makes one.

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
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.tables.commits import Change, Pinned, commit
from usage_pipeline.tables.parquet_files import Target, merged, written_by_tasks
from usage_pipeline.tables.schemas import TABLES, UNNAMED, Table
from usage_pipeline.tables.table_files import TableFile, Written, day_of, read_by_workers

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
    """Reads and writes a cluster's rows of the tables, in one run.

    Attributes:
        spark: whose tasks read and write them.
        before: the tables with which the run began.
        cluster: whose rows they are.
    """

    __slots__ = ("_kept", "_new", "_run", "_superseded", "before", "cluster", "spark")

    def __init__(self, spark: "SparkSession", before: Pinned, cluster: str = UNNAMED) -> None:
        self.cluster = cluster
        self.spark = spark
        self.before = before
        self._run = uuid4().hex[:12]
        self._kept: dict[Table, list[Written]] = {}
        self._new: dict[Table, _New] = {}
        self._superseded: list[str] = []

    def __repr__(self) -> str:
        return f"Store({self.before.folder}, {self.cluster}, {len(self._new)} tables written)"

    def target(self, table: Table) -> Target:
        """Where tasks write a table."""
        return Target(self.before.folder, table, self._run, self.cluster)

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
            TableFile(self.before.folder, table, file)
            for file in (*self._kept_files(table), *self._new.get(table, _New()).files)
            if requested is None or day_of(table, file) in requested
        )

    def read(self, table: Table, days: Iterable[date] | None = None) -> "DataFrame":
        """A table as it will be once the run has committed; empty when there is none."""
        files = self.files(table, days)
        return rows_of(self.spark, table, files)

    def rows(self, table: Table) -> int:
        """How many rows this run has written of a table."""
        return sum(file.rows for file in self._new[table].files)

    def has(self, table: Table) -> bool:
        """Whether the cluster's rows of a table, or that there are none, will have been written."""
        return table in self._new or self.before.has_written(table, self.cluster)

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

    def refuse_fewer(self, table: Table) -> None:
        """Refuses that a day of a table loses rows.

        Raises:
            FewerRowsError: one would.
        """
        if table not in self._new:
            return
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
            whose = "" if self.cluster == UNNAMED else f"{self.cluster}: "
            raise FewerRowsError(
                f"{whose}{'; '.join(lost)}. A day is replaced whole: give all logs of it, leave it"
                " out with --since or --until, or say --allow-fewer"
            )

    def written_files(self) -> list[tuple[Target, list[Written]]]:
        """What is to be committed, in the order in which tables are made."""
        self._remove(self._superseded)
        self._superseded.clear()
        return [
            (self.target(table), self._new[table].files)
            for table in TABLES
            if table in self._new and (not table.partitions or self._new[table].days)
        ]

    def change(self, table: Table, files: list[Written]) -> Change:
        """What puts files in place of what was."""
        days = [day.isoformat() for day in sorted(self._new[table].days)]
        return Change(table.name, files, days if table.partitions else None, self.cluster)

    def leave_to_commit(self) -> None:
        """From here on a record may name the files, also where an error says that it wasn't made.

        They are not removed any more.
        """
        self._new.clear()

    def discard(self) -> None:
        """Removes what was written and is refused; nothing once the run has begun to commit."""
        self._remove(self._superseded)
        for table, new in self._new.items():
            self._remove(f"{table.name}/{file.path}" for file in new.files)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.before.folder.remove(path)

    def _kept_files(self, table: Table) -> list[Written]:
        """Those that the run doesn't replace."""
        if table not in self._kept:
            files = self.before.files(table)
            self._kept[table] = [file for file in files if file.cluster == self.cluster]
        new = self._new.get(table)
        if new is None:
            return self._kept[table]
        if not table.partitions:
            return []
        return [file for file in self._kept[table] if day_of(table, file) not in new.days]


def commit_all(stores: Sequence[Store], by: str, at: datetime) -> Pinned:
    """Puts what was written in place of what was, of all clusters, all or none.

    Args:
        stores: of a run, one for each cluster.
        by: who the run is, for a person.
        at: when it began, UTC.

    Raises:
        SidecarError: it can't be done; nothing is replaced.
    """
    written = [(store, *one) for store in stores for one in store.written_files()]
    files = merged(stores[0].spark, [(target, some) for _, target, some in written])
    changes = [
        store.change(target.table, some)
        for (store, target, _), some in zip(written, files, strict=True)
    ]
    for store in stores:
        store.leave_to_commit()
    return commit(stores[0].before, changes, by, at)


def rows_of(spark: "SparkSession", table: Table, files: Sequence[TableFile]) -> "DataFrame":
    """Files as rows, which workers read: Spark itself needs no way to where the tables are."""
    names = table.names

    def of_files(some: Iterable[TableFile]) -> Batches:
        for file in some:
            for group in file.groups():
                yield from group.batches(_ROWS, names)

    return read_by_workers(spark, files, of_files, table.schema, 1)


def _by_day(table: Table, files: Iterable[Written], days: set[date]) -> Mapping[date, int]:
    rows: Counter[date] = Counter()
    for file in files:
        day = day_of(table, file)
        if day is not None and day in days:
            rows[day] += file.rows
    return rows
