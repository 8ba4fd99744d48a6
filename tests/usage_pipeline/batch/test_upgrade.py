"""Tables of the version before, in ``tables/format-2.tar.gz``: two clusters of a few hundred rows.

The program wrote them before silver_change had days, and before gold_replay had amounts.
"""

import shutil
import tarfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sidecar.cli import group
from tests.usage_pipeline.build import committed, rows_in
from tests.usage_pipeline.small_logs import created, log
from usage_pipeline.batch.job import run
from usage_pipeline.batch.run import Inputs, Options
from usage_pipeline.batch.stages import Stage
from usage_pipeline.batch.upgrade import upgrade
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.tables import delta
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.delta import OtherFormatError
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_COST,
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    SILVER_CHANGE,
    SILVER_REQUEST,
    TABLES,
    Table,
)

NOW = datetime(2026, 1, 6, tzinfo=UTC)
ROWS = {
    "silver_request": 686,
    "silver_change": 328,
    "quarantine": 0,
    "silver_quota_config": 2,
    "dim_topic": 280,
    "silver_volume": 48,
    "gold_usage_1s": 694,
    "gold_replay": 105,
    "gold_recommendation": 25,
    "gold_disk_forecast": 2,
    "gold_cost": 0,
}
"""The version before had no gold_cost."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with the tables."""
    with tarfile.open(Path(__file__).parents[1] / "tables" / "format-2.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "tables"


def lines_of(out: Path, table: Table) -> Counter[tuple[Any, ...]]:
    """The lines that rows are about: the cluster, the file and the offset."""
    return Counter(
        (row["cluster_id"], row["src_file"], row["src_offset"]) for row in rows_in(out, table)
    )


def command(*words: str) -> tuple[int, str]:
    """The exit code and the output of a command."""
    done = CliRunner().invoke(group, ["pipeline", *words])
    return done.exit_code, done.output


@pytest.mark.slow
def test_readers_need_no_upgrade(out: Path) -> None:
    """The report and other engines read each table; columns that were added since are null."""
    assert 0 == command("report", "--out", str(out))[0]
    assert (out / "report-eu.html").stat().st_size > 50_000
    names = [name for name in ROWS if name != GOLD_COST.name]
    assert len(set(DeltaTable(f"{out}/silver_change").file_uris())) == 2
    code, files = command("files", *names, "--out", str(out))
    assert (0, True) == (code, f"{out}/silver_change/cluster_id=eu/part-" in files)
    for table in TABLES:
        if table != SILVER_CHANGE:
            assert ROWS[table.name] == len(rows_in(out, table)), table.name
    assert {None} == {row["amount"] for row in rows_in(out, GOLD_REPLAY)}
    assert {None} == {row["throttle_ms_max"] for row in rows_in(out, GOLD_RECOMMENDATION)}


def test_runs_name_the_upgrade(out: Path) -> None:
    """They are refused before Spark starts."""
    code, text = command("recommend", "--out", str(out))
    assert (2, True) == (code, f"`throttle-sidecar pipeline upgrade --out {out}`" in text)


@pytest.mark.slow
def test_an_upgrade_rewrites_without_logs(out: Path) -> None:
    """It has the same rows afterwards, and nothing to do the second time."""
    before = pinned(Folder.parse(str(out)))
    lines = lines_of(out, SILVER_REQUEST)
    code, text = command("upgrade", "--out", str(out))
    now = f"{out} has tables of format 3\n"
    assert (0, f"silver_change: 328 rows rewritten\n{now}") == (code, text)
    assert ROWS == {table.name: len(rows_in(out, table)) for table in TABLES}
    assert lines >= lines_of(out, SILVER_CHANGE)
    assert {"2026-01-04", "2026-01-05"} == {row["dt"] for row in rows_in(out, SILVER_CHANGE)}
    assert all(row["dt"] == str(row["log_ts"].date()) for row in rows_in(out, SILVER_CHANGE))
    # A reader that began before it still has the files.
    assert 2 == len(before.files(SILVER_CHANGE))
    assert (0, now) == command("upgrade", "--out", str(out))


@pytest.mark.slow
def test_an_upgrade_that_is_killed_is_done_again(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed between two clusters; readers have the earlier tables until the next one."""
    made = delta.commit_to
    done: list[object] = []

    def killed(*args: Any) -> DeltaTable:
        if done:
            raise KeyboardInterrupt
        done.append(args)
        return made(*args)

    with monkeypatch.context() as patch:
        patch.setattr(delta, "commit_to", killed)
        with pytest.raises(KeyboardInterrupt):
            upgrade(str(out), NOW)
    assert 2 == pinned(Folder.parse(str(out))).format
    assert ROWS["gold_replay"] == len(rows_in(out, GOLD_REPLAY))
    upgrade(str(out), NOW)
    assert 328 == lines_of(out, SILVER_CHANGE).total()


@pytest.mark.slow
def test_an_upgrade_completes_a_run_of_the_version_before(out: Path) -> None:
    """That run was killed before it committed silver_change and wrote its manifest."""
    shutil.rmtree(out / "silver_change" / "_delta_log")
    (out / "_manifest.json").unlink()
    assert {"silver_change": 328} == upgrade(str(out), NOW)
    assert ROWS == {table.name: len(rows_in(out, table)) for table in TABLES}


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    """So is one with tables of a later version."""
    code, text = command("upgrade", "--out", str(tmp_path / "none"))
    assert (2, True) == (code, "has no tables; name their folder" in text)
    committed(tmp_path, DIM_TOPIC, {"topic": "a"})
    manifest = tmp_path / "_manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 3', '"format": 4'))
    with pytest.raises(OtherFormatError, match="A later version has written them"):
        upgrade(str(tmp_path), NOW)


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_adds_to_upgraded_tables(spark: SparkSession, out: Path, tmp_path: Path) -> None:
    """Topics of both times are known, and the recommendations count old and new replays."""
    upgrade(str(out), NOW)
    log(tmp_path / "logs", 0, created("2026-01-06 10:00:00,100", "new", 3))
    before = set((out / "silver_change").rglob("*.parquet"))
    run(
        spark,
        str(out),
        Inputs(RequestLogs(str(tmp_path / "logs"))),
        Options(NOW + timedelta(days=1), cluster="eu", candidates=2),
        stages=[Stage.SILVER, Stage.USAGE, Stage.REPLAY, Stage.RECOMMEND],
    )
    assert ROWS["silver_request"] + 1 == len(rows_in(out, SILVER_REQUEST))
    assert ROWS["dim_topic"] + 1 == len(rows_in(out, DIM_TOPIC))
    # The run has added its day, and has rewritten no other.
    (added,) = set((out / "silver_change").rglob("*.parquet")) - before
    assert "dt=2026-01-06" in str(added)
    assert 329 == lines_of(out, SILVER_CHANGE).total()
    assert {None, 1, 2} == {row["days"] for row in rows_in(out, GOLD_RECOMMENDATION)}
