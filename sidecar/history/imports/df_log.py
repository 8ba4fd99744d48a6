"""Reads a log of ``df``: a line with the time, then what ``df`` printed, again and again.

Example: ``while true; do date +%s; df -k; sleep 60; done >>kafka-3.df`` writes such a log. A row
``/dev/sdb1 100 75 25 75% /data`` below ``1K-blocks`` is a size of 102,400 bytes with the labels
``filesystem="/dev/sdb1"`` and ``mountpoint="/data"``.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Final

from sidecar.history.imports.local_times import LocalTimes
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


def df_points(file: str, text: str, zone: tzinfo | None) -> Iterator[Point]:
    """Yield the points of a log.

    Args:
        file: the file's name; the label ``file`` of its series.
        text: the content.
        zone: the zone of times without an offset from UTC; None to refuse them.

    Raises:
        DataError: a line is neither a time nor one of df, or comes before a time.
    """
    times = LocalTimes(zone)
    at: float | None = None
    header: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{file}, line {number}"
        time = times.read(line.strip(), place)
        if time is not None:
            at, header = time, None
        elif _MOUNTED in line:
            header = line.replace(_MOUNTED, _MOUNT_COLUMN).split()
            _check_header(place, header)
        elif line.strip():
            if at is None or header is None:
                missing = "time" if at is None else "header of df"
                raise DataError(f"{place}: {line!r} has no {missing} before it")
            yield from _row(place, line, header, Series("", (("file", file),)), at)
    times.end()


def _check_header(place: str, header: Sequence[str]) -> None:
    if not any(map(_BLOCKS.fullmatch, header)):
        raise DataError(f"{place}: no exact size; use df -k, df -P or df -B1, without -h")
    if not any(name.startswith("Avail") for name in header):
        raise DataError(f"{place}: no field with the available bytes, such as Available")


def _row(place: str, line: str, header: Sequence[str], log: Series, at: float) -> Iterator[Point]:
    cells = line.split(None, len(header) - 1)
    if len(cells) != len(header):
        raise DataError(
            f"{place}: it has {len(cells)} fields, and df's header {len(header)}; df -P writes a"
            " line for each file system"
        )
    row = dict(zip(header, cells, strict=True))
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
        field = f"{place}, field {column}"
        size = parse_bytes(count[1] if count else row[column], field)
        yield Point(Series(name, tuple(sorted(labels))), at, size * unit, field)
