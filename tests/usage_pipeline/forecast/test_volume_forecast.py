"""The forecast of one volume: its numbers, and each reason to refuse one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.examples import mostly_slow
from tests.usage_pipeline.saws import GB, every_5_minutes, saw
from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.volume_forecast import (
    ForecastError,
    Forecasting,
    Readings,
    VolumeForecast,
    forecast_volume,
)

TOTAL = 1000 * GB
WEEK = every_5_minutes(168)
MONTH = every_5_minutes(28 * 24)
EXAMPLE = Forecasting(limit_bytes=round(50 * GB))


def readings(hours: Floats, used: Floats) -> Readings:
    total = np.full(len(hours), TOTAL)
    return Readings(hours, total, total - used, np.zeros(len(hours), dtype=bool))


def growing(history_h: float = 168, age_h: float = 0.0) -> Readings:
    """Returns the module's example."""
    hours = every_5_minutes(history_h)
    used = saw(hours, floor=700 * GB, growth=2 * GB, tooth=90 * GB)
    return readings(hours - age_h, used)


def offline(history: Readings, which: slice) -> Readings:
    """Returns readings as the table has them offline: without sizes."""
    is_offline = history.offline.copy()
    is_offline[which] = True
    sizes = np.where(is_offline, np.nan, history.total_bytes)
    return Readings(
        history.hours, sizes, np.where(is_offline, np.nan, history.available_bytes), is_offline
    )


def test_the_example() -> None:
    """80 hours remain from 700 GB of 950, at 2 GB an hour under 90 GB."""
    found = forecast_volume(growing(), EXAMPLE)
    assert found.refused is None
    assert (1000 * GB, 50 * GB) == (found.total_bytes, found.limit_bytes)
    assert (2017, 168.0, 27) == (found.readings, found.history_hours, found.teeth)
    assert 2 * GB == pytest.approx(found.growth_bytes_per_hour, rel=0.01)
    assert 80 == pytest.approx(found.hours_to_limit, abs=4)
    assert found.hours_low is not None
    assert found.hours_high is not None
    assert found.hours_to_limit is not None
    assert 72 <= found.hours_low <= found.hours_to_limit <= found.hours_high <= 88
    assert found.backtest_error_bytes == pytest.approx(0, abs=GB)


@pytest.mark.parametrize(("history_h", "levels_off"), [(120, True), (168, False)])
def test_before_the_first_deletion_usage_may_level_off(history_h: int, levels_off: bool) -> None:
    """Retention of a week deletes nothing in five days, so nobody knows whether the disk fills."""
    hours = every_5_minutes(history_h)
    found = forecast_volume(readings(hours, 800 * GB + hours * GB), EXAMPLE)
    assert 150 == pytest.approx(found.hours_to_limit, abs=3)
    assert levels_off == (found.hours_high is None)


