"""A cluster's tables as a run reads and writes them.

A stage reads the days that earlier stages of the run have written, although they are not committed
yet. It reads the other days from the last commit. Only ``usage_pipeline.batch`` creates stores for
a run.

Example: the tables have 19 and 20 November. A run of the 20th reads the committed 19th, and the
20th that it has just written.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
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
    """The files that a run has written for a table, and the days that it replaces."""

    files: list[Written] = field(default_factory=list)
    days: set[date] = field(default_factory=set)


class Store:
    """Reads and writes a cluster's rows of the tables, in one run.

    Attributes:
        spark: the session whose tasks read and write.
        before: the tables at the start of the run.
        cluster: the cluster.
    """

    __slots__ = ("_new", "_run", "_superseded", "before", "cluster", "spark")

    def __init__(self, spark: "SparkSession", before: Pinned, cluster: str = UNNAMED) -> None:
        self.cluster = cluster
        self.spark = spark
        self.before = before
        self._run = uuid4().hex[:12]
        self._new: dict[Table, _New] = {}
        self._superseded: list[str] = []

    def __repr__(self) -> str:
        return f"Store({self.before.folder}, {self.cluster}, {len(self._new)} tables written)"

    def target(self, table: Table) -> Target:
        """Return where tasks write a table."""
        return Target(self.before.folder, table, self._run, self.cluster)

    def write(self, table: Table, frame: "DataFrame", days: Iterable[date] = ()) -> None:
        """Write a table, and replace the files that this run has already written for it.

        Args:
            table: the table.
            frame: rows with its columns.
            days: the days to replace, besides the days of the rows.
        """
        files = written_by_tasks(frame, self.target(table))
        self.leave_out(table, self._new.pop(table, _New()).files)
        self.add(table, files, days)

    def add(self, table: Table, files: Sequence[Written], days: Iterable[date] = ()) -> None:
        """Add files that tasks have written, and the days that they replace."""
        new = self._new.setdefault(table, _New())
        new.files += files
        new.days.update(days, (day for file in files if (day := day_of(table, file))))

    def leave_out(self, table: Table, files: Iterable[Written]) -> None:
        """Mark files that tasks have written for removal at the end of the run."""
        self._superseded += (f"{table.name}/{file.path}" for file in files)

    def files(self, table: Table, days: Iterable[date] | None = None) -> tuple[TableFile, ...]:
        """Return the files that a table will have after the commit.

        Args:
            table: the table.
            days: the days of the files; None for all.
        """
        requested = None if days is None else set(days)
        return tuple(
            TableFile(self.before.folder, table, file)
            for file in (*self._kept(table), *self._new.get(table, _New()).files)
            if requested is None or day_of(table, file) in requested
        )

    def read(self, table: Table, days: Iterable[date] | None = None) -> "DataFrame":
        """Return the rows that a table will have after the commit; none if it does not exist."""
        return rows_of(self.spark, table, self.files(table, days))

    def rows(self, table: Table) -> int:
        """Return the number of rows that this run has written to a table."""
        return sum(file.rows for file in self._new[table].files)

    def has(self, table: Table) -> bool:
        """Whether this or an earlier run has written the cluster to a table, even without rows."""
        return table in self._new or self.before.has_written(table, self.cluster)

    def days_of(self, table: Table) -> tuple[date, ...]:
        """Return the days that a table will have after the commit."""
        days = {day_of(table, file.written) for file in self.files(table)}
        return tuple(sorted(day for day in days if day is not None))

    def written_days(self, table: Table | None = None) -> tuple[date, ...]:
        """Return the days that this run replaces in a table; None for any table."""
        new = self._new.values() if table is None else [self._new.get(table, _New())]
        return tuple(sorted({day for each in new for day in each.days}))

    def written(self) -> tuple[Table, ...]:
        """Return the tables that this run has written."""
        return tuple(self._new)

    def refuse_fewer(
        self, table: Table, since: datetime | None = None, until: datetime | None = None
    ) -> None:
        """Check that no broker loses rows of a day of a table.

        Args:
            table: the table.
            since: the first time that the run read, UTC; None for no bound.
            until: the exclusive end of what it read, UTC; None for no bound.

        Raises:
            FewerRowsError: a broker's day would lose rows.
        """
        if table not in self._new:
            return
        committed = self._committed(table)
        before = self._by_broker(table, committed)
        after = self._by_broker(table, self._new[table].files)
        lost = [
            f"broker {broker} of {day} has {count:,} rows and would have {after[day, broker]:,}"
            for (day, broker), count in sorted(before.items())
            if after[day, broker] < count
        ]
        # More rows on one side of a bound must not conceal the lost ones on the other side.
        cut = {bound.date() for bound in (since, until) if bound} & self._new[table].days
        lost += [
            f"{day} has rows outside --since and --until"
            for day in sorted(cut)
            if any(
                self._is_outside(table, file, since, until)
                for file in committed
                if day_of(table, file) == day
            )
        ]
        if lost:
            whose = "" if self.cluster == UNNAMED else f"{self.cluster}: "
            raise FewerRowsError(
                f"{whose}{'; '.join(lost)}. A run replaces whole days: give all logs of the day,"
                " leave the day out with --since or --until, or use --allow-fewer"
            )

    def written_files(self) -> list[tuple[Target, list[Written]]]:
        """Return the files to commit, in the order of ``TABLES``."""
        self._remove(self._superseded)
        self._superseded.clear()
        return [
            (self.target(table), self._new[table].files)
            for table in TABLES
            if table in self._new and (not table.partitions or self._new[table].days)
        ]

    def change(self, table: Table, files: list[Written]) -> Change:
        """Return the change that replaces the days of a table by these files."""
        days = [day.isoformat() for day in sorted(self._new[table].days)]
        return Change(table.name, files, days if table.partitions else None, self.cluster)

    def leave_to_commit(self) -> None:
        """Keep the files from now on.

        A record may name them, even if an error reports that it was not created.
        """
        self._new.clear()

    def discard(self) -> None:
        """Remove the files of a refused run; nothing after ``leave_to_commit``."""
        self._remove(self._superseded)
        for table, new in self._new.items():
            self._remove(f"{table.name}/{file.path}" for file in new.files)

    def _by_broker(self, table: Table, files: Iterable[Written]) -> Counter[tuple[date, int]]:
        """Return the number of rows of each broker on the days that the run replaces."""
        rows: Counter[tuple[date, int]] = Counter()
        for file in files:
            day = day_of(table, file)
            if day is None or day not in self._new[table].days:
                continue
            if "broker" in table.folders:
                rows[day, int(file.values[table.folders.index("broker")])] += file.rows
                continue
            for group in TableFile(self.before.folder, table, file).groups():
                for batch in group.batches(_ROWS, ["broker"]):
                    for counted in batch["broker"].value_counts().to_pylist():
                        rows[day, counted["values"]] += counted["counts"]
        return rows

    def _is_outside(
        self, table: Table, file: Written, since: datetime | None, until: datetime | None
    ) -> bool:
        """Whether a file has rows that a run with these bounds does not read."""
        column = "log_ts" if "log_ts" in table.names else "window_start"
        for group in TableFile(self.before.folder, table, file).groups():
            times = group.statistics(column)
            if times is None or (since and times.min < since) or (until and times.max >= until):
                return True
        return False

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.before.folder.remove(path)

    def _committed(self, table: Table) -> list[Written]:
        """Return the files of the cluster in the last commit."""
        return [file for file in self.before.files(table) if file.cluster == self.cluster]

    def _kept(self, table: Table) -> list[Written]:
        """Return the committed files that the run does not replace."""
        new = self._new.get(table)
        if new is None:
            return self._committed(table)
        if not table.partitions:
            return []
        return [file for file in self._committed(table) if day_of(table, file) not in new.days]


def commit_all(stores: Sequence[Store], by: str, at: datetime) -> Pinned:
    """Replace the tables of all clusters atomically.

    Args:
        stores: the stores of a run, one for each cluster.
        by: a description of the run.
        at: the start of the run, UTC.

    Raises:
        SidecarError: the commit failed; nothing is replaced.
    """
    written = [
        (store, target, files) for store in stores for target, files in store.written_files()
    ]
    merged_files = merged(stores[0].spark, [(target, files) for _, target, files in written])
    changes = [
        store.change(target.table, files)
        for (store, target, _), files in zip(written, merged_files, strict=True)
    ]
    for store in stores:
        store.leave_to_commit()
    return commit(stores[0].before, changes, by, at)


def rows_of(spark: "SparkSession", table: Table, files: Sequence[TableFile]) -> "DataFrame":
    """Return the rows of files. Workers read them, so Spark needs no access to the store."""
    names = table.names

    def read(task_files: Iterable[TableFile]) -> Batches:
        for file in task_files:
            for group in file.groups():
                yield from group.batches(_ROWS, names)

    return read_by_workers(spark, files, read, table.schema, 1)
