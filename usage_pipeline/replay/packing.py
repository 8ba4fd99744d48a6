"""Packs many charges and their names into one row for Spark's shuffle.

Spark takes microseconds to shuffle, sort and pass a row to Python, whatever its size. A worker
therefore packs its charges of a shard into one row. Each row has the time of its first charge, and
rows are sorted by that time, so a reader knows that later rows have no earlier charges.

Example: 20,000 charges for 64 shards are 64 rows of 17 kB each instead of 20,000 rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.charge import GATHERED, Records, by_shard, joined
from usage_pipeline.kernels.numbered import coded
from usage_pipeline.kernels.values import Longs
from usage_pipeline.replay.shards import Shards
from usage_pipeline.replay.slots import Slot, SlotsOfClients, hash_of
from usage_pipeline.tables.schemas import QUOTA_TYPES

PACKED: Final = "shard int, since_ms bigint, names binary, records binary"
"""The columns of a packed row: ``Names`` as JSON, and records of CHARGE."""
IN_ORDER: Final = ("shard", "since_ms")
FIRST_MS: Final = -(1 << 61)
"""A time before any charge, milliseconds since 1970."""


class Names(msgspec.Struct, frozen=True, array_like=True):
    """The names for the numbers in a row's records.

    Attributes:
        slots: the slots, by the records' ``slot``.
        files: the files, by the bits above LINE_BITS in the records' ``line``.
        peaks: in rows without records, the kind, the sharing clients and their highest rate.
    """

    slots: Sequence[Slot] = ()
    files: Sequence[str] = ()
    peaks: Sequence[tuple[int, str, float]] = ()


NAMES: Final = msgspec.json.Decoder(Names)

Encode = Callable[[pa.RecordBatch, "Met"], Records]
"""Encodes requests, with the names so far, as records of CHARGE."""


class Met:
    """The names that a worker has collected since it last packed.

    Attributes:
        slots: the slots of clients, which it remembers longer.
    """

    def __init__(self, slots: SlotsOfClients) -> None:
        self.slots = slots
        self.files: dict[str, int] = {}

    def files_of(self, batch: pa.RecordBatch) -> Longs:
        """Return the number of each row's file."""
        names, at = coded(batch["src_file"])
        # A dictionary may contain names of rows that were filtered out.
        needed = np.flatnonzero(np.bincount(at, minlength=len(names)))
        numbers = np.zeros(len(names), np.int64)
        numbers[needed] = [
            self.files.setdefault(names[each], len(self.files)) for each in needed.tolist()
        ]
        return numbers[at]


def packed(
    batches: Iterable[pa.RecordBatch],
    encode: Encode,
    slots: SlotsOfClients,
    shards: Shards,
    gathered: int = GATHERED,
) -> Iterator[pa.RecordBatch]:
    """Pack charges into rows of PACKED.

    Args:
        batches: the batches of requests.
        encode: the function that computes the charges.
        slots: the slots of the clients.
        shards: the shards. All charges of a day, a broker and a shared quota are in one shard.
        gathered: the number of charges at which a worker packs them.
    """
    pending: list[Records] = []
    met, size = Met(slots), 0
    for batch in batches:
        records = encode(batch, met)
        pending.append(records)
        size += records.size
        if size >= gathered:
            yield _rows(joined(pending), met, shards)
            pending, met, size = [], Met(slots), 0
            slots.forget_many()
    if size:
        yield _rows(joined(pending), met, shards)


def packed_peaks(
    batches: Iterable[pa.RecordBatch], places: Sequence[int], shards: Shards
) -> Iterator[pa.RecordBatch]:
    """Pack the peaks for each shard into rows that sort before all charges.

    Args:
        batches: the batches of ``kernels.peak.PEAKS``.
        places: the days and brokers to replay, as in ``kernels.places``.
        shards: the shards.
    """
    for batch in batches:
        kinds = map(QUOTA_TYPES.index, batch["quota_type"].to_pylist())
        peaks = list(
            zip(kinds, batch["shared_by"].to_pylist(), batch["peak"].to_pylist(), strict=True)
        )
        hashes = np.array([hash_of(kind, name) for kind, name, _ in peaks], np.int64)
        of_shards: dict[int, set[int]] = {}
        for place in places:
            shard = shards.of(np.full(hashes.size, place), hashes)
            for at, of_shard in enumerate(shard.tolist()):
                for copy in shards.copies_of(of_shard):
                    of_shards.setdefault(copy, set()).add(at)
        rows = [
            (shard, Names(peaks=[peaks[each] for each in sorted(some)]))
            for shard, some in of_shards.items()
        ]
        yield _batch([(shard, FIRST_MS, names, b"") for shard, names in rows])


def _rows(records: Records, met: Met, shards: Shards) -> pa.RecordBatch:
    shard = shards.of(records["place"], met.slots.hashes_of(records["slot"]))
    files = list(met.files)
    number = np.zeros(len(met.slots.slots), np.int32)
    rows = []
    for at, own in by_shard(records, shard, shards.count):
        is_used = np.zeros(number.size, np.bool_)
        is_used[own["slot"]] = True
        needed = np.flatnonzero(is_used)
        number[needed] = np.arange(needed.size)
        own["slot"] = number[own["slot"]]
        names = Names([met.slots.slots[each] for each in needed.tolist()], files)
        since_ms, packed_records = int(own["at_ms"].min()), own.tobytes()
        rows += [(copy, since_ms, names, packed_records) for copy in shards.copies_of(at)]
    return _batch(rows)


def _batch(rows: Sequence[tuple[int, int, Names, bytes]]) -> pa.RecordBatch:
    names = [msgspec.json.encode(each) for _, _, each, _ in rows]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([shard for shard, *_ in rows], pa.int32()),
            pa.array([since_ms for _, since_ms, *_ in rows], pa.int64()),
            pa.array(names, pa.binary()),
            pa.array([records for *_, records in rows], pa.binary()),
        ],
        ["shard", "since_ms", "names", "records"],
    )
