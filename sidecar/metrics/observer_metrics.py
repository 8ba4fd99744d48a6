"""The metrics of observers, the few sidecars that poll all brokers (SIDECAR_OBSERVERS).

Example: of 30 sidecars with 3 observers, the sum of ``observer`` is 3. While another sidecar
replaces an observer, it may be 4.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.peers.observers import Observers

_REASONS: Final = ("contradicting", "malformed", "old")


def observer_metrics(observers: Observers | None) -> Iterator[Metric]:
    """Yield both metrics, from the start on; without observers, this sidecar polls all brokers."""
    observer = GaugeMetricFamily(
        "kafka_throttle_observer",
        "1 while this sidecar polls all brokers itself; 0 while it follows observers.",
        1.0 if observers is None else float(observers.is_observer),
    )
    dropped = CounterMetricFamily(
        "kafka_throttle_observations_dropped",
        "Observations of other sidecars that were not used, by reason: contradicting (of"
        " another cluster), malformed or old.",
        labels=["reason"],
    )
    for reason in _REASONS:
        count = 0 if observers is None else observers.dropped[reason]
        dropped.add_metric([reason], count)
    yield from (observer, dropped)
