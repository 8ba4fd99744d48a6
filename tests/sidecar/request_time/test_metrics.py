"""The metrics of the request log."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from sidecar.request_time.metrics import RequestLogCollector
from sidecar.requestlog.line import parse
from sidecar.requestlog.reader import LogReader

NAMES = ("lines_total", "bytes_total", "dropped_bytes_total", "rejected_lines_total")


@pytest.mark.parametrize("is_read", [False, True])
def test_what_is_read_is_reported(*, is_read: bool) -> None:
    """A line of the log could not be read; without a log every metric is there, at zero."""
    log = LogReader(Path("requests.log"))
    log.usage.record(parse(b"garbage"))
    log.behind = 7
    registry = CollectorRegistry()
    registry.register(RequestLogCollector(log if is_read else None))
    expected = {**dict.fromkeys(NAMES, 0), "rejected_lines_total": 1, "behind_bytes": 7}
    for name, value in expected.items():
        found = registry.get_sample_value(f"kafka_throttle_request_log_{name}")
        assert (value if is_read else 0) == found
