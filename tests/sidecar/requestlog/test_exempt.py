"""Which requests are exempt from request quotas."""

from typing import Any

import pytest

from sidecar.requestlog.exempt import is_exempt
from tests.sidecar.requestlog.lines import BY_HAND, REAL, parsed_line, read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BY_HAND[0], False),
        (BY_HAND[1], True),
        (BY_HAND[2], False),
        (REAL[4], True),
        (REAL[10], False),
    ],
    ids=["acks=-1", "acks=0", "consumer's fetch", "controller's fetch", "heartbeat"],
)
def test_lines_of_brokers(text: bytes, expected: bool) -> None:
    """acks=0 and replicas' fetches are exempt, clients' and brokers' heartbeats are not."""
    assert expected is is_exempt(read(text))


@pytest.mark.parametrize(
    ("api_key", "request_body", "expected"),
    [
        (0, {"acks": 1}, False),
        (0, "", False),
        (1, {"replicaId": 3}, True),
        (1, {"replicaId": -1}, False),
        (1, {"replicaState": {"replicaId": 3}}, True),
        (1, {"replicaState": {"replicaId": -1}}, False),
        (1, {"replicaId": -3}, False),
        (27, {}, True),
        (56, {}, True),
        (3, {}, False),
    ],
)
def test_by_api(api_key: int, request_body: Any, expected: bool) -> None:
    """Markers and ALTER_PARTITION are always exempt, FETCH of a replica in old and new versions."""
    assert expected is is_exempt(parsed_line(api_key, request=request_body))


@pytest.mark.parametrize(("forwarded", "expected"), [(False, False), (True, True)])
def test_describe_quorum_is_exempt_on_the_controller(forwarded: bool, expected: bool) -> None:
    """The broker that forwards it charges it."""
    assert expected is is_exempt(parsed_line(55, isForwarded=forwarded))
