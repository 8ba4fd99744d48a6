"""The metrics of the parts of volumes near or past a limit, and of volumes that a plan overfills.

Such a volume has series for ten topics, the other topics, and what no partition has. So the number
of series is bounded by the number of such volumes.

Example: while /data of broker 3 is near its limit, ``kafka_throttle_volume_part_bytes`` has a
series with ``part="leader"`` and ``topic="orders"``. An hour after space was freed it has none.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from sidecar.growth.watch import GrowthWatch

_LABELS: Final = ["broker", "log_dir", "part", "topic"]


def growth_metrics(watch: GrowthWatch | None) -> Iterator[Metric]:
    """Yield all metrics, even without a volume near its limit."""
    sizes = GaugeMetricFamily(
        "kafka_throttle_volume_part_bytes",
        "Size of a part of a volume in /v1/growth; no series for other volumes. The sum of a"
        " volume's parts is its used bytes.",
        labels=_LABELS,
    )
    growths = GaugeMetricFamily(
        "kafka_throttle_volume_part_growth_bytes_per_second",
        "Growth of such a part between two readings; of no_partition, at most what the other parts"
        " leave of the volume's growth. No series after the first reading.",
        labels=_LABELS,
    )
    writers = GaugeMetricFamily(
        "kafka_throttle_volume_writer_bytes_per_second",
        "What a user writes to a topic on such a volume, by the broker's request log; no series"
        " while the log is off.",
        labels=["broker", "log_dir", "topic", "user"],
    )
    headrooms = GaugeMetricFamily(
        "kafka_throttle_volume_headroom_after_arrivals_bytes",
        "What such a volume has left above its limit when all that reassignments and log-dir"
        " moves bring has arrived, negative if not all fits; no series while nothing arrives.",
        labels=["broker", "log_dir"],
    )
    for each in () if watch is None else watch.growing():
        volume = [str(each.state.volume.broker_id), each.state.volume.log_dir]
        if each.arriving.total_bytes:
            headrooms.add_metric(volume, each.left_bytes)
        for part in each.split.parts:
            sizes.add_metric([*volume, part.kind, part.topic], part.size_bytes)
            rate = each.split.rate(each.split.grown(part))
            if rate is not None:
                growths.add_metric([*volume, part.kind, part.topic], rate)
        for topic, users in each.writers.items():
            for user, rate in users.items():
                writers.add_metric([*volume, topic, user], rate)
    yield from (sizes, growths, writers, headrooms)
