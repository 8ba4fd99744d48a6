"""The batch job: what it makes of logs, and what it leaves of tables when it fails."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import stored
from tests.usage_pipeline.logs import pack
from tests.usage_pipeline.small_logs import created, history, log, metadata
from usage_pipeline.batch.job import Outcome, run
from usage_pipeline.batch.run import Inputs, InputsError, Options
from usage_pipeline.batch.stages import Stage
from usage_pipeline.ingest.paths import RequestLogsError
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.scenarios import scenario
from usage_pipeline.silver.volume_table import LINES
from usage_pipeline.tables import store
from usage_pipeline.tables.commits import pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import LockedError, leased
from usage_pipeline.tables.parquet_files import Target, merged
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_DISK_FORECAST,
    GOLD_RECOMMENDATION,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_CHANGE,
    SILVER_REQUEST,
    SILVER_VOLUME,
)
from usage_pipeline.tables.store import FewerRowsError
from usage_pipeline.tables.table_files import Written
from usage_pipeline.tables.writers import OtherWriterError

# Whole runs of the job, several in a test: a minute on a machine that does other things too.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

FEW = 4
"""Files of a day, and of a broker, that may be small."""
NOW = datetime(2026, 11, 22, tzinfo=UTC)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
STAGES = (Stage.SILVER, Stage.USAGE)
TABLES = (SILVER_REQUEST, SILVER_CHANGE, QUARANTINE, DIM_TOPIC, GOLD_USAGE_1S)


def made(
    spark: SparkSession, out: Path, logs: Path, stages: Sequence[Stage] = STAGES, **options: object
) -> Outcome:
    return run(
        spark,
        str(out),
        Inputs(RequestLogs(str(logs))),
        Options(NOW, **options),  # type: ignore[arg-type]  # each test names what it sets
        stages=stages,
    )


def test_a_day_is_made_again_and_never_doubled(spark: SparkSession, tmp_path: Path) -> None:
    """The same rows come twice; later days are added, with what was charged before midnight.

    Lines that can't be read are reported with their place; those of other files are retained.
    """
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(
        logs / "20",
        1,
        metadata("2026-11-20 10:00:00,100"),
        "torn\n",
        metadata("2026-11-20 10:00:00,200"),
    )
    log(logs / "20", 2, metadata("2026-11-20 23:59:59,900"))
    first = made(spark, out, logs / "20")
    before = {table: stored(spark, out, table) for table in TABLES}
    assert (3, 1, 2) == (first.rows["silver_request"], first.quarantined, first.files)
    assert {1: 1, 2: 1} == {name.broker: files for name, files in first.brokers.items()}
    assert first == made(spark, out, logs / "20")
    # A run caches rows that it reads several times.
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
    assert before == {table: stored(spark, out, table) for table in TABLES}

    log(logs / "21", 2, metadata("2026-11-21 00:00:00,020", send_ms=30.0), "bad\n")
    second = made(spark, out, logs / "21")
    assert (date(2026, 11, 20), date(2026, 11, 21)) == second.days
    quarantined = stored(spark, out, QUARANTINE)
    assert ["20", "21"] == [Path(each.src_file).parts[-3] for each in quarantined]
    assert 4 == len(stored(spark, out, SILVER_REQUEST))
    assert {(20, 1, 36000): 2, (20, 2, 86399): 2} == {
        (each.dt.day, each.broker, int(each.window_start.timestamp()) % 86400): each.events
        for each in stored(spark, out, GOLD_USAGE_1S)
    }


def test_a_line_of_a_log_that_is_packed_is_in_the_quarantine_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rotation packs a log between two runs that read it."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, metadata("2026-11-20 10:00:00,100"), "torn\n")
    made(spark, out, logs)
    packed = pack(logs / "broker-1" / "kafka-request.log")
    made(spark, out, logs)
    assert [str(packed)] == [each.src_file for each in stored(spark, out, QUARANTINE)]


def most_of_a_folder(files: Iterable[Written]) -> int:
    """Returns the largest number of files for a day, or for a day and a broker."""
    return max(Counter(file.values for file in files).values(), default=0)


def test_a_day_that_many_tasks_write_is_in_few_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a year would be tens of thousands of files, and each costs time to read."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    lines = [
        text
        for number in range(160)
        for text in (
            metadata(f"2026-11-20 10:00:{number % 60:02},100", f"etl-{number}"),
            created(f"2026-11-20 11:00:{number % 60:02},100", f"t{number}", 1),
            "torn\n",
        )
    ]
    log(logs, 1, *lines)
    by_tasks: Counter[str] = Counter()

    def of_many_tasks(
        spark: SparkSession, targets: Sequence[tuple[Target, Sequence[Written]]]
    ) -> list[list[Written]]:
        for target, files in targets:
            by_tasks[target.table.name] = most_of_a_folder(files)
        return merged(spark, targets)

    monkeypatch.setattr(store, "merged", of_many_tasks)
    inputs = Inputs(RequestLogs(str(logs), split_bytes=4_000))
    run(spark, str(out), inputs, Options(NOW), stages=STAGES)
    tables = pinned(Folder.parse(str(out)))
    for table in (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE):
        assert by_tasks[table.name] > FEW, table.name
        files = tables.files(table)
        assert most_of_a_folder(files) <= FEW, table.name
        there = (out / table.name).rglob("*.parquet")
        assert {file.path for file in files} == {
            str(path.relative_to(out / table.name)) for path in there
        }
    assert 320 == sum(file.rows for file in tables.files(SILVER_REQUEST))


def test_days_that_are_not_replaced_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """Topics are known from every day; the requests of earlier ones may be a year of logs."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs / "20", 1, created("2026-11-20 10:00:00,100", "a", 3))
    made(spark, out, logs / "20", [Stage.SILVER])
    for file in (out / SILVER_REQUEST.name).rglob("*.parquet"):
        file.write_bytes(b"not to be read")
    log(logs / "21", 1, created("2026-11-21 10:00:00,100", "b", 5))
    made(spark, out, logs / "21", [Stage.SILVER])
    assert [("a", 3), ("b", 5)] == [
        (each.topic, each.partitions) for each in stored(spark, out, DIM_TOPIC)
    ]
    assert 2 == len(stored(spark, out, SILVER_CHANGE))


