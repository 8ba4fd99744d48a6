"""Rows of tables for the report: dictionaries by column, as Spark and Parquet return them.

Example: ``value({"quota": 5}, "quota")`` is 5.0, and None for a null.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from sidecar.errors import SidecarError
from usage_pipeline.report.figures import utc

Row = Mapping[str, object]


class ReportError(SidecarError):
    """The report can't be made from the tables."""


def value(row: Row, name: str) -> float | None:
    """Return a number; None for a null, and for a number that is not finite.

    Tables of an earlier version may lack the column.
    """
    number = row.get(name)
    if isinstance(number, int | float) and math.isfinite(number):
        return float(number)
    return None


def values(rows: Iterable[Row], name: str) -> list[float]:
    """Return the numbers in a column, without nulls."""
    return [number for row in rows if (number := value(row, name)) is not None]


def text(row: Row, name: str) -> str:
    """Return a text; empty for a null."""
    content = row[name]
    return "" if content is None else str(content)


def seconds(time: object) -> float:
    """Convert a time to seconds since 1970.

    Raises:
        ReportError: the value is not a time.
    """
    if not isinstance(time, datetime):
        raise ReportError(f"a table has {time!r} where a time should be")
    return utc(time).timestamp()


def count(rows: Iterable[Row], name: str) -> float:
    """Return the sum of a column."""
    return sum(value(row, name) or 0.0 for row in rows)
