"""The tables as a stream."""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tests.usage_pipeline.build import frame_of, rows_in, stored
from tests.usage_pipeline.charged_lines import usage_of
from tests.usage_pipeline.logs import lines, pack, write
from tests.usage_pipeline.parsed_logs import quarantine_of, requests_of, silver_request
from tests.usage_pipeline.small_logs import created, metadata
from usage_pipeline.batch.job import run
from usage_pipeline.batch.run import Inputs, Options, Snapshot
from usage_pipeline.batch.stages import Stage
from usage_pipeline.cli.spark_failures import trouble
from usage_pipeline.ingest.paths import ALL_UTC, Zones
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.streaming.file_source import closed_files, parsed_files
from usage_pipeline.streaming.sink import OtherStreamError
from usage_pipeline.streaming.stream import (
    STREAMED,
    Progress,
    Source,
    StreamError,
    StreamSettings,
    stream,
)
from usage_pipeline.tables import commits
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    UNNAMED,
    Table,
)
from usage_pipeline.tables.store import Store
from usage_pipeline.tables.writers import OtherWriterError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = datetime(2026, 11, 25, tzinfo=UTC)
SUMS = ("amount", "events", "throttled", "throttle_ms")


def streamed(
    spark: SparkSession,
    logs: Path,
    settings: StreamSettings,
    tables: Sequence[Table] = STREAMED,
    *,
    glob: str = "/*/*",
    zones: Zones = ALL_UTC,
) -> list[Progress]:
    """Streams until all is read that is there, a file a batch or so."""
    path = f"{logs}{glob}"
    files = closed_files(spark, path, 60_000)
    cluster = None if settings.cluster == UNNAMED else settings.cluster
    source = Source(files, partial(parsed_files, logs=RequestLogs(path, zones), cluster=cluster))
    reported: list[Progress] = []
    stream(source, tables, settings, reported.append)
    return reported


