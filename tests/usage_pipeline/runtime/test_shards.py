"""Rows whose shard says which belong together."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from usage_pipeline.runtime.shards import by_shard


@pytest.mark.spark
@pytest.mark.parametrize(("shards", "partitions"), [(2, 1), (50, 50)])
def test_many_shards_are_as_many_partitions(
    spark: SparkSession, shards: int, partitions: int
) -> None:
    """A few small shards are merged. Each shard is whole in either case, also when grouped."""
    rows = spark.range(200).withColumn("shard", (sf.col("id") % shards).cast("int"))
    found = by_shard(rows, shards)
    assert partitions == found.rdd.getNumPartitions()
    places = found.select("shard", sf.spark_partition_id().alias("place")).distinct()
    assert shards == places.count()
    assert partitions == found.groupBy("shard").count().rdd.getNumPartitions()
