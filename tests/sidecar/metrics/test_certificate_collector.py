"""The metric of certificates."""

from prometheus_client import CollectorRegistry, generate_latest

from sidecar.metrics.certificate_collector import CertificateCollector

NAME = "kafka_throttle_certificate_expiry_timestamp_seconds"


def test_each_setting_has_its_own_date_as_it_is_now() -> None:
    """Without certificates the metric has no series, but exists."""
    expiries: dict[str, float] = {}
    registry = CollectorRegistry()
    registry.register(CertificateCollector(lambda: expiries))
    assert f"# TYPE {NAME} gauge" in generate_latest(registry).decode()
    assert registry.get_sample_value(NAME, {"setting": "a"}) is None
    for date in (1.5, 2.5):
        expiries |= {"a": date, "b": 3.0}
        assert date == registry.get_sample_value(NAME, {"setting": "a"})
        assert registry.get_sample_value(NAME, {"setting": "b"}) == 3.0
