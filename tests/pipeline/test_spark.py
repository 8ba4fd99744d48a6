"""The Spark session."""

import pytest
from pyspark.sql import SparkSession

from sidecar.pipeline.spark import NoJavaError, session
from sidecar.pipeline.tables import TABLES


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Spark is loaded, in one line with the command."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoJavaError, match="apt-get install openjdk-17-jre-headless"):
        session("local[1]")


@pytest.mark.spark
def test_every_table_can_be_made(spark: SparkSession) -> None:
    """Its types are Spark's, its partitions are its first columns, and select keeps it as it is."""
    for table in TABLES:
        frame = spark.createDataFrame([], table.schema)
        assert frame.schema == table.select(frame).schema
        assert list(table.names) == frame.columns
        assert table.partitions == table.names[: len(table.partitions)]


@pytest.mark.spark
def test_times_are_utc(spark: SparkSession) -> None:
    """Whatever the machine's zone is."""
    assert "UTC" == spark.conf.get("spark.sql.session.timeZone")
