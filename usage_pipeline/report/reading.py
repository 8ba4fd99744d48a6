"""Reads the tables' files for the page without Spark, limited to what the page shows.

The page shows the newest week of requests, and the newest month of volumes. Usage is summed over
the windows that the plots have. If there are very many tenants, those that use and wait least are
combined. Of a replay, the page has the busiest tenants, and the configured quotas with the longest
waits. Of a volume, it has the highest and the lowest reading of each window. Of lines that can't be
read, it has their number by kind. So reading takes a few hundred megabytes of memory for a cluster
of any size, and one file is read at a time.

Example: a day's gold_usage_1s of 40 tenants on 3 brokers, 10 million rows, becomes 288 windows of
5 min with about 35,000 rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import partial, reduce
from operator import and_, or_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from usage_pipeline.report.rows import ReportError, Row
from usage_pipeline.report.times import bucket_s
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.commits import Pinned
from usage_pipeline.tables.days import last_days, newest_day
from usage_pipeline.tables.schemas import (
    GOLD_COST,
    GOLD_DISK_FORECAST,
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_VOLUME,
    UNNAMED,
    Table,
)
from usage_pipeline.tables.table_files import day_of

MOST_TENANTS: Final = 500
"""Tenants of each quota type that are shown by name because they use most."""
_WAITING: Final = 100
"""Tenants of each quota type that are shown by name because they wait longest."""
_REPLAYED: Final = 12
_IN_FORCE: Final = 500
_WEEK: Final = 7
_MONTH: Final = 31
_TENANT: Final = ["quota_type", "user", "client_id"]
_KEYS: Final = ["broker", *_TENANT, "window_start"]
_SUMS: Final = ("amount", "events", "throttled", "throttle_ms")
_LINES: Final = ["src_file", "kind", "reason"]
_VOLUME: Final = ["broker", "log_dir"]
_BATCH: Final = 1 << 18
_AHEAD: Final = {"batch_readahead": 1, "fragment_readahead": 1}
"""Files are small, and Arrow keeps everything that it reads ahead in memory."""


def read_tables(tables: Pinned, today: date, cluster: str = UNNAMED) -> dict[str, list[Row]]:
    """Return a cluster's rows in each existing table, for ``report``.

    Days after today (UTC) are left out, because a clock that was ahead must not hide the others.

    Raises:
        ReportError: there is no table, or a table can't be read.
        SidecarError: the store can't be reached, or the tables have another version.
    """
    out = tables.folder
    try:
        rows = {
            table.name: read(_dataset(tables, table, cluster, days, today))
            for table, days, read in _READ
            if table.name in tables.versions
        }
    except (OSError, pa.ArrowException) as error:
        raise ReportError(f"the tables in {out} can't be read: {error}") from error
    if not rows:
        raise ReportError(
            f"there are no tables in {out}: make them with `throttle-sidecar pipeline run`"
        )
    return rows


def _dataset(
    tables: Pinned, table: Table, cluster: str, days: int | None, today: date
) -> ds.Dataset:
    system, root = tables.folder.inner(table.name)
    schema = arrow_schema(table.stored)
    fields = [schema.field(name) for name in table.folders]
    partitioning = ds.partitioning(pa.schema(fields), flavor="hive")
    files = [file for file in tables.files(table) if file.cluster == cluster]
    if days is not None and files:
        of_files = {file.path: day for file in files if (day := day_of(table, file)) is not None}
        days_of = set(of_files.values())
        shown = set(last_days(days_of, newest_day(days_of, today), days - 1))
        files = [file for file in files if of_files[file.path] in shown]
    return ds.dataset(
        [f"{root}/{file.path}" for file in files],
        schema=schema,
        format="parquet",
        filesystem=system,
        partitioning=partitioning,
        partition_base_dir=root,
    )


def _whole(dataset: ds.Dataset) -> list[Row]:
    return [row for batch in dataset.to_batches() for row in batch.to_pylist()]


def _usage(dataset: ds.Dataset) -> list[Row]:
    bounds: list[datetime] = []

    def noted() -> Iterator[pa.Table]:
        for batch in _batches(dataset, [*_TENANT, "window_start", "amount", "throttle_ms"]):
            bounds.extend(pc.min_max(batch["window_start"]).as_py().values())
            yield batch

    tenants = _combined(noted(), partial(_grouped, keys=_TENANT, sums=("amount", "throttle_ms")))
    if tenants is None:
        return []
    step = bucket_s((max(bounds) - min(bounds)).total_seconds() + 1)
    named, others = _named(tenants)
    windows = (
        _by_window(_folded(batch, named), step)
        for batch in _batches(dataset, [*_KEYS, *_SUMS, "lower_bound"])
    )
    sums = _combined(windows, partial(_grouped, keys=_KEYS, sums=_SUMS, most="lower_bound"))
    return [
        {**row, "others": others[str(row["quota_type"])]} if row["user"] is None else row
        for row in _rows(sums)
    ]


def _named(tenants: pa.Table) -> tuple[pa.Array | None, dict[str, int]]:
    """Return the keys of tenants to name, None for all, and each type's number of others."""
    chosen, others = [], {}
    for quota_type in tenants["quota_type"].unique().to_pylist():
        of_type = tenants.filter(pc.equal(tenants["quota_type"], quota_type))
        keys = _keys(of_type)
        most = {
            *_largest(of_type["amount"], MOST_TENANTS),
            *_largest(of_type["throttle_ms"], _WAITING),
        }
        chosen.append(keys.take(pa.array(sorted(most), pa.int64())))
        others[quota_type] = of_type.num_rows - len(most)
    return (pa.concat_arrays(chosen) if any(others.values()) else None), others


