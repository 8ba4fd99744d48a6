"""The usage of clients in each second, added up by workers.

The sums are of whole numbers, so their order does not matter. Each worker numbers the clients that
it finds, and packs their names with its records, so the clients do not have to be known in advance.

Example: three PRODUCE requests of alice in one second are two records, one for bytes and one for
handlers' time, both with ``events`` 3.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.charge import GATHERED, Records, by_shard, joined, shard_of, taken
from usage_pipeline.kernels.charging import Charged, charged, longs, micros
from usage_pipeline.kernels.numbered import clients_of, distinct
from usage_pipeline.kernels.places import BROKER_BITS, broker_of, day_of
from usage_pipeline.tables.schemas import QUOTA_TYPES

SECOND: Final = np.dtype(
    [
        ("place", np.int64),
        ("client", np.int32),
        ("kind", np.int32),
        ("second", np.int64),
        ("amount", np.int64),
        ("throttle_ms", np.int64),
        ("events", np.int32),
        ("throttled", np.int32),
        ("short", np.int32),
    ],
    align=True,
)
"""Day and broker, client, quota and second since 1970, and sums. ``short`` counts requests that
used or requested more than their amount. The fields are aligned, because sums of unaligned fields
take five times as long."""
PACKED: Final = "shard int, clients binary, records binary"
"""Rows with the clients' names as JSON, and records of SECOND that refer to them."""
Client = tuple[str, str]
"""User and client-id."""
_SUMS: Final = ("amount", "events", "throttled", "throttle_ms", "short")
_REQUEST: Final = QUOTA_TYPES.index("request")
_NS_PER_PERCENT: Final = 10_000_000.0
_US: Final = 1_000_000
_S_PER_HOUR: Final = 3600
_S_PER_DAY: Final = 86_400
_SECOND_BITS: Final = 36
_CLIENTS: Final = msgspec.json.Decoder(list[Client])


