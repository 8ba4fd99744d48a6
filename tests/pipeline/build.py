"""Frames of the tables with what a test cares about, and nothing else."""

from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.tables import Table


def frame_of(spark: SparkSession, table: Table, *rows: dict[str, object]) -> DataFrame:
    """Rows of a table; columns that a row leaves out are null."""
    values = [tuple(row.get(name) for name in table.names) for row in rows]
    return spark.createDataFrame(values, table.schema)
