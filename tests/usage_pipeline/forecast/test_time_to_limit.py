"""When a saw is at its limit: expected, and with a range that covers what happens."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.examples import mostly_rare
from tests.usage_pipeline.saws import GB, every_5_minutes, saw
from usage_pipeline.forecast.rise import Rise
from usage_pipeline.forecast.sawtooth import Saw, fit
from usage_pipeline.forecast.time_to_limit import Reach, reach

WEEK = every_5_minutes(168)
YEAR_H = 24 * 365.0
HEIGHTS = np.full(20, 20 * GB)
PLAIN = Saw(
    floor_bytes=60 * GB,
    growth=0.5 * GB,
    newest_growth=0.5 * GB,
    points=21,
    heights=HEIGHTS,
    rises=np.linspace(2, 4, 11) * GB,
    step_hours=0.5,
    surprises=np.zeros(20),
    rise=Rise(),
)


def test_the_top_of_a_tooth_reaches_it() -> None:
    """The module's example has (90 - 60 - 20) GB at 0.5 GB an hour; without teeth 60 hours."""
    found = reach(PLAIN, 65 * GB, 90 * GB, YEAR_H)
    assert found.hours is not None
    assert found.low is not None
    assert found.high is not None
    assert 20 == pytest.approx(found.hours, abs=0.5)
    assert 19 <= found.low <= found.hours <= found.high <= 21
    bare = reach(replace(PLAIN, heights=np.empty(0), rises=np.empty(0)), 65 * GB, 90 * GB, YEAR_H)
    assert 60 == pytest.approx(bare.hours, abs=0.5)


@pytest.mark.parametrize("used", [90 * GB, 95 * GB])
def test_a_disk_at_its_limit_is_there_now(used: float) -> None:
    """At the limit is at the limit, not beyond it alone."""
    assert Reach(0.0, 0.0, 0.0) == reach(PLAIN, used, 90 * GB, YEAR_H)


def test_teeth_that_reach_it_do_so_as_they_rise() -> None:
    """6 GB are missing and teeth rise by 2 to 4 GB an hour, mostly 3."""
    found = reach(PLAIN, 69 * GB, 75 * GB, YEAR_H)
    assert (2.0, 6 / 3.8) == pytest.approx((found.hours, found.low))
    assert found.high is not None
    assert 6 / 2.2 <= found.high


def test_only_teeth_that_were_higher_tell_whether_this_one_reaches_it() -> None:
    """A fifth of all teeth exceed 25 GB. So do a third of those above 18 GB, and half above 22."""
    mixed = replace(PLAIN, growth=0.0, newest_growth=0.0, heights=np.array([16, 20, 21, 24, 26.0]))
    mixed = replace(mixed, heights=mixed.heights * GB, step_hours=6.0)
    low, high = (reach(mixed, used * GB, 85 * GB, YEAR_H) for used in (78, 83))
    assert low.low == pytest.approx(7 / 3.8)
    assert low.hours != pytest.approx(7 / 3)
    assert (2 / 3, 2 / 3.8) == pytest.approx((high.hours, high.low))


def test_an_excess_counts_close_to_the_limit() -> None:
    """Teeth were 20 GB high. 5 GB more would be too late if 4 GB are left."""
    assert reach(PLAIN, 81 * GB, 85 * GB, YEAR_H).hours == pytest.approx(4 / 3)
    far = reach(replace(PLAIN, growth=0.0, newest_growth=0.0), 81 * GB, 87 * GB, YEAR_H)
    assert None is far.hours


@pytest.mark.parametrize(("excess", "rate", "is_soon"), [(0.3, 1, 0), (0.3, 3, 1), (0.5, 1, 1)])
def test_a_usual_level_is_no_excess(excess: float, rate: float, is_soon: int) -> None:
    """Teeth of 20 GB rise by 3 GB an hour. 0.3 GB more at less than that rate may be its usual."""
    flat = replace(PLAIN, growth=0.0, newest_growth=0.0, rise=Rise(rate=rate * GB))
    found = reach(flat, (80 + excess) * GB, 84.5 * GB, YEAR_H)
    assert bool(is_soon) == (found.hours is not None)


def test_the_present_rate_counts_if_it_is_larger() -> None:
    """6 GB are missing. Teeth rise by 3 GB an hour, but this one by 12."""
    quick = reach(replace(PLAIN, rise=Rise(rate=12 * GB)), 69 * GB, 75 * GB, YEAR_H)
    assert (0.5, 0.5) == pytest.approx((quick.hours, quick.low))


def test_hours_count_from_the_last_reading() -> None:
    """2 hours at the last reading are one after an hour, and none after 3; never less."""
    for age_h, expected in ((0, 2), (1, 1), (3, 0)):
        found = reach(PLAIN, 69 * GB, 75 * GB, YEAR_H, age_h=age_h)
        assert expected == pytest.approx(found.hours)


