"""The metric of throttles of the sidecar itself."""

import pytest
from prometheus_client import CollectorRegistry

from sidecar.control.metric_source import MetricSource
from sidecar.metrics.request_throttle_metrics import request_throttle_metrics


@pytest.mark.parametrize("seconds", [0.0, 2.5])
def test_it_is_the_time_of_now(seconds: float) -> None:
    """From the start on, when it is 0."""
    registry = CollectorRegistry()
    registry.register(MetricSource(lambda: request_throttle_metrics(seconds)))
    name = "kafka_throttle_own_requests_throttled_seconds_total"
    assert seconds == registry.get_sample_value(name)
