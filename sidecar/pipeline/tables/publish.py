"""New tables in place of the last good ones: all of a run's, or none.

A run writes beside the tables, under ``_staging``. Once all of it is there, a journal is written
that says what is to be replaced; then the old partitions are moved aside and the new ones to their
place. A run that is killed before the journal leaves the tables as they were. One that is killed
after it is rolled forward by the next run, of whatever command, before it reads anything: each step
can be done twice.

A day is replaced whole, in every table that has days, so that to run it again never doubles a row.
Tables without days are replaced whole.

Example: a run of 20 and 21 November of 2 tables has 4 partitions. Killed after 3 of the 4 were
moved aside, the next run moves the fourth aside and then all 4 new ones to their place.

While partitions are moved, one who reads them may find one missing: for milliseconds on a disk or
in HDFS, where each move is one step; in object storage for as long as copying takes.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from sidecar.pipeline.tables.files import Files
from sidecar.pipeline.tables.schemas import Table

_STAGING: Final = "_staging"
_OLD: Final = "_old"
_RETIRING: Final = "_journal.retiring"
_PLACING: Final = "_journal.placing"
_DAY: Final = "dt="
NO_DAY: Final = f"{_DAY}__HIVE_DEFAULT_PARTITION__"
"""Where Spark writes rows without a day; never published."""
_TORN: Final = ".new"


@dataclass(frozen=True, slots=True)
class Output:
    """The folder with the tables."""

    files: Files
    root: str

    def place(self, *parts: str) -> str:
        """A path in it."""
        return "/".join([self.root.rstrip("/"), *(part for part in parts if part)])

    def staged(self, table: Table) -> str:
        """Where a run writes a table."""
        return self.place(_STAGING, table.name)

    def day(self, table: Table, day: date, *, staged: bool) -> str:
        """Where a day of a table is: written beside it, or its own."""
        root = self.staged(table) if staged else self.place(table.name)
        return f"{root}/{_folder(day)}"

    def days(self, table: Table, *, staged: bool) -> tuple[date, ...]:
        """The days that a table has, in order: those that are written beside it, or its own."""
        path = self.staged(table) if staged else self.place(table.name)
        return tuple(
            date.fromisoformat(name.removeprefix(_DAY))
            for name in self.files.names(path)
            if name.startswith(_DAY) and name != NO_DAY
        )


def recover(output: Output) -> bool:
    """Finishes what a killed run had begun to replace, and removes what it left otherwise.

    Returns:
        Whether a journal was rolled forward.
    """
    found = _is_journaled(output)
    if found:
        _roll_forward(output)
    _clear(output)
    return found


def discard(output: Output) -> None:
    """Removes what a run has written that is refused; not once it has begun to replace tables."""
    if not _is_journaled(output):
        _clear(output)


def _is_journaled(output: Output) -> bool:
    return any(output.files.exists(output.place(name)) for name in (_RETIRING, _PLACING))


def publish(output: Output, written: Iterable[tuple[Table, Sequence[date]]]) -> None:
    """Replaces tables by what is staged, all or none.

    Args:
        output: with no journal left (``recover``).
        written: each table that was written, wholly, and the days that are replaced in it if it has
            days; one for which nothing is staged is removed.
    """
    moves = [
        (table.name, partition)
        for table, days in written
        for partition in ([_folder(day) for day in days] if table.partitions else [""])
    ]
    _journal(output, _RETIRING, json.dumps(moves))
    _roll_forward(output)
    _clear(output)


def _folder(day: date) -> str:
    return f"{_DAY}{day.isoformat()}"


def _roll_forward(output: Output) -> None:
    files = output.files
    retiring, placing = output.place(_RETIRING), output.place(_PLACING)
    if not files.exists(placing):
        text = files.read(retiring)
        for table, partition in json.loads(text):
            _move(files, output.place(table, partition), output.place(_OLD, table, partition))
        _journal(output, _PLACING, text)
    files.remove(retiring)
    for table, partition in json.loads(files.read(placing)):
        _move(files, output.place(_STAGING, table, partition), output.place(table, partition))
    files.remove(placing)


def _clear(output: Output) -> None:
    torn = (f"{name}{_TORN}" for name in (_RETIRING, _PLACING))
    for name in (_STAGING, _OLD, *torn):
        output.files.remove(output.place(name))


def _journal(output: Output, name: str, text: str) -> None:
    # Under its name only once it is whole.
    torn = output.place(f"{name}{_TORN}")
    output.files.remove(torn)
    output.files.create(torn, text)
    output.files.move(torn, output.place(name))


def _move(files: Files, source: str, target: str) -> None:
    """Moves what is there, or what an interrupted move has left of it."""
    if not files.exists(source):
        return
    if not files.exists(target):
        files.move(source, target)
        return
    names = files.names(source)
    for name in names:
        _move(files, f"{source}/{name}", f"{target}/{name}")
    # What is left is a file that was copied, or a folder that is empty now.
    files.remove(source)