def _largest(values: pa.ChunkedArray, most: int) -> list[int]:
    order = pc.sort_indices(values, sort_keys=[("", "descending")])
    largest: list[int] = order[:most].to_pylist()
    return largest


def _folded(batch: pa.Table, named: pa.Array | None) -> pa.Table:
    """Remove the tenant from rows whose tenant is not shown by name."""
    if named is None:
        return batch
    is_named = pc.is_in(_keys(batch), value_set=named)
    nobody = pa.scalar(None, pa.string())
    for name in ("user", "client_id"):
        column = pc.if_else(is_named, batch[name], nobody)
        batch = batch.set_column(batch.column_names.index(name), name, column)
    return batch


def _keys(rows: pa.Table) -> pa.Array:
    joined = pc.binary_join_element_wise(*(rows[name] for name in _TENANT), "\0")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _by_window(rows: pa.Table, step_s: int) -> pa.Table:
    at = rows.column_names.index("window_start")
    seconds = rows["window_start"].cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())
    floored = pc.multiply(pc.divide(seconds, step_s), step_s)
    return rows.set_column(at, "window_start", floored.cast(pa.timestamp("s", "UTC")))


def _replay(dataset: ds.Dataset) -> list[Row]:
    """Return the busiest tenants' candidates, and configured quotas with the longest waits."""
    tenant = ["quota_type", "shared_by"]
    is_kept = pc.field("algorithm") != "burst-spreading"
    is_tried = pc.starts_with(pc.field("scenario"), "=") & is_kept
    tried = _batches(dataset, [*tenant, "events"], is_tried)
    events = _combined(tried, partial(_grouped, keys=tenant, sums=("events",)))
    rows: list[Row] = []
    if events is not None:
        busiest = events.take(pa.array(_largest(events["events"], _REPLAYED), pa.int64()))
        of_tenants = (
            reduce(and_, (pc.field(name) == value for name, value in each.items()))
            for each in busiest.select(tenant).to_pylist()
        )
        is_theirs = reduce(or_, of_tenants, pc.scalar(value=False))
        rows = dataset.to_table(filter=is_tried & is_theirs).to_pylist()
        rows += _others(dataset.schema, "=", events.num_rows - busiest.num_rows)
    kept: pa.Table | None = None
    in_force = 0
    is_in_force = (pc.field("scenario") == "in force") & pc.field("quota").is_valid() & is_kept
    for batch in _batches(dataset, None, is_in_force):
        in_force += batch.num_rows
        kept = batch if kept is None else pa.concat_tables([kept, batch])
        waits = pc.fill_null(kept["throttle_ms_total"], 0)
        kept = kept.take(pa.array(_largest(waits, _IN_FORCE), pa.int64()))
    if kept is not None:
        rows += kept.to_pylist()
        rows += _others(dataset.schema, "in force", in_force - kept.num_rows)
    return rows


