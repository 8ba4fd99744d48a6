"""Usage as few rows: what costs Spark a row for each client's second is an array of seconds here.

A row has what a client used of a broker, as far as one worker has read it; Spark then brings
together rows by the hundred instead of by the million.

Example: a client's 7 bytes of broker 1 in the second 10 and 5 in 12 are one row with the seconds
10 and 12 and the amounts 7 and 5.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.values import Doubles, Longs

PACKED: Final = "client int, broker int, second binary, amount binary, events binary"
"""The rows of ``packed``; int64, float64 and int64 are in the arrays."""
SECOND_BITS: Final = 36
"""Of a place: 2,000 years; above them is the broker."""

_WHOLE: Final = {"request": 10_000_000.0}
"""Nanoseconds of a percent of a second: what is whole of a quota type whose amounts are not."""
_CHUNK_ROWS: Final = 1 << 20
_SCHEMA: Final = pa.schema(
    [
        ("client", pa.int32()),
        ("broker", pa.int32()),
        ("second", pa.binary()),
        ("amount", pa.binary()),
        ("events", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of a broker by those who share a quota.

    Attributes:
        quota_type: of which quota.
        name: who shares it.
        broker: whose.
        second: since 1970, each once, ascending.
        amount: in each, in the quota's unit.
        events: charges in each.
    """

    quota_type: str
    name: str
    broker: int
    second: Longs
    amount: Doubles
    events: Longs

    def steps(self, step_s: int) -> tuple[Longs, Doubles]:
        """The first second of each step of so many, and its amount."""
        step = self.second // step_s * step_s
        at = _starts(step)
        return step[at], _sums(self.amount, at, _WHOLE.get(self.quota_type))


def packed(batches: Iterable[pa.RecordBatch], keys: Longs) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED; a client and a broker may come several times.

    Args:
        batches: ``key``, of a client; ``place``, its broker and second; ``amount``; ``events``.
        keys: of all clients, ascending; a client's number is its place.
    """
    for table in _chunks(batches):
        yield from _packed(table, keys).to_batches()


def unpacked(table: pa.Table) -> Iterator[Used]:
    """What was used, by quota type, name and broker, in their order.

    Args:
        table: PACKED with ``quota_type`` and ``name`` instead of the client, and ``from_s`` and
            ``to_s``, the seconds that count: up to the last, without it.
    """
    found: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    keys = (table.column(name).to_pylist() for name in ("quota_type", "name", "broker"))
    for row, key in enumerate(zip(*keys, strict=True)):
        found[key].append(row)
    from_s, to_s = _longs(table, "from_s"), _longs(table, "to_s")
    for key, rows in sorted(found.items()):
        second, amount, events = (
            np.concatenate([np.frombuffer(column[row].as_buffer(), kind) for row in rows])
            for column, kind in (
                (table.column("second"), np.int64),
                (table.column("amount"), np.float64),
                (table.column("events"), np.int64),
            )
        )
        sizes = [len(table.column("second")[row].as_buffer()) // second.itemsize for row in rows]
        counts = (second >= np.repeat(from_s[rows], sizes)) & (
            second < np.repeat(to_s[rows], sizes)
        )
        if not counts.any():
            continue
        order = np.argsort(second[counts], kind="stable")
        second = second[counts][order]
        at = _starts(second)
        yield Used(
            *key,
            second[at],
            _sums(amount[counts][order], at, _WHOLE.get(key[0])),
            np.add.reduceat(events[counts][order], at),
        )


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Not all at once: a worker may read more than its memory holds."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def _packed(table: pa.Table, keys: Longs) -> pa.Table:
    client = np.searchsorted(keys, _longs(table, "key"))
    place = _longs(table, "place")
    order = np.lexsort((place, client))
    client, place = client[order], place[order]
    broker = place >> SECOND_BITS
    starts = _starts(client, broker)
    spans = list(zip(starts.tolist(), [*starts[1:].tolist(), client.size], strict=True))
    arrays: Sequence[Longs | Doubles] = (
        place & ((1 << SECOND_BITS) - 1),
        np.asarray(table.column("amount").to_numpy(), np.float64)[order],
        _longs(table, "events")[order],
    )
    return pa.table(
        [
            client[starts].astype(np.int32),
            broker[starts].astype(np.int32),
            *([array[start:end].tobytes() for start, end in spans] for array in arrays),
        ],
        schema=_SCHEMA,
    )


def _starts(*keys: Longs) -> Longs:
    """Where rows differ from those before them; of at least one row."""
    differs = np.zeros(keys[0].size - 1, np.bool_)
    for key in keys:
        differs |= key[1:] != key[:-1]
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def _sums(amount: Doubles, at: Longs, whole: float | None) -> Doubles:
    """Of whole numbers, so that their order, which is any, does not matter."""
    if whole is None:
        return np.add.reduceat(amount, at)
    return np.add.reduceat(np.rint(amount * whole), at) / whole


def _longs(table: pa.Table, name: str) -> Longs:
    # Not that of ``kernels.columns``, which brings numba with it: a second of each worker's time.
    return np.asarray(table.column(name).to_numpy(), np.int64)
