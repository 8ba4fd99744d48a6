"""Tenants' traces, replayed, with the advice that a person would give for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from pyspark.sql import Row, SparkSession

from tests.usage_pipeline.build import frame_of, usage_rows
from usage_pipeline.kernels.values import Charges
from usage_pipeline.recommend.recommendation_table import gold_recommendation
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.group import Asked, Group, Replay, Windows
from usage_pipeline.replay.scenarios import IN_FORCE, sweep
from usage_pipeline.tables.schemas import GOLD_REPLAY, SILVER_QUOTA_CONFIG

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
DAY_S: Final = 86_400
STEP_S: Final = 5
"""Between two requests of a steady tenant: a job's are then less than a hundredth of all."""
MB: Final = 1_000_000

Trace = Sequence[tuple[int, int]]
"""The seconds since START and the bytes of each request."""


def steady(rate: int, days: Sequence[int]) -> list[tuple[int, int]]:
    """A request in each step."""
    return [
        (day * DAY_S + second, rate * STEP_S) for day in days for second in range(0, DAY_S, STEP_S)
    ]


def burst(day: int, requests: int = 78, seconds: int = 8) -> list[tuple[int, int]]:
    """A job at 2:00 that writes a megabyte in each request."""
    return [(day * DAY_S + 7200 + at * seconds // requests, MB) for at in range(requests)]


DAYS: Final = range(8)
TRACES: Final[Mapping[str, Trace]] = {
    "steady": steady(20_000, DAYS),
    "nightly job": steady(20_000, DAYS) + [each for day in DAYS for each in burst(day)],
    "weekly job": steady(20_000, DAYS) + burst(0) + burst(7),
}


def rows_of(trace: Trace, runs: Sequence[Sequence[int]]) -> Iterator[dict[str, Any]]:
    """The rows of GOLD_REPLAY, of runs of some days each."""
    for days in runs:
        of_days = {day: sorted(each for each in trace if each[0] // DAY_S == day) for day in days}
        peak = max(map(peak_of, of_days.values()))
        for day, requests in of_days.items():
            yield from replayed(START.date() + timedelta(days=day), requests, peak)


def peak_of(requests: Trace) -> float:
    """The highest rate over ten seconds, as ``replay.peaks`` has it."""
    used = np.zeros(DAY_S + 11)
    for second, nbytes in requests:
        used[second % DAY_S] += nbytes
    return float(np.convolve(used, np.ones(11)).max() / 10)


def replayed(day: date, requests: Trace, peak: float) -> Iterator[dict[str, Any]]:
    """A day's rows of GOLD_REPLAY."""
    asked = [IN_FORCE, *sweep([("produce", "user=alice", peak)], 20)]
    replay = Replay("produce", Windows(), list(map(Asked, asked)), is_whole=True)
    size = len(requests)
    charges = Charges.none(size)
    charges.at_ms[:] = [second * 1000 for second, _ in requests]
    charges.amount[:] = [nbytes for _, nbytes in requests]
    zeros = np.zeros(size, np.int64)
    group = Group("produce", charges, np.full(size, np.nan), zeros, zeros, zeros)
    replay.add(group, np.zeros(0, np.int64))
    for each in replay.summed():
        events, throttled, total_ms, longest_ms, near, over = each.counts
        yield {
            "dt": day,
            "broker": 1,
            "quota_type": "produce",
            "entity": "user=alice",
            "shared_by": "user=alice",
            "algorithm": each.algorithm,
            "scenario": each.scenario.name,
            "quota": None if np.isnan(each.last) else each.last,
            "events": events,
            "throttled": throttled,
            "throttle_ms_total": total_ms,
            "throttle_ms_max": longest_ms,
            "amount": each.amounts[0],
            "throttled_amount": each.amounts[1],
            "near": near,
            "over": over,
            "peak_rate": each.peak,
            "unknown": each.unknown,
        }


def recommended(
    spark: SparkSession,
    out: Path,
    trace: Trace,
    runs: Sequence[Sequence[int]] = (DAYS,),
    replays: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Row:
    """The recommendation, from runs of some days each, and those of their replays."""
    usage = [
        {
            "broker": 1,
            "user": "alice",
            "client_id": "writer",
            "quota_type": "produce",
            "window_start": START + timedelta(seconds=second),
            "amount": float(nbytes),
            "events": 1,
            "throttled": 0,
        }
        for second, nbytes in trace
    ]
    (row,) = gold_recommendation(
        usage_rows(spark, out, usage),
        frame_of(spark, GOLD_REPLAY, *filter(replays, rows_of(trace, runs))),
        frame_of(spark, SILVER_QUOTA_CONFIG),
        Terms(),
        {},
        day=START.date() + timedelta(days=DAYS[-1]),
    ).collect()
    return row


@pytest.mark.parametrize(
    ("name", "bounds", "confidence"),
    [
        # The floor: 20 kB/s are less.
        ("steady", (100_000, 100_000), "high"),
        # Near its peak of 7.8 MB/s: a job that waits for minutes fails.
        ("nightly job", (6 * MB, 9 * MB), "high"),
        # 156 of 14,000 MB: one in a hundred, and yet no wait of minutes.
        ("weekly job", (1.9 * MB, 9 * MB), "medium"),
    ],
)
def test_the_advice(
    spark: SparkSession, tmp_path: Path, name: str, bounds: tuple[float, float], confidence: str
) -> None:
    """What would have waited is few and brief."""
    row = recommended(spark, tmp_path, TRACES[name])
    assert None is row.refused
    assert bounds[0] <= row.quota <= bounds[1]
    assert max(row.throttled_share, row.throttled_amount_share) <= 0.01
    assert row.throttle_ms_max <= 30_000
    assert (confidence, len(DAYS)) == (row.confidence, row.days)


def test_runs_of_a_day_each_advise_what_one_run_does(spark: SparkSession, tmp_path: Path) -> None:
    """Each run tries candidates around its own peaks: six days without the job, two with it."""
    trace = TRACES["weekly job"]
    once = recommended(spark, tmp_path / "once", trace)
    daily = recommended(spark, tmp_path / "daily", trace, [[day] for day in DAYS])
    assert once.quota == daily.quota
    assert once.throttled_share == daily.throttled_share
    assert once.throttle_ms_max == daily.throttle_ms_max


def test_a_day_without_candidates_is_no_evidence(spark: SparkSession, tmp_path: Path) -> None:
    """It may be the day of the job: nobody knows what a quota would have done then."""

    def but_one_day(row: dict[str, Any]) -> bool:
        return bool(row["scenario"] == "in force" or row["dt"] != START.date())

    row = recommended(spark, tmp_path, TRACES["weekly job"], replays=but_one_day)
    assert None is row.quota
    assert row.refused.startswith("1 of 8 days were replayed without candidates")
