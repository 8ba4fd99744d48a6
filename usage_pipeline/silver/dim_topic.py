"""How many partitions each topic has, and from when to when, by controllers' lines.

CREATE_TOPICS and CREATE_PARTITIONS have a size, DELETE_TOPICS ends it; a creation whose answer
doesn't say how many makes it unknown. What failed, or was only to be validated, changes nothing.
Each change is in force from its line on; ties are in the order (time, file, offset).

Example: a topic that is created with 12 partitions at 10:00, grown to 24 at 11:00 and deleted at
12:00 has three rows: 12 until 11:00, 24 until 12:00, and null from then on.

Source: Kafka's ReplicationControlManager; ``sidecar.requestlog.mutation_counts.TopicSizes``.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from usage_pipeline.tables.apis import TOPIC_APIS
from usage_pipeline.tables.schemas import DIM_TOPIC


def is_mutation_line() -> Column:
    """Whether a row of SILVER_REQUEST is a controller's line of a request about topics."""
    return sf.col("is_forwarded") & sf.col("api").isin(*TOPIC_APIS)


def dim_topic(silver: DataFrame) -> DataFrame:
    """The sizes of topics.

    Args:
        silver: of SILVER_REQUEST, all of the requested time and what came before.

    Returns:
        Of DIM_TOPIC.
    """
    changes = (
        silver.where(is_mutation_line() & ~sf.coalesce("validate_only", sf.lit(False)))
        .select(
            sf.posexplode("topic_changes").alias("at", "change"),
            *("log_ts", "src_file", "src_offset"),
        )
        .where("coalesce(change.error, 0) = 0")
        .select("at", "change.*", sf.col("log_ts").alias("valid_from"), "src_file", "src_offset")
    )
    # A topic that only its id names is another than all that have names.
    same = Window.partitionBy("topic", sf.when(sf.col("topic") == "", sf.col("topic_id"))).orderBy(
        "valid_from", "src_file", "src_offset", "at"
    )
    changes_until = changes.withColumn("valid_to", sf.lead("valid_from").over(same))
    return DIM_TOPIC.select(changes_until)
