"""A charge as workers hand it to each other: numbers of a fixed size, many packed in one value.

Spark takes some microseconds for each row that it shuffles, sorts and hands to Python, and as much
for a row of a megabyte: so a worker packs all charges of a shard that it has into one row.

Example: 20,000 charges for 64 shards are 64 rows of some 17 kB each, rather than 20,000 rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sidecar.pipeline.kernels.values import Longs

Records = npt.NDArray[np.void]
"""Of a dtype with fields."""

CHARGE: Final = np.dtype(
    [
        ("place", np.int64),
        ("slot", np.int32),
        ("position", np.int32),
        ("at_ms", np.int64),
        ("line", np.int64),
        ("amount", np.float64),
        ("extra", np.int64),
        ("told_ms", np.int64),
    ]
)
"""``replay.columns`` says what they are; the charge's position among its request's, and the wait in
the request's line, milliseconds."""
PACKED: Final = "shard int, records binary"
"""Of Spark's rows."""
GATHERED: Final = 1 << 20
"""Records of a worker before they are packed: 56 MB of charges."""
_SMALL: Final = 1 << 16
_SPREAD: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD)
_HALF: Final = np.uint64(33)


def shard_of(parts: Iterable[Longs], shards: int) -> Longs:
    """Where records with these keys go: the same for the same key, and spread evenly."""
    mixed: npt.NDArray[np.uint64] = np.zeros(1, np.uint64)
    for part, factor in zip(parts, _SPREAD, strict=False):
        mixed = (mixed ^ part.astype(np.uint64)) * np.uint64(factor)
        mixed ^= mixed >> _HALF
    return np.asarray(mixed % np.uint64(shards), np.int64)


def packed(
    pieces: Iterable[tuple[Records, Longs]], shards: int, gathered: int = GATHERED
) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED, each of as many records as could be gathered."""
    pending: list[tuple[Records, Longs]] = []
    for piece in pieces:
        pending.append(piece)
        if sum(records.size for records, _ in pending) >= gathered:
            yield _rows(pending, shards)
            pending = []
    if pending:
        yield _rows(pending, shards)


def unpacked(table: pa.Table, dtype: np.dtype[np.void]) -> Records:
    """All records of rows of PACKED."""
    return np.frombuffer(b"".join(table.column("records").to_pylist()), dtype)


def joined(pieces: Sequence[Records]) -> Records:
    """All records of some pieces, of which there is one at least."""
    # As bytes: fields are copied one by one otherwise.
    return np.concatenate([piece.view(np.uint8) for piece in pieces]).view(pieces[0].dtype)


def by_shard(records: Records, shard: Longs, shards: int) -> list[tuple[int, Records]]:
    """Records of each shard that has any, in their order."""
    # Small numbers are sorted by their digits, in a tenth of the time.
    order = np.argsort(shard.astype(np.uint16 if shards <= _SMALL else np.int64), kind="stable")
    # As words, for the same reason as in ``joined``.
    words = records.view(np.int32).reshape(-1, records.itemsize // 4)
    ordered = words.take(order, axis=0).reshape(-1).view(records.dtype)
    ends = np.cumsum(np.bincount(shard, minlength=shards))
    filled = np.flatnonzero(np.diff(ends, prepend=0)).tolist()
    return [(at, ordered[ends[at - 1] if at else 0 : ends[at]]) for at in filled]


def _rows(pending: Iterable[tuple[Records, Longs]], shards: int) -> pa.RecordBatch:
    pieces, of_pieces = zip(*pending, strict=True)
    filled = by_shard(joined(pieces), np.concatenate(of_pieces), shards)
    values = [own.tobytes() for _, own in filled]
    return pa.RecordBatch.from_arrays(
        [pa.array([at for at, _ in filled], pa.int32()), pa.array(values, pa.binary())],
        ["shard", "records"],
    )
