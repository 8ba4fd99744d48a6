"""The metric of throttles of the sidecar itself, by the brokers' request quotas."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector


class RequestThrottleCollector(Collector):
    """Reads the time at each scrape.

    Args:
        throttled_s: returns the sum of the throttle times, seconds.
    """

    def __init__(self, throttled_s: Callable[[], float]) -> None:
        self._throttled_s = throttled_s

    def collect(self) -> Iterable[Metric]:
        """Return the metric, from the start on."""
        return [
            CounterMetricFamily(
                "kafka_throttle_own_requests_throttled_seconds",
                "Time by which request quotas throttled this sidecar's polls.",
                value=self._throttled_s(),
            )
        ]
