"""Frames of the tables with what a test cares about, and nothing else."""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from sidecar.pipeline.tables.files import HadoopFiles
from sidecar.pipeline.tables.publish import Output
from sidecar.pipeline.tables.schemas import Table
from sidecar.pipeline.tables.store import Store


def frame_of(spark: SparkSession, table: Table, *rows: dict[str, object]) -> DataFrame:
    """Rows of a table; columns that a row leaves out are null."""
    values = [tuple(row.get(name) for name in table.names) for row in rows]
    return spark.createDataFrame(values, table.schema)


def stored(spark: SparkSession, out: Path, table: Table) -> list[Row]:
    """Returns the rows of a table in a folder of tables, in an order."""
    store = Store(spark, Output(HadoopFiles(spark), str(out)))
    return sorted(store.read(table).collect(), key=str)
