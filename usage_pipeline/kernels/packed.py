"""Packs usage by tenant into few rows: arrays of seconds instead of a row for each second.

A row has the usage of a broker by all clients that share a quota, as far as one worker has read it.
Spark then shuffles hundreds of rows instead of millions.

Example: one client of alice's uses 7 bytes of broker 1 in second 10, and another one 5 bytes in
second 12. They are one row with the seconds 10 and 12 and the amounts 7 and 5.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from usage_pipeline.kernels.values import Doubles, Longs
from usage_pipeline.tables.arrow import schema_of

READ: Final = (
    *("quota_type", "user", "client_id", "broker", "window_start"),
    *("amount", "events", "throttled"),
)
"""The columns that ``packed`` needs."""
PACKED: Final = (
    "quota_type string, name string, broker int, second binary, amount binary, events binary,"
    " throttled binary"
)
"""The rows of ``packed``; int64, float64 and int64 are in the arrays."""
EVER_S: Final = 1 << 60
"""A second after any log."""

NamesOf = Callable[[str, str, str], Sequence[tuple[int, str]]]
"""(quota type, user, client-id) -> the tenants over time: from which second on, and the name. They
are in order, and the first one begins at ``-EVER_S``."""

_WHOLE: Final = {"request": 10_000_000.0}
"""Nanoseconds in a percent of a second, to make whole numbers of request time."""
_RATE_S: Final = 10
_HOURS_OF_IDS: Final = 10
_CHUNK_ROWS: Final = 1 << 19
_MOST_SUMS: Final = _CHUNK_ROWS // 2
"""From this many sums on, adding up is expected not to reduce the rows any more."""
_MOST_CLIENTS: Final = 1 << 18
"""How many (quota type, user, client-id) a worker remembers: about 100 MB."""
_SCHEMA: Final = schema_of(PACKED)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a broker by all clients that share a quota.

    Attributes:
        quota_type: the type of the quota.
        name: the tenant, that is, the clients that share the quota.
        broker: the broker.
        second: seconds since 1970, each once, ascending.
        amount: the amount of each second, in the quota's unit.
        events: the number of charges in each second.
        throttled: the number of charges in each second whose clients had to wait.
    """

    quota_type: str
    name: str
    broker: int
    second: Longs
    amount: Doubles
    events: Longs
    throttled: Longs

    @property
    def window(self) -> tuple[int, int]:
        """The least time of a rate in Kafka: in seconds, and in the unit of time of the quota.

        The quota of producer ids is per hour (KIP-936). Other quotas are per second.
        """
        is_ids = self.quota_type == "producer_ids"
        return (_HOURS_OF_IDS * 3600, _HOURS_OF_IDS) if is_ids else (_RATE_S, _RATE_S)

    def steps(self, step_s: int) -> tuple[Longs, Doubles]:
        """Return the first second of each step of a length, and the step's amount."""
        step = self.second // step_s * step_s
        at = _starts(step)
        return step[at], _sums(self.amount, at, _whole(self.quota_type))


def packed(batches: Iterable[pa.RecordBatch], names_of: NamesOf) -> Iterator[pa.RecordBatch]:
    """Yield rows of PACKED; the same name and broker may occur several times.

    A name that many clients share has one entry for each second with usage.
    """
    # Most clients of a chunk are in the next one too, and a lookup costs 15 us.
    known = lru_cache(_MOST_CLIENTS)(names_of)
    sums = _Sums()
    for table in _chunks(batches):
        sums.add(table, known)
        if sums.size > _MOST_SUMS:
            yield from sums.rows().to_batches()
            sums = _Sums()
    if sums.size:
        yield from sums.rows().to_batches()


def unpacked(table: pa.Table) -> Iterator[Usage]:
    """Yield the usage in rows of PACKED by quota type, name and broker, in this order."""
    rows_by_key: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    keys = (table.column(name).to_pylist() for name in ("quota_type", "name", "broker"))
    for row, key in enumerate(zip(*keys, strict=True)):
        rows_by_key[key].append(row)
    for key, rows in sorted(rows_by_key.items()):
        second, amount, events, throttled = (
            np.concatenate([np.frombuffer(column[row].as_buffer(), kind) for row in rows])
            for column, kind in (
                (table.column("second"), np.int64),
                (table.column("amount"), np.float64),
                (table.column("events"), np.int64),
                (table.column("throttled"), np.int64),
            )
        )
        order = np.argsort(second, kind="stable")
        second = second[order]
        at = _starts(second)
        yield Usage(
            *key,
            second[at],
            _sums(amount[order], at, _whole(key[0])),
            np.add.reduceat(events[order], at),
            np.add.reduceat(throttled[order], at),
        )


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield chunks, because a worker may read more than its memory holds."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            yield pa.Table.from_batches(pending)
            pending, rows = [], 0
    if rows:
        yield pa.Table.from_batches(pending)


