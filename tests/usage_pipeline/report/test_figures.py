"""Figures with their units."""

import math

import pytest

from usage_pipeline.report import figures


@pytest.mark.parametrize(
    ("expected", "count"),
    [
        *(("0 B", 0), ("999 B", 999), ("1 kB", 1000), ("1 MB", 999_600), ("12.3 MB", 12_345_678)),
        *(("1,230 PB", 1.23e18), ("-", None), ("-", math.inf), ("-400 MB", -4e8)),
    ],
)
def test_sizes(expected: str, count: float | None) -> None:
    """Sizes have three digits, in units of 1,000."""
    assert expected == figures.size(count)


@pytest.mark.parametrize(
    ("expected", "ms"),
    [("12 ms", 12), ("1.5 s", 1500), ("1 min 34 s", 93_784), ("2.5 h", 9e6), ("3.01 days", 2.6e8)],
)
def test_durations(expected: str, ms: float) -> None:
    """Durations have at most two units."""
    assert expected == figures.duration(ms)


def test_rates_and_amounts_are_in_the_quotas_unit() -> None:
    """The units are bytes, threads, partitions and ids."""
    types = ("produce", "request", "controller_mutation", "producer_ids")
    expected = ["2.5 kB/s", "2,500 % of a thread", "2,500 partitions/s", "2,500 ids/h"]
    assert expected == [figures.rate(2500.0, each) for each in types]
    expected = ["2.5 kB", "25 s of threads", "2,500 partitions", "2,500 ids"]
    assert expected == [figures.amount(2500.0, each) for each in types]
    assert "0.34 %" == figures.share(0.0034)
    assert ["0 %", "under 0.01 %", "0.01 %"] == [figures.share(each) for each in (0, 9e-5, 1e-4)]
