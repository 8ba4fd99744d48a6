"""The metric of throttles of the sidecar itself, by the brokers' request quotas."""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, Metric


def request_throttle_metrics(throttled_s: float) -> Iterator[Metric]:
    """Yield the metric, from the start on; the sum of the throttle times in seconds."""
    yield CounterMetricFamily(
        "kafka_throttle_own_requests_throttled_seconds",
        "Time by which request quotas throttled this sidecar's polls.",
        value=throttled_s,
    )
