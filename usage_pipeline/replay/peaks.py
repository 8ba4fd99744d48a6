"""The highest rates of those who share a quota, from their usage: what a sweep's candidates go to.

A rate is taken over the window that Kafka takes it over at least: 10 s of usage before a second and
that second (producer ids, whose quota is per hour: 10 h and the second). It may differ from the
replay's own peak rate by a part of a second's usage; candidates are no nearer to each other.

Example: alice uses 3,000 bytes in each of 2 seconds on broker 1 and 9,000 in one on broker 2: her
peak is 900 bytes per second.

Source: ``sidecar.quotas.rate``, KIP-936.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.kernels.peak import PEAKS, peaks_of
from usage_pipeline.replay.entities import Quotas, quotas_of
from usage_pipeline.usage.usage_reader import UsageRows, in_shards, packed_by_name

_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class _SharedBy:
    """Who shares a client's quotas."""

    quotas: Mapping[str, Quotas]

    def __call__(self, quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
        found = self.quotas[quota_type].of(user, client_id)
        # A second is under the quota of its first moment.
        return [(-(-each.from_ms // _MS), each.shared_by) for each in found]


def peaks(usage: UsageRows, config: DataFrame) -> DataFrame:
    """The highest rate of each who share a quota, on the broker where it is highest.

    Args:
        usage: of GOLD_USAGE_1S.
        config: of SILVER_QUOTA_CONFIG.

    Returns:
        ``quota_type``, ``shared_by`` and ``peak``, in the quota's unit, above 0.
    """
    used = packed_by_name(usage, _SharedBy(quotas_of(config)))
    of_brokers = in_shards(used, usage).applyInArrow(peaks_of, PEAKS)
    return of_brokers.groupBy("quota_type", "shared_by").agg(sf.max("peak").alias("peak"))
