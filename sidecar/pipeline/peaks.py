"""The highest rates of those who share a quota, from their usage: what a sweep's candidates go to.

A rate is taken over the window that Kafka takes it over at least: 10 s of usage before a second and
that second (producer ids, whose quota is per hour: 10 h and the second). It may differ from the
replay's own peak rate by a part of a second's usage; candidates are no nearer to each other.

Example: alice uses 3,000 bytes in each of 2 seconds on broker 1 and 9,000 in one on broker 2: her
peak is 900 bytes per second.

Source: ``sidecar.quotas.rate``, KIP-936.
"""

from typing import Final

from pyspark.sql import DataFrame

from sidecar.pipeline.entities import quotas_of
from sidecar.pipeline.kernels.peak import PEAKS, peaks_of
from sidecar.pipeline.packed_usage import Name, PackedUsage, in_shards, packed_usage

_MS: Final = 1000


def peaks(usage: DataFrame, config: DataFrame, packed: PackedUsage | None = None) -> DataFrame:
    """The highest rate of each who share a quota, on the broker where it is highest.

    Args:
        usage: of GOLD_USAGE_1S.
        config: of SILVER_QUOTA_CONFIG.
        packed: the same usage, packed; None: it is packed here.

    Returns:
        ``quota_type``, ``shared_by`` and ``peak``, in the quota's unit, above 0.
    """
    used = packed or packed_usage(usage)
    quotas = quotas_of(config)
    # A second is under the quota of its first moment.
    names = [
        Name(number, each.shared_by, -(-each.from_ms // _MS), -(-each.to_ms // _MS))
        for number, client in enumerate(used.clients)
        for each in quotas[client.quota_type].of(client.user, client.client_id)
    ]
    return in_shards(used.by_name(names)).applyInArrow(peaks_of, PEAKS)
