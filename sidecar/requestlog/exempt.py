"""Which requests are exempt from request quotas (KIP-124, section "Exempt requests").

Kafka exempts requests that the cluster itself needs: fetches of replicas, traffic of controllers,
and markers of transactions. It also exempts PRODUCE with acks=0, because there is no answer to
carry a throttle time. Kafka reports the time of exempt requests in ``exempt-request-time``.

Example: a FETCH of replica 3 is exempt. A consumer's FETCH (replica -1) and a broker's heartbeat to
the controller are not.

Kafka charges a request that it refuses because CLUSTER_ACTION is missing. The line does not show
the refusal, so this module counts the request as exempt.

Source: KafkaApis and ControllerApis (sendResponseExemptThrottle), Kafka 3.3 to 4.3.
"""

from typing import Final

import msgspec

from sidecar.requestlog.line import Line
from sidecar.requestlog.wire import Acks, Fetch

PRODUCE: Final = 0
FETCH: Final = 1
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
"""The broker charges these before it forwards them; on the controller they are exempt."""

_ACKS_DECODER: Final = msgspec.json.Decoder(Acks)
_FETCH_DECODER: Final = msgspec.json.Decoder(Fetch)


def is_exempt(line: Line) -> bool:
    """Whether Kafka charges no quota for this request; False if its body can't be read."""
    key = line.api_key
    try:
        if key == PRODUCE:
            return _ACKS_DECODER.decode(line.body.request).acks == 0
        if key == FETCH:
            return _FETCH_DECODER.decode(line.body.request).replica >= 0
    except ValueError:
        return False
    return is_exempt_by_api(key, is_forwarded=line.is_forwarded)


def is_exempt_by_api(api_key: int, *, is_forwarded: bool) -> bool:
    """Whether all requests of an API are exempt; do not call it for PRODUCE and FETCH."""
    return api_key in _ALWAYS or (is_forwarded and api_key in _ON_CONTROLLER)
