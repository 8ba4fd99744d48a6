"""What there is little of in many requests: clients and files; asked once, and told to all workers.

Example: the two million requests of a day are of some hundred clients, from 96 files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.kernels.numbered import Numbers
from sidecar.pipeline.requests import Batches, Requests

_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""
_IN_SHARD: Final = 2_000_000
"""Requests, so that what a worker holds stays bounded while tenants are many."""


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


_KEYS: Final = ("user", "client_id", "src_file")
_COUNTED: Final = "user string, client_id string, src_file string, rows bigint"


def asked(rows: Requests | DataFrame) -> Known:
    """What is in these rows; reads them once.

    Args:
        rows: requests, or a frame of EVENTS.
    """
    if isinstance(rows, Requests):
        counted = rows.mapped((*_KEYS, "quota_ts"), _counted, _COUNTED).collect()
    else:
        counted = rows.groupBy(*_KEYS).agg(sf.count(sf.lit(1)).alias("rows")).collect()
    return Known(
        sorted({(row["user"], row["client_id"]) for row in counted}),
        sorted({row["src_file"] for row in counted}),
        sum(row["rows"] for row in counted),
    )


def _counted(batches: Batches) -> Batches:
    for batch in batches:
        found = pa.Table.from_batches([batch.select(_KEYS)])
        counted = found.group_by(list(_KEYS), use_threads=False).aggregate([([], "count_all")])
        named = counted.rename_columns([*_KEYS, "rows"]).combine_chunks()
        yield from named.cast(_ROWS).to_batches()


_ROWS: Final = pa.schema([*((name, pa.string()) for name in _KEYS), ("rows", pa.int64())])