def test_a_tooth_that_outgrows_all_others_goes_on_as_it_rises() -> None:
    """Retention was turned off: 26 GB above the floor where teeth were 20 GB high."""
    at_most = reach(PLAIN, 84.9 * GB, 140 * GB, YEAR_H)
    outgrown = reach(PLAIN, 86 * GB, 140 * GB, YEAR_H)
    assert 120 == pytest.approx(at_most.hours, abs=1)
    assert (140 - 86) / 3 == pytest.approx(outgrown.hours)


def test_beyond_the_horizon_there_is_nothing_to_tell() -> None:
    """A disk that shrinks has no time either, though its range may have an early end."""
    assert Reach(None, None, None) == reach(PLAIN, 65 * GB, 90 * GB, 10.0)
    shrinking = replace(PLAIN, growth=-0.5 * GB, newest_growth=-0.5 * GB)
    assert Reach(None, None, None) == reach(shrinking, 65 * GB, 90 * GB, YEAR_H)
    changed = reach(replace(shrinking, newest_growth=1 * GB), 65 * GB, 90 * GB, YEAR_H)
    assert changed.low == pytest.approx(10, abs=1)
    assert changed.high is None


def test_surprises_widen_the_range() -> None:
    """Without them it is a step or two wide; with steps 5 GB off it may have no end."""
    widths = []
    for size in (0.0, 0.5, 5.0):
        surprises = np.resize([size, -size, -size, size], 40) * GB
        found = reach(replace(PLAIN, surprises=surprises), 65 * GB, 120 * GB, YEAR_H)
        assert found.low is not None
        widths.append((found.high or YEAR_H) - found.low)
    assert sorted(widths) == widths
    assert widths[0] < 2
    assert 10 < widths[1] < 100 < widths[2]


def test_a_floor_that_swings_reaches_it_with_a_swing() -> None:
    """It swings by 30 GB between one deletion and the next: no growth, and 10 GB missing."""
    swinging = replace(PLAIN, surprises=np.resize([30 * GB, -30 * GB], 40))
    found = reach(swinging, 65 * GB, 90 * GB, YEAR_H)
    assert found.hours is not None
    assert found.hours < 5


def test_a_growth_of_few_points_is_less_sure() -> None:
    """It has changed four deletions ago; the surprises are known from before."""
    surprises = np.random.default_rng(5).normal(size=40) * GB
    widths = []
    for points in (4, 41):
        saw_of = replace(PLAIN, points=points, surprises=surprises - surprises.mean())
        found = reach(saw_of, 65 * GB, 120 * GB, YEAR_H)
        assert found.low is not None
        widths.append((found.high or YEAR_H) - found.low)
    assert 2 * widths[1] < widths[0]


def test_a_step_is_as_long_as_it_is() -> None:
    """A step has 6 hours: the limit is met before a tooth's peak, or between two readings."""
    toothed = reach(replace(PLAIN, step_hours=6.0), 65 * GB, 90 * GB, YEAR_H)
    assert (20, 23, 26) == pytest.approx((toothed.low, toothed.hours, toothed.high), abs=1)
    bare = replace(PLAIN, heights=np.empty(0), rises=np.empty(0), step_hours=6.0)
    smooth = reach(bare, 65 * GB, 91 * GB, YEAR_H)
    assert (60, 63, 66) == pytest.approx((smooth.low, smooth.hours, smooth.high), abs=1)


def test_the_same_seed_gives_the_same_range() -> None:
    """A day that is run again gives the same rows; the range is drawn all the same."""
    wide = replace(PLAIN, surprises=np.random.default_rng(3).normal(size=30) * GB)
    first, again, other = (reach(wide, 65 * GB, 120 * GB, YEAR_H, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.slow
@pytest.mark.parametrize("history_h", mostly_rare([72, 168]))
def test_the_range_covers_what_then_happened(history_h: float) -> None:
    """Of 60 disks with noise and days 80 % are meant to be in it; two thirds are at least."""
    rng = np.random.default_rng(11)
    covered = forecast = 0
    ahead = np.arange(1, 12 * 240) / 12
    hours = np.concatenate([every_5_minutes(history_h), ahead])
    past = hours <= 0
    for _ in range(60):
        growth, tooth, period_h = rng.uniform(0.2, 2), rng.uniform(5, 60), rng.uniform(1, 12)
        used = saw(hours, floor=300 * GB, growth=growth * GB, tooth=tooth * GB, period_h=period_h)
        used += 10 * GB * np.sin((hours + rng.uniform(0, 24)) * np.pi / 12)
        used += rng.normal(0, 0.1 * GB, len(hours))
        limit = (300 + 60 * growth + tooth) * GB
        found = fit(hours[past], used[past])
        assert isinstance(found, Saw)
        there = np.flatnonzero(used[~past] >= limit)
        if used[past][-1] >= limit or not len(there):
            continue
        forecast += 1
        reached = reach(found, used[past][-1], limit, YEAR_H)
        low, high = reached.low or 0.0, reached.high or np.inf
        covered += low <= ahead[there[0]] <= high
    assert 50 <= forecast
    assert 0.67 * forecast <= covered
