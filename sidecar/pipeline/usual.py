"""The usual lines of a block as columns, quickly: nearly all of what brokers log.

``kernels.log_lines`` reads them in one walk over the block's bytes; columns are made of its numbers.
Whatever is unusual about a line leaves it to ``rows``, so this needs to be right only about lines
that it takes; ``rows`` says what right is.

Example: of 1,000 lines of a busy broker 998 are usual; a CREATE_TOPICS and half a line are not.
Measured, CPU time of one busy core at 1,100 bytes a line: 600 MB/s, and 30 MB/s through ``rows``.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.distinct import number_strings
from sidecar.pipeline.kernels.line_fields import NONE, Slot
from sidecar.pipeline.kernels.log_lines import DEEPEST, SHORTEST, lines_of, read_lines
from sidecar.pipeline.kernels.values import Longs
from sidecar.pipeline.log_clock import ahead_ms

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
class Usual:
    """The usual lines of a block.

    Attributes:
        block: that they are of.
        rows: what is read of each, by ``Slot``.
        left: where the others begin and end, ascending.
    """

    block: bytes
    rows: Longs
    left: Longs

    @property
    def starts(self) -> Longs:
        """Where they begin in the block, ascending."""
        return self.rows[:, Slot.START]

    def columns(self, zone: tzinfo) -> dict[str, pa.Array]:
        """By name, those of ``rows.Row`` that such lines have; others are null.

        Args:
            zone: of the clock that their times are of.
        """
        times = self.rows.view(np.float64)
        made = {name: _strings(self.block, self.rows, int(slot)) for name, slot in _STRINGS.items()}
        for name, (slot, kind) in _NUMBERS.items():
            made[name] = _numbers(self.rows[:, slot], kind)
        for name, slot in _TIMES.items():
            made[name] = pa.array(np.ascontiguousarray(times[:, slot]))
        return made | _timestamps(self.rows, zone)


def usual(block: bytes) -> Usual:
    """Reads the usual ones.

    Args:
        block: whole lines; the last one may lack its end.
    """
    view = np.frombuffer(block, np.uint8)
    lines = lines_of(view)
    rows = np.empty((min(lines, len(block) // SHORTEST) + 1, len(Slot)), np.int64)
    left = np.empty((lines, 2), np.int64)
    places = np.zeros((DEEPEST + 1, 4), np.int64)
    found, others = read_lines(view, rows, rows.view(np.float64), left, places)
    return Usual(block, rows[:found], left[:others])


def _strings(block: bytes, rows: Longs, slot: int) -> pa.Array:
    count = len(rows)
    seen = np.full(1 << (2 * count).bit_length(), -1, np.int64)
    numbers, first = np.empty(count, np.int64), np.empty(count, np.int64)
    found = number_strings(np.frombuffer(block, np.uint8), rows, slot, seen, numbers, first)
    texts = [_text(block, *place) for place in rows[first[:found], slot : slot + 3].tolist()]
    return pa.array(texts, pa.string()).take(pa.array(numbers))


def _text(block: bytes, start: int, end: int, escapes: int) -> str:
    if escapes:
        return msgspec.json.decode(b'"' + block[start:end] + b'"', type=str)
    return block[start:end].decode()


def _numbers(column: Longs, kind: type) -> pa.Array:
    return pa.array(column.astype(kind), mask=column == NONE)


def _timestamps(rows: Longs, zone: tzinfo) -> dict[str, pa.Array]:
    times = rows.view(np.float64)
    local_ms = rows[:, Slot.SECOND] * 1000 + rows[:, Slot.MS]
    ahead = ahead_ms(rows[:, Slot.SECOND], zone)
    # In this order, and by the broker's clock, as charged_ms has it.
    charged = local_ms.astype(np.float64) - times[:, Slot.SENDING] - times[:, Slot.QUEUED]
    quota_ms = np.floor(charged).astype(np.int64) - ahead
    return {
        name: pa.array(ms * 1000).cast(_TIMESTAMP)
        for name, ms in (("log_ts", local_ms - ahead), ("quota_ts", quota_ms))
    }
