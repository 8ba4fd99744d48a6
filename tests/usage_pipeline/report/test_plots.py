"""Plots: where things are drawn."""

import re

import pytest

from tests.usage_pipeline.report.drawn import paths
from usage_pipeline.report.plots import Axis, Mark, Plot, Series, bars, round_ticks, svg


def test_a_line_goes_from_corner_to_corner() -> None:
    """It leads from the lowest and first to the highest and last; outside it stays on the frame."""
    axis = Axis(0.0, 10.0, ())
    drawn = svg(
        Plot("t", axis, axis, [Series("a", [(-5, -5), (0, 0), (5, 5), (10, 10), (99, 99)])])
    )
    assert [[(92, 214), (399, 113), (706, 12)]] == paths(drawn, "line")


def test_equal_factors_are_equal_steps() -> None:
    """On a logarithmic axis 10 is in the middle between 1 and 100."""
    assert pytest.approx(0.5) == Axis(1.0, 100.0, (), is_log=True).share(10.0)


@pytest.mark.parametrize(
    ("expected", "low", "high"),
    [
        ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 0.0, 1.0),
        ((0.0, 500.0, 1000.0, 1500.0), 0.0, 1900.0),
        ((4.0, 5.0, 6.0, 7.0), 3.5, 7.5),
        ((3.0,), 3.0, 3.0),
    ],
)
def test_ticks_are_round(expected: tuple[float, ...], low: float, high: float) -> None:
    """There is a handful, 1, 2 or 5 times a power of ten apart."""
    assert pytest.approx(expected) == round_ticks(low, high)


def test_bars_are_to_scale_with_the_mark() -> None:
    """The longest, of a bar or of the mark, takes the width."""
    drawn = bars("t", [("one", 50.0, "50"), ("two", 0.0, "0")], Mark("all", 200.0))
    # Its name ends where it is, since there is no room behind it; a mark at 0 begins there.
    assert 'text-anchor="end">all<' in drawn
    assert 'text-anchor="end">all<' not in bars("t", [("one", 50.0, "50")], Mark("all", 0.0))
    assert ["100.0", "0.5"] == re.findall(r'width="([\d.]+)"/>', drawn)
    assert ["570.0"] == re.findall(r'class="mark" d="M([\d.]+)', drawn)
