"""Figures over time, with the numbers worked out by hand."""

import pytest

from kafka_lab.series import Series, crossing

COUNT = Series([(10.0, 0.0), (10.2, 600.0), (11.0, 600.0)])


@pytest.mark.parametrize(
    ("at", "expected"),
    [(9.0, 0.0), (10.0, 0.0), (10.1, 300.0), (10.2, 600.0), (10.7, 600.0), (12.0, 600.0)],
)
def test_between_two_samples_it_is_on_their_line(at: float, expected: float) -> None:
    """Outside of all samples it is the nearest one."""
    assert pytest.approx(expected) == COUNT.at(at)


def test_without_samples_there_is_no_value() -> None:
    """There is no rate either; but nothing to draw is no error."""
    with pytest.raises(ValueError, match="no samples"):
        Series().at(1.0)
    assert [] == Series().rates(0.1, 1.0)


def test_a_rate_is_growth_for_each_second() -> None:
    """The module's example, and a second of which four fifths stood still."""
    assert pytest.approx(3000.0) == COUNT.rate(10.0, 10.2)
    assert pytest.approx(3000.0) == COUNT.rate(10.05, 10.1)
    assert pytest.approx(600.0) == COUNT.rate(10.0, 11.0)


def test_rates_over_time_are_of_the_window_that_ends_at_each_step() -> None:
    """They run from the first whole window to the last sample, which is not lost to rounding."""
    rates = COUNT.rates(0.2, 0.4)
    assert pytest.approx([10.4, 10.6, 10.8, 11.0]) == [at for at, _ in rates]
    assert pytest.approx([1500.0, 0.0, 0.0, 0.0], abs=1e-6) == [rate for _, rate in rates]


def test_a_sample_that_is_not_later_is_dropped() -> None:
    """Two threads that add to one series can't turn time back."""
    series = Series([(1.0, 1.0), (1.0, 2.0), (0.5, 3.0), (2.0, 4.0)])
    assert [(1.0, 1.0), (2.0, 4.0)] == list(series)
    assert 2 == len(series)


@pytest.mark.parametrize(
    ("at", "expected"),
    [(9.9, None), (10.0, 0.0), (10.1, 0.0), (10.5, 600.0), (10.7, None), (11.3, 600.0)],
)
def test_a_latest_sample_is_not_older_than_it_may_be(at: float, expected: float | None) -> None:
    """Nothing is known before the first sample, nor long after one."""
    assert expected == COUNT.latest(at, 0.4)


def test_a_window_has_both_its_ends() -> None:
    """The samples at its ends are included."""
    assert [(10.0, 0.0), (10.2, 600.0)] == list(COUNT.window(10.0, 10.2))


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([(1.0, 10.0), (2.0, 0.0)], 1.6),
        ([(1.0, 10.0), (2.0, 4.0)], 2.0),
        ([(1.0, 4.0), (2.0, 10.0)], 1.0),
        ([(1.0, 10.0), (2.0, 10.0), (3.0, 2.0)], 2.75),
        ([(1.0, 10.0), (2.0, 5.0)], None),
        ([], None),
    ],
)
def test_a_threshold_is_crossed_on_the_line(
    samples: list[tuple[float, float]], expected: float | None
) -> None:
    """The crossing is between two samples, at one, or at the first; without one it is None."""
    assert pytest.approx(expected) == crossing(Series(samples), 4.0)
