"""The tables' files as rows for the page, without Spark.

Usage is summed up over windows of the length that the page draws, as it is read, and one file at a
time: a row a second of a busy day would not fit into memory as Python's values. Of the readings of
volumes and of the other tables all are read; of a replay, those of the newest days.

Example: a day's gold_usage_1s of 40 tenants on 3 brokers, 10 million rows, comes as 288 windows of
5 min, some 35,000 rows.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sidecar.pipeline.report.rows import ReportError, Row
from sidecar.pipeline.report.times import bucket_s
from sidecar.pipeline.tables.arrow import arrow_schema
from sidecar.pipeline.tables.commits import Pinned, newest
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.schemas import (
    GOLD_DISK_FORECAST,
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_VOLUME,
    UNNAMED,
    Table,
)

_WHOLE: Final = (SILVER_VOLUME, GOLD_REPLAY, GOLD_RECOMMENDATION, GOLD_DISK_FORECAST, QUARANTINE)
_KEYS: Final = ["broker", "user", "client_id", "quota_type", "window_start"]
_SUMS: Final = ("amount", "events", "throttled", "throttle_ms")
_BATCH: Final = 1 << 20
_AHEAD: Final = {"batch_readahead": 1, "fragment_readahead": 1}
"""Files are small, and all that Arrow reads ahead stays in memory."""


def clusters_in(out: str) -> list[str]:
    """The clusters that the tables have rows of.

    Raises:
        SidecarError: the store can't be reached, or the tables are of another version.
    """
    return newest(Folder.of(out)).clusters()


def read_tables(out: str, cluster: str = UNNAMED) -> dict[str, list[Row]]:
    """Rows of a cluster in each table that is there, as ``report`` takes them.

    Raises:
        ReportError: there is no table at all, or one can't be read.
        SidecarError: the store can't be reached, or the tables are of another version.
    """
    folder = Folder.of(out)
    tables = newest(folder)
    try:
        found: dict[str, list[Row]] = {
            table.name: list(_rows(_dataset(tables, table, cluster)))
            for table in _WHOLE
            if table.name in tables.versions
        }
        if GOLD_USAGE_1S.name in tables.versions:
            found[GOLD_USAGE_1S.name] = _usage(_dataset(tables, GOLD_USAGE_1S, cluster))
    except (OSError, pa.ArrowException) as error:
        raise ReportError(f"the tables in {out} can't be read: {error}") from error
    if not found:
        raise ReportError(
            f"there are no tables in {out}: make them with `throttle-sidecar pipeline run`"
        )
    return found


def _dataset(tables: Pinned, table: Table, cluster: str) -> ds.Dataset:
    system, root = tables.folder.inner(table.name)
    schema = arrow_schema(table.stored)
    fields = [schema.field(name) for name in table.folders]
    partitioning = ds.partitioning(pa.schema(fields), flavor="hive")
    files = [f"{root}/{file.path}" for file in tables.files(table) if file.cluster == cluster]
    return ds.dataset(
        files,
        schema=schema,
        format="parquet",
        filesystem=system,
        partitioning=partitioning,
        partition_base_dir=root,
    )


def _rows(dataset: ds.Dataset) -> Iterator[Row]:
    for batch in dataset.to_batches():
        yield from batch.to_pylist()


def _usage(dataset: ds.Dataset) -> list[Row]:
    if not dataset.files:
        return []
    bounds = [
        pc.min_max(batch["window_start"]).as_py()
        for batch in dataset.to_batches(columns=["window_start"], **_AHEAD)
        if batch.num_rows
    ]
    if not bounds:
        return []
    span = max(each["max"] for each in bounds) - min(each["min"] for each in bounds)
    step = bucket_s(span.total_seconds() + 1)
    columns = [*_KEYS, *_SUMS, "lower_bound"]
    summed = [
        _summed(pa.Table.from_batches([batch]), step)
        for batch in dataset.to_batches(columns=columns, batch_size=_BATCH, **_AHEAD)
    ]
    found: list[Row] = _summed(pa.concat_tables(summed), step).to_pylist()
    return found


def _summed(rows: pa.Table, step_s: int) -> pa.Table:
    at = rows.column_names.index("window_start")
    seconds = rows["window_start"].cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())
    floored = pc.multiply(pc.divide(seconds, step_s), step_s)
    by_bucket = rows.set_column(at, "window_start", floored.cast(pa.timestamp("s", "UTC")))
    sums = by_bucket.group_by(_KEYS).aggregate(
        [*((name, "sum") for name in _SUMS), ("lower_bound", "max")]
    )
    return sums.rename_columns(
        [name.removesuffix("_sum").removesuffix("_max") for name in sums.column_names]
    )
