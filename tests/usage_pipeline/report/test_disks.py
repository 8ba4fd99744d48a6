"""Disks: the readings, and the forecast with its range."""

import re
from datetime import timedelta

from tests.usage_pipeline.report.drawn import paths
from tests.usage_pipeline.report.rows import GB, NOW, forecast, reading
from usage_pipeline.report.disks import disk_section

READINGS = [reading(24, 400 * GB), reading(0, 300 * GB)]


def height(used: float) -> float:
    """Returns the y of some GB; 510 GB are the plot's whole height."""
    return round(214 - used / 510 * 202, 1)


def across(hours: float, whole: float) -> float:
    return round(92 + hours / whole * 614, 1)


def test_the_line_meets_the_limit_when_expected() -> None:
    """24 h of readings, 24 h to the limit and 36 h at the latest make 60 h in all."""
    drawn = disk_section([forecast(1, 12.0, 24.0, 36.0)], READINGS)
    used, expected = paths(drawn, "line")[:2]
    assert [(92.0, height(100)), (across(24, 60), height(200))] == used
    ends = [(24, 200), (48, 400), (60, 400)]
    assert [(across(hours, 60), height(gb)) for hours, gb in ends] == expected
    [band] = paths(drawn, "band")
    assert (across(36, 60), height(400)) in band
    assert (across(36, 60), height(300)) not in band
    assert (across(60, 60), height(400)) in band


def test_far_ends_do_not_hide_the_readings() -> None:
    """3,000 h ahead are drawn up to three times the history."""
    drawn = disk_section([forecast(1, 1000.0, 3000.0, None)], READINGS)
    used, expected = paths(drawn, "line")[:2]
    assert across(24, 96) == used[-1][0]
    assert (across(96, 96), height(200 + 200 * 72 / 3000)) == expected[-1]


def test_a_volume_without_a_forecast_has_its_readings() -> None:
    """It has no band."""
    drawn = disk_section([forecast(1, None, None, None)], READINGS)
    assert [] == paths(drawn, "band")
    assert 1 == len(paths(drawn, "line"))


def test_a_volume_without_readings_in_the_last_forecast_is_left_out() -> None:
    """Broker 2 was removed: its last forecast, of a month before, is not the most urgent."""
    removed = {**forecast(2, 1.0, 1.0, 1.0), "as_of": NOW - timedelta(days=30)}
    drawn = disk_section([forecast(1, 12.0, 24.0, 36.0), removed], READINGS)
    assert ["1"] == re.findall(r"<figcaption><h3>Broker (\d)", drawn)
    assert "Hours count from 2026-01-05 12:00:00 UTC." in drawn


def test_full_volumes_come_first() -> None:
    """A volume at its limit has 0 hours. A volume without a forecast may be full before others."""
    rows = [
        forecast(1, None, None, None),
        forecast(2, None, None, None, refused="the log dir is offline"),
        forecast(3, 9.0, 10.0, 12.0),
        forecast(4, 0.0, 0.0, 0.0),
    ]
    plots = re.findall(r"<figcaption><h3>Broker (\d)", disk_section(rows, []))
    assert ["4", "3", "2", "1"] == plots
