"""Rows of tables as the report takes them: dictionaries by column, as Spark and Parquet give them.

Example: ``value({"quota": 5}, "quota")`` is 5.0, and None when there is none.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from sidecar.errors import SidecarError
from usage_pipeline.report.figures import utc

Row = Mapping[str, object]


class ReportError(SidecarError):
    """The tables can't be reported on."""


def value(row: Row, name: str) -> float | None:
    """A number; None for none, and for what is not finite."""
    found = row[name]
    if isinstance(found, int | float) and math.isfinite(found):
        return float(found)
    return None


def values(rows: Iterable[Row], name: str) -> list[float]:
    """The numbers of a column that there are."""
    return [found for row in rows if (found := value(row, name)) is not None]


def text(row: Row, name: str) -> str:
    """A text; empty for none."""
    found = row[name]
    return "" if found is None else str(found)


def seconds(found: object) -> float:
    """A time, in seconds since 1970.

    Raises:
        ReportError: it is none.
    """
    if not isinstance(found, datetime):
        raise ReportError(f"a table has {found!r} where a time should be")
    return utc(found).timestamp()


def count(rows: Iterable[Row], name: str) -> float:
    """The sum of a column."""
    return sum(value(row, name) or 0.0 for row in rows)
