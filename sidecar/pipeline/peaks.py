"""The highest rates of those who share a quota, from their usage: what a sweep's candidates go to.

A rate is taken over the window that Kafka takes it over at least: 10 s of usage before a second and
that second (producer ids, whose quota is per hour: 10 h and the second). It may differ from the
replay's own peak rate by a part of a second's usage; candidates are no nearer to each other.

Example: alice uses 3,000 bytes in each of 2 seconds on broker 1 and 9,000 in one on broker 2: her
peak is 900 bytes per second.

Source: ``sidecar.quotas.rate``, KIP-936.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from sidecar.pipeline.entities import client_quotas
from sidecar.pipeline.events import PRODUCER_IDS

_WINDOW_S: Final = 10
_HOURS_OF_IDS: Final = 10
_WINDOW_OF_IDS_S: Final = 3600 * _HOURS_OF_IDS


def peaks(usage: DataFrame, config: DataFrame) -> DataFrame:
    """The highest rate of each who share a quota, on the broker where it is highest.

    Args:
        usage: of GOLD_USAGE_1S.
        config: of SILVER_QUOTA_CONFIG.

    Returns:
        ``quota_type``, ``shared_by`` and ``peak``, in the quota's unit, above 0.
    """
    clients = usage.select("quota_type", "user", "client_id").distinct()
    held = client_quotas(clients, config)
    at_ms = sql.unix_millis("window_start")
    same = [usage[name] == held[name] for name in ("quota_type", "user", "client_id")]
    in_time = (at_ms >= held["from_ms"]) & (at_ms < held["to_ms"])
    used = (
        usage.join(sql.broadcast(held), [*same, in_time], how="inner")
        .groupBy(
            usage["quota_type"],
            "shared_by",
            "broker",
            sql.unix_timestamp("window_start").alias("second"),
        )
        .agg(sql.sum("amount").alias("amount"))
    )
    is_ids = sql.col("quota_type") == PRODUCER_IDS
    window_s = sql.when(is_ids, _WINDOW_OF_IDS_S).otherwise(_WINDOW_S)
    # What is used enters the window and leaves it: a running sum costs the same however long the
    # window is, where a sliding frame would add up all of it for each second.
    moves = sql.array(
        sql.struct("second", "amount"),
        sql.struct(
            (sql.col("second") + window_s + 1).alias("second"), (-sql.col("amount")).alias("amount")
        ),
    )
    until_now = (
        Window.partitionBy("quota_type", "shared_by", "broker")
        .orderBy("second")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        used.select("quota_type", "shared_by", "broker", sql.inline(moves))
        .withColumn("in_window", sql.sum("amount").over(until_now))
        .groupBy("quota_type", "shared_by")
        .agg(
            (sql.max("in_window") / sql.when(is_ids, _HOURS_OF_IDS).otherwise(_WINDOW_S)).alias(
                "peak"
            )
        )
        .where("peak > 0")
    )
