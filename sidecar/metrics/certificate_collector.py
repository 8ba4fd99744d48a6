"""The metric of certificates: when those that the sidecar uses expire."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class CertificateCollector(Collector):
    """Reads the dates at each scrape.

    Args:
        expiries: returns setting -> epoch seconds.
    """

    def __init__(self, expiries: Callable[[], Mapping[str, float]]) -> None:
        self._expiries = expiries

    def collect(self) -> Iterable[Metric]:
        """Return the metric; it has no series without certificates."""
        expiry = GaugeMetricFamily(
            "kafka_throttle_certificate_expiry_timestamp_seconds",
            "When the certificates of a setting expire: a chain with its first certificate, trusted"
            " ones with the last; no series without certificates.",
            labels=["setting"],
        )
        for setting, at in self._expiries().items():
            expiry.add_metric([setting], at)
        return [expiry]
