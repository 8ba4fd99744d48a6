"""The record of a charge that workers exchange, of a fixed size, and operations on many records.

Example: 20,000 charges for 64 shards are 64 arrays of about 300 records with 56 bytes each.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from usage_pipeline.kernels.values import Longs

Records = npt.NDArray[np.void]
"""An array of records."""
Keys = npt.NDArray[np.uint64]
"""An array of ``key_of``."""

CHARGE: Final = np.dtype(
    [
        ("place", np.int64),
        ("slot", np.int32),
        ("position", np.int32),
        ("at_ms", np.int64),
        ("line", np.int64),
        ("amount", np.float64),
        ("extra", np.int64),
        ("logged_throttle_ms", np.int64),
    ]
)
"""The fields are explained in ``replay.columns``. Two more are the position of the charge among
those of its request, and the wait in the request's line, in milliseconds."""
GATHERED: Final = 1 << 20
"""How many records a worker collects before it packs them: 56 MB of charges."""
_SMALL: Final = 1 << 16
_SPREAD: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD)
_HALF: Final = np.uint64(33)


def key_of(parts: Iterable[Longs]) -> Keys:
    """Return a number for the parts of each record's key: the same for equal keys."""
    mixed: Keys = np.zeros(1, np.uint64)
    for part, factor in zip(parts, _SPREAD, strict=False):
        mixed = (mixed ^ part.astype(np.uint64)) * np.uint64(factor)
        mixed ^= mixed >> _HALF
    return mixed


def shard_of(parts: Iterable[Longs], shards: int) -> Longs:
    """Return the shards of records by their keys: evenly spread, the same for equal keys."""
    return np.asarray(key_of(parts) % np.uint64(shards), np.int64)


def joined(pieces: Sequence[Records]) -> Records:
    """Join at least one piece."""
    # Copy bytes, because numpy copies records field by field.
    return np.concatenate([piece.view(np.uint8) for piece in pieces]).view(pieces[0].dtype)


def by_shard(records: Records, shard: Longs, shards: int) -> list[tuple[int, Records]]:
    """Yield the records of each shard that has any, in their order."""
    # Numpy sorts small integers by radix, in a tenth of the time.
    order = np.argsort(shard.astype(np.uint16 if shards <= _SMALL else np.int64), kind="stable")
    ordered = taken(records, order)
    ends = np.cumsum(np.bincount(shard, minlength=shards))
    filled = np.flatnonzero(np.diff(ends, prepend=0)).tolist()
    return [(at, ordered[ends[at - 1] if at else 0 : ends[at]]) for at in filled]


def taken(records: Records, index: Longs) -> Records:
    """Return some records, in this order."""
    # Copy words, for the same reason as in ``joined``.
    words = records.view(np.int32).reshape(-1, records.itemsize // 4)
    return words.take(index, axis=0).reshape(-1).view(records.dtype)
