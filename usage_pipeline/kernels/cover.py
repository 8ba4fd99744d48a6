"""In which ten minutes anything was charged on a broker.

Example: charges at 08:00:01 and 08:09:59 are one slot, and the last of it is 08:09:59.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.packed import seconds

COVER_S: Final = 600
"""Of a slot, seconds."""
COVERED: Final = "broker int, slot bigint, last bigint"
"""The rows of ``covered``."""
_SCHEMA: Final = pa.schema([("broker", pa.int32()), ("slot", pa.int64()), ("last", pa.int64())])


def covered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of COVERED; a broker and a slot may come several times.

    Args:
        batches: with ``broker`` and ``window_start``.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        second = seconds(batch)
        broker = batch.column("broker").to_numpy()
        order = np.lexsort((second, broker))
        broker, second = broker[order], second[order]
        slot = second // COVER_S
        # The last one of a slot is the one before another slot.
        ends = np.flatnonzero((np.diff(slot) != 0) | (np.diff(broker) != 0))
        at = np.append(ends, slot.size - 1)
        yield pa.record_batch([broker[at], slot[at], second[at]], schema=_SCHEMA)
