"""Tenants' traces, replayed, with the advice that a person would give for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from pyspark.sql import Row, SparkSession

from tests.usage_pipeline.build import frame_of, usage_rows, used
from usage_pipeline.kernels.values import Charges
from usage_pipeline.recommend.recommendation_table import gold_recommendation
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.group import Asked, Group, Replay, Windows
from usage_pipeline.replay.scenarios import IN_FORCE, sweep
from usage_pipeline.tables.schemas import GOLD_REPLAY, SILVER_QUOTA_CONFIG

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
DAY_S: Final = 86_400
STEP_S: Final = 5
"""Between two requests of a steady tenant: a job's are then less than a hundredth of all."""
MB: Final = 1_000_000
SUMS: Final = GOLD_REPLAY.names[GOLD_REPLAY.names.index("algorithm") :]
"""The columns of ``Replay.summed``."""

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


def phase(day: int, hour: int, minutes: int, rate: int) -> list[tuple[int, int]]:
    """A phase of some minutes with a request a second."""
    since = day * DAY_S + hour * 3600
    return [(second, rate) for second in range(since, since + 60 * minutes)]


DAYS: Final = range(8)
DAILY: Final = steady(20_000, DAYS)
TRACES: Final[Mapping[str, Trace]] = {
    "steady": DAILY,
    "nightly job": DAILY + [each for day in DAYS for each in burst(day)],
    "weekly job": DAILY + burst(0) + burst(7),
    "hourly job": DAILY
    + [each for day in DAYS for hour in range(24) for each in phase(day, hour, 2, 2 * MB)],
    "migration of a day": DAILY + phase(3, 0, 6 * 60, 5 * MB),
    "growth by 5 % a week": [
        (second, nbytes * 105**week // 100**week)
        for week in range(2)
        for second, nbytes in steady(MB, range(7 * week, 7 * week + 7))
    ],
    "retry storm": steady(100_000, DAYS) + phase(5, 3, 5, 2 * MB),
    "busy half hour": steady(MB, DAYS)
    + [each for each in steady(2 * MB, [6]) if 18 <= each[0] % DAY_S // 1800 < 19],
}
STORM_AT: Final = START + timedelta(days=5, hours=3)


@dataclass(frozen=True)
class Tenant:
    """A tenant whose trace is judged.

    Attributes:
        trace: what the tenant sends to broker 1.
        runs: the days of each run of the pipeline; all in one run if it is empty.
        beside: what the tenant sends to broker 2.
        throttled: how many of a row's requests were throttled.
        users: who take turns, and share the quota of their client-id if there are several.
        keeps: which rows of the replay there are.
    """

    trace: Trace
    runs: Sequence[Sequence[int]] = ()
    beside: Trace = ()
    throttled: int = 0
    users: Sequence[str] = ()
    keeps: Callable[[dict[str, Any]], bool] = lambda _: True

    def usage(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of usage."""
        users = self.users or [name]
        for broker, requests in ((1, self.trace), (2, self.beside)):
            for place, (second, nbytes) in enumerate(requests):
                yield used(
                    START + timedelta(seconds=second),
                    broker=broker,
                    user=users[place % len(users)],
                    client_id="writer",
                    amount=float(nbytes),
                    throttled=self.throttled,
                )

    def replay(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of GOLD_REPLAY."""
        shared_by = "client-id=writer" if self.users else f"user={name}"
        for broker, requests in ((1, self.trace), (2, self.beside)):
            for days in self.runs or [range(last_day(self.trace) + 1)]:
                for row in rows_of(requests, days) if requests else ():
                    if self.keeps(row):
                        yield {**row, "broker": broker, "entity": shared_by, "shared_by": shared_by}


def last_day(trace: Trace) -> int:
    """The last day with a request."""
    return max(second for second, _ in trace) // DAY_S


def rows_of(trace: Trace, days: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The rows of GOLD_REPLAY of a run of some days."""
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
    charges.at_ms[:] = [int(START.timestamp() + second) * 1000 for second, _ in requests]
    charges.amount[:] = [nbytes for _, nbytes in requests]
    zeros = np.zeros(size, np.int64)
    group = Group("produce", charges, np.full(size, np.nan), zeros, zeros, zeros)
    replay.add(group, np.zeros(0, np.int64))
    for _, sums in replay.summed():
        row: dict[str, Any] = dict(zip(SUMS, sums, strict=True))
        worst = [
            {"at": datetime.fromtimestamp(at_us / 1e6, UTC), "throttle_ms": wait_ms}
            for at_us, wait_ms in row["worst"]
        ]
        yield {**row, "dt": day, "quota_type": "produce", "worst": worst}


def longest_delay_s(trace: Trace, quota: float) -> float:
    """The longest time that requests wait behind earlier ones which a quota delayed."""
    waiting, longest, before = 0.0, 0.0, 0
    for second, nbytes in sorted(trace):
        waiting = max(0.0, waiting - quota * (second - before)) + nbytes
        longest, before = max(longest, waiting / quota - 1), second
    return longest


def recommended(
    spark: SparkSession, out: Path, tenants: Mapping[str, Tenant], *config: dict[str, Any]
) -> dict[str, Row]:
    """Entity -> its recommendation, for tenants whose traces have the same last day."""
    (day,) = {last_day(tenant.trace) for tenant in tenants.values()}
    usage = [row for name, tenant in tenants.items() for row in tenant.usage(name)]
    replay = [row for name, tenant in tenants.items() for row in tenant.replay(name)]
    rows = gold_recommendation(
        usage_rows(spark, out, usage),
        frame_of(spark, GOLD_REPLAY, *replay),
        frame_of(spark, SILVER_QUOTA_CONFIG, *config),
        Terms(),
        {},
        day=START.date() + timedelta(days=day),
    ).collect()
    return {row.entity: row for row in rows}


def is_known(row: dict[str, Any]) -> bool:
    """Whether a row is not of a candidate on the first day."""
    return bool(row["scenario"] == "in force" or row["dt"] != START.date())


def is_later(row: dict[str, Any]) -> bool:
    """Whether a row is not of the first day."""
    return bool(row["dt"] != START.date())


@pytest.fixture(scope="module")
def advice(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Name -> the recommendation for a tenant."""
    tenants = {
        **{name: Tenant(trace) for name, trace in TRACES.items()},
        "on two brokers": Tenant(TRACES["retry storm"], beside=DAILY),
        "throttled": Tenant(DAILY, throttled=1),
        "a run each day": Tenant(TRACES["weekly job"], [[day] for day in DAYS]),
        "not replayed": Tenant(TRACES["weekly job"], keeps=is_known),
        "replayed later": Tenant(TRACES["weekly job"], keeps=is_later),
    }
    rows: dict[str, Row] = {}
    for day in {last_day(each.trace) for each in tenants.values()}:
        of_day = {name: each for name, each in tenants.items() if last_day(each.trace) == day}
        rows |= recommended(spark, tmp_path_factory.mktemp("usage"), of_day)
    return {entity.removeprefix("user="): row for entity, row in rows.items()}


@pytest.mark.parametrize(
    ("name", "bounds", "confidence", "decided_by"),
    [
        # 20 kB/s are less than the floor.
        ("steady", (100_000, 100_000), "high", "floor"),
        # Near its peak of 7.8 MB/s: a job that waits for minutes fails.
        ("nightly job", (6 * MB, 9 * MB), "high", "replay"),
        # 156 of 14,000 MB: one in a hundred, and yet no wait of minutes.
        ("weekly job", (1.9 * MB, 9 * MB), "medium", "replay"),
        # 2 MB/s for two minutes of each hour.
        ("hourly job", (2 * MB, 2.6 * MB), "high", "replay"),
        # It was once, but it had to end that day.
        ("migration of a day", (5 * MB, 6 * MB), "high", "percentile"),
        # Kafka's windows have up to three of its requests, and there is room for two more weeks.
        ("growth by 5 % a week", (1.05 * 1.6 * MB, 1.05 * 1.8 * MB), "high", "replay"),
        # It looks like a job, so its data would wait for half a minute at most.
        ("retry storm", (1.8 * MB, 2.2 * MB), "medium", "delay"),
        # Less than a hundredth of the requests and bytes, and none alone waits for long.
        ("busy half hour", (2.9 * MB, 3 * MB), "medium", "delay"),
    ],
)
def test_the_advice(
    advice: Mapping[str, Row],
    *,
    name: str,
    bounds: tuple[float, float],
    confidence: str,
    decided_by: str,
) -> None:
    """What would have waited is few and brief."""
    row = advice[name]
    assert None is row.refused
    assert bounds[0] <= row.quota <= bounds[1]
    assert max(row.throttled_share, row.throttled_amount_share) <= 0.01
    assert row.throttle_ms_max <= 30_000
    assert row.longest_delay_s <= 30
    assert longest_delay_s(TRACES[name], row.quota) <= row.longest_delay_s
    assert (confidence, decided_by) == (row.confidence, row.decided_by)
    assert len({second // DAY_S for second, _ in TRACES[name]}) == row.days
    assert (confidence == "high") == (row.caveats is None)


def test_the_worst_moments_are_named(advice: Mapping[str, Row]) -> None:
    """With their times, so that a person recognizes the storm."""
    row = advice["retry storm"]
    (longest, *others) = row.worst
    assert (row.throttle_ms_max, 1) == (longest.throttle_ms, longest.broker)
    during = longest.at.astimezone(UTC) - STORM_AT
    assert timedelta(0) <= during <= timedelta(minutes=5)
    assert [] == [each for each in others if each.throttle_ms > longest.throttle_ms]


def test_of_two_brokers_the_busiest_decides(advice: Mapping[str, Row]) -> None:
    """A quota is the same on all brokers."""
    busy, both = advice["retry storm"], advice["on two brokers"]
    assert busy.quota == both.quota
    assert {1} == {each.broker for each in both.worst}


def test_two_tenants_with_one_client_id(spark: SparkSession, tmp_path: Path) -> None:
    """They share its quota, so each sends half of what it has to allow."""
    default = {
        "entity": "client-id=<default>",
        "client_id": "<default>",
        "key": "producer_byte_rate",
        "value": 50.0 * MB,
        "valid_from": START,
    }
    trace = [(second + later, each) for second, each in steady(MB, DAYS) for later in (0, 1)]
    both = {"both": Tenant(trace, users=("alice", "bob"))}
    (row,) = recommended(spark, tmp_path, both, default).values()
    assert "client-id=writer" == row.entity
    assert 2 * MB <= row.quota <= 4 * MB


def test_a_demand_that_was_throttled_is_unknown(advice: Mapping[str, Row]) -> None:
    """The log has what was sent, and not what waited."""
    row = advice["throttled"]
    assert "low" == row.confidence
    assert row.caveats.startswith("100.0 % of the charges were throttled")


def test_runs_of_a_day_each_advise_what_one_run_does(advice: Mapping[str, Row]) -> None:
    """Each run tries candidates around its own peaks: six days without the job, two with it."""
    once, daily = advice["weekly job"], advice["a run each day"]
    assert once.quota == daily.quota
    assert once.throttled_share == daily.throttled_share
    assert once.throttle_ms_max == daily.throttle_ms_max


def test_a_day_without_candidates_is_no_evidence(advice: Mapping[str, Row]) -> None:
    """It may be the day of the job: nobody knows what a quota would have done then."""
    row = advice["not replayed"]
    assert None is row.quota
    assert row.refused.startswith("1 of 8 days were replayed without candidates")


def test_a_day_of_usage_without_a_replay_is_no_evidence(advice: Mapping[str, Row]) -> None:
    """Its replay is missing, or it has the tenant's name under earlier quotas."""
    row = advice["replayed later"]
    assert None is row.quota
    assert row.refused.startswith("1 of 8 days of usage were not replayed for these clients")
