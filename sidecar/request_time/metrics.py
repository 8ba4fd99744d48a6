"""The metrics of reading the request log.

Example: if the sidecar has 3 MB left to read, ``kafka_throttle_request_log_behind_bytes`` is
3,000,000.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.requestlog.reader import LogReader
from sidecar.requestlog.rejected import RejectedKind


def request_log_metrics(log: LogReader | None) -> Iterator[Metric]:
    """Yield all metrics, even if no log is read."""
    counts = None if log is None else log.counts
    for name, text, value in (
        ("lines", "Lines read of the broker's request log.", counts and counts.lines),
        ("bytes", "Bytes read of the broker's request log.", counts and counts.bytes),
        (
            "dropped_bytes",
            "Bytes of the request log that were skipped: lines too long, or to catch up.",
            counts and counts.dropped_bytes,
        ),
    ):
        yield CounterMetricFamily(f"kafka_throttle_request_log_{name}", text, value or 0)
    rejected = CounterMetricFamily(
        "kafka_throttle_request_log_rejected_lines",
        "Lines of the request log that could not be read, by reason.",
        labels=["kind"],
    )
    for kind in RejectedKind:
        rejected.add_metric([kind], 0 if log is None else log.usage.rejected[kind])
    yield rejected
    yield GaugeMetricFamily(
        "kafka_throttle_request_log_unreadable",
        "1 while most of the newest requests in the request log can't be read.",
        0 if log is None else log.usage.is_unreadable,
    )
    yield GaugeMetricFamily(
        "kafka_throttle_request_log_behind_bytes",
        "Bytes of the request log that are not read yet.",
        0 if log is None else log.behind,
    )
