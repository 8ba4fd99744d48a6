"""Request logs as rows of a frame, parsed in the test's own process."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from usage_pipeline.ingest.log_parts import parse_part, parts_of
from usage_pipeline.ingest.records import REJECTED, ROWS
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.tables.schemas import SILVER_REQUEST


def requests_of(spark: SparkSession, logs: RequestLogs) -> DataFrame:
    """Returns the rows, of silver_request without what it is partitioned by."""
    return spark.createDataFrame(parsed(logs)[0])


def quarantine_of(spark: SparkSession, logs: RequestLogs) -> DataFrame:
    """Returns the lines that can't be read."""
    return spark.createDataFrame(parsed(logs)[1])


def silver_request(rows: DataFrame) -> DataFrame:
    """Returns rows as the table has them, with their day."""
    return SILVER_REQUEST.select(rows.withColumn("dt", sql.to_date("log_ts")))


def parsed(logs: RequestLogs) -> tuple[pa.Table, pa.Table]:
    """Returns rows, and lines that can't be read."""
    both = [one for part in parts_of(logs.files(), logs.split_bytes) for one in parse_part(part)]
    return (
        pa.Table.from_batches([one.rows for one in both], ROWS).combine_chunks(),
        pa.Table.from_batches([one.rejected for one in both], REJECTED).combine_chunks(),
    )