def rows(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


def summed(usage: DataFrame) -> Counter[tuple[Any, ...]]:
    """Returns usage with a row for each second and client, as a batch has it."""
    keys = [name for name in GOLD_USAGE_1S.names if name not in (*SUMS, "lower_bound")]
    sums = [sql.sum(name).alias(name) for name in SUMS]
    found = usage.groupBy(*keys).agg(*sums, sql.max("lower_bound").alias("lower_bound"))
    return rows(GOLD_USAGE_1S.select(found))


def test_a_folder_is_all_that_is_below_it(spark: SparkSession, tmp_path: Path) -> None:
    """A batch run treats a folder the same way."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    write(logs, 1, "a", lines(20))
    write(logs, 2, "day/b", lines(30))
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    streamed(spark, logs, settings, [SILVER_REQUEST], glob="")
    assert {1: 20, 2: 30} == Counter(int(row["broker"]) for row in rows_in(out, SILVER_REQUEST))


def test_a_file_is_taken_once_whatever_its_name_is(spark: SparkSession, tmp_path: Path) -> None:
    """A file may be beside its own gzip, appear again, compressed or not, or be old."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    packed = pack(write(logs, 1, "a", lines(20)))
    write(logs, 1, "a", lines(20))
    write(logs, 2, "a", lines(20) + b"torn\n")
    taken = streamed(spark, logs, settings, [SILVER_REQUEST])
    assert (3, 1, 1) == tuple(
        sum(getattr(each, name) for each in taken) for name in ("rows", "resent", "unread")
    )
    write(logs, 1, "b", lines(20))
    packed.rename(packed.with_name("kafka-request.log.c.gz"))
    old = write(logs, 1, "d", lines(10, first=20))
    os.utime(old, (old.stat().st_mtime - 86_400 * 300,) * 2)
    again = streamed(spark, logs, settings, [SILVER_REQUEST])
    assert (3, 2) == (sum(each.rows for each in again), sum(each.resent for each in again))
    found = Counter(int(row["broker"]) for row in rows_in(out, SILVER_REQUEST))
    assert {1: 30, 2: 20} == found


def test_a_file_of_the_second_pass_of_the_doubled_hour(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's list of files states when each was changed, which decides the pass of its lines."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    put_back = datetime(2026, 10, 25, 1, tzinfo=UTC)
    for broker, before in ((1, timedelta()), (2, timedelta(hours=1))):
        file = write(logs, broker, "a", metadata("2026-10-25 02:30:00,000").encode())
        changed = put_back - before + timedelta(minutes=31)
        os.utime(file, (changed.timestamp(),) * 2)
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    zones = Zones("Europe/Berlin")
    streamed(spark, logs, settings, [SILVER_REQUEST], zones=zones)
    found = {int(row["broker"]): row["log_ts"] for row in rows_in(out, SILVER_REQUEST)}
    half_past = put_back + timedelta(minutes=30)
    assert {1: half_past, 2: half_past - timedelta(hours=1)} == found
    batch = requests_of(spark, RequestLogs(f"{logs}/*/*", zones))
    assert rows(silver_request(batch)) == rows(
        Store(spark, pinned(Folder.parse(str(out)))).read(SILVER_REQUEST)
    )


def test_a_file_that_had_not_been_closed_is_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    """The path should not match it. When it is complete, compressed or not, its lines are read."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    for broker in (1, 2):
        write(logs, broker, "growing", lines(20))
    streamed(spark, logs, settings, [SILVER_REQUEST])
    write(logs, 1, "a", lines(30))
    pack(write(logs, 2, "a", lines(30)))
    streamed(spark, logs, settings, [SILVER_REQUEST])
    found = {(int(row["broker"]), row["src_offset"]) for row in rows_in(out, SILVER_REQUEST)}
    assert 60 == len(found)


def test_a_stream_that_is_killed_equals_the_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed after it has committed one table of its second batch, and then resumes."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    write(logs, 1, "a", lines(200))
    write(logs, 2, "a", lines(20, step_ms=1_000, user="bob") + b"torn\n")
    write(logs, 1, "b", lines(200, first=200))
    append, appended = commits.append, 0

    def killed(*args: Any) -> bool:
        nonlocal appended
        appended += 1
        if appended == 5:
            raise RuntimeError("killed")
        return append(*args)

    monkeypatch.setattr("usage_pipeline.streaming.sink.append", killed)
    with pytest.raises(StreamError):
        streamed(spark, logs, settings)
    monkeypatch.undo()
    # Lines that are older than all that was read are not too late.
    pack(write(logs, 2, "b", lines(20, from_ms=-3_600_000, user="carol")))
    assert 3 == sum(progress.rows for progress in streamed(spark, logs, settings))
    assert 0 == sum(progress.rows for progress in streamed(spark, logs, settings))

    tables, asked = Store(spark, pinned(Folder.parse(str(out)))), RequestLogs(f"{logs}/*/*")
    batch = silver_request(requests_of(spark, asked))
    assert 440 == batch.count()
    assert rows(batch) == rows(tables.read(SILVER_REQUEST))
    usage = frame_of(spark, GOLD_USAGE_1S, *usage_of(asked))
    assert summed(usage) == summed(tables.read(GOLD_USAGE_1S))
    assert rows(quarantine_of(spark, asked)) == rows(tables.read(QUARANTINE))

    anew = StreamSettings(str(out), f"{tmp_path}/other", until_read=True)
    with pytest.raises(OtherStreamError):
        streamed(spark, logs, anew)


@pytest.mark.slow
def test_batch_runs_continue_from_what_a_stream_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """They read its newest requests, and never write its tables; it goes on after them."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    settings = StreamSettings(str(out), f"{tmp_path}/checkpoint", until_read=True)

    def replayed() -> dict[str, int]:
        inputs, options = Inputs(quotas=Snapshot({}, NOW)), Options(NOW, candidates=2)
        run(spark, str(out), inputs, options, stages=[Stage.SILVER, Stage.REPLAY, Stage.RECOMMEND])
        rows = stored(spark, out, GOLD_REPLAY)
        users = {row.entity for row in stored(spark, out, GOLD_RECOMMENDATION)}
        assert users == {row.shared_by for row in rows}
        return {
            row.shared_by: row.events
            for row in rows
            if (row.quota_type, row.scenario) == ("request", "in force")
        }

    write(logs, 1, "a", lines(200, user="alice"))
    streamed(spark, logs, settings)
    assert {"user=alice": 200} == replayed()
    write(logs, 1, "b", lines(100, user="bob") + lines(100, user="alice"))
    streamed(spark, logs, settings)
    assert {"user=alice": 300, "user=bob": 100} == replayed()
    for stages in ([Stage.USAGE], [Stage.SILVER]):
        with pytest.raises(OtherWriterError, match="pipeline stream"):
            run(spark, str(out), Inputs(RequestLogs(str(logs))), Options(NOW), stages=stages)


@pytest.mark.slow
def test_changes_are_read_although_a_clock_was_ahead(spark: SparkSession, tmp_path: Path) -> None:
    """A run continues from the newest day of silver_change that is not in the future."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    settings = StreamSettings(str(out), f"{tmp_path}/checkpoint", until_read=True)
    for name, days in (("a", ("2026-11-24", "2027-05-01")), ("b", ("2026-11-25",))):
        texts = [created(f"{day} 00:00:00,000", day, 1) for day in days]
        write(logs, 1, name, "".join(texts).encode())
        streamed(spark, logs, settings, [SILVER_REQUEST])
        run(spark, str(out), Inputs(quotas=Snapshot({}, NOW)), Options(NOW), stages=[Stage.SILVER])
    topics = {row["topic"] for row in rows_in(out, DIM_TOPIC)}
    assert {"2026-11-24", "2026-11-25", "2027-05-01"} == topics


def test_only_the_tables_that_are_asked_for_are_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The next start compacts small files."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    for name in "abc":
        write(logs, 1, name, lines(400, user=name))
        streamed(spark, logs, settings, [GOLD_USAGE_1S])
    tables = pinned(Folder.parse(str(out)))
    assert {"gold_usage_1s"} == set(tables.versions)
    assert 2 >= len(tables.files(GOLD_USAGE_1S))
    usage = Store(spark, tables).read(GOLD_USAGE_1S).where("quota_type = 'produce'")
    events = {
        row["user"]: row["n"]
        for row in usage.groupBy("user").agg(sql.sum("events").alias("n")).collect()
    }
    assert dict.fromkeys("abc", 400) == events


def test_a_file_whose_broker_is_unknown_ends_the_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its path, and how to name its broker, are what the command says (``spark_failures``)."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    (logs / "nobody").mkdir(parents=True)
    (logs / "nobody" / "a.log").write_bytes(lines(1))
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    with pytest.raises(StreamError) as ended:
        streamed(spark, logs, settings)
    assert (
        "nobody/a.log: the path does not name the broker"
        in trouble(str(ended.value.__cause__)).cause
    )


def test_a_stream_is_of_one_cluster(spark: SparkSession, tmp_path: Path) -> None:
    """Other clusters' files are left out. A stream without a name ends at a path with one."""
    logs, out = tmp_path / "logs", tmp_path / "live"
    for cluster, count in (("cluster_id=eu", 3), ("cluster_id=us", 5), ("broker-1", 7)):
        (logs / cluster).mkdir(parents=True)
        (logs / cluster / "broker-1.log.a").write_bytes(lines(count, user=cluster))
    settings = StreamSettings(str(out), f"{out}/_checkpoint", until_read=True)
    with pytest.raises(StreamError) as ended:
        streamed(spark, logs, settings)
    assert "a stream reads one cluster: name it with" in trouble(str(ended.value.__cause__)).cause
    shutil.rmtree(out)
    of_eu = replace(settings, cluster="eu")
    streamed(spark, logs, of_eu)
    assert {("eu", "cluster_id=eu"): 3, ("eu", "broker-1"): 7} == Counter(
        (row["cluster_id"], row["user"]) for row in rows_in(out, SILVER_REQUEST)
    )
    assert {"eu"} == {row["cluster_id"] for row in rows_in(out, GOLD_USAGE_1S)}
