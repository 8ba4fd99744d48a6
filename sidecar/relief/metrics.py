"""The metrics of deletions that make room.

Example: in a dry run, a volume needs room and "logs" would give it: planned bytes are 2e9, and the
counters stay 0.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.relief.service import Relief

_PREFIX: Final = "kafka_throttle_relief"


def relief_metrics(relief: Relief | None) -> Iterator[Metric]:
    """Yield all metrics, even if no topics are declared."""
    deletions = () if relief is None else relief.planned.deletions
    yield GaugeMetricFamily(
        f"{_PREFIX}_planned_bytes",
        "About what the last plan deletes, or would delete in a dry run, to make room; 0 while "
        "no volume needs room.",
        sum(each.about_bytes for each in deletions),
    )
    yield GaugeMetricFamily(
        f"{_PREFIX}_short",
        "1 while a volume needs room and nothing of the declared topics may be deleted, "
        "otherwise 0.",
        int(relief is not None and relief.planned.is_short),
    )
    yield CounterMetricFamily(
        f"{_PREFIX}_deleted_bytes",
        "About what this sidecar has deleted to make room, since its start.",
        0 if relief is None else relief.deleted_bytes,
    )
    yield CounterMetricFamily(
        f"{_PREFIX}_deletions",
        "How often this sidecar has deleted records of a partition to make room.",
        0 if relief is None else relief.deletions,
    )
