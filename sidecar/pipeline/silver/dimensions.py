"""What there is little of in many requests: clients and files; read once, and sent to all workers.

Example: the two million requests of a day are of some hundred clients, from 96 files, and those of
"kafka" are the brokers' own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from sidecar.pipeline.kernels.charging import flags
from sidecar.pipeline.kernels.numbered import Numbers, coded
from sidecar.pipeline.runtime.by_workers import Batches

_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""
_IN_SHARD: Final = 2_000_000
"""Requests, so that what a worker holds stays bounded while tenants are many."""
KEYS: Final = ("user", "client_id", "src_file")
"""The columns that they are known by."""
NEEDED: Final = (*KEYS, "quota_ts", "is_follower", "api")
"""The columns that requests are counted by."""
COUNTED: Final = "user string, client_id string, src_file string, rows bigint, brokers bigint"
"""A client, how many rows are its, and how many of those only brokers send; or, without a client,
a file. So they are as many as both together, and not as both multiplied."""
_COUNTS: Final = {"rows": pa.int64(), "brokers": pa.int64()}
_ROWS: Final = pa.schema([*((name, pa.string()) for name in KEYS), *_COUNTS.items()])
_CLIENTS: Final = pa.schema([field for field in _ROWS if field.name != "src_file"])
_NO_CLIENTS: Final = _CLIENTS.empty_table()
_MOST_UNSUMMED: Final = 100_000
"""Clients of several batches, before the same ones are added up."""
_OF_BROKERS: Final = ("BROKER_HEARTBEAT", "BROKER_REGISTRATION", "ALTER_PARTITION")


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Clients and files.

    Attributes:
        clients: user and client-id; a client's number is its place.
        files: by name; a file's number is its place, so that numbers are in the names' order.
        rows: how many requests there are.
        cluster_users: brokers' own principals, as far as requests name them: of followers,
            heartbeats and so on.
    """

    clients: Sequence[tuple[str, str]]
    files: Sequence[str]
    rows: int
    cluster_users: frozenset[str]

    @classmethod
    def of(cls, counted: DataFrame) -> "Dimensions":
        """Of COUNTED, by a query; what tasks have counted of the same client is added up there."""
        summed = counted.groupBy(*KEYS).agg(
            sf.sum("rows").alias("rows"), sf.sum("brokers").alias("brokers")
        )
        return cls.of_rows(summed.collect())

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any] | Row]) -> "Dimensions":
        """Of COUNTED, each client and file once."""
        files, clients = [], {}
        for row in rows:
            if row["src_file"] is None:
                clients[row["user"], row["client_id"]] = row
            else:
                files.append(row["src_file"])
        return cls(
            sorted(clients),
            sorted(files),
            sum(row["rows"] for row in clients.values()),
            frozenset(row["user"] for row in clients.values() if row["brokers"]),
        )

    @property
    def numbers(self) -> Numbers:
        """Of both."""
        return Numbers(
            {client: number for number, client in enumerate(self.clients)},
            {file: number for number, file in enumerate(self.files)},
        )

    def shards(self, least: int = _SHARDS) -> int:
        """Into how many the rows are divided, at least."""
        return max(least, self.rows // _IN_SHARD)


def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Requests with NEEDED, as COUNTED: each client and each file of all of them once."""
    clients = _NO_CLIENTS
    files: set[str] = set()
    for batch in batches:
        names, api = coded(batch["api"])
        is_brokers = np.array([name in _OF_BROKERS for name in names], np.bool_)[api]
        is_brokers |= flags(batch, "is_follower", missing=False)
        rows = pa.RecordBatch.from_arrays(
            [
                batch["user"].cast(pa.string()),
                batch["client_id"].cast(pa.string()),
                pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows),
                pa.array(is_brokers.astype(np.int64)),
            ],
            schema=_CLIENTS,
        )
        clients = pa.concat_tables([clients, _summed(pa.Table.from_batches([rows]))])
        if clients.num_rows > _MOST_UNSUMMED:
            clients = _summed(clients)
        files.update(batch["src_file"].unique().to_pylist())
    clients = _summed(clients)
    nobody = pa.nulls(len(files), pa.string())
    none = pa.repeat(pa.scalar(0, pa.int64()), len(files))
    of_files = pa.Table.from_arrays(
        [nobody, nobody, pa.array(sorted(files), pa.string()), none, none], schema=_ROWS
    )
    of_clients = clients.add_column(2, "src_file", pa.nulls(clients.num_rows, pa.string()))
    yield from pa.concat_tables([of_clients, of_files]).to_batches()


def _summed(clients: pa.Table) -> pa.Table:
    grouped = clients.group_by(["user", "client_id"], use_threads=False)
    summed = grouped.aggregate([("rows", "sum"), ("brokers", "sum")])
    return summed.rename_columns(_CLIENTS.names)
