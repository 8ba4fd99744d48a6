"""Which requests no request quota is charged with (KIP-124, section "Exempt requests").

What the cluster itself needs is exempt: replicas' fetches, the controllers' own traffic,
markers of transactions; and PRODUCE with acks=0, which has no answer that could carry a throttle
time. Kafka counts their time apart, in the metric ``exempt-request-time``.

Example: a FETCH of replica 3 is exempt, a consumer's (replica -1) is not; a broker's heartbeat to
the controller is not exempt.

A request that is refused for want of CLUSTER_ACTION is charged; the line doesn't show it, and it is
counted as exempt here.

Source: KafkaApis and ControllerApis (sendResponseExemptThrottle), Kafka 3.3 to 4.3.
"""

from typing import Final

import msgspec

from sidecar.requestlog.line import Line
from sidecar.requestlog.wire import Acks, Fetch

_PRODUCE: Final = 0
_FETCH: Final = 1
_DESCRIBE_QUORUM: Final = 55
_ALWAYS: Final = frozenset(
    {
        4,  # LEADER_AND_ISR
        5,  # STOP_REPLICA
        6,  # UPDATE_METADATA
        7,  # CONTROLLED_SHUTDOWN
        27,  # WRITE_TXN_MARKERS
        52,  # VOTE
        53,  # BEGIN_QUORUM_EPOCH
        54,  # END_QUORUM_EPOCH
        56,  # ALTER_PARTITION
        59,  # FETCH_SNAPSHOT
        82,  # UPDATE_RAFT_VOTER
    }
)
_ON_CONTROLLER: Final = frozenset(
    {
        _DESCRIBE_QUORUM,
        80,  # ADD_RAFT_VOTER
        81,  # REMOVE_RAFT_VOTER
    }
)
"""Charged on the broker, which passes them on, and exempt on the controller."""

_ACKS_OF: Final = msgspec.json.Decoder(Acks)
_FETCH_OF: Final = msgspec.json.Decoder(Fetch)


def is_exempt(line: Line) -> bool:
    """Whether Kafka charges nobody with it; False for what can't be read."""
    key = line.api_key
    try:
        if key == _PRODUCE:
            return _ACKS_OF.decode(line.body.request).acks == 0
        if key == _FETCH:
            return _FETCH_OF.decode(line.body.request).replica >= 0
    except msgspec.MsgspecError:
        return False
    return is_exempt_by_api(key, is_forwarded=line.is_forwarded)


def is_exempt_by_api(api_key: int, *, is_forwarded: bool) -> bool:
    """Whether requests of an API are exempt whatever they contain; not for PRODUCE and FETCH."""
    return api_key in _ALWAYS or (is_forwarded and api_key in _ON_CONTROLLER)
