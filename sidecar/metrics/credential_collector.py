"""The metrics of credentials: expiries of certificates, and former credentials that are used."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class CredentialCollector(Collector):
    """Reads the dates and the uses at each scrape.

    Args:
        expiries: returns setting -> epoch seconds.
        former_uses: returns kind -> whether former credentials are used.
    """

    def __init__(
        self,
        expiries: Callable[[], Mapping[str, float]],
        former_uses: Callable[[], Mapping[str, bool]],
    ) -> None:
        self._expiries = expiries
        self._former_uses = former_uses

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; without certificates, that of their dates has no series."""
        expiry = GaugeMetricFamily(
            "kafka_throttle_certificate_expiry_timestamp_seconds",
            "When the certificates of a setting expire: a chain with its first certificate, trusted"
            " ones with the last; no series without certificates.",
            labels=["setting"],
        )
        for setting, at in self._expiries().items():
            expiry.add_metric([setting], at)
        former = GaugeMetricFamily(
            "kafka_throttle_former_credentials_used",
            "1 while a broker accepts only the former credentials (kind broker), or a former token"
            " that a client used is still accepted (kind token); else 0.",
            labels=["kind"],
        )
        for kind, is_used in self._former_uses().items():
            former.add_metric([kind], float(is_used))
        return [expiry, former]
