"""Requests as a table: SILVER_REQUEST from request logs.

What a row means is in ``rows``; here it gets its day, which is of ``log_ts``, UTC.

Example: a line of 00:30 in Berlin in winter is in the partition of the day before.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from sidecar.pipeline.ingest.log_parts import SPLIT_BYTES
from sidecar.pipeline.ingest.paths import ALL_UTC, Zones
from sidecar.pipeline.tables.schemas import SILVER_REQUEST


@dataclass(frozen=True, slots=True)
class RequestLogs:
    """Which request logs.

    Attributes:
        path: of a file, a folder or a glob; on this machine or in object storage.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``; None: the usual ones.
        split_bytes: of a part of a plain file, > 0.
    """

    path: str
    zones: Zones = ALL_UTC
    broker_pattern: str | None = None
    split_bytes: int = SPLIT_BYTES


def silver_request(rows: DataFrame) -> DataFrame:
    """Rows as the table has them.

    Args:
        rows: with all columns but dt.

    Returns:
        Of SILVER_REQUEST.
    """
    return SILVER_REQUEST.select(rows.withColumn("dt", sql.to_date("log_ts")))
