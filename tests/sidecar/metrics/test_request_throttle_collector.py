"""The metric of throttles of the sidecar itself."""

from prometheus_client import CollectorRegistry

from sidecar.metrics.request_throttle_collector import RequestThrottleCollector


def test_it_is_the_time_of_now() -> None:
    """From the start on, when it is 0."""
    throttled = [0.0]
    registry = CollectorRegistry()
    registry.register(RequestThrottleCollector(lambda: throttled[0]))
    for seconds in (0.0, 2.5):
        throttled[0] = seconds
        name = "kafka_throttle_own_requests_throttled_seconds_total"
        assert seconds == registry.get_sample_value(name)
