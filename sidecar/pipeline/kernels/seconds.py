"""What clients used in each second, summed by workers.

Sums are of whole numbers, so that their order does not matter.

Example: three PRODUCEs of alice's in one second are two records: of bytes and of handlers' time,
with ``events`` 3 each.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels import charging
from sidecar.pipeline.kernels.charge import Records, packed, shard_of
from sidecar.pipeline.kernels.charging import charged, longs, micros
from sidecar.pipeline.kernels.columns import BROKER_BITS, broker_of, day_of
from sidecar.pipeline.kernels.numbered import Numbers
from sidecar.pipeline.kernels.values import Longs
from sidecar.pipeline.sweep import QUOTA_TYPES

SECOND: Final = np.dtype(
    [
        ("place", np.int64),
        ("client", np.int32),
        ("kind", np.int32),
        ("second", np.int64),
        ("amount", np.int64),
        ("events", np.int64),
        ("throttled", np.int64),
        ("throttle_ms", np.int64),
        ("short", np.int64),
    ]
)
"""Day and broker, client, quota and second since 1970; sums; ``short`` counts requests that used or
asked for more than their amount says."""
NEEDED: Final = charging.NEEDED
"""The columns of SILVER_REQUEST that are needed."""
USED: Final = (
    "dt date, broker int, user string, client_id string, quota_type string, window_start timestamp,"
    " amount double, events bigint, throttled bigint, throttle_ms bigint, lower_bound boolean"
)
"""Of GOLD_USAGE_1S."""
_SUMS: Final = ("amount", "events", "throttled", "throttle_ms", "short")
_REQUEST: Final = QUOTA_TYPES.index("request")
_NS_PER_PERCENT: Final = 10_000_000.0
_US: Final = 1_000_000
_S_PER_DAY: Final = 86_400
_SECOND_BITS: Final = 36


@dataclass(frozen=True, slots=True)
class Seconds:
    """What a worker is told.

    Attributes:
        clients: user and client-id of each number.
        numbers: of clients.
        shards: how many there are.
    """

    clients: tuple[tuple[str, str], ...]
    numbers: Numbers
    shards: int

    def of_requests(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of PACKED, from batches of NEEDED."""
        return packed(self._sharded(batches), self.shards)

    def rows(self, records: Records) -> pa.Table:
        """Rows of USED; all records of a client and place have to be there."""
        used = summed(records)
        kind, client = used["kind"].astype(np.int64), used["client"]
        per_unit = np.where(kind == _REQUEST, _NS_PER_PERCENT, 1.0)
        users, ids = (pa.array(names, pa.string()) for names in zip(*self.clients, strict=True))
        places, at = np.unique(used["place"], return_inverse=True)
        days = pa.array([day_of(place) for place in places.tolist()], pa.date32())
        brokers = pa.array([broker_of(place) for place in places.tolist()], pa.int32())
        columns = {
            "dt": days.take(pa.array(at)),
            "broker": brokers.take(pa.array(at)),
            "user": users.take(pa.array(client)),
            "client_id": ids.take(pa.array(client)),
            "quota_type": pa.array(QUOTA_TYPES).take(pa.array(kind)),
            "window_start": pa.array(used["second"] * _US, pa.timestamp("us", "UTC")),
            "amount": pa.array(used["amount"] / per_unit),
            **{name: pa.array(used[name].copy()) for name in _SUMS[1:-1]},
            "lower_bound": pa.array(used["short"] > 0),
        }
        return pa.table(columns)

    def _sharded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Records, Longs]]:
        for batch in batches:
            records = summed(self._records(batch))
            place, client = records["place"], records["client"].astype(np.int64)
            yield records, shard_of((place, client), self.shards)

    def _records(self, batch: pa.RecordBatch) -> Records:
        told = charged(batch)
        row = told.row
        second = micros(batch, "quota_ts") // _US
        throttle_ms = longs(batch, "throttle_ms")[row]
        records = np.zeros(row.size, SECOND)
        records["place"] = ((second // _S_PER_DAY << BROKER_BITS) | longs(batch, "broker"))[row]
        records["client"] = self.numbers.clients_of(batch)[row]
        records["kind"] = told.kind
        records["second"] = second[row]
        records["amount"] = told.amount
        records["events"] = 1
        records["throttled"] = throttle_ms > 0
        records["throttle_ms"] = throttle_ms
        # The network threads' time is charged too and is in no line.
        records["short"] = ~told.known | (told.kind == _REQUEST)
        return records


def summed(records: Records) -> Records:
    """A record for each place, client, quota and second; in this order."""
    if records.size == 0:
        return records
    key = records["client"].astype(np.int64) * len(QUOTA_TYPES) + records["kind"]
    key = (key << _SECOND_BITS) | records["second"]
    order = np.lexsort((key, records["place"]))
    key, place = key[order], records["place"][order]
    changes = (np.diff(key) != 0) | (np.diff(place) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    found = records[order[starts]]
    for name in _SUMS:
        found[name] = np.add.reduceat(records[name][order], starts)
    return found
