"""The number of partitions of each topic over time, from controllers' lines.

CREATE_TOPICS and CREATE_PARTITIONS state a size, and DELETE_TOPICS ends it. If the answer to a
creation lacks the number of partitions, the size is unknown. Requests that failed, or that were
only validated, change nothing. A change applies from the time of its line. Lines of the same time
are in the order of their file and offset.

Example: a topic is created with 12 partitions at 10:00, grown to 24 at 11:00 and deleted at 12:00.
It has three rows: 12 until 11:00, 24 until 12:00, and null for the deletion, valid only at 12:00.

Source: Kafka's ReplicationControlManager; ``sidecar.requestlog.mutation_counts.TopicSizes``.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from usage_pipeline.tables.apis import DELETE_TOPICS, TOPIC_APIS
from usage_pipeline.tables.schemas import DIM_TOPIC


def is_mutation_line() -> Column:
    """Return whether a row of SILVER_REQUEST is a controller's line of a request about topics."""
    return sf.col("is_forwarded") & sf.col("api").isin(*TOPIC_APIS)


def dim_topic(silver: DataFrame) -> DataFrame:
    """Compute the sizes of topics.

    Args:
        silver: rows of SILVER_REQUEST, for the requested time and all earlier times.

    Returns:
        Rows of DIM_TOPIC.
    """
    changes = (
        silver.where(is_mutation_line() & ~sf.coalesce("validate_only", sf.lit(False)))
        .select(
            sf.posexplode("topic_changes").alias("at", "change"),
            *("api", "log_ts", "src_file", "src_offset"),
        )
        .where("coalesce(change.error, 0) = 0")
        .select(
            *("at", "change.*", "src_file", "src_offset"),
            sf.col("log_ts").alias("valid_from"),
            sf.when(sf.col("api").isin(*DELETE_TOPICS), sf.col("log_ts")).alias("deleted"),
        )
    )
    # A topic that is known only by its id differs from every topic with a name.
    same = Window.partitionBy("topic", sf.when(sf.col("topic") == "", sf.col("topic_id"))).orderBy(
        "valid_from", "src_file", "src_offset", "at"
    )
    valid_to = sf.coalesce("deleted", sf.lead("valid_from").over(same))
    return DIM_TOPIC.select(changes.withColumn("valid_to", valid_to))