def test_a_weekly_cycle_is_told_from_growth() -> None:
    """10 GB an hour on weekdays, 3 at weekends, retained for two days: it does not grow."""
    hours = np.arange(-28 * 24.0, 1.0)
    written = np.where(np.arange(-30 * 24, 1) // 24 % 7 < 5, 10 * GB, 3 * GB).cumsum()
    found = forecast_volume(readings(hours, written[48:] - written[:-48]), EXAMPLE)
    assert (None, 3, None) == (found.refused, found.teeth, found.hours_to_limit)
    assert 0 == pytest.approx(found.growth_bytes_per_hour, abs=0.01 * GB)


def with_left(hours: Floats, used: Floats, left: float) -> VolumeForecast:
    """Returns the forecast of a volume that has so many bytes left at its last reading."""
    total = np.full(len(hours), used[-1] + left)
    return forecast_volume(
        Readings(hours, total, total - used, np.zeros(len(hours), dtype=bool)), Forecasting()
    )


def daily(tooth: float = 60.0, period_h: float = 24.0) -> Floats:
    """Returns the used GB of a month of teeth without growth."""
    return 100 + tooth * (MONTH % period_h) / period_h


@pytest.mark.parametrize("rising_h", mostly_slow([6, 1, 3, 10, 14, 18, 24, 30]))
@pytest.mark.parametrize("noise_gb", [0.0, 0.1])
def test_a_disk_that_began_to_fill_is_seen_within_an_hour(rising_h: int, noise_gb: float) -> None:
    """It grew by 0.2 GB an hour for weeks, and then by 30: 50 GB last 1.7 h."""
    used = 150 + 0.2 * (MONTH + 672) + 30 * np.clip(MONTH + rising_h, 0, None)
    used += noise_gb * np.random.default_rng(3).normal(size=len(MONTH))
    found = with_left(MONTH, used * GB, 50 * GB)
    assert 1.7 == pytest.approx(found.hours_to_limit, abs=0.1)
    assert found.hours_low == pytest.approx(1.7, abs=1)


@pytest.mark.parametrize("size", [300, 500])
@pytest.mark.parametrize("ago_h", mostly_slow([2, 0.2, 0.5, 8]))
def test_partitions_that_were_moved_in_count_at_once(size: int, ago_h: float) -> None:
    """20 GB are left, at 0.2 GB an hour: the jump is of the level, not of the growth."""
    used = 150 + 0.2 * (MONTH + 672) + size * (ago_h >= -MONTH)
    found = with_left(MONTH, used * GB, 20 * GB)
    assert 100 == pytest.approx(found.hours_to_limit, abs=12)


@pytest.mark.parametrize(
    ("rate", "rising_h", "left", "expected_h"),
    [(3.1, 24, 0.5, 0.16), (2.9, 24, 5.4, 1.9), (12.5, 4, 25, 2.0), (50, 1.5, 50, 1.0)],
    ids=["ends", "exceeds others", "quicker", "much quicker"],
)
def test_a_tooth_that_rises_faster_than_others_goes_on(
    rate: float, rising_h: float, left: float, expected_h: float
) -> None:
    """Teeth of 60 GB a day reach no limit, but today's does before it is deleted."""
    before = MONTH < -rising_h
    used = np.where(before, daily(), 100 + 2.5 * (24 - rising_h) + rate * (MONTH + rising_h))
    found = with_left(MONTH, used * GB, left * GB)
    assert found.hours_to_limit == pytest.approx(expected_h, abs=0.3)


def test_a_burst_that_outlasts_many_teeth_goes_on() -> None:
    """Teeth of 20 GB every 6 h were outgrown by 250 GB in 5 h: 50 GB last an hour."""
    used = np.where(MONTH < -5, daily(20, 6), 100 + 20 / 6 + 50 * (MONTH + 5))
    assert 1.0 == pytest.approx(with_left(MONTH, used * GB, 50 * GB).hours_to_limit, abs=0.1)


@pytest.mark.parametrize("ago_h", [3, 9, 15])
def test_partitions_that_were_moved_in_raise_the_teeth(ago_h: float) -> None:
    """300 GB came under teeth of 20 GB in 2 h: they reach 14 GB above, and never 60 GB above."""
    used = daily(20, 2) + 300 * (ago_h >= -MONTH)
    until = MONTH <= -1
    kept = MONTH[until] + 1
    found = with_left(kept, used[until] * GB, 4 * GB)
    assert 0.4 == pytest.approx(found.hours_to_limit, abs=0.1)
    found = with_left(kept, used[until] * GB, 50 * GB)
    assert None is found.hours_to_limit


@pytest.mark.slow
@pytest.mark.parametrize("room", [65, 75, 120])
def test_an_ordinary_saw_is_not_called_filling(room: float) -> None:
    """Traffic differs by hour and by day, and retention deletes at night: it fills on no day."""
    rng = np.random.default_rng(4)
    hour = MONTH % 24
    days = np.repeat(rng.uniform(0.93, 1.0, 29), 288)[-len(MONTH) :]
    written = (hour - 0.8 * 24 / (2 * np.pi) * np.sin(hour * 2 * np.pi / 24)) / 24
    used = 100 + 60 * days * written + rng.normal(0, 0.1, len(MONTH))
    soon = []
    for ends in range(14 * 288, len(MONTH) + 1, 31):
        total = np.full(ends, (100 + room) * GB)
        free = total - used[:ends] * GB
        kept = Readings(MONTH[:ends] - MONTH[ends - 1], total, free, np.zeros(ends, dtype=bool))
        hours = forecast_volume(kept, Forecasting()).hours_to_limit
        if hours is not None and hours < 14 * 24:
            soon.append((MONTH[ends - 1], hours))
    assert [] == soon


@pytest.mark.parametrize(("age_h", "expected_h"), [(0, 12), (8, 4), (14, 0)])
def test_hours_count_from_now(age_h: float, expected_h: float) -> None:
    """At the last reading, 30 GB were left, and the tooth rose by 2.5 GB an hour."""
    until = MONTH <= -14
    used = (100 + 60 * (MONTH % 24) / 24 + 0.02 * (MONTH + 672))[until]
    found = with_left(MONTH[until] + 14 - age_h, used * GB, 30 * GB)
    assert expected_h == pytest.approx(found.hours_to_limit, abs=0.2)
    assert found.hours_high is not None
    assert found.hours_high > expected_h


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        (growing(23.9), "the history has 23.9 hours; a forecast needs 24"),
        (growing(age_h=25), "the last reading is 25 hours old"),
        (offline(growing(), slice(-1, None)), "the log dir is offline"),
        (offline(growing(), slice(None)), "the log dir is offline"),
        (
            readings(np.arange(-30.0, 1.0, 3.0), np.arange(11.0) * GB),
            "there are 11 readings; a forecast needs 12",
        ),
    ],
    ids=["short", "stale", "offline", "never seen", "few"],
)
def test_what_is_refused_says_why(history: Readings, reason: str) -> None:
    """It has what is known all the same, and no number of the future."""
    found = forecast_volume(history, EXAMPLE)
    assert reason == found.refused
    future = (found.growth_bytes_per_hour, found.hours_to_limit, found.hours_low, found.hours_high)
    assert (None,) * 4 == future
    assert len(history.online.hours) == found.readings
    assert (TOTAL if found.readings else None) == found.total_bytes


