"""A charge as workers hand it to each other: numbers of a fixed size, and what is done with many.

Example: 20,000 charges for 64 shards are 64 arrays of some 300 records of 56 bytes.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from usage_pipeline.kernels.values import Longs

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
        ("logged_throttle_ms", np.int64),
    ]
)
"""``replay.columns`` says what they are; the charge's position among its request's, and the wait in
the request's line, milliseconds."""
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


def joined(pieces: Sequence[Records]) -> Records:
    """All records of some pieces, of which there is one at least."""
    # As bytes: fields are copied one by one otherwise.
    return np.concatenate([piece.view(np.uint8) for piece in pieces]).view(pieces[0].dtype)


def by_shard(records: Records, shard: Longs, shards: int) -> list[tuple[int, Records]]:
    """Records of each shard that has any, in their order."""
    # Small numbers are sorted by their digits, in a tenth of the time.
    order = np.argsort(shard.astype(np.uint16 if shards <= _SMALL else np.int64), kind="stable")
    ordered = taken(records, order)
    ends = np.cumsum(np.bincount(shard, minlength=shards))
    filled = np.flatnonzero(np.diff(ends, prepend=0)).tolist()
    return [(at, ordered[ends[at - 1] if at else 0 : ends[at]]) for at in filled]


def taken(records: Records, index: Longs) -> Records:
    """Some records, in this order."""
    # As words, for the same reason as in ``joined``.
    words = records.view(np.int32).reshape(-1, records.itemsize // 4)
    return words.take(index, axis=0).reshape(-1).view(records.dtype)
