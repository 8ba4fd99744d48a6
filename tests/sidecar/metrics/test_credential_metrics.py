"""The metrics of credentials."""

from prometheus_client import CollectorRegistry, generate_latest

from sidecar.control.metric_source import MetricSource
from sidecar.metrics.credential_metrics import credential_metrics

NAME = "kafka_throttle_certificate_expiry_timestamp_seconds"


def test_each_setting_has_its_own_date_as_it_is_now() -> None:
    """Without certificates the metric has no series, but exists."""
    expiries: dict[str, float] = {}
    registry = CollectorRegistry()
    registry.register(MetricSource(lambda: credential_metrics(expiries, {})))
    assert f"# TYPE {NAME} gauge" in generate_latest(registry).decode()
    assert registry.get_sample_value(NAME, {"setting": "a"}) is None
    for date in (1.5, 2.5):
        expiries |= {"a": date, "b": 3.0}
        assert date == registry.get_sample_value(NAME, {"setting": "a"})
        assert registry.get_sample_value(NAME, {"setting": "b"}) == 3.0


def test_former_credentials_that_are_used_have_their_kind() -> None:
    """Each kind exists from the start."""
    uses = {"broker": False, "token": False}
    registry = CollectorRegistry()
    registry.register(MetricSource(lambda: credential_metrics({}, uses)))
    name = "kafka_throttle_former_credentials_used"
    assert 0.0 == registry.get_sample_value(name, {"kind": "broker"})
    uses["broker"] = True
    assert 1.0 == registry.get_sample_value(name, {"kind": "broker"})
    assert 0.0 == registry.get_sample_value(name, {"kind": "token"})
