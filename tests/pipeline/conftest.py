"""One Spark for all of this folder's tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sidecar.pipeline.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, one partition after a shuffle: small frames are quick."""
    made = session("local[2]", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"})
    yield made
    made.stop()
