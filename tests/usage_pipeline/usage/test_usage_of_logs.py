"""Usage straight from request logs, against what the daemon's rules make of each line."""

import gzip
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.sidecar.requestlog.lines import BY_HAND, REAL
from tests.usage_pipeline.build import rows_in, stored
from tests.usage_pipeline.charged_lines import in_order, usage_of
from tests.usage_pipeline.parsed_logs import quarantine_of, requests_of
from tests.usage_pipeline.small_logs import log, metadata
from usage_pipeline.batch.job import Outcome, run
from usage_pipeline.batch.run import Inputs, InputsError, Options
from usage_pipeline.batch.stages import Stage
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE, QUOTA_TYPES, UNNAMED
from usage_pipeline.tables.store import FewerRowsError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def made(spark: SparkSession, out: Path, logs: Path, **options: object) -> Outcome:
    source = RequestLogs(str(logs), split_bytes=400_000)
    asked = Options(NOW, **options)  # type: ignore[arg-type]  # each test names what it sets
    return run(spark, str(out), Inputs(source), asked, stages=[Stage.USAGE])


def test_it_is_what_lines_are_charged_with(spark: SparkSession, tmp_path: Path) -> None:
    """Logs cross midnight, with parts, gzip, lines of every API and unreadable lines."""
    logs = tmp_path / "request-logs"
    begin = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
    write_sample(tmp_path, Sample(size_bytes=2_000_000, brokers=2, hours=1, start=begin))
    (logs / "broker-7").mkdir()
    (logs / "broker-7" / "by-hand.log").write_bytes(b"\n".join((*BY_HAND, b"torn\n")))
    (logs / "broker-7" / "real.log.gz").write_bytes(gzip.compress(b"\n".join(REAL)))
    requests = requests_of(spark, RequestLogs(str(logs)))
    expected = usage_of(RequestLogs(str(logs)))
    assert set(QUOTA_TYPES) == {row["quota_type"] for row in expected}
    rejected = quarantine_of(spark, RequestLogs(str(logs)))
    out = tmp_path / "tables"
    outcome = made(spark, out, logs)
    found = [{**row, "dt": date.fromisoformat(row["dt"])} for row in rows_in(out, GOLD_USAGE_1S)]
    assert {UNNAMED} == {row.pop("cluster_id") for row in found}
    assert expected == in_order(found)
    assert sorted(rejected.collect(), key=str) == stored(spark, out, QUARANTINE)
    assert 1 == outcome.quarantined
    assert outcome.rows == {"gold_usage_1s": len(expected), "quarantine": 1}
    unknown = "not bytes_known or not mutations_known"
    assert 0 < outcome.unknown == requests.where(unknown).count()


def test_a_day_is_replaced_by_logs_of_that_day_alone(spark: SparkSession, tmp_path: Path) -> None:
    """The next day's first lines don't replace it, and fewer rows do so only on request."""
    out, before, after = tmp_path / "tables", tmp_path / "20", tmp_path / "21"
    day, sliver = date(2026, 11, 20), date(2026, 11, 21)
    late = metadata("2026-11-21 00:00:00,020", send_ms=30.0)
    log(before, 1, metadata("2026-11-20 10:00:00,100"), metadata("2026-11-20 10:00:01,100"))
    log(after, 1, late, metadata("2026-11-21 10:00:00,100"))
    assert (day, sliver) == made(spark, tmp_path / "other", after).days
    assert (day,) == made(spark, out, before).days
    of_day = stored(spark, out, GOLD_USAGE_1S)
    assert (sliver,) == made(spark, out, after).days
    both = stored(spark, out, GOLD_USAGE_1S)
    assert of_day == [row for row in both if row.dt == day]
    assert 1 == len(both) - len(of_day)
    assert both == sorted((*of_day, *stored(spark, tmp_path / "other", GOLD_USAGE_1S)[1:]), key=str)

    log(before, 1, metadata("2026-11-20 10:00:00,100"))
    with pytest.raises(FewerRowsError, match="2026-11-20 has 2 rows and would have 1"):
        made(spark, out, before)
    assert both == stored(spark, out, GOLD_USAGE_1S)
    made(spark, out, before, allow_fewer=True)
    assert 2 == len(stored(spark, out, GOLD_USAGE_1S))


def test_the_time_that_is_asked_for_is_that_of_charges(spark: SparkSession, tmp_path: Path) -> None:
    """A day is whole although its last requests were answered after it."""
    logs, midnight = tmp_path / "logs", datetime(2026, 11, 21, tzinfo=UTC)
    late = metadata("2026-11-21 00:00:00,020", send_ms=30.0)
    log(logs, 1, metadata("2026-11-20 10:00:00,100"), late, metadata("2026-11-21 10:00:00,100"))
    out = tmp_path / "until"
    assert (date(2026, 11, 20),) == made(spark, out, logs, until=midnight).days
    assert 2 == len(stored(spark, out, GOLD_USAGE_1S))
    made(spark, out, logs, since=midnight)
    assert 3 == len(stored(spark, out, GOLD_USAGE_1S))
    with pytest.raises(InputsError, match="and none of the requested time"):
        made(spark, tmp_path / "none", logs, since=NOW)
