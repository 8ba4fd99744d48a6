"""Computes the charges of many requests at once, for usage and replays, in batches and streams.

PRODUCE, FETCH and SHARE_FETCH are charged for their size on the wire. Every request that is not
exempt is charged for its handlers' time, a controller's line about topics for partitions, and a
line that shows a producer id for that id. The rows (``ingest.rows``) contain the sizes and say
which requests are from replicas or exempt, as ``requestlog`` reads them for the daemon too.
``charge_times`` defines the time of a charge. Tests compare the result with charging line by line
(``tests/support/charges.py``).

Request time is a lower bound, because brokers also charge the network threads' time, which is not
in the log. A predicted throttle time is too short by N / T, and at most by the window that bounds
it. N is the network threads' time for the requests of the last windows, and T is the quota.
Measured on 4.3.1 (``python -m benchmarks network_time``), N is 0.4 to 2.7 times the handlers' time
without TLS and 1.0 to 4.0 times with it, least for large PRODUCE and most for METADATA and large
FETCH. It is close to nothing if the handlers compress records again.

Requests about topics are also charged for mutations. If the sizes of topics are known,
``usage.mutations`` provides the numbers; otherwise they come from the request's own line.

Example: a PRODUCE of 10,035 bytes and a METADATA, each handled in 0.258 ms, have three charges:
produce 10035.0, and request 0.0258 twice.

Source: KIP-124, KIP-936; KafkaApis, RequestHandlerHelper.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidecar.requestlog.mutation_counts import QUOTA_EXCEEDED
from usage_pipeline.kernels.numbered import coded
from usage_pipeline.kernels.values import Doubles, Flags, Longs
from usage_pipeline.tables.apis import TOPIC_APIS
from usage_pipeline.tables.schemas import QUOTA_TYPES

NEEDED: Final = (
    *("broker", "user", "client_id", "quota_ts", "api", "is_follower", "exempt", "quota_bytes"),
    *("bytes_known", "local_ms", "throttle_ms", "producer_id"),
)
"""The columns of SILVER_REQUEST that are needed for charges."""
FOR_KINDS: Final = (
    *("broker", "user", "client_id", "quota_ts", "api", "is_follower", "exempt", "producer_id"),
)
"""The columns that are needed for the kinds of charges."""
_OF_MUTATIONS: Final = ("mutations", "mutations_known", "topic_changes")
NEEDED_WITH_MUTATIONS: Final = (*NEEDED, "is_forwarded", *_OF_MUTATIONS)
_PRODUCE, _FETCH, _REQUEST, _MUTATION, _IDS = range(len(QUOTA_TYPES))
_NONE: Final = -1
_APIS: Final = {
    **dict.fromkeys(("PRODUCE", "0"), _PRODUCE),
    # The log has no sizes of a SHARE_FETCH's records, so its amount is unknown.
    **dict.fromkeys(("FETCH", "1", "SHARE_FETCH", "78"), _FETCH),
}
_NS_PER_MS: Final = 1_000_000
_MOST: Final = float(1 << 52)
"""The longest request time, in nanoseconds, so that damaged lines do not overflow the sums."""


class Charged(NamedTuple):
    """The charges of a batch: those by API, and those for handlers' time.

    Attributes:
        row: for each charge, its row in the batch.
        kind: the kind of quota, as an index of QUOTA_TYPES.
        amount: bytes, nanoseconds or ids, as whole numbers; 0 if unknown.
        known: whether the line has the amount.
    """

    row: Longs
    kind: Longs
    amount: Longs
    known: Flags


def charged(batch: pa.RecordBatch) -> Charged:
    """Return the charges of requests, without mutations, from rows with the columns NEEDED."""
    kind, by_api, timed = _charged_rows(batch)
    is_bytes = kind[by_api] != _IDS
    known = flags(batch, "bytes_known", missing=False)[by_api] | ~is_bytes
    amount = np.where(is_bytes, longs(batch, "quota_bytes")[by_api], 1)
    spent_ns = np.rint(doubles(batch, "local_ms")[timed] * _NS_PER_MS).clip(-_MOST, _MOST)
    return Charged(
        np.concatenate((by_api, timed)),
        np.concatenate((kind[by_api], np.full(timed.size, _REQUEST))),
        np.concatenate((amount, spent_ns.astype(np.int64))),
        np.concatenate((known, _valid(batch, "local_ms")[timed])),
    )


def kinds_of_charges(batch: pa.RecordBatch) -> tuple[Longs, Longs]:
    """Return the row and the kind of each charge, as ``charged`` does, from rows with FOR_KINDS."""
    kind, by_api, timed = _charged_rows(batch)
    kinds = np.concatenate((kind[by_api], np.full(timed.size, _REQUEST)))
    return np.concatenate((by_api, timed)), kinds


def charged_with_mutations(batch: pa.RecordBatch) -> Charged:
    """Return all charges; the number of mutations is the one in the request's own line.

    Args:
        batch: rows with the columns NEEDED_WITH_MUTATIONS.
    """
    charges = charged(batch)
    forwarded = np.flatnonzero(flags(batch, "is_forwarded", missing=False))
    apis = batch["api"].take(pa.array(forwarded)).to_pylist()
    row = forwarded[np.array([api in TOPIC_APIS for api in apis], np.bool_)]
    lines = batch.select(_OF_MUTATIONS).take(pa.array(row)).to_pylist()
    return Charged(
        np.concatenate((charges.row, row)),
        np.concatenate((charges.kind, np.full(row.size, _MUTATION))),
        np.concatenate(
            (charges.amount, np.array([line["mutations"] or 0 for line in lines], np.int64))
        ),
        np.concatenate((charges.known, np.array(list(map(_is_complete, lines)), np.bool_))),
    )


def longs(batch: pa.RecordBatch, name: str) -> Longs:
    """Return a column of integers, with 0 for null."""
    return np.asarray(pc.fill_null(batch[name], 0).to_numpy(zero_copy_only=False), np.int64)


def doubles(batch: pa.RecordBatch, name: str) -> Doubles:
    """Return a column of numbers, with 0 for null."""
    return np.asarray(pc.fill_null(batch[name], 0).to_numpy(zero_copy_only=False), np.float64)


def flags(batch: pa.RecordBatch, name: str, *, missing: bool) -> Flags:
    """Return a column of booleans."""
    return np.asarray(pc.fill_null(batch[name], missing).to_numpy(zero_copy_only=False), np.bool_)


def micros(batch: pa.RecordBatch, name: str) -> Longs:
    """Return a column of times, in microseconds since 1970."""
    # Spark writes INT96, which has nanoseconds.
    times = batch[name].cast(pa.timestamp("us", batch[name].type.tz))
    return np.asarray(times.cast(pa.int64()).to_numpy(), np.int64)


def _valid(batch: pa.RecordBatch, name: str) -> Flags:
    return np.asarray(batch[name].is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _is_complete(line: Mapping[str, Any]) -> bool:
    """Return whether a line has all of its mutations; rejected ones count too."""
    refused = any(change["error"] == QUOTA_EXCEEDED for change in line["topic_changes"] or ())
    return bool(line["mutations_known"]) and not refused


def _charged_rows(batch: pa.RecordBatch) -> tuple[Longs, Longs, Longs]:
    """Return the kind of each row's charge by API, the rows with one, and those with a time."""
    kind = _kinds(batch)
    timed = np.flatnonzero(flags(batch, "exempt", missing=True) == 0)
    return kind, np.flatnonzero(kind != _NONE), timed


def _kinds(batch: pa.RecordBatch) -> Longs:
    """Return the charges by API."""
    names, api = coded(batch["api"])
    kind = np.array([_APIS.get(name, _NONE) for name in names], np.int64)[api]
    kind[(kind == _FETCH) & flags(batch, "is_follower", missing=True)] = _NONE
    kind[(kind == _NONE) & _valid(batch, "producer_id")] = _IDS
    return kind
