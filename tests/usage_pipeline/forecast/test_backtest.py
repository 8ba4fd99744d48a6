"""The error of a forecast on history that it was not shown."""

import numpy as np
import pytest

from tests.usage_pipeline.saws import GB, every_5_minutes, saw
from usage_pipeline.forecast.backtest import backtest_error

WEEK = every_5_minutes(168)


def test_a_saw_that_goes_on_as_it_was_has_none() -> None:
    """What every tail has is what its head says."""
    assert backtest_error(WEEK, saw(WEEK)) == pytest.approx(0, abs=GB / 1000)


def test_a_change_is_an_error_of_its_size() -> None:
    """The newest 36 hours grow by 1 GB an hour more, up to 36 GB: the heads don't know of it."""
    used = saw(WEEK) + np.where(WEEK > -36, GB * (WEEK + 36), 0.0)
    error = backtest_error(WEEK, used)
    assert error is not None
    assert GB < error < 36 * GB


def test_a_change_that_was_seen_is_no_error() -> None:
    """It grows by 1 GB an hour more since the middle: two of three heads have seen it."""
    used = saw(WEEK) + np.where(WEEK > -84, GB * (WEEK + 84), 0.0)
    assert backtest_error(WEEK, used) == pytest.approx(0, abs=GB)


def test_disks_without_teeth_are_tested_by_their_readings() -> None:
    """Noise of up to 0.1 GB is an error of half of that."""
    noise = np.random.default_rng(2).uniform(-0.1 * GB, 0.1 * GB, len(WEEK))
    error = backtest_error(WEEK, 900 * GB + WEEK * GB + noise)
    assert error == pytest.approx(0.05 * GB, rel=0.3)


def test_a_history_that_can_not_be_parted_has_none() -> None:
    """There are four teeth, of which no head has three."""
    hours = every_5_minutes(23.5)
    assert backtest_error(hours, saw(hours)) is None
