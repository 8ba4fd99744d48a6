"""Reads the times of rows, of which some have no offset from UTC.

At the end of summer time, a zone has an hour twice. Rows are in the order of time, oldest or newest
first, so a row that runs against this order begins the other one of the two hours.

Example: in Berlin, rows of 01:30, 02:00, 02:30, 02:00, 02:30 and 03:00 are each half an hour apart.
With 02:00 and 02:30 only once, either hour may be meant: the time is refused.

In steps of an hour, 02:00 comes twice, or two rows are seconds apart: one of each hour. In longer
steps, such as a night, it comes once. Then it is the first hour, which is at most an hour wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import groupby, pairwise

from sidecar.history.imports.points import DataError, parse_time


@dataclass(frozen=True, slots=True)
class RowTime:
    """The time of a row.

    Attributes:
        time: epoch seconds; without an offset from UTC, what a clock of the zone showed.
        text: as it is written.
        place: file, line and field, for a person.
    """

    time: float | datetime
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class _Clock:
    """What a clock of a zone showed for a row.

    Attributes:
        time: of the zone; differences of such times are those of the clock.
        row: the row.
    """

    time: datetime
    row: RowTime

    @property
    def times(self) -> tuple[datetime, datetime]:
        """Its first and its second time; outside a change of the clock, both are the same."""
        return self.time, self.time.replace(fold=1)

    @property
    def change(self) -> timedelta:
        """By how much the clock was set back just then, or (negative) forward."""
        first, second = (each.timestamp() for each in self.times)
        return timedelta(seconds=second - first)


def read_time(text: str, place: str, zone: tzinfo | None) -> RowTime | None:
    """Read a time; None if the text is no time.

    Args:
        text: the time, as for ``parse_time``.
        place: file, line and field, for a person.
        zone: the zone of a time without an offset from UTC; None to refuse it.

    Raises:
        DataError: the time has no offset, and there is no zone, or it is of another zone.
    """
    try:
        time = parse_time(text, zone)
    except ValueError as error:
        raise DataError(f"{place}: {error}") from error
    return None if time is None else RowTime(time, text, place)


def epoch_seconds(rows: Sequence[RowTime]) -> list[float]:
    """Return the times of a series, row by row.

    Args:
        rows: oldest or newest first.

    Raises:
        DataError: the zone has a time never, or twice, and the rows do not tell which is meant.
    """
    clocks = [_Clock(row.time, row) for row in rows if isinstance(row.time, datetime)]
    is_ascending = sum((a.time < b.time) - (a.time > b.time) for a, b in pairwise(clocks)) >= 0
    order = 1 if is_ascending else -1
    local = iter(list(_resolve(clocks[::order]))[::order])
    return [next(local) if isinstance(row.time, datetime) else row.time for row in rows]


def _resolve(clocks: Sequence[_Clock]) -> Iterator[float]:
    """Yield the times of clocks in epoch seconds, oldest first."""
    end = 0
    for change, group in groupby(clocks, key=lambda clock: clock.change):
        run = list(group)
        begin, end = end, end + len(run)
        second = len(run)
        if change:
            around = clocks[max(0, begin - 1) : begin + 1], clocks[end - 1 : end + 1]
            steps = [abs(b.time - a.time) for each in around for a, b in pairwise(each)]
            second = _second_hour(run, change, steps)
        for at, clock in enumerate(run):
            yield clock.times[at >= second].timestamp()


def _second_hour(run: Sequence[_Clock], change: timedelta, steps: Sequence[timedelta]) -> int:
    """Return the first row of the second hour, which is the number of rows if none is.

    Args:
        run: the rows of both hours, or those that the clock left out.
        change: by how much the clock was set back.
        steps: from the row before and to the row after, if there are any.
    """
    is_far = all(step >= abs(change) for step in steps)
    if len(run) == 1 and is_far and (not steps or max(steps) > abs(change)):
        return 1
    if change < timedelta(0):
        raise DataError(_never(run[0]))
    if len(run) == 2 and steps and is_far:
        return 1
    against = [at for at, (a, b) in enumerate(pairwise(run), 1) if b.time < a.time]
    if len(against) != 1:
        raise DataError(_twice(run[against[1] if against else 0]))
    return against[0]


def _never(clock: _Clock) -> str:
    return (
        f"{clock.row.place}: {clock.row.text!r} does not exist in the zone {clock.time.tzinfo},"
        " because its clock was set forward: give the zone of the data by --zone, or export in UTC"
    )


def _twice(clock: _Clock) -> str:
    first, second = (time.isoformat(" ") for time in clock.times)
    return (
        f"{clock.row.place}: the zone {clock.time.tzinfo} has {clock.row.text!r} twice, and the"
        f" rows around it do not tell which is meant: write {first} or {second}, or export in UTC"
    )
