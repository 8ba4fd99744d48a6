"""What requests are charged with, for many at once: usage, replays, batch and stream have it here.

PRODUCE and FETCH are charged with their size on the wire, every request that is not exempt with its
handlers' time, a controller's line of a request about topics with partitions, and a line that shows
a producer id with that. Sizes, who follows and what is exempt are in the rows (``ingest.rows``), as
``requestlog`` has them for the daemon too; when it was, ``requestlog.charges`` says. Tests charge
line by line beside it (``tests/support/charges.py``).

Request time is a lower bound: the network threads' time is charged too and is not in the log. So a
throttle time that is predicted from it is too short by N / T, and at most by the window that bounds
it: N is what the network threads spent on the requests of the last windows, T the quota. Measured
on 4.3.1 without TLS: N is 0.1 to 0.8 times the handlers' time for requests of 100 bytes, and next
to nothing where the handlers compress anew.

Requests about topics are charged with mutations too; those are few. Where the sizes of topics are
known, ``usage.mutations`` has them; else their lines' own numbers are what there is.

Example: a PRODUCE of 10,035 bytes and a METADATA, handled in 0.258 ms each, are three charges:
produce 10035.0, and twice request 0.0258.

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
"""The columns of SILVER_REQUEST that charges are made of."""
_OF_MUTATIONS: Final = ("mutations", "mutations_known", "topic_changes")
NEEDED_WITH_MUTATIONS: Final = (*NEEDED, "is_forwarded", *_OF_MUTATIONS)
_PRODUCE, _FETCH, _REQUEST, _MUTATION, _IDS = range(len(QUOTA_TYPES))
_NONE: Final = -1
_APIS: Final = {"PRODUCE": _PRODUCE, "0": _PRODUCE, "FETCH": _FETCH, "1": _FETCH}
_NS_PER_MS: Final = 1_000_000
_MOST: Final = float(1 << 52)
"""Nanoseconds that no request takes: what a damaged line says still has sums."""


class Charged(NamedTuple):
    """Charges of a batch: one for what its API is charged with, one for its handlers' time.

    Attributes:
        row: of the batch, for each charge.
        kind: of the quota, a place in QUOTA_TYPES.
        amount: bytes, nanoseconds, ids; whole numbers; 0 where that is unknown.
        known: whether the line has it.
    """

    row: Longs
    kind: Longs
    amount: Longs
    known: Flags


def charged(batch: pa.RecordBatch) -> Charged:
    """What the requests are charged with, but mutations.

    Args:
        batch: of NEEDED.
    """
    kind = _kinds(batch)
    by_api = np.flatnonzero(kind != _NONE)
    timed = np.flatnonzero(flags(batch, "exempt", missing=True) == 0)
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


def charged_with_mutations(batch: pa.RecordBatch) -> Charged:
    """The same and mutations, as far as a request's own line has their number.

    Args:
        batch: of NEEDED_WITH_MUTATIONS.
    """
    found = charged(batch)
    forwarded = np.flatnonzero(flags(batch, "is_forwarded", missing=False))
    apis = batch["api"].take(pa.array(forwarded)).to_pylist()
    row = forwarded[np.array([api in TOPIC_APIS for api in apis], np.bool_)]
    lines = batch.select(_OF_MUTATIONS).take(pa.array(row)).to_pylist()
    return Charged(
        np.concatenate((found.row, row)),
        np.concatenate((found.kind, np.full(row.size, _MUTATION))),
        np.concatenate((found.amount, np.array([_mutations(line) for line in lines], np.int64))),
        np.concatenate((found.known, np.array([_is_complete(line) for line in lines], np.bool_))),
    )


def longs(batch: pa.RecordBatch, name: str) -> Longs:
    """A column of whole numbers; 0 for null."""
    return np.asarray(pc.fill_null(batch[name], 0).to_numpy(zero_copy_only=False), np.int64)


def doubles(batch: pa.RecordBatch, name: str) -> Doubles:
    """A column of numbers; 0 for null."""
    return np.asarray(pc.fill_null(batch[name], 0).to_numpy(zero_copy_only=False), np.float64)


def flags(batch: pa.RecordBatch, name: str, *, missing: bool) -> Flags:
    """A column of truths."""
    return np.asarray(pc.fill_null(batch[name], missing).to_numpy(zero_copy_only=False), np.bool_)


def micros(batch: pa.RecordBatch, name: str) -> Longs:
    """A column of times, microseconds since 1970."""
    # What Spark wrote as INT96 is of nanoseconds.
    times = batch[name].cast(pa.timestamp("us", batch[name].type.tz))
    return np.asarray(times.cast(pa.int64()).to_numpy(), np.int64)


def _valid(batch: pa.RecordBatch, name: str) -> Flags:
    return np.asarray(batch[name].is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _mutations(line: Mapping[str, Any]) -> int:
    return line["mutations"] or 0


def _is_complete(line: Mapping[str, Any]) -> bool:
    """Whether a line has all of its mutations: refused ones were requested too."""
    refused = any(change["error"] == QUOTA_EXCEEDED for change in line["topic_changes"] or ())
    return bool(line["mutations_known"]) and not refused


def _kinds(batch: pa.RecordBatch) -> Longs:
    """What each request's API is charged with."""
    names, api = coded(batch["api"])
    kind = np.array([_APIS.get(name, _NONE) for name in names], np.int64)[api]
    kind[(kind == _FETCH) & flags(batch, "is_follower", missing=True)] = _NONE
    kind[(kind == _NONE) & _valid(batch, "producer_id")] = _IDS
    return kind
