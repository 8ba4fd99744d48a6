"""Which days of the tables are requested, and the message when there are none.

Example: since 2026-11-20T23:00 and until 2026-11-21 ask for 20 November, of which a part is asked
for; 21 November is not, since the bound is not included.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime


def no_requests(days: Sequence[date]) -> str:
    """The message when tables have no requests, or none of the requested days."""
    if days:
        which = f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return (
            f"the tables have requests of {which}, and none of the requested"
            " days: see --since and --until"
        )
    return (
        "there are no requests in the tables:"
        " make them with `throttle-sidecar pipeline silver --request-logs PATH`"
    )


def last_days(days: Iterable[date], last: date, most: float) -> tuple[date, ...]:
    """Up to a day, those that are no more than so many before it."""
    return tuple(day for day in days if 0 <= (last - day).days <= most)


def asked_days(
    days: Iterable[date], since: datetime | None, until: datetime | None
) -> tuple[date, ...]:
    """The requested days, wholly or in part.

    Args:
        days: that there are.
        since: UTC; None for no bound.
        until: UTC, not included; None for no bound.
    """
    return tuple(
        day
        for day in days
        if (since is None or day >= since.date())
        and (until is None or datetime.combine(day, datetime.min.time(), UTC) < until)
    )