@pytest.mark.parametrize(
    ("history", "limit_hours"),
    [(growing(23.9), 0.0), (growing(), 0.0), (growing(age_h=25), None)],
    ids=["short", "long", "stale"],
)
def test_a_volume_at_its_limit_is_there_now(history: Readings, limit_hours: float | None) -> None:
    """It needs no history, but the reading must not be stale."""
    at_limit = Forecasting(limit_bytes=round(history.available_bytes[-1]))
    found = forecast_volume(history, at_limit)
    hours = (found.hours_to_limit, found.hours_low, found.hours_high)
    assert (limit_hours,) * 3 == hours
    less = forecast_volume(history, replace(at_limit, limit_bytes=at_limit.limit_bytes - 1))
    assert 0.0 != less.hours_high


def test_an_hour_offline_in_between_is_only_a_gap() -> None:
    """Readings without sizes count for nothing."""
    gap = forecast_volume(offline(growing(), slice(500, 512)), EXAMPLE)
    assert (None, 2005) == (gap.refused, gap.readings)
    assert 2 * GB == pytest.approx(gap.growth_bytes_per_hour, rel=0.01)


def test_a_history_that_stopped_is_not_forecast_as_if_it_were_now() -> None:
    """The last reading of all volumes is a day and an hour older than the run."""
    stopped = forecast_volume(growing(age_h=1), EXAMPLE, run_age_h=24)
    assert (
        "the last reading is more than 24 hours older than the run; to forecast an earlier history,"
        " set --as-of"
    ) == stopped.refused
    assert None is stopped.hours_to_limit
    assert forecast_volume(growing(age_h=1), EXAMPLE, run_age_h=23).refused is None


def test_a_gap_is_no_history() -> None:
    """A try of 6 h is three weeks old: 7 h later there are 14 hours of history, not 500."""
    hours = np.concatenate([every_5_minutes(6) - 500, every_5_minutes(7)])
    found = forecast_volume(readings(hours, 600 * GB + hours * GB), EXAMPLE)
    assert "the history has 14.0 hours; a forecast needs 24" == found.refused
    assert 14 == pytest.approx(found.history_hours)


def test_bounds_are_kept() -> None:
    """A history of a day and an age of a day are both just enough."""
    assert forecast_volume(growing(24, age_h=24), EXAMPLE).refused is None
    shorter = forecast_volume(growing(23.9), EXAMPLE)
    assert "the history has 23.9 hours; a forecast needs 24" == shorter.refused


def test_the_greater_limit_counts() -> None:
    """It is the greater of bytes and share; without either it is a full disk."""
    assert 100 == Forecasting(limit_bytes=100, limit_ratio=0.05).limit_of(1000)
    assert 50 == Forecasting(limit_bytes=10, limit_ratio=0.05).limit_of(1000)
    assert 0 == Forecasting().limit_of(1000)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"limit_ratio": -0.1}, "a ratio from 0"),
        ({"limit_ratio": 1.0}, "a ratio from 0"),
        ({"limit_bytes": -1}, "must be at least 0 bytes"),
        ({"horizon_hours": 0.0}, "must be above 0"),
        ({"history_days": 0.0}, "must be above 0"),
    ],
)
def test_what_makes_no_sense_is_an_error(asked: dict[str, Any], why: str) -> None:
    """It fails before any volume is read; nothing can be forecast in no time, or from none."""
    with pytest.raises(ForecastError, match=why):
        Forecasting(**asked)
