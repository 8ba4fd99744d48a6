"""The metrics of the request log."""

from functools import partial
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from sidecar.control.metric_source import MetricSource
from sidecar.request_time.metrics import request_log_metrics
from sidecar.requestlog.line import parse
from sidecar.requestlog.reader import LogReader
from sidecar.requestlog.rejected import RejectedKind

NAMES = ("lines_total", "bytes_total", "dropped_bytes_total", "unreadable")


@pytest.mark.parametrize("is_read", [False, True])
def test_what_is_read_is_reported(*, is_read: bool) -> None:
    """A line of the log could not be read; without a log every metric is there, at zero."""
    log = LogReader(Path("requests.log"))
    log.usage.record(parse(b"garbage"))
    log.behind = 7
    registry = CollectorRegistry()
    registry.register(MetricSource(partial(request_log_metrics, log if is_read else None)))
    expected = {**dict.fromkeys(NAMES, 0), "behind_bytes": 7}
    for name, value in expected.items():
        found = registry.get_sample_value(f"kafka_throttle_request_log_{name}")
        assert (value if is_read else 0) == found
    rejected = {
        kind: registry.get_sample_value(
            "kafka_throttle_request_log_rejected_lines_total", {"kind": kind}
        )
        for kind in RejectedKind
    }
    assert {kind: int(is_read and kind == "other") for kind in RejectedKind} == rejected
