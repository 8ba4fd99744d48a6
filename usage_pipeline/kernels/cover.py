"""Finds the slots of ten minutes in which a broker has charges.

Example: charges at 08:00:01 and 08:09:59 are in one slot, whose last charge is at 08:09:59.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.packed import seconds
from usage_pipeline.tables.arrow import schema_of

COVER_S: Final = 600
"""The length of a slot, in seconds."""
COVERED: Final = "broker int, slot bigint, last bigint"
"""The rows of ``covered``."""
_SCHEMA: Final = schema_of(COVERED)


def covered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of COVERED; the same broker and slot may occur several times.

    Args:
        batches: rows with ``broker`` and ``window_start``.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        second = seconds(batch)
        broker = batch.column("broker").to_numpy()
        order = np.lexsort((second, broker))
        broker, second = broker[order], second[order]
        slot = second // COVER_S
        # The last charge of a slot is the one before the next slot.
        ends = np.flatnonzero((np.diff(slot) != 0) | (np.diff(broker) != 0))
        at = np.append(ends, slot.size - 1)
        yield pa.record_batch([broker[at], slot[at], second[at]], schema=_SCHEMA)
