"""Rows of silver_request read from Parquet."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from usage_pipeline.ingest.records import ROWS
from usage_pipeline.silver.request_reader import OF_BROKERS, admins_rows, brokers_clients, rows
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import SILVER_REQUEST, UNNAMED
from usage_pipeline.tables.table_files import TableFile, Written

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = frozenset({NOON.date()})
APIS = ("PRODUCE", "CREATE_TOPICS", "FETCH", "49", "CREATE_TOPICS", "METADATA", "20")


def written(folder: Path, *fields: dict[str, Any]) -> list[TableFile]:
    """Writes two files of the same rows, in groups of three."""
    usual = {"user": "alice", "client_id": "", "src_file": "a.log", "is_forwarded": False}
    table_rows = [
        {**usual, "quota_ts": NOON, "src_offset": place, **row} for place, row in enumerate(fields)
    ]
    table = pa.Table.from_pylist(table_rows, ROWS).drop_columns(["broker"])
    values = (UNNAMED, str(NOON.date()), "3")
    files = [Written(name, values, table.num_rows, 1) for name in ("a.parquet", "b.parquet")]
    (folder / "silver_request").mkdir()
    for file in files:
        parquet.write_table(table, folder / "silver_request" / file.path, row_group_size=3)
    return [TableFile(Folder.parse(str(folder)), SILVER_REQUEST, file) for file in files]


def offsets(batches: Any) -> list[int]:
    return [offset for batch in batches for offset in batch["src_offset"].to_pylist()]


def test_rows_of_some_days_are_read(tmp_path: Path) -> None:
    """The time of the charge decides; without a day all are read."""
    files = written(tmp_path, *({"quota_ts": NOON + timedelta(hours=6 * at)} for at in range(7)))
    columns = ("src_offset", "quota_ts")
    assert [0, 1, 0, 1] == offsets(rows(files, columns, DAY))
    later = frozenset({date(2026, 11, 21), date(2026, 11, 22)})
    assert [2, 3, 4, 5, 6] == offsets(rows(files[:1], columns, later))
    assert [*range(7)] == offsets(rows(files[:1], columns, None))
    (batch,) = list(rows(files[:1], ("user", "broker", "quota_ts"), None))[:1]
    assert pa.types.is_dictionary(batch.schema.field("user").type)
    assert ([3] * 3, pa.int32()) == (batch["broker"].to_pylist(), batch["broker"].type)


def test_groups_of_other_days_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statistics in the file's footer are enough."""
    files = written(tmp_path, *({"quota_ts": NOON + timedelta(hours=6 * at)} for at in range(7)))
    read: list[int] = []
    iter_batches = parquet.ParquetFile.iter_batches

    def noted(self: parquet.ParquetFile, size: int, *, row_groups: list[int], **more: Any) -> Any:
        read.extend(row_groups)
        return iter_batches(self, size, row_groups=row_groups, **more)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    assert [0, 1] == offsets(rows(files[:1], ("src_offset", "quota_ts"), DAY))
    assert [0] == read


def test_admins_lines_are_whole(tmp_path: Path) -> None:
    """Controllers' lines about topics and quotas are found in any group; names are plain."""
    lines = [{"api": api, "is_forwarded": at != 4} for at, api in enumerate(APIS)]
    files = written(tmp_path, *lines)
    for size in (1, 2, 100):
        found = list(admins_rows(files, size))
        assert [1, 3, 6, 1, 3, 6] == offsets(found)
        names = [name for batch in found for name in batch["api"].to_pylist()]
        assert ["CREATE_TOPICS", "49", "20"] * 2 == names
        assert {pa.string()} == {batch.schema.field("api").type for batch in found}
        assert ["dt", *ROWS.names] == found[0].schema.names


@pytest.mark.parametrize(
    ("api", "version", "is_brokers"),
    [
        ("BROKER_HEARTBEAT", 1, True),
        ("ADD_PARTITIONS_TO_TXN", 4, True),
        ("ADD_PARTITIONS_TO_TXN", 3, False),
        ("WRITE_SHARE_GROUP_STATE", 0, True),
        ("READ_SHARE_GROUP_STATE_SUMMARY", 0, True),
        ("SHARE_FETCH", 1, False),
        ("PRODUCE", 12, False),
    ],
)
def test_what_only_brokers_send(
    tmp_path: Path, api: str, version: int, *, is_brokers: bool
) -> None:
    """Brokers check transactions and keep the state of share groups with client-ids of their own.

    Without a login, only these requests tell them from tenants.
    """
    files = written(tmp_path, {"api": api, "api_version": version, "client_id": "x-client-1"})
    found = brokers_clients(rows(files, OF_BROKERS, None))
    names = {name for batch in found for name in batch["client_id"].to_pylist()}
    assert ({"x-client-1"} if is_brokers else set()) == names