def test_a_log_that_is_rotated_once_the_run_has_begun(spark: SparkSession, tmp_path: Path) -> None:
    """It is read under its new name, and the new file is the next run's."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, metadata("2026-11-20 10:00:00,100"), metadata("2026-11-20 10:00:00,200"))

    def rotate(_: Stage) -> None:
        live = logs / "broker-1/kafka-request.log"
        live.rename(live.with_name("kafka-request.log.2026-11-20-10"))
        log(logs, 1, *(metadata(f"2026-11-20 11:00:0{second},300") for second in range(3)))

    inputs = Inputs(RequestLogs(str(logs)))
    run(spark, str(out), inputs, Options(NOW), stages=[Stage.SILVER], report=rotate)
    assert [10, 10] == [each.log_ts.hour for each in stored(spark, out, SILVER_REQUEST)]


def test_what_fails_leaves_the_last_good_tables(spark: SparkSession, tmp_path: Path) -> None:
    """A job dies halfway, a day would lose rows, a second run starts, or there are no files."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, metadata("2026-11-20 10:00:00,100"), metadata("2026-11-20 10:00:01,100"))
    made(spark, out, logs)
    before = {table: stored(spark, out, table) for table in TABLES}

    def die(stage: Stage) -> None:
        if stage is Stage.USAGE:
            raise KeyboardInterrupt

    log(logs, 1, *(metadata(f"2026-11-20 10:00:0{second},100") for second in range(5)))
    with pytest.raises(KeyboardInterrupt):
        run(
            spark, str(out), Inputs(RequestLogs(str(logs))), Options(NOW), stages=STAGES, report=die
        )
    with pytest.raises(RequestLogsError, match="there are no files"):
        made(spark, out, tmp_path / "none")
    folder = Folder.parse(str(out))
    with (
        leased(folder, "process 1", renewed_s=0.1),
        pytest.raises(LockedError, match="process 1"),
    ):
        made(spark, out, logs)
    folder.create("_streams/gold_usage_1s", b"id")
    with pytest.raises(OtherWriterError):
        made(spark, out, logs)
    folder.remove("_streams/gold_usage_1s")
    (out / "_streams").rmdir()
    log(logs, 1, metadata("2026-11-20 10:00:00,100"))
    with pytest.raises(FewerRowsError, match="2026-11-20 has 2 rows and would have 1"):
        made(spark, out, logs)
    assert before == {table: stored(spark, out, table) for table in TABLES}
    made(spark, out, logs, allow_fewer=True)
    assert 1 == len(stored(spark, out, SILVER_REQUEST))


