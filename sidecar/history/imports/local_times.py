"""Reads the times of rows, of which some have no offset from UTC.

At the end of summer time, a zone has an hour twice. Rows are in the order of time, oldest or newest
first, so a row that runs against this order begins the other one of the two hours.

Example: in Berlin, rows of 01:30, 02:00, 02:30, 02:00, 02:30 and 03:00 are each half an hour apart.
With 02:00 and 02:30 only once, either hour may be meant: the time is refused.
"""

from datetime import datetime, tzinfo

from sidecar.history.imports.points import DataError, parse_time


class LocalTimes:
    """The times of one series, row by row."""

    def __init__(self, zone: tzinfo | None) -> None:
        """Begins without a row. ``zone``: of times without an offset; None to refuse them."""
        self._zone = zone
        self._before: datetime | None = None
        self._is_ascending = True
        self._fold: int | None = None
        """The hour of the row before: 0 is the first of the two, None is another hour."""
        self._doubt = ""
        """The message for a row of the two hours, until a row runs against the order."""

    def read(self, text: str, place: str) -> float | None:
        """Return the time of the next row in epoch seconds; None if the text is no time.

        Args:
            text: the time, as for ``parse_time``.
            place: file, line and field, for a person.

        Raises:
            DataError: the time has no offset, and there is no zone, or the zone has it never, or
                twice, and the rows do not tell which is meant.
        """
        try:
            time = parse_time(text, self._zone)
        except ValueError as error:
            raise DataError(f"{place}: {error}") from error
        return self._resolve(time, text, place) if isinstance(time, datetime) else time

    def end(self) -> None:
        """Check the hour of the last rows.

        Raises:
            DataError: the rows do not tell which of two hours is meant.
        """
        if self._doubt:
            raise DataError(self._doubt)

    def _resolve(self, time: datetime, text: str, place: str) -> float:
        before, self._before = self._before, time
        later = time.replace(fold=1)
        at = (time.timestamp(), later.timestamp())
        if at[0] == at[1]:
            self.end()
            self._fold = None
            return at[0]
        if at[0] > at[1]:
            raise DataError(
                f"{place}: {text!r} does not exist in the zone {self._zone}, because its clock was"
                " set forward: give the zone of the data by --zone, or export in UTC"
            )
        doubt = (
            f"{place}: the zone {self._zone} has {text!r} twice, and the rows around it do not tell"
            f" which is meant: write {time.isoformat(' ')} or {later.isoformat(' ')}, or export in"
            " UTC"
        )
        if before is None:
            raise DataError(doubt)
        # Times of the same zone are compared as a clock on the wall shows them.
        if self._fold is None:
            self._is_ascending = before < time
            self._fold = 0 if self._is_ascending else 1
            self._doubt = doubt
        elif time <= before if self._is_ascending else time >= before:
            if not self._doubt:
                raise DataError(doubt)
            self._fold = 1 - self._fold
            self._doubt = ""
        return at[self._fold]
