"""What there is little of in many requests: clients and files; asked once, and told to all workers.

Example: the two million requests of a day are of some hundred clients, from 96 files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.kernels.numbered import Numbers

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


def asked(rows: DataFrame) -> Known:
    """What is in these rows; reads them once.

    Args:
        rows: of SILVER_REQUEST or of EVENTS.
    """
    keys = ("user", "client_id", "src_file")
    counted = rows.groupBy(*keys).agg(sf.count(sf.lit(1)).alias("rows")).collect()
    return Known(
        sorted({(row["user"], row["client_id"]) for row in counted}),
        sorted({row["src_file"] for row in counted}),
        sum(row["rows"] for row in counted),
    )
