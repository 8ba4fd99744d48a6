"""Charges as workers hand them to each other: many in a row, with the names that they need.

Spark takes some microseconds for each row that it shuffles, sorts and hands to Python, and as much
for a row of a megabyte: so a worker packs all charges of a shard that it has gathered into one row.
Rows say from when on their charges are, so that whoever gets a shard's rows in this order knows at
each of them that nothing earlier comes any more.

Example: 20,000 charges for 64 shards are 64 rows of some 17 kB each, rather than 20,000 rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.charge import GATHERED, Records, by_shard, joined, shard_of
from usage_pipeline.kernels.numbered import coded
from usage_pipeline.kernels.values import Longs
from usage_pipeline.replay.slots import Slot, SlotsOfClients, hash_of
from usage_pipeline.tables.schemas import QUOTA_TYPES

PACKED: Final = "shard int, since_ms bigint, names binary, records binary"
"""Of Spark's rows: ``Names`` as JSON, and records of CHARGE that have their places."""
IN_ORDER: Final = ("shard", "since_ms")
FIRST_MS: Final = -(1 << 61)
"""Before any charge, milliseconds since 1970."""


class Names(msgspec.Struct, frozen=True, array_like=True):
    """What the numbers in a row's records are.

    Attributes:
        slots: by the records' ``slot``.
        files: by what is above LINE_BITS in their ``line``.
        peaks: in rows without records: kind, who shares it, and their highest rate.
    """

    slots: Sequence[Slot] = ()
    files: Sequence[str] = ()
    peaks: Sequence[tuple[int, str, float]] = ()


NAMES: Final = msgspec.json.Decoder(Names)

Encode = Callable[[pa.RecordBatch, "Met"], Records]
"""Requests, and what was met so far, to records of CHARGE."""


class Met:
    """What a worker has met since it packed last.

    Attributes:
        slots: of clients; they are remembered longer.
    """

    def __init__(self, slots: SlotsOfClients) -> None:
        self.slots = slots
        self.files: dict[str, int] = {}

    def files_of(self, batch: pa.RecordBatch) -> Longs:
        """The number of each row's file."""
        names, at = coded(batch["src_file"])
        # A dictionary may have names that no row has: of those that were filtered out.
        used = np.flatnonzero(np.bincount(at, minlength=len(names)))
        numbers = np.zeros(len(names), np.int64)
        numbers[used] = [
            self.files.setdefault(names[each], len(self.files)) for each in used.tolist()
        ]
        return numbers[at]


def packed(
    batches: Iterable[pa.RecordBatch],
    encode: Encode,
    slots: SlotsOfClients,
    shards: int,
    gathered: int = GATHERED,
) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED, each of as many charges as could be gathered.

    Args:
        batches: of requests.
        encode: what they are charged with.
        slots: of the clients.
        shards: how many there are; all charges of a day, a broker, a kind and of those who share it
            are in one.
        gathered: charges of a worker at which they are packed.
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
    batches: Iterable[pa.RecordBatch], places: Sequence[int], shards: int
) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED that come before all charges: the peaks of those who may be in a shard.

    Args:
        batches: of ``kernels.peak.PEAKS``.
        places: the days and brokers, as ``kernels.places`` has them, whose charges are replayed.
        shards: how many there are.
    """
    for batch in batches:
        kinds = map(QUOTA_TYPES.index, batch["quota_type"].to_pylist())
        peaks = list(
            zip(kinds, batch["shared_by"].to_pylist(), batch["peak"].to_pylist(), strict=True)
        )
        hashes = np.array([hash_of(kind, name) for kind, name, _ in peaks], np.int64)
        of_shards: dict[int, set[int]] = {}
        for place in places:
            shard = shard_of((np.full(hashes.size, place), hashes), shards)
            for at, one in enumerate(shard.tolist()):
                of_shards.setdefault(one, set()).add(at)
        rows = [
            (shard, Names(peaks=[peaks[each] for each in sorted(some)]))
            for shard, some in of_shards.items()
        ]
        yield _batch([(shard, FIRST_MS, names, b"") for shard, names in rows])


def _rows(records: Records, met: Met, shards: int) -> pa.RecordBatch:
    shard = shard_of((records["place"], met.slots.hashes_of(records["slot"])), shards)
    files = list(met.files)
    number = np.zeros(len(met.slots.slots), np.int32)
    rows = []
    for at, own in by_shard(records, shard, shards):
        is_used = np.zeros(number.size, np.bool_)
        is_used[own["slot"]] = True
        used = np.flatnonzero(is_used)
        number[used] = np.arange(used.size)
        own["slot"] = number[own["slot"]]
        names = Names([met.slots.slots[each] for each in used.tolist()], files)
        rows.append((at, int(own["at_ms"].min()), names, own.tobytes()))
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
