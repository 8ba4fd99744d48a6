"""The days that runs drop, and what stays for readers."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import committed, rows_in, table_of
from tests.usage_pipeline.small_logs import created, deleted, log, metadata
from usage_pipeline.batch.job import Outcome, run
from usage_pipeline.batch.run import Inputs, Options
from usage_pipeline.batch.stages import Stage
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_DISK_FORECAST,
    GOLD_USAGE_1S,
    SILVER_CHANGE,
    SILVER_REQUEST,
    SILVER_VOLUME,
    Table,
)
from usage_pipeline.tables.table_files import TableFile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEEP = timedelta(days=90)
FIRST = date(2026, 8, 22)
"""The first day of silver tables that have 20 November."""
GOLD_FIRST = date(2025, 11, 25)


def made(spark: SparkSession, out: Path, logs: Path, **options: object) -> Outcome:
    return run(
        spark,
        str(out),
        Inputs(RequestLogs(str(logs))),
        Options(NOW, **options),  # type: ignore[arg-type]  # each test names what it sets
        stages=[Stage.SILVER, Stage.USAGE],
    )


def days_in(out: Path, table: Table) -> set[str]:
    return {str(row["dt"]) for row in rows_in(out, table)}


def test_old_days_are_dropped_and_gold_ones_later(spark: SparkSession, tmp_path: Path) -> None:
    """The first day that is kept stays. Who has opened the tables before still reads them."""
    out, before = tmp_path / "tables", FIRST - timedelta(days=1)
    for table, days in (
        (SILVER_VOLUME, (before, FIRST)),
        (GOLD_USAGE_1S, (GOLD_FIRST - timedelta(days=1), GOLD_FIRST, before)),
    ):
        rows = [{"dt": day, "broker": 1} for day in days]
        for cluster in ("eu", "us"):
            committed(out, table, *rows, cluster=cluster)
    reader = pinned(Folder.parse(str(out)))
    log(tmp_path / "logs", 1, metadata("2026-11-20 10:00:00,100"))
    # A clock that is ahead drops nothing.
    committed(out, GOLD_DISK_FORECAST, {"dt": date(2099, 1, 1), "broker": 1}, cluster="eu")
    outcome = made(spark, out, tmp_path / "logs", keep=KEEP, cluster="eu")
    assert {"silver_volume": 1, "gold_usage_1s": 1} == outcome.dropped
    assert (date(2026, 11, 20),) == outcome.days
    ours = [row for row in rows_in(out, SILVER_VOLUME) if row["cluster_id"] == "eu"]
    assert [str(FIRST)] == [row["dt"] for row in ours]
    usage = {row["dt"] for row in rows_in(out, GOLD_USAGE_1S) if row["cluster_id"] == "eu"}
    assert {str(GOLD_FIRST), str(before), "2026-11-20"} == usage
    files = [file for file in reader.files(SILVER_VOLUME) if file.cluster == "eu"]
    assert 2 == sum(table_of(TableFile(reader.folder, SILVER_VOLUME, f)).num_rows for f in files)


def test_topics_are_known_until_they_were_deleted_long_ago(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A live topic stays, whenever it was created; old logs alone drop nothing."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(
        logs / "old",
        1,
        created("2026-01-05 10:00:00,100", "live", 3),
        created("2026-01-05 10:00:01,100", "gone", 5),
        deleted("2026-01-06 10:00:00,100", "gone"),
    )
    made(spark, out, logs / "old")
    assert ["gone", "gone", "live"] == sorted(row["topic"] for row in rows_in(out, DIM_TOPIC))
    committed(out, SILVER_VOLUME, {"dt": date(2026, 1, 4), "broker": 1})
    assert {} == made(spark, out, logs / "old", keep=KEEP).dropped
    assert {"2026-01-05", "2026-01-06"} == days_in(out, SILVER_REQUEST)
    log(logs / "new", 1, created("2026-11-20 10:00:00,100", "new", 1))
    dropped = made(spark, out, logs / "new", keep=KEEP).dropped
    assert {"silver_request": 2, "silver_volume": 1} == dropped
    assert {"2026-11-20"} == days_in(out, SILVER_REQUEST)
    assert ["live", "new"] == sorted(row["topic"] for row in rows_in(out, DIM_TOPIC))
    assert 3 == len(days_in(out, SILVER_CHANGE))
