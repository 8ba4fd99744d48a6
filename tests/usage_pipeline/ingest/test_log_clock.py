"""A broker's clock: how far it is ahead of UTC at each of its seconds."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from usage_pipeline.ingest.log_clock import ahead_ms
from usage_pipeline.ingest.rows import local_us, since_1970_us


def seconds_of(*times: str) -> list[int]:
    """Returns the clock's times as if they were UTC's."""
    return [int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()) for time in times]


def test_the_modules_example() -> None:
    """Berlin is an hour ahead in November, and two in July."""
    seconds = np.array(seconds_of("2026-11-20 23:05:20", "2026-07-20 23:05:20"))
    assert [3_600_000, 7_200_000] == ahead_ms(seconds, ZoneInfo("Europe/Berlin")).tolist()
    assert [0, 0] == ahead_ms(seconds, ZoneInfo("UTC")).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", "2026-03-29"),
        ("Europe/Berlin", "2026-10-25"),
        ("Australia/Lord_Howe", "2026-04-05"),
        ("Australia/Lord_Howe", "2026-10-04"),
        ("Africa/Monrovia", "1972-01-07"),
        ("Pacific/Apia", "2011-12-30"),
        ("UTC", "2026-03-29"),
    ],
)
def test_each_second_is_reckoned_as_if_it_were_alone(zone: str, day: str) -> None:
    """Clocks are put forward and back that day, by an hour, by half of one, by 44:30."""
    start = seconds_of(f"{day} 00:00:00")[0]
    seconds = np.arange(start - 7_200, start + 86_400 + 7_200, 7)
    expected = []
    for second in seconds.tolist():
        local = datetime.fromtimestamp(second, UTC).replace(tzinfo=None)
        utc_us = since_1970_us(local, ZoneInfo(zone))
        assert utc_us is not None
        expected.append((local_us(local) - utc_us) // 1000)
    assert expected == ahead_ms(seconds, ZoneInfo(zone)).tolist()
