"""What there is little of in many requests: clients and files; read once, and sent to all workers.

Example: the two million requests of a day are of some hundred clients, from 96 files, and those of
"kafka" are the brokers' own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.by_workers import Batches
from sidecar.pipeline.kernels.charging import flags
from sidecar.pipeline.kernels.numbered import Numbers, coded

_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""
_IN_SHARD: Final = 2_000_000
"""Requests, so that what a worker holds stays bounded while tenants are many."""
KEYS: Final = ("user", "client_id", "src_file")
"""The columns that they are known by."""
NEEDED: Final = (*KEYS, "quota_ts", "is_follower", "api")
"""The columns that requests are counted by."""
COUNTED: Final = "user string, client_id string, src_file string, rows bigint, brokers bigint"
"""How many rows have the same, and how many of those only brokers send."""
_COUNTS: Final = {"rows": pa.int64(), "brokers": pa.int64()}
_ROWS: Final = pa.schema([*((name, pa.string()) for name in KEYS), *_COUNTS.items()])
_OF_BROKERS: Final = ("BROKER_HEARTBEAT", "BROKER_REGISTRATION", "ALTER_PARTITION")


@dataclass(frozen=True, slots=True)
class Known:
    """Clients and files.

    Attributes:
        clients: user and client-id; a client's number is its place.
        files: by name; a file's number is its place, so that numbers are in the names' order.
        rows: how many there are, of requests or events.
        cluster_users: brokers' own principals, as far as requests name them: of followers,
            heartbeats and so on; events name none.
    """

    clients: Sequence[tuple[str, str]]
    files: Sequence[str]
    rows: int
    cluster_users: frozenset[str]

    @classmethod
    def of(cls, counted: DataFrame) -> "Known":
        """Of COUNTED, by a query."""
        rows = counted.collect()
        return cls(
            sorted({(row["user"], row["client_id"]) for row in rows}),
            sorted({row["src_file"] for row in rows}),
            sum(row["rows"] for row in rows),
            frozenset(row["user"] for row in rows if row["brokers"]),
        )

    @classmethod
    def of_events(cls, events: DataFrame) -> "Known":
        """Of EVENTS; reads them once."""
        rows = sf.count(sf.lit(1)).alias("rows")
        return cls.of(events.groupBy(*KEYS).agg(rows, sf.lit(0).alias("brokers")))

    @property
    def numbers(self) -> Numbers:
        """Of both."""
        return Numbers(
            {client: number for number, client in enumerate(self.clients)},
            {file: number for number, file in enumerate(self.files)},
        )

    @property
    def shards(self) -> int:
        """Into how many the rows are divided."""
        return max(_SHARDS, self.rows // _IN_SHARD)


def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Requests with NEEDED, as COUNTED."""
    for batch in batches:
        names, api = coded(batch["api"])
        is_brokers = np.array([name in _OF_BROKERS for name in names], np.bool_)[api]
        is_brokers |= flags(batch, "is_follower", missing=False)
        found = pa.Table.from_batches([batch.select(KEYS)])
        counting = found.append_column("brokers", pa.array(is_brokers.astype(np.int64)))
        grouped = counting.group_by(list(KEYS), use_threads=False)
        summed = grouped.aggregate([([], "count_all"), ("brokers", "sum")])
        named = summed.rename_columns([*KEYS, "rows", "brokers"]).combine_chunks()
        yield from named.cast(_ROWS).to_batches()
