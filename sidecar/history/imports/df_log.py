"""Reads a log of ``df``: a line with the time, then what ``df`` printed, again and again.

Example: ``while true; do date +%s; df -k; sleep 60; done >>kafka-3.df`` writes such a log. A row
``/dev/sdb1 100 75 25 75% /data`` below ``1K-blocks`` is a size of 102,400 bytes with the labels
``filesystem="/dev/sdb1"`` and ``mountpoint="/data"``.

Tables that begin with the same file system are a series of times, since a time may stand before
each of ``df /data1`` and ``df /data2``.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from sidecar.history.imports.local_times import RowTime, epoch_seconds, read_time
from sidecar.history.imports.points import DataError, Point, Series, parse_bytes

_BLOCKS: Final = re.compile(r"([0-9]+)(B|K|M|G|kB|MB|GB)?-blocks")
_UNITS: Final = {
    None: 1,
    "B": 1,
    "K": 1024,
    "M": 1024**2,
    "G": 1024**3,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
_MOUNTED: Final = "Mounted on"
_MOUNT_COLUMN: Final = "Mounted_on"
_COUNT: Final = re.compile(r"([0-9]+)[A-Za-z]*")
_NONE: Final = "-"
_MESSAGE: Final = "df: "
"""The begin of a line of df's standard error."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line about a file system.

    Attributes:
        place: file and line, for a person.
        line: its text.
        header: the names of its columns.
    """

    place: str
    line: str
    header: Sequence[str]

    def cells(self) -> dict[str, str]:
        """Return the texts of its columns."""
        cells = self.line.split(None, len(self.header) - 1)
        if len(cells) != len(self.header):
            raise DataError(
                f"{self.place}: it has {len(cells)} fields, and df's header {len(self.header)}; df"
                " -P writes a line for each file system"
            )
        return dict(zip(self.header, cells, strict=True))


_Table = tuple[RowTime, list[_Row]]
"""A time and what df printed after it."""


def df_points(file: str, text: str, zone: tzinfo | None) -> Iterator[Point]:
    """Yield the points of a log.

    Args:
        file: the file's name; the label ``file`` of its series.
        text: the content.
        zone: the zone of times without an offset from UTC; None to refuse them.

    Raises:
        DataError: a line is neither a time nor one of df, or comes before a time.
    """
    series: defaultdict[str, list[_Table]] = defaultdict(list)
    for time, rows in _tables(file, text, zone):
        if rows:
            series[rows[0].cells()[_MOUNT_COLUMN]].append((time, rows))
    for each in series.values():
        for (_, rows), at in zip(each, epoch_seconds([time for time, _ in each]), strict=True):
            for row in rows:
                yield from _points(row, Series("", (("file", file),)), at)


def _tables(file: str, text: str, zone: tzinfo | None) -> list[_Table]:
    tables: list[_Table] = []
    header: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{file}, line {number}"
        time = read_time(line.strip(), place, zone)
        if time is not None:
            tables.append((time, []))
            header = None
        elif _MOUNTED in line:
            header = line.replace(_MOUNTED, _MOUNT_COLUMN).split()
            _check_header(place, header)
        elif line.strip() and not line.startswith(_MESSAGE):
            if not tables or header is None:
                missing = (
                    "header of df before it; run df with LC_ALL=C, which prints it in English"
                    if tables
                    else "time before it, as date -Is prints it"
                )
                raise DataError(f"{place}: {line!r} has no {missing}")
            rows = tables[-1][1]
            # BusyBox wraps a line after a long name.
            name = rows.pop().line if rows and len(rows[-1].line.split()) == 1 else ""
            rows.append(_Row(place, f"{name} {line}", header))
    return tables


def _check_header(place: str, header: Sequence[str]) -> None:
    if not any(map(_BLOCKS.fullmatch, header)):
        raise DataError(f"{place}: no exact size; use df -k, df -P or df -B1, without -h")
    if not any(name.startswith("Avail") for name in header):
        raise DataError(f"{place}: no field with the available bytes, such as Available")


def _points(line: _Row, log: Series, at: float) -> Iterator[Point]:
    row, header = line.cells(), line.header
    blocks = next(name for name in header if _BLOCKS.fullmatch(name))
    available = next(name for name in header if name.startswith("Avail"))
    found = _BLOCKS.fullmatch(blocks)
    unit = int(found[1]) * _UNITS[found[2]] if found else 1
    labels = [*log.labels, ("mountpoint", row[_MOUNT_COLUMN].strip())]
    if "Filesystem" in row:
        labels.append(("filesystem", row["Filesystem"]))
    for name, column in (("size", blocks), ("avail", available)):
        if row[column] == _NONE:
            continue
        count = _COUNT.fullmatch(row[column])
        field = f"{line.place}, field {column}"
        size = parse_bytes(count[1] if count else row[column], field)
        yield Point(Series(name, tuple(sorted(labels))), at, size * unit, field)
