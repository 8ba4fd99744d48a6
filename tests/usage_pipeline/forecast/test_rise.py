"""The present rise: its rate, and whether it is unlike earlier ones."""

import math

import numpy as np
import pytest

from tests.usage_pipeline.saws import GB, every_5_minutes, saw
from usage_pipeline.forecast.rise import Rise, present_rise

WEEK = every_5_minutes(168)


def test_the_example() -> None:
    """It rises by 30 GB an hour for 2 h, and half of that is the gain."""
    used = 0.2 * WEEK + 29.8 * np.clip(WEEK + 2, 0, None)
    found = present_rise(WEEK, used * GB)
    assert (30 * GB, 2, 30 * GB, 0) == pytest.approx(
        (found.rate, found.hours, found.gain_bytes, found.most_bytes), rel=1e-6
    )
    assert 1 == pytest.approx(found.hours_to(30 * GB))


def test_a_jump_is_not_a_rate() -> None:
    """300 GB came 10 minutes ago, at once."""
    found = present_rise(WEEK, GB * WEEK + 300 * GB * (WEEK > -0.2))
    assert 1 * GB == pytest.approx(found.rate)
    used = saw(WEEK, growth=0.0, shift_h=3) + 300 * GB * (WEEK > -1.1)
    assert math.inf == present_rise(WEEK, used).hours_to(GB)


@pytest.mark.parametrize("ago_h", [6, 12, 24])
def test_a_rise_that_is_over_does_not_go_on(ago_h: float) -> None:
    """250 GB came in 2 h, faster than teeth rise, and teeth of 20 GB every 6 h went on."""
    used = saw(WEEK, growth=0.0, shift_h=3) + 125 * GB * np.clip(WEEK + ago_h + 2, 0, 2)
    assert math.inf == present_rise(WEEK, used).hours_to(10 * GB)


def test_teeth_are_like_each_other() -> None:
    """The last of them has gained no more than the others, whatever its age."""
    for shift_h in np.arange(0.25, 6, 0.5):
        found = present_rise(WEEK, saw(WEEK, shift_h=shift_h))
        assert found.gain_bytes <= found.most_bytes
        assert math.inf == found.hours_to(GB)


def test_hourly_readings_have_hourly_steps() -> None:
    """Three of them make a rate, and two make none."""
    hours = np.arange(-24.0, 1.0)
    found = present_rise(hours, GB * np.clip(hours + 3, 0, None))
    assert 1 * GB == pytest.approx(found.rate)
    assert Rise() == present_rise(hours[-3:], GB * hours[-3:])


def test_a_rise_goes_on_for_thrice_as_long_and_a_day() -> None:
    """At 1 GB an hour, 2 h last to 6 h, and 10 h to 24 h."""
    short, long = (Rise(1.0, hours, 10.0, 8.0 - 1e-9) for hours in (2.0, 10.0))
    assert (6.0, math.inf) == (short.hours_to(6.0), short.hours_to(6.1))
    assert (24.0, math.inf) == (long.hours_to(24.0), long.hours_to(24.1))


@pytest.mark.parametrize("rise", [Rise(), Rise(-1.0, 9.0, 9.0), Rise(1.0, 9.0, 10.0, 8.0)])
def test_an_ordinary_rise_ends(rise: Rise) -> None:
    """It falls, or gains at most a quarter more than earlier ones."""
    assert math.inf == rise.hours_to(1.0)
