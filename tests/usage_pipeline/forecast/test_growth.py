"""The line through points, and since when they grow as they do."""

import numpy as np
import pytest

from usage_pipeline.forecast.growth import parts, theil_sen


def test_theil_sen_is_not_moved_by_a_quarter_of_strange_points() -> None:
    """The line has slope 2 from 1; two of eight points are far off."""
    x = np.arange(8.0)
    y = 2 * x + 1
    y[[2, 7]] = 900.0
    assert (2.0, 1.0) == pytest.approx(theil_sen(x, y))


def test_the_example() -> None:
    """20 points grow by 1, then 10 by 3: the newer part begins with the 21st."""
    x = np.arange(30.0)
    y = np.where(x < 20, x, 20 + 3 * (x - 20))
    newest = parts(x, y)[-1]
    assert slice(20, 30) == newest
    assert 3.0 == theil_sen(x[newest], y[newest])[0]


def test_each_change_ends_a_part() -> None:
    """The changes are a rise, a step down, and a flat part."""
    x = np.arange(40.0)
    y = np.where(x < 20, 2 * x, np.where(x < 30, 2 * x - 30, 40.0))
    assert [(0, 20), (20, 30), (30, 40)] == [(each.start, each.stop) for each in parts(x, y)]


def test_three_points_after_a_change_tell_of_it() -> None:
    """They are the last ones of ten."""
    x = np.arange(10.0)
    assert slice(7, 10) == parts(x, np.where(x < 7, 1.0 * x, 50.0 + 9 * x))[-1]


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_days_are_no_change(seed: int) -> None:
    """Points are 3 hours apart for a week; their floor grows and swings with the day."""
    rng = np.random.default_rng(seed)
    x = np.arange(0.0, 168.0, 3.0)
    y = x + 8 * np.sin(x * np.pi / 12 + seed) + rng.normal(0, 2, len(x))
    assert (slice(0, len(x)),) == parts(x, y)


def test_what_points_are_unsure_by_is_no_change() -> None:
    """A step of 4 leaves points 0.9 off their line; with each off by 1, it is no change."""
    x = np.arange(30.0)
    y = np.where(x < 26, x, x + 4)
    assert [slice(0, 26), slice(26, 30)] == list(parts(x, y, unsure=0.1))
    assert [slice(0, 30)] == list(parts(x, y, unsure=1.0))


def test_few_points_are_one_part() -> None:
    """Five can't be parted in two of three."""
    x = np.arange(5.0)
    assert (slice(0, 5),) == parts(x, np.array([0.0, 1.0, 2.0, 90.0, 91.0]))
