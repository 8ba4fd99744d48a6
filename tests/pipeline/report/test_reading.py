"""The tables' files as rows for the page."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sidecar.pipeline.report import ReportError
from sidecar.pipeline.report.reading import read_tables

START = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)


def write_usage(out: Path, seconds: int) -> None:
    """Writes a row a second as Spark does: a folder for each day."""
    moments = [START + timedelta(seconds=second) for second in range(seconds)]
    for day in sorted({moment.date() for moment in moments}):
        mine = [moment for moment in moments if moment.date() == day]
        count = len(mine)
        columns = {
            "broker": pa.array([0] * count, pa.int32()),
            "user": ["alice"] * count,
            "client_id": [""] * count,
            "quota_type": ["produce"] * count,
            "window_start": pa.array(mine, pa.timestamp("us", "UTC")),
            "amount": [1.5] * count,
            "events": [2] * count,
            "throttled": [1] * count,
            "throttle_ms": [10] * count,
            "lower_bound": [moment == START for moment in mine],
        }
        folder = out / "gold_usage_1s" / f"dt={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / "part-0.parquet")


def test_usage_is_summed_up(tmp_path: Path) -> None:
    """An hour over midnight is read as windows of 10 s; sums stay, one lower bound is enough."""
    write_usage(tmp_path, 3600)
    (tmp_path / "gold_usage_1s" / "_SUCCESS").touch()
    rows = sorted(
        read_tables(str(tmp_path))["gold_usage_1s"], key=lambda row: str(row["window_start"])
    )
    assert 360 == len(rows)
    expected = {
        "broker": 0,
        "user": "alice",
        "client_id": "",
        "quota_type": "produce",
        "window_start": START,
        "amount": 15.0,
        "events": 20,
        "throttled": 10,
        "throttle_ms": 100,
        "lower_bound": True,
    }
    assert expected == rows[0]
    assert [False] * 359 == [row["lower_bound"] for row in rows[1:]]


def test_a_table_has_its_days(tmp_path: Path) -> None:
    """They are in the folders' names, not in the files."""
    folder = tmp_path / "gold_replay" / "dt=2026-01-05"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"broker": [3], "quota": [None]}), folder / "part-0.parquet")
    expected = {"gold_replay": [{"broker": 3, "quota": None, "dt": "2026-01-05"}]}
    assert expected == read_tables(str(tmp_path))


def test_no_tables_are_refused(tmp_path: Path) -> None:
    """The message has the command that makes them; an empty table counts as none."""
    with pytest.raises(ReportError, match="pipeline run"):
        read_tables(str(tmp_path))
    (tmp_path / "gold_usage_1s").mkdir()
    assert {"gold_usage_1s": []} == read_tables(str(tmp_path))


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    """There is no traceback."""
    folder = tmp_path / "gold_replay"
    folder.mkdir()
    (folder / "part-0.parquet").write_bytes(b"no Parquet at all")
    with pytest.raises(ReportError, match="can't be read"):
        read_tables(str(tmp_path))
