"""Frames and files of the tables with what a test cares about, and nothing else."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.commits import Change, Pinned, begin, commit, pinned, recovered
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import Target
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, UNNAMED, Table
from usage_pipeline.tables.store import Store
from usage_pipeline.tables.table_files import TableFile, day_of
from usage_pipeline.usage.usage_reader import UsageRows

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def frame_of(spark: SparkSession, table: Table, *rows: dict[str, object]) -> DataFrame:
    """Rows of a table; columns that a row leaves out are null."""
    values = [tuple(row.get(name) for name in table.names) for row in rows]
    return spark.createDataFrame(values, table.schema)


def stored(spark: SparkSession, out: Path, table: Table) -> list[Row]:
    """Returns the rows of a table in a folder of tables, in an order."""
    store = Store(spark, pinned(Folder.parse(str(out))))
    return sorted(store.read(table).collect(), key=str)


def rows_in(out: Path | str, table: Table) -> list[dict[str, Any]]:
    """Returns the same without Spark, in no order."""
    folder = Folder.parse(str(out))
    found = []
    for written in pinned(folder).files(table):
        values = dict(zip(table.folders, written.values, strict=True))
        file = TableFile(folder, table, written)
        found += [values | row for row in table_of(file).to_pylist()]
    return found


def table_of(file: TableFile, columns: Sequence[str] | None = None) -> pa.Table:
    """Returns the rows of a file or of its part, with all columns that are in it, or with these."""
    names = columns or [column.name for column in file.table.in_files]
    batches = [batch for group in file.groups() for batch in group.batches(1 << 17, names)]
    return pa.Table.from_batches(batches)


def files_of(
    out: Path,
    table: Table,
    rows: Iterable[dict[str, Any]],
    run: str = "test",
    cluster: str = UNNAMED,
) -> tuple[TableFile, ...]:
    """Writes rows as a task does; columns that a row leaves out are null; they are in no table."""
    folder = Folder.parse(str(out))
    writer = Target(folder, table, run, cluster).writer(0)
    writer.write(pa.Table.from_pylist(list(rows), arrow_schema(table.columns)))
    written = writer.close()[table.name]
    assert writer.problem is None
    return tuple(TableFile(folder, table, file) for file in written)


def used(at: datetime, **fields: Any) -> dict[str, Any]:
    """A row of GOLD_USAGE_1S: alice's etl produces a byte to broker 1, unless set otherwise."""
    return {
        "dt": at.date(),
        "broker": 1,
        "user": "alice",
        "client_id": "etl",
        "quota_type": "produce",
        "window_start": at,
        "amount": 1.0,
        "events": 1,
        "throttled": 0,
        "throttle_ms": 0,
        "lower_bound": False,
        **fields,
    }


def usage_rows(spark: SparkSession, out: Path, rows: Iterable[dict[str, Any]]) -> UsageRows:
    """Writes rows of GOLD_USAGE_1S."""
    return UsageRows(spark, files_of(out, GOLD_USAGE_1S, rows))


def committed(
    out: Path, table: Table, *rows: dict[str, Any], run: str = "test", cluster: str = UNNAMED
) -> Pinned:
    """Puts rows of a cluster into a table in place of its rows of the same days."""
    before, _ = recovered(Folder.parse(str(out)))
    begin(before)
    files = [file.written for file in files_of(out, table, rows, run, cluster)]
    days = sorted({str(day) for file in files for day in [day_of(table, file)] if day})
    return commit(before, [Change(table.name, files, days or None, cluster)], "a test", NOW)