def packed(
    batches: Iterable[pa.RecordBatch],
    shards: int,
    of_batch: Callable[[pa.RecordBatch], Charged] = charged,
    gathered: int = GATHERED,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of PACKED. The usage of a broker by a client in an hour is in one shard.

    Args:
        batches: rows with the columns that ``of_batch`` needs.
        shards: the number of shards.
        of_batch: returns the charges of requests.
        gathered: how many records a worker collects before it packs them.
    """
    numbers: dict[Client, int] = {}
    pending: list[Records] = []
    for batch in batches:
        pending.append(summed(_records(batch, of_batch(batch), numbers)))
        if sum(records.size for records in pending) >= gathered:
            yield _rows(joined(pending), list(numbers), shards)
            pending, numbers = [], {}
    if pending:
        yield _rows(joined(pending), list(numbers), shards)


def usage_rows(table: pa.Table) -> pa.Table:
    """Return rows of GOLD_USAGE_1S from all rows of PACKED of a shard."""
    # Only the sums, and the columns made of them, are in memory.
    return _to_usage(*_summed(table))


def _summed(table: pa.Table) -> tuple[Records, Sequence[Client]]:
    """Return the sums of all records, and the clients to which their numbers refer."""
    known = [_CLIENTS.decode(clients) for clients in table.column("clients").to_pylist()]
    pieces = [np.frombuffer(each.as_buffer(), SECOND) for each in table.column("records")]
    names = sorted({client for clients in known for client in clients})
    numbers = {client: number for number, client in enumerate(names)}
    records, at = joined(pieces), 0
    for clients, piece in zip(known, pieces, strict=True):
        own = np.array([numbers[client] for client in clients], np.int32)
        records["client"][at : at + piece.size] = own[piece["client"]]
        at += piece.size
    return summed(records), names


def summed(records: Records) -> Records:
    """Return a record for each place, client, quota and second, in this order."""
    if records.size == 0:
        return records
    key = records["client"].astype(np.int64) * len(QUOTA_TYPES) + records["kind"]
    key = (key << _SECOND_BITS) | records["second"]
    place = records["place"]
    # Records are mostly of one broker and day, and then in the order of time.
    is_one = place.min() == place.max()
    order = np.argsort(key, kind="stable") if is_one else np.lexsort((key, place))
    key, place = key[order], place[order]
    changes = (np.diff(key) != 0) | (np.diff(place) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    ordered = taken(records, order)
    sums = taken(ordered, starts)
    for name in _SUMS:
        sums[name] = np.add.reduceat(ordered[name], starts)
    return sums


def _records(batch: pa.RecordBatch, charged: Charged, numbers: dict[Client, int]) -> Records:
    """Return a record for each charge; number new clients."""
    row = charged.row
    second = micros(batch, "quota_ts") // _US
    throttle_ms = longs(batch, "throttle_ms")[row]
    clients, client = clients_of(batch)
    own = np.array([numbers.setdefault(each, len(numbers)) for each in clients], np.int32)
    records = np.zeros(row.size, SECOND)
    records["place"] = ((second // _S_PER_DAY << BROKER_BITS) | longs(batch, "broker"))[row]
    records["client"] = own[client][row]
    records["kind"] = charged.kind
    records["second"] = second[row]
    records["amount"] = charged.amount
    records["events"] = 1
    records["throttled"] = throttle_ms > 0
    records["throttle_ms"] = throttle_ms
    # The network threads' time is charged too, but it is not in the log.
    records["short"] = ~charged.known | (charged.kind == _REQUEST)
    return records


def _rows(records: Records, clients: Sequence[Client], shards: int) -> pa.RecordBatch:
    """Yield rows of PACKED, each with its clients' names."""
    # This hash is the same on every machine, unlike hash().
    hashes = np.array([crc32("\0".join(client).encode()) for client in clients], np.int64)
    # Include the hour, so that a client with most of the usage is not left to one worker.
    hour = records["second"] // _S_PER_HOUR
    shard = shard_of((records["place"], hashes[records["client"]], hour), shards)
    filled, names, values = [], [], []
    for at, own in by_shard(records, shard, shards):
        filled.append(at)
        needed, own["client"] = distinct(own["client"], len(clients))
        names.append(msgspec.json.encode([clients[number] for number in needed.tolist()]))
        values.append(own.view(np.uint8).data)
    return pa.RecordBatch.from_arrays(
        [pa.array(filled, pa.int32()), pa.array(names, pa.binary()), pa.array(values, pa.binary())],
        ["shard", "clients", "records"],
    )


def _to_usage(sums: Records, clients: Sequence[Client]) -> pa.Table:
    """Return rows of GOLD_USAGE_1S, one for each record."""
    kind, client = sums["kind"].astype(np.int64), sums["client"]
    per_unit = np.where(kind == _REQUEST, _NS_PER_PERCENT, 1.0)
    users, ids = (pa.array(names, pa.string()) for names in zip(*clients, strict=True))
    places, at = np.unique(sums["place"], return_inverse=True)
    days = pa.array([day_of(place) for place in places.tolist()], pa.date32())
    brokers = pa.array([broker_of(place) for place in places.tolist()], pa.int32())
    columns = {
        "dt": days.take(pa.array(at)),
        "broker": brokers.take(pa.array(at)),
        "user": users.take(pa.array(client)),
        "client_id": ids.take(pa.array(client)),
        "quota_type": pa.array(QUOTA_TYPES).take(pa.array(kind)),
        "window_start": pa.array(sums["second"] * _US, pa.timestamp("us", "UTC")),
        "amount": pa.array(sums["amount"] / per_unit),
        **{
            name: pa.array(sums[name].astype(np.int64))
            for name in ("events", "throttled", "throttle_ms")
        },
        "lower_bound": pa.array(sums["short"] > 0),
    }
    return pa.table(columns)