def _others(schema: pa.Schema, scenario: str, several: int) -> list[Row]:
    """Return a row that states how many rows of a scenario are left out, if there are any."""
    nothing = dict.fromkeys(schema.names)
    return [{**nothing, "scenario": scenario, "others": several}] if several else []


def _volumes(dataset: ds.Dataset) -> list[Row]:
    """Return the highest and the lowest reading of each volume in each window."""
    step = bucket_s(_MONTH * 86_400)
    columns = [*_VOLUME, "observed_ts", "total_bytes", "available_bytes"]
    batches = _batches(dataset, columns, pc.field("available_bytes").is_valid())
    return _rows(_combined(batches, partial(_ends, step_s=step)))


def _ends(rows: pa.Table, step_s: int) -> pa.Table:
    seconds = rows["observed_ts"].cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())
    keyed = rows.append_column("bucket", pc.divide(seconds, step_s))
    orders = [("broker", "ascending"), ("log_dir", "ascending"), ("bucket", "ascending")]
    keyed = keyed.sort_by([*orders, ("available_bytes", "ascending")])
    keys = [keyed[name].combine_chunks() for name, _ in orders]
    is_new = [pc.not_equal(key[1:], key[:-1]) for key in keys]
    differs = pc.or_(pc.or_(is_new[0], is_new[1]), is_new[2])
    begins = pa.concat_arrays([pa.array([True]), differs])
    ends = pa.concat_arrays([differs, pa.array([True])])
    return keyed.filter(pc.or_(begins, ends)).drop_columns(["bucket"])


def _quarantine(dataset: ds.Dataset) -> list[Row]:
    """Return a row for each file, kind and reason, with its number of ``lines``."""
    counted = (
        batch.append_column("lines", pa.repeat(pa.scalar(1), batch.num_rows))
        for batch in _batches(dataset, _LINES)
    )
    return _rows(_combined(counted, partial(_grouped, keys=_LINES, sums=("lines",))))


def _batches(
    dataset: ds.Dataset, columns: Sequence[str] | None, where: ds.Expression | None = None
) -> Iterator[pa.Table]:
    """Yield the batches that have rows."""
    names = None if columns is None else list(columns)
    for batch in dataset.to_batches(columns=names, filter=where, batch_size=_BATCH, **_AHEAD):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _grouped(
    rows: pa.Table, keys: Sequence[str], sums: Iterable[str], most: str | None = None
) -> pa.Table:
    """Return a row for each combination of the keys."""
    aggregates = [*((name, "sum") for name in sums), *([] if most is None else [(most, "max")])]
    summed = rows.group_by(list(keys)).aggregate(aggregates)
    names = [name.removesuffix("_sum").removesuffix("_max") for name in summed.column_names]
    return summed.rename_columns(names).select([*keys, *(name for name, _ in aggregates)])


def _combined(
    batches: Iterable[pa.Table], combine: Callable[[pa.Table], pa.Table]
) -> pa.Table | None:
    """Combine the rows of all batches, part by part if there are many; None if there are none."""
    parts: list[pa.Table] = []
    for batch in batches:
        parts.append(combine(batch))
        if sum(part.num_rows for part in parts) > _BATCH:
            parts = [combine(pa.concat_tables(parts))]
    return combine(pa.concat_tables(parts)) if parts else None


def _rows(table: pa.Table | None) -> list[Row]:
    return [] if table is None else table.to_pylist()


_READ: Final[Sequence[tuple[Table, int | None, Callable[[ds.Dataset], list[Row]]]]] = (
    (SILVER_VOLUME, _MONTH, _volumes),
    (GOLD_REPLAY, _WEEK, _replay),
    (GOLD_RECOMMENDATION, _WEEK, _whole),
    (GOLD_DISK_FORECAST, _WEEK, _whole),
    (GOLD_COST, _MONTH, _whole),
    (QUARANTINE, None, _quarantine),
    (GOLD_USAGE_1S, _WEEK, _usage),
)
"""The tables, the number of days to read, and the function that reads them."""
