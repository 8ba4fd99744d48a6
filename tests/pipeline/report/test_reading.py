"""The tables' files as rows for the page."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sidecar.pipeline.report import ReportError
from sidecar.pipeline.report.reading import read_tables
from sidecar.pipeline.tables.schemas import GOLD_REPLAY, GOLD_USAGE_1S, QUARANTINE
from tests.pipeline.build import committed

START = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)


def write_usage(out: Path, seconds: int) -> None:
    """Writes a row a second."""
    moments = [START + timedelta(seconds=second) for second in range(seconds)]
    rows = [
        {
            "dt": moment.date(),
            "broker": 0,
            "user": "alice",
            "client_id": "",
            "quota_type": "produce",
            "window_start": moment,
            "amount": 1.5,
            "events": 2,
            "throttled": 1,
            "throttle_ms": 10,
            "lower_bound": moment == START,
        }
        for moment in moments
    ]
    committed(out, GOLD_USAGE_1S, *rows)


def test_usage_is_summed_up(tmp_path: Path) -> None:
    """An hour over midnight is read as windows of 10 s; sums stay, one lower bound is enough."""
    write_usage(tmp_path, 3600)
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
    day = date(2026, 1, 5)
    committed(tmp_path, GOLD_REPLAY, {"dt": day, "broker": 3})
    (row,) = read_tables(str(tmp_path))["gold_replay"]
    assert (day, 3, None) == (row["dt"], row["broker"], row["quota"])


def test_what_was_replaced_is_not_read(tmp_path: Path) -> None:
    """Its files are still there, for who has pinned them."""
    day = date(2026, 1, 5)
    for run in ("first", "second"):
        committed(tmp_path, GOLD_REPLAY, {"dt": day, "entity": run}, run=run)
    assert ["second"] == [row["entity"] for row in read_tables(str(tmp_path))["gold_replay"]]


def test_no_tables_are_refused(tmp_path: Path) -> None:
    """The message has the command that makes them; an empty table counts as none."""
    with pytest.raises(ReportError, match="pipeline run"):
        read_tables(str(tmp_path))
    committed(tmp_path, QUARANTINE)
    assert {"quarantine": []} == read_tables(str(tmp_path))


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    """There is no traceback."""
    committed(tmp_path, GOLD_REPLAY, {"dt": date(2026, 1, 5)})
    for file in (tmp_path / "gold_replay").rglob("*.parquet"):
        file.write_bytes(b"no Parquet at all")
    with pytest.raises(ReportError, match="can't be read"):
        read_tables(str(tmp_path))
