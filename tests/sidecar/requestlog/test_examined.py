"""What a person learns of a log."""

from datetime import datetime

import pytest

from sidecar.requestlog.examined import examine
from sidecar.requestlog.rejected import RejectedKind
from tests.sidecar.requestlog.lines import LAYOUTS, line


def test_the_modules_example() -> None:
    """Strimzi's Kafka 4.0 logs whole seconds, without an offset."""
    found = examine((LAYOUTS / "strimzi-log4j2-kafka-4.0.log").read_bytes().splitlines(True))
    time = datetime.fromisoformat("2026-03-04T05:06:07")
    assert (3, 0, time, time) == (found.read, found.unread, found.first, found.last)
    assert (True, 0, 0) == (found.in_whole_seconds, found.with_offset, found.without_time)
    (form,) = found.forms
    assert form == (
        "%d DEBUG [data-plane-kafka-network-thread-0-ListenerName(CLIENTS-0)-SASL_SSL-0] logger:0"
        " - Completed request:{…}"
    )


def test_times_and_others() -> None:
    """The earliest and the latest time, offsets, and lines of other loggers."""
    found = examine((LAYOUTS / "ecs.log").read_bytes().splitlines())
    assert (3, False) == (found.with_offset, found.in_whole_seconds)
    assert "101000 999000" == f"{found.first:%f} {found.last:%f}"
    assert {"a JSON object": 3} == found.forms
    found = examine((LAYOUTS / "kubectl-logs-mixed.log").read_bytes().splitlines())
    assert (3, 4, 0, True) == (found.read, found.others, found.unread, found.is_readable)
    assert found.in_whole_seconds is False
    found = examine((LAYOUTS / "ibm-syslog-m-n.log").read_bytes().splitlines())
    assert (3, None, ["Mar  0 0:0:0 es-kafka-0 Completed request:{…}"]) == (
        found.without_time,
        found.first,
        [*found.forms],
    )


@pytest.mark.parametrize(("torn", "expected"), [(1, True), (2, False)])
def test_a_log_is_readable_if_few_requests_are_not(torn: int, expected: bool) -> None:
    """At most one in twenty; a log without requests is not."""
    found = examine([*[line(3)] * 20, *[line(3)[:-9]] * torn])
    assert expected == found.is_readable
    assert {(RejectedKind.TORN, "the end is missing"): torn} == found.rejected
    assert not examine([b"another logger's"]).is_readable