class _Sums:
    """The sums of a worker by name, broker and second."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        nothing, none = np.zeros(0, np.int64), np.zeros(0)
        self._name, self._broker, self._second = nothing, nothing, nothing
        self._amount, self._events, self._throttled = none, nothing, nothing

    @property
    def size(self) -> int:
        """The number of sums."""
        return self._second.size

    def add(self, table: pa.Table, names_of: NamesOf) -> None:
        """Add rows of READ."""
        clients, client = _clients(table)
        of_rows = seconds(table)
        names, number = _names(clients, client, of_rows, names_of)
        own = [self._numbers.setdefault(each, len(self._numbers)) for each in names]
        name = np.concatenate([self._name, np.array(own, np.int64)[number]])
        broker = np.concatenate([self._broker, _array(table, "broker").astype(np.int64)])
        second = np.concatenate([self._second, of_rows])
        order = np.lexsort((second, broker, name))
        name, broker, second = name[order], broker[order], second[order]
        at = _starts(name, broker, second)
        self._name, self._broker, self._second = name[at], broker[at], second[at]
        amount, events, throttled = (
            np.concatenate([before, _array(table, column).astype(before.dtype)])[order]
            for before, column in (
                (self._amount, "amount"),
                (self._events, "events"),
                (self._throttled, "throttled"),
            )
        )
        whole = np.array([_whole(quota_type) for quota_type, _ in self._numbers])[name]
        self._amount = _sums(amount, at, whole)
        self._events, self._throttled = np.add.reduceat(events, at), np.add.reduceat(throttled, at)

    def rows(self) -> pa.Table:
        """Return the sums as rows of PACKED, one for each name and broker."""
        starts = _starts(self._name, self._broker)
        spans = list(zip(starts.tolist(), [*starts[1:].tolist(), self.size], strict=True))
        arrays = (self._second, self._amount, self._events, self._throttled)
        names = list(self._numbers)
        names_at = [names[each] for each in self._name[starts].tolist()]
        return pa.table(
            [
                *([each[part] for each in names_at] for part in (0, 1)),
                self._broker[starts].astype(np.int32),
                *([array[start:end].tobytes() for start, end in spans] for array in arrays),
            ],
            schema=_SCHEMA,
        )


def seconds(rows: pa.Table | pa.RecordBatch) -> Longs:
    """Return the seconds since 1970 of ``window_start``."""
    at = rows.column("window_start").cast(pa.timestamp("s", "UTC"), safe=False)
    return np.asarray(at.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _clients(table: pa.Table) -> tuple[list[tuple[str, str, str]], Longs]:
    """Return each (quota type, user, client-id) once, and the index of each row's entry."""
    coded = [_coded(table.column(name)) for name in ("quota_type", "user", "client_id")]
    texts = [each.dictionary.to_pylist() for each in coded]
    shape = tuple(map(len, texts))
    joined = np.ravel_multi_index([each.indices.to_numpy() for each in coded], shape)
    distinct, client = np.unique(joined, return_inverse=True)
    places = np.unravel_index(distinct, shape)
    parts = ([text[at] for at in place.tolist()] for text, place in zip(texts, places, strict=True))
    return list(zip(*parts, strict=True)), client


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    is_coded = pa.types.is_dictionary(column.type)
    coded = column if is_coded else column.dictionary_encode()
    # Chunks number their names separately, so make the numbers the same.
    return coded.unify_dictionaries().combine_chunks()


def _names(
    clients: Sequence[tuple[str, str, str]], client: Longs, second: Longs, names_of: NamesOf
) -> tuple[list[tuple[str, str]], Longs]:
    """Return each quota type and name once, and the index of each row's entry."""
    spans = [names_of(*each) for each in clients]
    numbers: dict[tuple[str, str], int] = {}
    number_of = [
        numbers.setdefault((quota_type, name), len(numbers))
        for (quota_type, _, _), spans_of in zip(clients, spans, strict=True)
        for _, name in spans_of
    ]
    sizes = np.array(list(map(len, spans)), np.int64)
    span = (np.cumsum(sizes) - sizes)[client]
    for later in range(1, int(sizes.max())):
        since = [spans_of[later][0] if later < len(spans_of) else EVER_S for spans_of in spans]
        span += second >= np.array(since, np.int64)[client]
    return list(numbers), np.array(number_of, np.int64)[span]


def _starts(*keys: Longs) -> Longs:
    """Return where rows differ from the previous row; there is at least one row."""
    differs = np.zeros(keys[0].size - 1, np.bool_)
    for key in keys:
        differs |= key[1:] != key[:-1]
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def _whole(quota_type: str) -> float:
    """Return the factor that makes the amounts of a quota type whole numbers."""
    return _WHOLE.get(quota_type, 1.0)


def _sums(amount: Doubles, at: Longs, whole: Doubles | float) -> Doubles:
    """Add whole numbers, so that the order of the sum does not matter."""
    of_each = np.broadcast_to(whole, amount.shape)
    sums: Doubles = np.add.reduceat(np.rint(amount * of_each), at) / of_each[at]
    return sums


def _array(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(pc.fill_null(table.column(name), 0).to_numpy())
