"""Parses the usual lines of a block into columns, quickly. Nearly all lines are usual.

``kernels.log_lines`` reads them in one pass over the block's bytes, and this module makes columns
of its numbers. A line with anything unusual is left to ``rows``. This parser must therefore only be
correct for the lines that it accepts; ``rows`` defines what is correct.

Example: 998 of 1,000 lines of a busy broker are usual. A CREATE_TOPICS and half a line are not.
Measured, CPU time of one busy core at 1,100 bytes a line: 380 MB/s, and 30 MB/s through ``rows``.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from usage_pipeline.ingest.log_clock import ahead_ms
from usage_pipeline.kernels.distinct import number_strings
from usage_pipeline.kernels.line_fields import NONE, Slot
from usage_pipeline.kernels.line_json import DEEPEST
from usage_pipeline.kernels.log_lines import SHORTEST, lines_of, read_lines
from usage_pipeline.kernels.values import Doubles, Flags, Longs

Buffer = bytes | memoryview
"""Read-only bytes."""
_STRINGS: Final = {
    "user": Slot.USER,
    "client_id": Slot.CLIENT_ID,
    "listener": Slot.LISTENER,
    "api": Slot.API,
}
_NUMBERS: Final = {
    "api_version": (Slot.VERSION, np.int32),
    "is_forwarded": (Slot.FORWARDED, np.bool_),
    "is_follower": (Slot.IS_FOLLOWER, np.bool_),
    "exempt": (Slot.EXEMPT, np.bool_),
    "acks": (Slot.ACKS, np.int32),
    "records_bytes": (Slot.RECORDS_BYTES, np.int64),
    "quota_bytes": (Slot.QUOTA_BYTES, np.int64),
    "bytes_known": (Slot.BYTES_KNOWN, np.bool_),
    "throttle_ms": (Slot.THROTTLE, np.int64),
    "producer_id": (Slot.PRODUCER_ID, np.int64),
}
_TIMES: Final = {"local_ms": Slot.LOCAL_TIME, "remote_ms": Slot.REMOTE_TIME}
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class FastLines:
    """The usual lines of a block.

    Attributes:
        block: the block that contains them.
        rows: the numbers of each line, by ``Slot``.
        left: where the other lines begin and end, ascending.
    """

    block: Buffer
    rows: Longs
    left: Longs

    @property
    def starts(self) -> Longs:
        """Where the lines begin in the block, ascending."""
        return self.rows[:, Slot.START]

    @property
    def seconds(self) -> Longs:
        """The broker's local time of each line, counted since 1970 as if it were UTC."""
        return self.rows[:, Slot.SECOND]

    def columns(
        self, names: Collection[str], zone: tzinfo, is_second: Flags | None = None
    ) -> dict[str, pa.Array]:
        """Return columns of ``rows.Row``; those that usual lines lack are null.

        Args:
            names: the requested columns; other names are ignored.
            zone: the time zone of the broker's clock.
            is_second: which lines belong to the second pass of a repeated hour; None means none.
        """
        rows, times = self.rows, self.rows.view(np.float64)
        ahead = ahead_ms(self.seconds, zone)
        if is_second is not None:
            ahead = np.where(is_second, ahead_ms(self.seconds, zone, 1), ahead)
        makers: dict[str, Callable[[], pa.Array]] = {
            **{
                name: partial(_strings, self.block, rows, int(slot))
                for name, slot in _STRINGS.items()
            },
            **{
                name: partial(_numbers, rows[:, slot], kind)
                for name, (slot, kind) in _NUMBERS.items()
            },
            **{name: partial(_copied, times[:, slot]) for name, slot in _TIMES.items()},
            "log_ts": lambda: _timestamps(_local_ms(rows), ahead),
            "quota_ts": lambda: _timestamps(_charged_ms(rows), ahead),
        }
        return {name: makers[name]() for name in names if name in makers}


def fast_lines(block: Buffer) -> FastLines:
    """Read the usual lines.

    Args:
        block: complete lines; the last one may lack its newline.
    """
    view = np.frombuffer(block, np.uint8)
    lines = lines_of(view)
    rows = np.empty((min(lines, len(block) // SHORTEST) + 1, len(Slot)), np.int64)
    left = np.empty((lines, 2), np.int64)
    places = np.zeros((DEEPEST + 1, 4), np.int64)
    usual, others = read_lines(view, rows, rows.view(np.float64), left, places)
    return FastLines(block, rows[:usual], left[:others])


def _strings(block: Buffer, rows: Longs, slot: int) -> pa.Array:
    count = len(rows)
    seen = np.full(1 << (2 * count).bit_length(), -1, np.int64)
    numbers, first = np.empty(count, np.int64), np.empty(count, np.int64)
    different = number_strings(np.frombuffer(block, np.uint8), rows, slot, seen, numbers, first)
    texts = [_text(block, *place) for place in rows[first[:different], slot : slot + 3].tolist()]
    return pa.array(texts, pa.string()).take(pa.array(numbers))


def _text(block: Buffer, start: int, end: int, escapes: int) -> str:
    if escapes:
        return msgspec.json.decode(b'"%b"' % bytes(block[start:end]), type=str)
    return str(block[start:end], "utf-8")


def _numbers(column: Longs, kind: type) -> pa.Array:
    return pa.array(column.astype(kind), mask=column == NONE)


def _copied(column: Doubles) -> pa.Array:
    return pa.array(np.ascontiguousarray(column))


def _local_ms(rows: Longs) -> Longs:
    return rows[:, Slot.SECOND] * 1000 + rows[:, Slot.MS]


def _charged_ms(rows: Longs) -> Longs:
    """The times of charges by the broker's clock, in the order of ``charge_times``."""
    times = rows.view(np.float64)
    charged = _local_ms(rows).astype(np.float64) - times[:, Slot.SENDING] - times[:, Slot.QUEUED]
    return np.floor(charged).astype(np.int64)


def _timestamps(local_ms: Longs, ahead: Longs) -> pa.Array:
    return pa.array((local_ms - ahead) * 1000).cast(_TIMESTAMP)
