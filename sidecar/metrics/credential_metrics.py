"""The metrics of credentials: expiries of certificates, and former credentials that are used."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric


def credential_metrics(
    expiries: Mapping[str, float], former_uses: Mapping[str, bool]
) -> Iterator[Metric]:
    """Yield the metrics; without certificates, that of their dates has no series.

    Args:
        expiries: setting -> epoch seconds.
        former_uses: kind -> whether former credentials are used.
    """
    expiry = GaugeMetricFamily(
        "kafka_throttle_certificate_expiry_timestamp_seconds",
        "When the certificates of a setting expire: a chain with its first certificate, trusted"
        " ones with the last; no series without certificates.",
        labels=["setting"],
    )
    for setting, at in expiries.items():
        expiry.add_metric([setting], at)
    former = GaugeMetricFamily(
        "kafka_throttle_former_credentials_used",
        "1 while a broker accepts only the former credentials (kind broker), or a former token"
        " that a client used is still accepted (kind token); else 0.",
        labels=["kind"],
    )
    for kind, is_used in former_uses.items():
        former.add_metric([kind], float(is_used))
    yield from (expiry, former)
