"""Partitions rows by shard, with up to as many partitions as shards.

Spark's own number of partitions after a shuffle, 200, is meant for any amount of data, and Spark
merges small partitions. A shard has a million charges or more, so more than 200 shards need as many
partitions. 10 TB of logs a day are 4,300 shards; with 200 partitions, about 20 of them would be in
one partition at once.

Example: 64 shards of 100,000 rows become a few partitions; 4,300 shards become 4,300.
"""

from pyspark.sql import DataFrame


def by_shard(rows: DataFrame, shards: int) -> DataFrame:
    """Put all rows of a shard into one partition, with few other shards.

    Args:
        rows: rows with an int column ``shard``.
        shards: the number of shards.
    """
    own = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0)
    # Spark does not merge partitions if their number is stated.
    return rows.repartition(shards, "shard") if shards > own else rows.repartition("shard")
