"""Batches of Spark's rows as the records of charges that are replayed.

Example: 10,000 rows of silver_request are some 18,000 records: of bytes and of handlers' time.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels import charging
from sidecar.pipeline.kernels.charge import CHARGE, Records, packed, shard_of
from sidecar.pipeline.kernels.charging import charged, longs, micros
from sidecar.pipeline.kernels.numbered import Numbers, coded
from sidecar.pipeline.kernels.places import BROKER_BITS, LINE_BITS
from sidecar.pipeline.kernels.values import Doubles, Longs
from sidecar.pipeline.replay.columns import Slots
from sidecar.pipeline.tables.schemas import QUOTA_TYPES

OF_EVENTS: Final = (
    *("dt", "broker", "quota_type", "user", "client_id", "at_ms", "amount", "extra", "told_ms"),
    *("src_file", "src_offset", "position"),
)
"""The columns of EVENTS that are needed, and ``extra`` as CHARGE has it."""
OF_REQUESTS: Final = (*charging.NEEDED, "src_file", "src_offset")
"""The columns of SILVER_REQUEST that are needed."""
_REQUEST: Final = QUOTA_TYPES.index("request")
_IDS: Final = QUOTA_TYPES.index("producer_ids")
_PERCENT_PER_NS: Final = 100.0 / 1_000_000_000
_US_PER_MS: Final = 1000
_MS_PER_DAY: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Layout:
    """What a worker needs."""

    numbers: Numbers
    slots: Slots
    shards: int

    def of_events(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of PACKED, from batches of OF_EVENTS."""
        return packed(self._sharded(batches, self._events), self.shards)

    def of_requests(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of PACKED, from batches of OF_REQUESTS: all charges but mutations."""
        return packed(self._sharded(batches, self._requests), self.shards)

    def _sharded(
        self, batches: Iterable[pa.RecordBatch], laid_out: Callable[[pa.RecordBatch], Records]
    ) -> Iterator[tuple[Records, Longs]]:
        for batch in batches:
            records = laid_out(batch)
            shared = self.slots.shared[records["slot"]]
            yield records, shard_of((records["place"], shared), self.shards)

    def _events(self, batch: pa.RecordBatch) -> Records:
        names, at = coded(batch["quota_type"])
        kind = np.array([QUOTA_TYPES.index(name) for name in names], np.int64)[at]
        amount = batch["amount"].to_numpy(zero_copy_only=False).astype(np.float64)
        day = np.asarray(batch["dt"].cast(pa.int32()).to_numpy(), np.int64)
        records = self._records(batch, np.arange(kind.size), kind, longs(batch, "at_ms"), amount)
        records["place"] = _place(day, longs(batch, "broker"))
        records["position"] = longs(batch, "position")
        records["line"] += records["position"]
        records["extra"] = longs(batch, "extra")
        records["told_ms"] = longs(batch, "told_ms")
        return records

    def _requests(self, batch: pa.RecordBatch) -> Records:
        found = charged(batch)
        at_ms = micros(batch, "quota_ts") // _US_PER_MS
        amount = found.amount.astype(np.float64)
        is_timed = found.kind == _REQUEST
        amount[is_timed] *= _PERCENT_PER_NS
        amount[~found.known] = np.nan
        records = self._records(batch, found.row, found.kind, at_ms[found.row], amount)
        records["place"] = _place(at_ms // _MS_PER_DAY, longs(batch, "broker"))[found.row]
        records["position"] = is_timed
        records["line"] += is_timed
        of_ids = longs(batch, "producer_id")[found.row]
        records["extra"] = np.where(found.kind == _IDS, of_ids, 0)
        records["told_ms"] = longs(batch, "throttle_ms")[found.row]
        return records

    def _records(
        self, batch: pa.RecordBatch, row: Longs, kind: Longs, at_ms: Longs, amount: Doubles
    ) -> Records:
        records = np.zeros(row.size, CHARGE)
        client = self.numbers.clients_of(batch)[row]
        records["slot"] = self.slots.at(kind, client, at_ms)
        records["at_ms"] = at_ms
        records["amount"] = amount
        # A line is longer than the number of its charges, so lines do not overlap.
        line = (self.numbers.files_of(batch) << LINE_BITS) + longs(batch, "src_offset")
        records["line"] = line[row]
        return records


def _place(day: Longs, broker: Longs) -> Longs:
    return (day << BROKER_BITS) | broker
