"""Which days are asked for."""

from datetime import UTC, date, datetime

import pytest

from usage_pipeline.tables.days import asked_days, newest_day, no_requests

DAYS = tuple(date(2026, 11, day) for day in (19, 20, 21))


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (None, None, (19, 20, 21)),
        (datetime(2026, 11, 20, 23, 59, tzinfo=UTC), None, (20, 21)),
        (None, datetime(2026, 11, 21, tzinfo=UTC), (19, 20)),
        (None, datetime(2026, 11, 21, 0, 1, tzinfo=UTC), (19, 20, 21)),
        (datetime(2026, 11, 22, tzinfo=UTC), None, ()),
    ],
)
def test_a_day_is_asked_for_wholly_or_in_part(
    since: datetime | None, until: datetime | None, found: tuple[int, ...]
) -> None:
    """The later bound is not included."""
    assert found == tuple(day.day for day in asked_days(DAYS, since, until))


@pytest.mark.parametrize(("today", "newest"), [(18, 21), (19, 19), (20, 20), (22, 21)])
def test_a_clock_that_is_ahead_makes_no_newest_day(today: int, newest: int) -> None:
    """If all days are after today, the clock of this machine is behind."""
    assert newest == newest_day(DAYS, date(2026, 11, today)).day


def test_no_day_is_refused_with_those_that_there_are() -> None:
    """The message says where to look, or what to do when there are no requests at all."""
    assert "requests of 2026-11-19 to 2026-11-21, but none of" in no_requests(DAYS)
    assert "requests of 2026-11-19, but none of" in no_requests(DAYS[:1])
    assert "pipeline silver --request-logs PATH" in no_requests(())
