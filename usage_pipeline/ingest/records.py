"""Reads a block of complete lines into columns: rows of silver_request and of quarantine.

Example: 8 lines give 8 rows. With half a line after them there are 8 rows, and one rejected as
torn, at the byte where the half line begins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from sidecar.requestlog.layout import Buffer, Layout
from sidecar.requestlog.line import Line, read
from sidecar.requestlog.rejected import Rejected
from usage_pipeline.ingest.fast_parser import FastLines, fast_lines
from usage_pipeline.ingest.log_clock import is_doubled
from usage_pipeline.ingest.rows import YEARS, Row, local_us, row
from usage_pipeline.ingest.whole_seconds import spread_us
from usage_pipeline.kernels.values import Flags, Longs
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST

ROWS: Final = arrow_schema(SILVER_REQUEST.columns[1:])
"""SILVER_REQUEST without its day, which is derived from log_ts."""
REJECTED: Final = arrow_schema(QUARANTINE.columns)

RejectedLine = tuple[int, int, str, str]
"""The position and the length of a line that was not read, the kind of cause, and the reason."""
IsSecond = Callable[[Longs, Longs], Flags]
"""(where lines begin, their local seconds since 1970) -> which lines belong to the second pass. All
of the times are repeated times."""


def _in_first_pass(offsets: Longs, _seconds: Longs) -> Flags:
    return np.zeros(len(offsets), np.bool_)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows and the rejected lines of a block, in order: ``ROWS`` and ``REJECTED``."""

    rows: pa.RecordBatch
    rejected: pa.RecordBatch


def parse_block(
    block: Buffer,
    *,
    broker: int,
    zone: ZoneInfo,
    src_file: str,
    offset: int,
    schema: pa.Schema = ROWS,
    is_second: IsSecond = _in_first_pass,
    layout: Layout | None = None,
) -> Parsed:
    """Read a block.

    Args:
        block: complete lines; the last one may lack its newline.
        broker: the id of the log's broker.
        zone: the time zone of the broker's clock.
        src_file: the file that contains the block.
        offset: the position of the block in that file.
        schema: the columns of ``ROWS`` to make.
        is_second: is called with the lines that have repeated times.
        layout: what is known of the log's layout from the blocks before it; None means nothing.
    """

    def passes(starts: Longs, seconds: Longs) -> Flags | None:
        in_second_pass = is_doubled(seconds, zone)
        if in_second_pass is not None:
            in_second_pass[in_second_pass] = is_second(
                starts[in_second_pass] + offset, seconds[in_second_pass]
            )
        return in_second_pass

    def passes_of(quick: FastLines) -> Flags | None:
        local = ~quick.has_offset
        of_local = passes(quick.starts[local], quick.seconds[local])
        if of_local is None:
            return None
        in_second_pass = np.zeros(len(local), np.bool_)
        in_second_pass[local] = of_local
        return in_second_pass

    def fold(line: Line, start: int) -> int:
        if line.time is None or line.time.tzinfo or not YEARS[0] <= line.time.year <= YEARS[1]:
            return 0
        in_second_pass = passes(np.array([start]), np.array([local_us(line.time) // 1_000_000]))
        return int(in_second_pass is not None and in_second_pass[0])

    layout = layout or Layout()
    quick = fast_lines(block, layout)
    rows: list[tuple[Row, int]] = []
    rejected: list[RejectedLine] = []
    for start, end, found in quick.left:
        parsed = read(found)
        made = parsed if isinstance(parsed, Rejected) else row(parsed, zone, fold(parsed, start))
        if isinstance(made, Rejected):
            rejected.append((offset + start, end - start, str(made.kind), made.message))
        else:
            rows.append((made, offset + start))
    made_schema = schema if "log_ts" in schema.names else schema.append(ROWS.field("log_ts"))
    merged = _merged(
        _rows(rows, broker, src_file, made_schema),
        np.array([start for _, start in rows], np.int64),
        _fast_rows(quick, offset, zone, broker, src_file, made_schema, passes_of(quick)),
        quick.starts + offset,
    )
    if layout.in_whole_seconds:
        merged = _spread(merged)
    return Parsed(merged.select(schema.names), rejected_rows(rejected, broker, src_file))


def _spread(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Spread the charges of a log in whole seconds."""
    at = rows.schema.get_field_index("quota_ts")
    if at < 0:
        return rows
    field = rows.schema.field(at)
    later_us = spread_us(rows["log_ts"].cast(pa.int64()).to_numpy()) // 1000 * 1000
    charged_us = rows["quota_ts"].cast(pa.int64()).to_numpy() + later_us
    return rows.set_column(at, field, pa.array(charged_us).cast(field.type))


def _rows(
    rows: Sequence[tuple[Row, int]], broker: int, src_file: str, schema: pa.Schema
) -> pa.RecordBatch:
    columns: dict[str, Sequence[object]] = dict(
        zip(Row._fields, zip(*(made for made, _ in rows), strict=True), strict=False)
    )
    columns |= {
        "broker": [broker] * len(rows),
        "src_file": [src_file] * len(rows),
        "src_offset": [offset for _, offset in rows],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(field.name, ()), field.type) for field in schema], schema=schema
    )


def _fast_rows(  # noqa: PLR0917  as parse_block's
    quick: FastLines,
    offset: int,
    zone: ZoneInfo,
    broker: int,
    src_file: str,
    schema: pa.Schema,
    is_second: Flags | None,
) -> pa.RecordBatch:
    count = len(quick.starts)
    columns = {
        **quick.columns(schema.names, zone, is_second),
        "broker": pa.repeat(pa.scalar(broker, pa.int32()), count),
        "src_file": pa.repeat(pa.scalar(src_file, pa.string()), count),
        "src_offset": pa.array(quick.starts + offset),
    }
    return pa.RecordBatch.from_arrays(
        [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _merged(
    batch: pa.RecordBatch, starts: Longs, usual_batch: pa.RecordBatch, usual_starts: Longs
) -> pa.RecordBatch:
    """Merge both in the order of the lines."""
    if not batch.num_rows or not usual_batch.num_rows:
        return batch if batch.num_rows else usual_batch
    # Copy runs of usual rows as a whole, with the few others in between. Row by row is slower.
    before = np.searchsorted(usual_starts, starts)
    places, firsts = np.unique(before, return_index=True)
    pieces = []
    done = 0
    for place, begin, end in zip(places, firsts, [*firsts[1:], len(starts)], strict=True):
        pieces += [usual_batch.slice(done, place - done), batch.slice(begin, end - begin)]
        done = place
    return pa.concat_batches([*pieces, usual_batch.slice(done)])


def rejected_rows(lines: Sequence[RejectedLine], broker: int, src_file: str) -> pa.RecordBatch:
    """Return rows of REJECTED for lines of a file."""
    offsets, lengths, kinds, reasons = zip(*lines, strict=True) if lines else ((),) * 4
    columns = {
        "broker": [broker] * len(lines),
        "src_file": [src_file] * len(lines),
        "src_offset": offsets,
        "kind": kinds,
        "reason": reasons,
        "bytes": lengths,
    }
    return pa.RecordBatch.from_pydict(columns, schema=REJECTED)
