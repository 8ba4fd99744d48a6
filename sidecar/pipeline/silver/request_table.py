"""Requests as a table: SILVER_REQUEST from request logs.

What a row means is in ``rows``; here it gets its day and hour, which are of ``log_ts``, UTC.

Example: a line of 00:30 in Berlin in winter is in the partition of the day before, hour 23.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.pipeline.ingest.log_parts import SPLIT_BYTES
from sidecar.pipeline.ingest.paths import ALL_UTC, Zones
from sidecar.pipeline.ingest.source import FORMAT, RequestLogSource
from sidecar.pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST


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

    def options(self) -> Mapping[str, str]:
        """For the source."""
        options_of_logs = {"zones": str(self.zones), "splitBytes": str(self.split_bytes)}
        if self.broker_pattern is not None:
            options_of_logs["brokerPattern"] = self.broker_pattern
        return options_of_logs


def silver_request(rows: DataFrame) -> DataFrame:
    """Rows as the table has them.

    Args:
        rows: of the source, with all columns but dt and hour.

    Returns:
        Of SILVER_REQUEST.
    """
    return SILVER_REQUEST.select(
        rows.withColumns({"dt": sql.to_date("log_ts"), "hour": sql.hour("log_ts")})
    )


def requests_of(
    spark: SparkSession, logs: RequestLogs, columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows of request logs; read when they are used, and each time.

    Args:
        spark: its time zone is UTC.
        logs: which.
        columns: only these, which is quicker; None: all that ``silver_request`` wants.

    Returns:
        Of ``source.ROW_COLUMNS``.
    """
    options = {} if columns is None else {"columns": ",".join(columns)}
    return _read(spark, logs, {"table": SILVER_REQUEST.name, **options})


def quarantine_of(spark: SparkSession, logs: RequestLogs) -> DataFrame:
    """The lines that can't be read, of QUARANTINE; reads all of the logs."""
    return QUARANTINE.select(_read(spark, logs, {"table": QUARANTINE.name}))


def both_of(spark: SparkSession, logs: RequestLogs) -> DataFrame:
    """Rows and lines that can't be read, in one reading.

    Returns:
        Of ``source.ROW_COLUMNS`` and ``rejected_kind``, ``rejected_reason``, ``rejected_bytes``,
        which are null for rows.
    """
    return _read(spark, logs, {"table": "both"})


def _read(spark: SparkSession, logs: RequestLogs, options: Mapping[str, str]) -> DataFrame:
    spark.dataSource.register(RequestLogSource)
    cores = spark.sparkContext.defaultParallelism
    options_of_logs = {**logs.options(), "cores": str(cores), **options}
    return spark.read.format(FORMAT).options(**options_of_logs).load(logs.path)
