"""Statistics of a Parquet file for its Delta commit, by which engines skip files.

They are of the columns by which people filter, and come from the statistics of the file's row
groups. The columns of the folders (``dt``) need none.

Example: if a file's rows of ``user`` are from "ann" to "bob", a query of "carl" does not open it.

Source: Delta's protocol, section on per-file statistics.
"""

from datetime import datetime
from typing import Any, Final

import msgspec
from pyarrow import parquet

FILTERED: Final = frozenset(
    {
        *("broker", "user", "client_id", "api", "quota_type", "entity", "topic", "log_dir"),
        *("log_ts", "quota_ts", "window_start", "observed_ts", "as_of", "valid_from", "valid_to"),
    }
)
"""The columns with statistics, in all tables that have them."""
_LONGEST: Final = 64
"""Longer texts are no bounds, because commits would grow."""


def statistics_of(file: parquet.FileMetaData) -> str:
    """Return the statistics of a file as Delta's JSON."""
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    nulls: dict[str, int] = {}
    bounds: dict[str, tuple[Any, Any]] = {}
    for at in range(file.num_columns):
        name = file.schema.column(at).path
        if name not in FILTERED:
            continue
        chunks = [group.column(at).statistics for group in groups]
        if any(chunk is None for chunk in chunks):
            continue
        nulls[name] = sum(chunk.null_count for chunk in chunks)
        # A chunk of nulls has no bounds; one with texts of kilobytes has none either.
        valued = [chunk for chunk in chunks if chunk.num_values]
        if valued and all(chunk.has_min_max for chunk in valued):
            least, most = min(chunk.min for chunk in valued), max(chunk.max for chunk in valued)
            if not isinstance(most, str) or max(len(least), len(most)) <= _LONGEST:
                bounds[name] = _text(least), _text(most)
    statistics = {
        "numRecords": file.num_rows,
        "minValues": {name: least for name, (least, _) in bounds.items()},
        "maxValues": {name: most for name, (_, most) in bounds.items()},
        "nullCount": nulls,
    }
    return msgspec.json.encode(statistics).decode()


def _text(value: object) -> object:
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value