@pytest.mark.parametrize("stages", [STAGES, [Stage.USAGE]], ids=["silver", "usage of logs"])
def test_more_rows_of_one_part_of_a_day_do_not_conceal_lost_ones(
    spark: SparkSession, tmp_path: Path, stages: Sequence[Stage]
) -> None:
    """Another broker's evening, or the same broker's, has more requests than were lost."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    morning = metadata("2026-11-20 09:00:00,100")
    evening = [metadata(f"2026-11-20 20:00:0{second},100") for second in range(9)]
    log(logs / "noon", 1, morning)
    log(logs / "noon", 2, morning)
    made(spark, out, logs / "noon", stages)
    before = {table: stored(spark, out, table) for table in (SILVER_REQUEST, GOLD_USAGE_1S)}

    log(logs / "one", 1, morning, *evening)
    with pytest.raises(
        FewerRowsError, match=r"broker 2 of 2026-11-20 has \d rows and would have 0"
    ):
        made(spark, out, logs / "one", stages)
    log(logs / "all", 1, morning, *evening)
    log(logs / "all", 2, morning, *evening)
    with pytest.raises(FewerRowsError, match="2026-11-20 has rows outside --since"):
        made(spark, out, logs / "all", stages, since=datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert before == {table: stored(spark, out, table) for table in before}
    made(spark, out, logs / "all", stages, since=datetime(2026, 11, 20, 8, tzinfo=UTC))
    assert len(before[GOLD_USAGE_1S]) < len(stored(spark, out, GOLD_USAGE_1S))


def test_only_what_is_asked_for_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """The time decides; the volume history has its own days. The outcome names replayed tenants."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, *(metadata(f"2026-11-{day} 10:00:00,000") for day in (19, 20, 21)))
    volumes = history(tmp_path / "history", "2026-11-18T10")
    Path(volumes, "volumes-torn.jsonl").write_text('{"torn')
    outcome = run(
        spark,
        str(out),
        Inputs(RequestLogs(str(logs)), volumes),
        Options(
            NOW,
            since=datetime(2026, 11, 20, tzinfo=UTC),
            until=datetime(2026, 11, 21, tzinfo=UTC),
            candidates=0,
            scenarios=(scenario("x2"),),
        ),
        stages=(*STAGES, Stage.REPLAY),
    )
    assert ("request", "user=alice") in outcome.replayed
    assert {LINES: 1} == outcome.volume_faults
    assert [date(2026, 11, 18), date(2026, 11, 20)] == list(outcome.days)
    assert [20] == [each.dt.day for each in stored(spark, out, SILVER_REQUEST)]
    assert [4] == [each.available_bytes for each in stored(spark, out, SILVER_VOLUME)]


