"""The evidence of a recommendation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import frame_of, usage_rows, used
from usage_pipeline.recommend.evidence import evidence
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.tables.schemas import SILVER_QUOTA_CONFIG

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.spark
def test_the_broker_with_the_highest_rate_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Charges are those of all brokers, and so are hours, each once."""
    charged = [(0, 1, 30.0), (3600, 1, 50.0), (1, 2, 40.0), (7205, 2, 1.0), (7205, 3, 1.0)]
    rows = [
        used(
            START + timedelta(seconds=second),
            broker=broker,
            amount=amount,
            events=10,
            throttled=broker,
        )
        for second, broker, amount in charged
    ]
    usage = usage_rows(spark, tmp_path, rows)
    [alice] = evidence(usage, frame_of(spark, SILVER_QUOTA_CONFIG), Terms(percentile=0.0)).collect()
    assert (3.0, 5.0, 50, 9, 3) == (
        *(alice.percentile_rate, alice.peak_seen, alice.events, alice.throttled, alice.hours),
    )
    assert int((START + timedelta(seconds=7205)).timestamp()) == alice.newest


@pytest.mark.spark
def test_old_rates_count_less(spark: SparkSession, tmp_path: Path) -> None:
    """After seven half-lives a peak has no weight; the time between counts as not covered."""
    seconds = [
        *((second - 7 * 86_400, 5e6) for second in range(0, 400, 10)),
        *((second, 1e6) for second in range(0, 3600, 10)),
    ]
    rows = [
        used(START + timedelta(seconds=second), amount=amount, events=10, throttled=1)
        for second, amount in seconds
    ]
    usage = usage_rows(spark, tmp_path, rows)
    week, day = (
        evidence(
            usage,
            frame_of(spark, SILVER_QUOTA_CONFIG),
            Terms(percentile=0.97, half_life_days=days),
        ).collect()
        for days in (7.0, 1.0)
    )
    assert [5e5] == [row.percentile_rate for row in week]
    assert [1e5] == [row.percentile_rate for row in day]
    [alice] = day
    assert ("user=alice", 5e5, 4000, 400, 2) == (
        *(alice.entity, alice.peak_seen, alice.events, alice.throttled, alice.hours),
    )
    newest = START + timedelta(seconds=3590)
    assert int(newest.timestamp()) == alice.newest
    # The 10 minutes of a week ago, and six of today.
    assert pytest.approx(7 / (7 * 144 + 6)) == alice.coverage


@pytest.mark.spark
def test_the_broker_with_the_fewest_logs_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Of those that the tenant uses, without controllers, which log a few mutations."""
    rows = [
        used(START + timedelta(minutes=10 * slot), broker=broker, user=user, quota_type=quota_type)
        for broker, user, slots, quota_type in (
            *((1, "alice", 1, "produce"), (2, "alice", 6, "produce"), (2, "bob", 6, "produce")),
            *((9, "bob", 1, "request"), (9, "carol", 1, "controller_mutation")),
        )
        for slot in range(slots)
    ]
    found = evidence(
        usage_rows(spark, tmp_path, rows), frame_of(spark, SILVER_QUOTA_CONFIG), Terms()
    ).collect()
    mean = 8 / 18
    assert {
        ("produce", "user=alice"): (1 / 6, 1, mean),
        ("produce", "user=bob"): (1.0, 2, mean),
        ("request", "user=bob"): (mean, None, mean),
        ("controller_mutation", "user=carol"): (mean, None, mean),
    } == {
        (row.quota_type, row.entity): (row.coverage, row.least_covered, row.mean_coverage)
        for row in found
    }
