"""Encodes batches of requests as records of charges for the replay.

``kernels.charging`` computes the charges, and ``usage.mutations`` those of changes of topics.

Example: 10,000 rows of silver_request are about 18,000 records of bytes and request time.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels import charging
from usage_pipeline.kernels.charge import CHARGE, Records
from usage_pipeline.kernels.charging import charged, doubles, longs, micros
from usage_pipeline.kernels.places import BROKER_BITS, LINE_BITS
from usage_pipeline.kernels.values import Doubles, Longs
from usage_pipeline.replay.packing import Met
from usage_pipeline.replay.request_percentage import percent
from usage_pipeline.tables.schemas import QUOTA_TYPES
from usage_pipeline.usage import mutations

OF_REQUESTS: Final = (*charging.NEEDED, "src_file", "src_offset")
"""The columns of SILVER_REQUEST that the encoder reads."""
_REQUEST: Final = QUOTA_TYPES.index("request")
_IDS: Final = QUOTA_TYPES.index("producer_ids")
_PERCENT_PER_NS: Final = percent(1)
_US_PER_MS: Final = 1000
_MS_PER_DAY: Final = 86_400_000
_MOST_MS: Final = float(1 << 52)
"""The longest wait, milliseconds. A damaged line may contain a larger number."""


def mutation_charges(batch: pa.RecordBatch, met: Met, sizes: mutations.Sizes) -> Records:
    """Encode a batch of ``mutations.NEEDED``, with the sizes of topics, as records of CHARGE."""
    charges = mutations.charges(batch, sizes)
    row = charges.row
    kind = np.full(row.size, mutations.KIND)
    # The controller charges mutations when it starts, before it commits them.
    waited_ms = np.rint(doubles(batch, "remote_ms").clip(max=_MOST_MS)).astype(np.int64)
    at_ms = micros(batch, "quota_ts") // _US_PER_MS
    records = _records(batch, met, row, kind, (at_ms - waited_ms)[row], charges.amount)
    records["place"] = _place(at_ms // _MS_PER_DAY, longs(batch, "broker"))[row]
    records["position"] = charges.position
    records["line"] += charges.position
    records["extra"] = waited_ms[row] * 2 + charges.strict
    records["logged_throttle_ms"] = longs(batch, "throttle_ms")[row]
    return records


def request_charges(batch: pa.RecordBatch, met: Met) -> Records:
    """Encode a batch of OF_REQUESTS as records of CHARGE, without mutations."""
    charges = charged(batch)
    at_ms = micros(batch, "quota_ts") // _US_PER_MS
    amount = charges.amount.astype(np.float64)
    is_timed = charges.kind == _REQUEST
    amount[is_timed] *= _PERCENT_PER_NS
    amount[~charges.known] = np.nan
    records = _records(batch, met, charges.row, charges.kind, at_ms[charges.row], amount)
    records["place"] = _place(at_ms // _MS_PER_DAY, longs(batch, "broker"))[charges.row]
    records["position"] = is_timed
    records["line"] += is_timed
    of_ids = longs(batch, "producer_id")[charges.row]
    records["extra"] = np.where(charges.kind == _IDS, of_ids, 0)
    records["logged_throttle_ms"] = longs(batch, "throttle_ms")[charges.row]
    return records


def _records(  # noqa: PLR0917  as numpy's columns
    batch: pa.RecordBatch, met: Met, row: Longs, kind: Longs, at_ms: Longs, amount: Doubles
) -> Records:
    records = np.zeros(row.size, CHARGE)
    records["slot"] = met.slots.slot_numbers(batch, row, kind, at_ms)
    records["at_ms"] = at_ms
    records["amount"] = amount
    # A line has more bytes than charges, so the positions of lines do not overlap.
    line = (met.files_of(batch) << LINE_BITS) + longs(batch, "src_offset")
    records["line"] = line[row]
    return records


def _place(day: Longs, broker: Longs) -> Longs:
    return (day << BROKER_BITS) | broker
