"""Statistics of files, by which engines skip them."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from tests.usage_pipeline.build import NOW, files_of
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.commits import Change, begin, commit, recovered
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import Target, Writer
from usage_pipeline.tables.schemas import DIM_TOPIC, GOLD_USAGE_1S, TABLES, Table
from usage_pipeline.tables.statistics import FILTERED

DAY = date(2026, 11, 20)
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def usage(user: str, hour: int) -> dict[str, Any]:
    second = TEN + timedelta(hours=hour - 10, microseconds=7)
    return {"dt": DAY, "broker": 1, "user": user, "window_start": second, "amount": 5.0}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A day's usage in three files: of ann to bob, of carl to dora, and later of all."""
    rows = (("ann", 10), ("bob", 11)), (("carl", 10), ("dora", 11)), (("ann", 20), ("dora", 20))
    before, _ = recovered(Folder.parse(str(tmp_path)))
    begin(before)
    files = [
        file.written
        for run, of_file in enumerate(rows)
        for file in files_of(tmp_path, GOLD_USAGE_1S, [usage(*each) for each in of_file], f"{run}")
    ]
    commit(before, [Change(GOLD_USAGE_1S.name, files, [str(DAY)])], "a test", NOW)
    return tmp_path / GOLD_USAGE_1S.name


def files_read(out: Path, condition: pc.Expression) -> set[str]:
    """The runs whose files a query by the deltalake package opens."""
    dataset = DeltaTable(str(out)).to_pyarrow_dataset()
    return {Path(each.path).stem[-1] for each in dataset.get_fragments(filter=condition)}


def test_a_query_skips_files_of_other_users_and_times(out: Path) -> None:
    """It opens only files that may have the user or the time, and finds the same rows."""
    day, user = pc.field("dt") == DAY, pc.field("user")
    assert {"0", "1", "2"} == files_read(out, day)
    assert {"0", "2"} == files_read(out, day & (user == "bob"))
    assert {"1", "2"} == files_read(out, day & (user == "carl"))
    at = pa.scalar(TEN + timedelta(hours=1, microseconds=7), pa.timestamp("us", "UTC"))
    assert {"0", "1"} == files_read(out, pc.field("window_start") == at)
    assert {"2"} == files_read(out, pc.field("window_start") > at)
    rows = pl.scan_delta(str(out)).filter(pl.col("user") == "ann").collect()
    assert 2 == rows.height


def statistics_of(writer: Writer) -> dict[str, Any]:
    (file,) = writer.close()[writer.target.table.name]
    found: dict[str, Any] = json.loads(file.statistics)
    return found


def write(writer: Writer, table: Table, *rows: dict[str, Any]) -> None:
    writer.write(pa.Table.from_pylist(list(rows), arrow_schema(table.columns)))
    writer._flush()


def test_bounds_are_of_all_row_groups(tmp_path: Path) -> None:
    """Nulls are counted; a column of nulls has no bounds, nor has one with long texts."""
    writer = Target(Folder.parse(str(tmp_path)), DIM_TOPIC, "run").writer(0)
    write(writer, DIM_TOPIC, {"topic": "m", "partitions": 3, "src_file": "x" * 999})
    write(writer, DIM_TOPIC, {"valid_from": TEN}, {"topic": "ä" * 99})
    write(writer, DIM_TOPIC, {"topic": "b" * 9999})
    write(writer, DIM_TOPIC, {"topic": "b", "valid_from": TEN + timedelta(days=1)})
    assert {
        "numRecords": 5,
        "minValues": {"valid_from": "2026-11-20T10:00:00.000000Z"},
        "maxValues": {"valid_from": "2026-11-21T10:00:00.000000Z"},
        "nullCount": {"topic": 1, "valid_from": 3, "valid_to": 5},
    } == statistics_of(writer)


def test_filtered_columns_exist() -> None:
    """A renamed column would lose its statistics."""
    assert set() == FILTERED - {column.name for table in TABLES for column in table.in_files}
