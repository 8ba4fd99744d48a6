"""The requested days of the tables, and the message if there are none.

Example: since 2026-11-20T23:00 and until 2026-11-21 request 20 November, although only a part of
it. 21 November is excluded, because the bound is exclusive.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime


def no_requests(days: Sequence[date]) -> str:
    """Return the message for tables without requests in the requested days."""
    if days:
        which = f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return (
            f"the tables have requests of {which}, but none of the requested"
            " days; change --since or --until"
        )
    return (
        "there are no requests in the tables;"
        " create them with `throttle-sidecar pipeline silver --request-logs PATH`"
    )


def newest_day(days: Collection[date], today: date) -> date:
    """Return the newest day that is not after today, because a broker's clock may be ahead.

    If all days are after today, the clock of this machine is behind, and the newest day counts.

    Args:
        days: at least one day.
        today: the day of the run, UTC.
    """
    return max((day for day in days if day <= today), default=max(days))


def last_days(days: Iterable[date], last: date, most: float) -> tuple[date, ...]:
    """Return the days up to a day, and at most a number of days before it."""
    return tuple(day for day in days if 0 <= (last - day).days <= most)


def asked_days(
    days: Iterable[date], since: datetime | None, until: datetime | None
) -> tuple[date, ...]:
    """Return the requested days, also those requested in part.

    Args:
        days: the existing days.
        since: the start, UTC; None for no bound.
        until: the exclusive end, UTC; None for no bound.
    """
    return tuple(
        day
        for day in days
        if (since is None or day >= since.date())
        and (until is None or datetime.combine(day, datetime.min.time(), UTC) < until)
    )
