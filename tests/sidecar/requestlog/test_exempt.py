"""Which requests are exempt from request quotas."""

from typing import Any

import pytest

from sidecar.requestlog.exempt import is_exempt
from tests.sidecar.requestlog.lines import parsed_line


@pytest.mark.parametrize(
    ("api_key", "request_body", "expected"),
    [
        (0, {"acks": 1}, False),
        (0, {"acks": -1}, False),
        (0, {"acks": 0}, True),
        (0, "", False),
        (1, {"replicaId": 3}, True),
        (1, {"replicaId": -1}, False),
        (1, {"replicaState": {"replicaId": 3}}, True),
        (1, {"replicaState": {"replicaId": -1}}, False),
        (1, {"replicaId": -3}, False),
        (27, {}, True),
        (56, {}, True),
        (3, {}, False),
        (63, {}, False),
    ],
)
def test_by_api(api_key: int, request_body: Any, expected: bool) -> None:
    """Markers, ALTER_PARTITION, acks=0 and a replica's FETCH are exempt; heartbeats are not."""
    assert expected is is_exempt(parsed_line(api_key, request=request_body))


@pytest.mark.parametrize(("forwarded", "expected"), [(False, False), (True, True)])
def test_describe_quorum_is_exempt_on_the_controller(forwarded: bool, expected: bool) -> None:
    """The broker that forwards it charges it."""
    assert expected is is_exempt(parsed_line(55, isForwarded=forwarded))
