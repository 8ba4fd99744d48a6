"""What is refused before Spark starts."""

import os
import socket
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sidecar.errors import SettingsError
from tests.usage_pipeline.build import committed
from usage_pipeline.cli.before_spark import (
    NotThereError,
    check_batch,
    check_master,
    check_stream,
    check_tables,
    check_volumes,
)
from usage_pipeline.cli.job_options import JobOptions
from usage_pipeline.tables.delta import OtherFormatError
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import BATCH, STREAM, LockedError, leased
from usage_pipeline.tables.schemas import GOLD_REPLAY, GOLD_USAGE_1S, SILVER_REQUEST
from usage_pipeline.tables.writers import OtherWriterError


@pytest.fixture(autouse=True)
def this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "MASTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "master",
    [
        None,
        "local",
        "local[*]",
        "local[4]",
        "local[2, 3]",
        "yarn",
        "k8s://x",
    ],
)
def test_masters_are_sparks(master: str | None) -> None:
    """All forms that Spark knows are accepted."""
    check_master(master)


@pytest.mark.parametrize("master", ["", "local[0]", "local[", "local4", "spark://", "host:7077"])
def test_what_is_no_master_is_refused(master: str) -> None:
    """Spark takes ten seconds to say so."""
    with pytest.raises(SettingsError, match="use local"):
        check_master(master)


def test_a_master_that_is_not_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is up of several is enough; Spark's own variable may name it too."""
    with socket.create_server(("127.0.0.1", 0)) as up, socket.socket() as down:
        down.bind(("127.0.0.1", 0))
        here, nowhere = (f"127.0.0.1:{each.getsockname()[1]}" for each in (up, down))
        check_master(f"spark://{nowhere},{here}")
        monkeypatch.setenv("MASTER", f"spark://{nowhere}")
        for master in (f"spark://{nowhere}", "spark://127.0.0.1", None):
            with pytest.raises(NotThereError, match="no Spark master answers at spark://127"):
                check_master(master)


@pytest.mark.parametrize("folder", ["file", "file/tables"])
def test_a_folder_that_cannot_be_is_refused(folder: str, tmp_path: Path) -> None:
    """It or one above it is a file."""
    (tmp_path / "file").touch()
    for check in (check_batch, check_stream):
        with pytest.raises(SettingsError, match="/file is a file; name a folder"):
            check(str(tmp_path / folder))


def test_a_folder_that_cannot_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system judges the nearest folder that exists: root may write nearly everywhere."""
    asked: list[Path] = []

    def refused(path: Path, _: int) -> bool:
        asked.append(path)
        return False

    monkeypatch.setattr(os, "access", refused)
    for check in (check_batch, check_stream):
        with pytest.raises(SettingsError, match="is not writable; name another"):
            check(str(tmp_path / "a" / "tables"))
    assert [tmp_path] * 2 == asked


@pytest.mark.slow
def test_a_folder_that_another_run_writes_to_is_refused(tmp_path: Path) -> None:
    """A stream's writer does not keep a run from other tables, nor the other way round."""
    folder = Folder.parse(str(tmp_path))
    checks = {BATCH: check_batch, STREAM: check_stream}
    for name, refused, free in ((BATCH, BATCH, STREAM), (STREAM, STREAM, BATCH)):
        with leased(folder, "process 7", renewed_s=0.1, name=name):
            with pytest.raises(LockedError, match="process 7"):
                checks[refused](str(tmp_path))
            checks[free](str(tmp_path))


def test_a_stream_and_batch_runs_refuse_the_others_tables(tmp_path: Path) -> None:
    """Runs may write other tables beside those of a stream."""
    live, tables = tmp_path / "live", tmp_path / "tables"
    Folder.parse(str(live)).create("_streams/silver_request", b"id")
    committed(tables, GOLD_REPLAY)
    for stages, reads_logs in ((["silver"], True), (["replay"], True)):
        with pytest.raises(OtherWriterError):
            check_batch(f"file://{live}", stages, reads_logs=reads_logs)
    check_batch(f"file://{live}", ["silver", "usage", "replay", "recommend"])
    with pytest.raises(OtherWriterError):
        check_stream(str(tables))
    check_batch(str(tables))
    check_stream(str(live))


def test_tables_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    """The message says how to make them again."""
    (tmp_path / "silver_request" / "dt=2026-11-20").mkdir(parents=True)
    for check in (check_batch, check_stream):
        with pytest.raises(OtherFormatError, match="pipeline run --request-logs"):
            check(str(tmp_path))


DAY = date(2026, 11, 20)


def test_a_stage_wants_the_tables_before_it(tmp_path: Path) -> None:
    """Candidates are chosen by usage; a run that reads logs makes what it wants."""
    out = str(tmp_path)
    committed(tmp_path, SILVER_REQUEST, {"dt": DAY, "broker": 1})
    check_tables(JobOptions(out), ["usage"])
    check_tables(JobOptions(out), ["replay"], candidates=0)
    with pytest.raises(NotThereError, match=r"no table gold_usage_1s; .*or use `--candidates 0`"):
        check_tables(JobOptions(out), ["replay"], candidates=2)
    committed(tmp_path, GOLD_USAGE_1S, {"dt": DAY})
    check_tables(JobOptions(out), ["replay"], candidates=2)
    with pytest.raises(NotThereError, match="no table gold_replay"):
        check_tables(JobOptions(out), ["recommend"])
    check_tables(JobOptions(out), ["silver", "usage", "replay", "recommend", "forecast"])


def test_what_a_killed_run_has_decided_is_left_to_the_job(tmp_path: Path) -> None:
    """The next command finishes it, also where it was the first run of all."""
    committed(tmp_path, SILVER_REQUEST, {"dt": DAY, "broker": 1})
    (tmp_path / "_manifest.json").unlink()
    check_tables(JobOptions(str(tmp_path)), ["usage"])
    (tmp_path / "_commits" / "00000000000000000001.json").unlink()
    with pytest.raises(NotThereError, match="there are no requests in the tables"):
        check_tables(JobOptions(str(tmp_path)), ["usage"])


def test_missing_days_are_reported_with_the_days_that_exist(tmp_path: Path) -> None:
    """The message does not say that there are no tables."""
    days = (DAY, DAY + timedelta(days=1))
    committed(tmp_path, SILVER_REQUEST, *({"dt": day, "broker": 1} for day in days))
    since = datetime(2026, 11, 22, tzinfo=UTC)
    with pytest.raises(NotThereError, match="requests of 2026-11-20 to 2026-11-21, but none of"):
        check_tables(JobOptions(str(tmp_path), since=since), ["usage"])


def test_a_volume_history_is_found(tmp_path: Path) -> None:
    """A file, a folder or a glob is found; hidden files do not count."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "_torn").touch()
    for path in (tmp_path / "a", tmp_path / "b", tmp_path / "*.jsonl"):
        with pytest.raises(NotThereError, match="has no volume history; name its folder"):
            check_volumes(str(path))
    (tmp_path / "v.jsonl").touch()
    for path in (tmp_path, tmp_path / "v.jsonl", tmp_path / "*.jsonl"):
        check_volumes(str(path))
