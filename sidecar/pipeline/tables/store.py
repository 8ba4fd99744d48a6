"""The tables of a folder as a run sees them: its own new partitions, and the last good others.

A stage reads what the stages before it wrote, published or not; days that the run replaces are
never read as they were. Only ``sidecar.pipeline.batch.job`` calls this.

Example: with 19 and 20 November published, a run of the 20th reads the 19th as it is and the 20th
as it has just written it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import parquet

from sidecar.errors import SidecarError
from sidecar.pipeline.tables.publish import NO_DAY, Output, publish
from sidecar.pipeline.tables.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FewerRowsError(SidecarError):
    """A day would lose rows."""


class Store:
    """Reads and writes the tables of one run."""

    __slots__ = ("_counted", "_output", "_spark", "_written")

    def __init__(self, spark: "SparkSession", output: Output) -> None:
        self._spark = spark
        self._output = output
        self._written: dict[Table, tuple[date, ...]] = {}
        self._counted: dict[Table, Mapping[date, int]] = {}

    def __repr__(self) -> str:
        return f"Store({self._output.root!r}, {len(self._written)} tables written)"

    def write(self, table: Table, frame: "DataFrame", days: Iterable[date] | None = None) -> None:
        """Writes a table beside the last good one; ``days`` None are those of the rows."""
        # Leftovers are removed before a run begins; a test's bucket has shown some all the same.
        writer = table.select(frame).write.mode("overwrite")
        writer = writer.option("partitionOverwriteMode", "static")
        if table.partitions:
            writer = writer.partitionBy(*table.partitions)
        writer.parquet(self._output.staged(table))
        found = self._output.days(table, staged=True)
        self._written[table] = tuple(sorted({*found, *(days or ())}))
        self._counted.pop(table, None)

    def local(self, table: Table) -> Path | None:
        """Where a run writes a table, if that is a folder of this machine's disk; else None."""
        return self._output.files.local(self._output.staged(table))

    def files(self, table: Table, days: Iterable[date]) -> tuple[Path, ...] | None:
        """The Parquet files of some days, if they are on this machine's disk; else None."""
        found: list[Path] = []
        requested = set(days)
        for staged in (False, True):
            for day in requested.intersection(self._kept(table, staged=staged)):
                folder = self._output.files.local(self._output.day(table, day, staged=staged))
                if folder is None:
                    return None
                found += sorted(folder.rglob("*.parquet"))
        return tuple(found)

    def wrote(self, table: Table, rows: Mapping[date, int]) -> None:
        """Takes note of a table that was written to its ``local`` folder."""
        self._written[table] = tuple(sorted(rows))
        self._counted[table] = rows

    def rows_of(self, table: Table) -> int:
        """How many rows this run has written of a table."""
        if table.partitions:
            return sum(self._counts(table, staged=True).values())
        folder = self._output.files.local(self._output.staged(table))
        return self.read(table).count() if folder is None else _rows_in(folder)

    def read(self, table: Table, days: Sequence[date] | None = None) -> "DataFrame":
        """A table as it will be once the run is published; empty when there is none."""
        if not table.partitions:
            staged = table in self._written
            root = self._root(table, staged=staged)
            return self._parquet(table, root, [root] if self._output.files.names(root) else [])
        frames = [
            [day for day in self._kept(table, staged=staged) if days is None or day in days]
            for staged in (False, True)
        ]
        kept, written = (
            self._of_days(table, found, staged=staged)
            for found, staged in zip(frames, (False, True), strict=True)
        )
        if not all(frames):
            return kept if frames[0] else written
        return kept.unionByName(written)

    def without_day(self, table: Table, rows_of: Table | None = None) -> "DataFrame":
        """The rows without a day that this run has written; they are never published."""
        path = f"{self._output.staged(table)}/{NO_DAY}"
        paths = [path] if self._output.files.exists(path) else []
        return self._parquet(rows_of or table, self._root(table, staged=True), paths)

    def has(self, table: Table) -> bool:
        """Whether the table will be there once the run is published."""
        root = self._root(table, staged=table in self._written)
        return bool(self._output.files.names(root))

    def days_of(self, table: Table) -> tuple[date, ...]:
        """The days that a table will have once the run is published."""
        return tuple(sorted({*self._kept(table, staged=False), *self._kept(table, staged=True)}))

    def written_days(self, table: Table | None = None) -> tuple[date, ...]:
        """The days that this run replaces in a table; None: in any."""
        tables = self._written if table is None else (table,)
        return tuple(sorted({day for one in tables for day in self._written.get(one, ())}))

    def written(self) -> tuple[Table, ...]:
        """The tables that this run has written."""
        return tuple(self._written)

    def publish(self, keeps_rows: Table | None = None) -> None:
        """Puts what was written in place of what was, all or none.

        Args:
            keeps_rows: no day of this table may have fewer rows than it has; None for no such one.

        Raises:
            FewerRowsError: one would; nothing is replaced.
        """
        if keeps_rows is not None and keeps_rows in self._written:
            self._refuse_fewer(keeps_rows)
        publish(self._output, self._written.items())
        self._written.clear()
        self._counted.clear()

    def _refuse_fewer(self, table: Table) -> None:
        before = self._counts(table, staged=False)
        after = self._counts(table, staged=True)
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

    def _counts(self, table: Table, *, staged: bool) -> Mapping[date, int]:
        if staged and table in self._counted:
            return self._counted[table]
        replaced = self._written[table]
        days = [day for day in self._output.days(table, staged=staged) if day in replaced]
        folders_by_day = {
            day: self._output.files.local(self._output.day(table, day, staged=staged))
            for day in days
        }
        folders = {day: folder for day, folder in folders_by_day.items() if folder is not None}
        if len(folders) == len(days):
            return {day: _rows_in(folder) for day, folder in folders.items()}
        frame = self._of_days(table, days, staged=staged)
        return {row["dt"]: row["count"] for row in frame.groupBy("dt").count().collect()}

    def _kept(self, table: Table, *, staged: bool) -> tuple[date, ...]:
        replaced = self._written.get(table)
        if staged and replaced is None:
            # What another run, that was killed, has left there.
            return ()
        found = self._output.days(table, staged=staged)
        return found if staged else tuple(day for day in found if day not in (replaced or ()))

    def _of_days(self, table: Table, days: Sequence[date], *, staged: bool) -> "DataFrame":
        paths = [self._output.day(table, day, staged=staged) for day in days]
        return self._parquet(table, self._root(table, staged=staged), paths)

    def _root(self, table: Table, *, staged: bool) -> str:
        return self._output.staged(table) if staged else self._output.place(table.name)

    def _parquet(self, table: Table, root: str, paths: Sequence[str]) -> "DataFrame":
        if not paths:
            nothing = (
                f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in table.columns
            )
            return table.select(self._spark.range(0).selectExpr(*nothing))
        reader = self._spark.read.schema(table.schema).option("basePath", root)
        return table.select(reader.parquet(*paths))


def _rows_in(folder: Path) -> int:
    """As the files themselves say: a query of Spark's for each table takes longer."""
    return sum(parquet.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))
