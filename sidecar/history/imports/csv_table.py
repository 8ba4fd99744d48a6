"""Reads a CSV file: a table of readings, or what Grafana downloads from a panel.

The header names the columns. One is the time. A column that a rule names is a label. Another one is
a size if its name tells of total or available bytes. The name may be a metric with labels, as in
Grafana's header, or the text of a legend, which becomes the label ``series``. In Grafana's table
view, the metric is in the column ``__name__`` and the size in ``Value``.

Example: of the header ``time,host,size,avail``, each row is a point of ``size`` and one of
``avail``, with the label ``host``.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from sidecar.history.imports.local_times import RowTime, epoch_seconds, read_time
from sidecar.history.imports.points import NAMES, DataError, Point, Series, parse_bytes

_TIMES: Final = ("time", "timestamp", "date", "datetime", "ts")
_METRIC: Final = re.compile(r"([\w:]*)\{(.*)\}")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_EXCEL: Final = "sep="
"""The begin of the line that earlier versions of Grafana write for Excel."""
_SEPARATOR: Final = re.compile(r'(?:"[^"]*"|[^,;\t]*)([,;\t])')
"""What is after the first field."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The meaning of the columns.

    Attributes:
        header: the names of all columns.
        time: the number of the time.
        sizes: the number of each size, with its series; a name of "" is in ``__name__``.
        labels: the number of each label that is wanted.
    """

    header: Sequence[str]
    time: int
    sizes: dict[int, Series]
    labels: dict[int, str]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row.

    Attributes:
        line: file and line, for a person.
        time: its time.
        cells: the texts of all columns.
    """

    line: str
    time: RowTime
    cells: Sequence[str]


def csv_points(
    file: str, text: str, zone: tzinfo | None, wanted: Collection[str]
) -> Iterator[Point]:
    """Yield the points of a table. A cell without a text is no reading.

    Args:
        file: the file's name; the label ``file`` of its series.
        text: the content.
        zone: the zone of times without an offset from UTC; None to refuse them.
        wanted: the columns to take as labels.

    Raises:
        DataError: a column is missing, or a cell is not what its column has.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    skipped = 1 if lines and lines[0].startswith(_EXCEL) else 0
    separator = _SEPARATOR.match("".join(lines[skipped : skipped + 1]))
    reader = csv.reader(
        lines[skipped:],
        delimiter=separator[1] if separator else ",",
        skipinitialspace=True,
        strict=True,
    )
    series: defaultdict[tuple[str, ...], list[_Row]] = defaultdict(list)
    """The rows with the same labels."""
    try:
        columns = _columns(file, next(reader, []), wanted)
        for cells in reader:
            if cells:
                row = _row(f"{file}, line {reader.line_num + skipped}", cells, columns, zone)
                series[tuple(cells[at] for at in columns.labels)].append(row)
    except csv.Error as error:
        raise DataError(f"{file}, line {reader.line_num + skipped}: {error}") from error
    for rows in series.values():
        for row, time in zip(rows, epoch_seconds([row.time for row in rows]), strict=True):
            yield from _points(row, time, columns)


def _columns(file: str, header: Sequence[str], wanted: Collection[str]) -> _Columns:
    time = next((at for at, name in enumerate(header) if name.lower() in _TIMES), None)
    if time is None:
        raise DataError(
            f"{file}, line 1: none of the columns {', '.join(header)} is the time; name one"
            f" {', '.join(_TIMES)}"
        )
    sizes, labels = {}, {}
    for at, name in enumerate(header):
        series = _series(file, name)
        if at == time:
            continue
        if name == "__name__" or name in wanted:
            labels[at] = name
        elif series.kind is not None:
            sizes[at] = series
        elif "__name__" in header and name.startswith("Value"):
            sizes[at] = Series("", (("file", file),))
    if not sizes:
        raise DataError(
            f"{file}, line 1: none of the columns {', '.join(header)} is a size: {NAMES}"
        )
    return _Columns(header, time, sizes, labels)


def _series(file: str, name: str) -> Series:
    """Return the series of a column's name."""
    if metric := _METRIC.fullmatch(name):
        labels = {"file": file, **dict(_LABEL.findall(metric[2]))}
        return Series(labels.pop("__name__", metric[1]), tuple(sorted(labels.items())))
    return Series(name, (("file", file), ("series", name)))


def _row(line: str, cells: Sequence[str], columns: _Columns, zone: tzinfo | None) -> _Row:
    if len(cells) != len(columns.header):
        raise DataError(f"{line}: it has {len(cells)} fields, and the header {len(columns.header)}")
    place = f"{line}, field {columns.header[columns.time]}"
    time = read_time(cells[columns.time], place, zone)
    if time is None:
        raise DataError(f"{place}: {cells[columns.time]!r} is not a time")
    return _Row(line, time, cells)


def _points(row: _Row, time: float, columns: _Columns) -> Iterator[Point]:
    labels = {name: row.cells[at] for at, name in columns.labels.items()}
    name = labels.pop("__name__", "")
    for at, series in columns.sizes.items():
        if row.cells[at]:
            place = f"{row.line}, field {columns.header[at]}"
            own = tuple(sorted({**dict(series.labels), **labels}.items()))
            try:
                size_bytes = parse_bytes(row.cells[at], place)
            except DataError as error:
                hint = 'in Grafana, turn off "Formatted data" before the download'
                raise DataError(f"{error}; {hint}") from error
            yield Point(Series(series.name or name, own), time, size_bytes, place)
