"""Finds the slots of ten minutes in which a broker has charges.

Only brokers have charges to produce and fetch. A controller has a few for mutations and request
time.

Example: charges at 08:00:01 and 08:09:59 are in one slot, whose last charge is at 08:09:59.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from usage_pipeline.kernels.packed import seconds
from usage_pipeline.tables.arrow import schema_of

COVER_S: Final = 600
"""The length of a slot, in seconds."""
COVERED: Final = "broker int, slot bigint, last bigint, has_records boolean"
"""The rows of ``covered``; ``has_records`` is whether a charge is to produce or fetch."""
_OF_RECORDS: Final = pa.array(["produce", "fetch"])
_SCHEMA: Final = schema_of(COVERED)


def covered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of COVERED; the same broker and slot may occur several times.

    Args:
        batches: rows with ``quota_type``, ``broker`` and ``window_start``.
    """
    for batch in batches:
        second = seconds(batch)
        of_records = pc.is_in(batch["quota_type"].cast(pa.string()), _OF_RECORDS)
        rows = pa.table([batch["broker"], second // COVER_S, second, of_records], schema=_SCHEMA)
        slots = rows.group_by(["broker", "slot"], use_threads=False).aggregate(
            [("last", "max"), ("has_records", "max")]
        )
        yield from slots.rename_columns(_SCHEMA.names).to_batches()