@pytest.mark.rare
def test_of_a_year_of_tables_the_days_that_count_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A recommendation uses four half-lives, and replays of 35 days, whatever was asked for.

    A forecast uses its history.
    """
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, *(metadata(f"2026-{day} 10:00:00,000") for day in ("10-15", "10-23", "11-20")))
    volumes = history(tmp_path / "history", "2026-10-15T10", "2026-11-06T10", "2026-11-20T10")
    inputs = Inputs(RequestLogs(str(logs)), volumes)
    tables = (*STAGES, Stage.REPLAY)
    run(spark, str(out), inputs, Options(NOW, candidates=2), stages=tables)

    def recommended(**options: object) -> list[int]:
        made(spark, out, logs, [Stage.RECOMMEND], **options)
        return [each.events for each in stored(spark, out, GOLD_RECOMMENDATION)]

    assert [3] == recommended(terms=Terms(half_life_days=9.0))
    assert [2] == recommended(since=datetime(2026, 11, 20, tzinfo=UTC))
    for file in out.rglob("dt=2026-10-15/**/*.parquet"):
        file.write_bytes(b"not to be read")
    assert [2] == recommended()
    made(spark, out, logs, [Stage.FORECAST])
    [forecast] = stored(spark, out, GOLD_DISK_FORECAST)
    assert (4, date(2026, 11, 20)) == (forecast.available_bytes, forecast.dt)
    assert "more than 24 hours older than the run" in forecast.refused
    made(spark, out, logs, [Stage.FORECAST], as_of=datetime(2026, 11, 20, 10, tzinfo=UTC))
    [forecast] = stored(spark, out, GOLD_DISK_FORECAST)
    assert "there are 2 readings; a forecast needs 12" == forecast.refused


@pytest.mark.slow
def test_a_clock_that_is_ahead_is_not_the_only_evidence(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Lines and readings of the future have rows, and the earlier ones still count."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, *(metadata(f"{day} 10:00:00,000") for day in ("2026-11-20", "2027-05-01")))
    hours = ("2026-11-20T10", "2026-11-22T10", "2026-11-22T14", "2027-05-01T10")
    volumes = history(tmp_path / "history", *hours)
    inputs, options = Inputs(RequestLogs(str(logs)), volumes), Options(NOON, candidates=2)
    stages = (*STAGES, Stage.REPLAY, Stage.RECOMMEND, Stage.FORECAST)
    run(spark, str(out), inputs, options, stages=stages)
    [advice] = stored(spark, out, GOLD_RECOMMENDATION)
    assert (date(2026, 11, 20), 1) == (advice.dt, advice.events)
    [forecast] = stored(spark, out, GOLD_DISK_FORECAST)
    as_of = datetime(2026, 11, 22, 10, tzinfo=UTC).replace(tzinfo=None)
    assert (as_of, 2) == (forecast.as_of, forecast.readings)


@pytest.mark.slow
def test_unread_requests_of_a_log_refuse_recommendations(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of those in the files of the days that count; another logger's lines are no requests."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    stages = (*STAGES, Stage.REPLAY, Stage.RECOMMEND)
    lines = [metadata(f"2026-11-20 10:00:{second:02},100") for second in range(20)]

    def refused(*more: str) -> set[str | None]:
        log(logs, 1, *lines, *more)
        made(spark, out, logs, stages, candidates=2)
        return {each.refused for each in stored(spark, out, GOLD_RECOMMENDATION)}

    torn = lines[0].rstrip("\n")[:-9] + "\n"
    others = ["INFO started\n"] * 20
    assert not any("could not be read" in (each or "") for each in refused(torn, *others))
    [reason] = refused(torn, torn, *others)
    assert reason is not None
    assert reason.startswith("9.09 % of the requests in the logs of broker 1 could not be read")


@pytest.mark.parametrize(
    "entity",
    [
        pytest.param(None, marks=pytest.mark.slow),
        "client-id",
        pytest.param("user,client-id", marks=pytest.mark.slow),
    ],
)
def test_whom_quotas_are_recommended_for(
    spark: SparkSession, tmp_path: Path, entity: str | None
) -> None:
    """Users by default. A log in whole seconds is told from one of milliseconds."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    stages = (*STAGES, Stage.REPLAY, Stage.RECOMMEND)
    log(logs, 1, *(metadata(f"2026-11-20 10:00:{second:02}") for second in range(20)))
    outcome = made(spark, out, logs, stages, candidates=2, entity=entity)
    found = stored(spark, out, GOLD_RECOMMENDATION)
    names = {None: "user=alice", "client-id": "client-id=etl"}
    assert {names.get(entity, "user=alice,client-id=etl")} == {each.entity for each in found}
    assert {True} == {each.whole_seconds for each in found}
    assert entity is None or "--entity" in outcome.entities["request"]


def test_logs_of_another_time_are_refused_with_theirs(spark: SparkSession, tmp_path: Path) -> None:
    """The message says why a log has no request; nothing is written then."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, metadata("2026-11-19 10:00:00,100"), "torn\n", metadata("2026-11-20 10:00:00,200"))
    with pytest.raises(InputsError, match="2026-11-19T10:00:00Z to 2026-11-20T10:00:00Z, and none"):
        made(spark, out, logs, since=datetime(2026, 11, 21, tzinfo=UTC))
    log(logs, 1, "INFO started\n")
    with pytest.raises(InputsError, match=r"no line of a request \(.*request.log: .+\)"):
        made(spark, out, logs)
    assert [] == [path for path in out.rglob("*") if path.is_file()]
