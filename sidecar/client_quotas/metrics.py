"""The metrics of the throttle by client quotas.

Example: two of three quotas are lowered, and somebody else sets the third back each time: 2, and 1.
"""

from collections.abc import Iterator
from typing import Final, get_args

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.client_quotas.service import QuotaThrottle
from sidecar.throttle.readers import Enforcement

_PREFIX: Final = "kafka_throttle"


def quota_metrics(enforcement: Enforcement, throttle: QuotaThrottle | None) -> Iterator[Metric]:
    """Yield all metrics, even if quotas are not lowered by this sidecar."""
    of_enforcement = GaugeMetricFamily(
        f"{_PREFIX}_enforcement",
        "1 for what is to enforce the factor (SIDECAR_ENFORCEMENT), 0 for the others.",
        labels=["enforcement"],
    )
    for each in get_args(Enforcement):
        of_enforcement.add_metric([each], int(each == enforcement))
    yield of_enforcement
    yield GaugeMetricFamily(
        f"{_PREFIX}_client_quotas_lowered",
        "Produce quotas that are below their originals, or were not there before.",
        0 if throttle is None else len(throttle.lowered),
    )
    yield GaugeMetricFamily(
        f"{_PREFIX}_client_quotas_left_alone",
        "Produce quotas that the sidecar leaves alone, because somebody else sets them back.",
        0 if throttle is None else len(throttle.ledger.left),
    )
    yield GaugeMetricFamily(
        f"{_PREFIX}_client_quotas_failing",
        "1 while client quotas can't be read or set, otherwise 0.",
        int(throttle is not None and bool(throttle.failure)),
    )
    yield GaugeMetricFamily(
        f"{_PREFIX}_broker_metrics_failing",
        "Brokers whose metrics (SIDECAR_BROKER_METRICS_URLS) can't be read.",
        0 if throttle is None or throttle.metrics is None else len(throttle.metrics.failures),
    )
    yield CounterMetricFamily(
        f"{_PREFIX}_client_quota_changes",
        "Produce quotas that this sidecar has lowered, raised or restored.",
        0 if throttle is None else throttle.changed,
    )
