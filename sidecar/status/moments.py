"""Times and spans as people read them: relative, and absolute in UTC.

Example: 02:41:07 UTC on 22 November, seen 31 minutes later: "02:41:07 UTC", "31 min ago". On
another day the date is shown too.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from sidecar.api.answers import Wall

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, described relative to another.

    Attributes:
        iso: RFC 3339 in UTC, seconds; for machines.
        clock: time of day in UTC, with the date when it is another day.
        relative: "31 min ago", "in 2 h 5 min" or "now".
    """

    iso: str
    clock: str
    relative: str


@dataclass(frozen=True, slots=True)
class Now:
    """The moment at which a page is made.

    Attributes:
        now: steady seconds.
        wall: steady seconds -> epoch seconds of the machine's clock.
    """

    now: float
    wall: Wall

    def moment(self, steady_s: float) -> Moment:
        """Describe a point in time relative to now."""
        moment_utc = datetime.fromtimestamp(self.wall(steady_s), UTC)
        today = datetime.fromtimestamp(self.wall(self.now), UTC)
        date = (
            "" if moment_utc.date() == today.date() else f" on {moment_utc.day} {moment_utc:%B %Y}"
        )
        return Moment(
            f"{moment_utc:%Y-%m-%dT%H:%M:%SZ}",
            f"{moment_utc:%H:%M:%S} UTC{date}",
            self._ago(steady_s),
        )

    def maybe(self, steady_s: float | None) -> Moment | None:
        """Describe a point in time like ``moment``; None stays None."""
        return None if steady_s is None else self.moment(steady_s)

    def _ago(self, steady_s: float) -> str:
        apart = steady_s - self.now
        if abs(apart) < 1.0:
            return "now"
        return f"in {span(apart)}" if apart > 0 else f"{span(-apart)} ago"


def span(seconds: float) -> str:
    """Write a duration in one or two units: "45 s", "31 min", "2 h 5 min", "3 days"."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds // _MINUTE:.0f} min"
    if seconds < 2 * _DAY:
        minutes = (seconds % _HOUR) // _MINUTE
        return f"{seconds // _HOUR:.0f} h" + (f" {minutes:.0f} min" if minutes else "")
    return f"{seconds // _DAY:,.0f} days"
