"""What there is little of in many requests: clients and files; asked once, and told to all workers.

Example: the two million requests of a day are of some hundred clients, from 96 files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.by_workers import Batches
from sidecar.pipeline.kernels.numbered import Numbers

_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""
_IN_SHARD: Final = 2_000_000
"""Requests, so that what a worker holds stays bounded while tenants are many."""
KEYS: Final = ("user", "client_id", "src_file")
"""The columns that they are known by."""
COUNTED: Final = "user string, client_id string, src_file string, rows bigint"
"""How many rows have the same."""
_ROWS: Final = pa.schema([*((name, pa.string()) for name in KEYS), ("rows", pa.int64())])


@dataclass(frozen=True, slots=True)
class Known:
    """Clients and files.

    Attributes:
        clients: user and client-id; a client's number is its place.
        files: by name; a file's number is its place, so that numbers are in the names' order.
        rows: how many there are, of requests or events.
    """

    clients: Sequence[tuple[str, str]]
    files: Sequence[str]
    rows: int

    @classmethod
    def of(cls, counted: DataFrame) -> "Known":
        """Of COUNTED; asks Spark for it."""
        rows = counted.collect()
        return cls(
            sorted({(row["user"], row["client_id"]) for row in rows}),
            sorted({row["src_file"] for row in rows}),
            sum(row["rows"] for row in rows),
        )

    @classmethod
    def of_events(cls, events: DataFrame) -> "Known":
        """Of EVENTS; reads them once."""
        return cls.of(events.groupBy(*KEYS).agg(sf.count(sf.lit(1)).alias("rows")))

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
    """Rows with KEYS, as COUNTED."""
    for batch in batches:
        found = pa.Table.from_batches([batch.select(KEYS)])
        summed = found.group_by(list(KEYS), use_threads=False).aggregate([([], "count_all")])
        named = summed.rename_columns([*KEYS, "rows"]).combine_chunks()
        yield from named.cast(_ROWS).to_batches()
