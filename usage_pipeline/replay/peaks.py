"""The highest rate of the clients that share a quota, which bounds a sweep's candidates.

A rate covers the least window of Kafka: a second and the 10 s before it; for producer ids, whose
quota is per hour, the 10 h before it. It may differ from the replay's peak rate by part of the
usage of a second, which is less than the distance between candidates.

Example: alice uses 3,000 bytes in each of 2 seconds on broker 1, and 9,000 bytes in one second on
broker 2. Her peak is 900 bytes per second.

Source: ``sidecar.quotas.rate``, KIP-936.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.kernels.peak import PEAKS, peaks_of
from usage_pipeline.replay.entities import quotas_of
from usage_pipeline.usage.usage_reader import UsageRows, in_shards, packed_by_name

_MS: Final = 1000


def peaks(usage: UsageRows, config: DataFrame) -> DataFrame:
    """Return the highest rate of each group that shares a quota, on any broker.

    Args:
        usage: rows of GOLD_USAGE_1S.
        config: rows of SILVER_QUOTA_CONFIG.

    Returns:
        ``quota_type``, ``shared_by`` and ``peak``, in the quota's unit, above 0.
    """
    quotas = quotas_of(config)

    def shared_by(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
        """Name the groups that share a client's quotas."""
        of_client = quotas[quota_type].of_client(user, client_id)
        # The quota at the start of a second applies to the whole second.
        return [(-(-each.from_ms // _MS), each.shared_by) for each in of_client]

    of_brokers = in_shards(packed_by_name(usage, shared_by), usage).applyInArrow(peaks_of, PEAKS)
    return of_brokers.groupBy("quota_type", "shared_by").agg(sf.max("peak").alias("peak"))
