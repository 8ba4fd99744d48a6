"""Rows whose shard says which belong together, in as many partitions as there are shards.

Spark's own number of partitions after a shuffle, 200, is meant for any amount; those that turn out
small it brings together. A shard has a million charges or more, so that more shards than 200 are as
many partitions: 10 TB of logs a day are 4,300, and in 200 partitions each would be 20 at once.

Example: 64 shards of 100,000 rows are a few partitions; 4,300 shards are 4,300.
"""

from pyspark.sql import DataFrame


def by_shard(rows: DataFrame, shards: int) -> DataFrame:
    """All rows of a shard are in one partition, which has few more.

    Args:
        rows: with a column ``shard``, an int.
        shards: how many there are.
    """
    own = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0)
    # Partitions whose number is stated stay as many, however small they are.
    return rows.repartition(shards, "shard") if shards > own else rows.repartition("shard")
