"""What the brokers' answers mean: decoded messages to memberships and readings.

The rules (docs/how-it-decides.md): a log dir that is offline, or whose sizes are -1, is never read
as empty or as full; a broker that answers without one log dir has not been seen; an active broker
is an unfenced one, and brokers that can't list fenced ones (before Kafka 4.0) leave them out.

Example: sizes of 100 and 25 are a volume of 100 bytes with 25 available; -1 and -1 an offline dir.
"""

from dataclasses import dataclass

from aiokafka.protocol.api import Response

from sidecar.kafka.client.failures import error_name, one_line
from sidecar.kafka.client.one_call import refused
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind, Membership, OfflineLogDir, Reading, Volume

KAFKA_STORAGE_ERROR = 56
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115
FENCED_FROM_VERSION = 2


@dataclass(frozen=True, slots=True)
class ClusterList:
    """Who is in the cluster, and where the active brokers listen."""

    membership: Membership
    endpoints: dict[int, HostPort]


def read_cluster(response: Response, endpoint: HostPort) -> ClusterList | Failure:
    """The brokers that a DescribeCluster answer lists.

    Args:
        response: v0 to v2.
        endpoint: who answered.

    Returns:
        At least one active broker; a failure when there is none or the answer makes no sense.
    """
    code = response.error_code
    if code in {MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE}:
        return Failure(
            FailureKind.BROKER, f"{endpoint}: is a controller's listener, not a broker's"
        )
    if code:
        message = f": {response.error_message}" if response.error_message else ""
        text = f"{endpoint}: DescribeCluster returned {error_name(code)}{message}"
        return Failure(FailureKind.BROKER, one_line(text))
    active: dict[int, HostPort] = {}
    fenced: dict[int, HostPort] = {}
    lists_fenced = response.API_VERSION >= FENCED_FROM_VERSION
    for broker_id, host, port, _rack, *rest in response.brokers or ():
        # A fenced broker may have no endpoint on this listener; it is not connected to anyway.
        is_fenced = lists_fenced and rest[0]
        if not is_fenced and not (host and 0 < port < 65536):
            text = f"{endpoint}: DescribeCluster lists broker {broker_id} without an address"
            return Failure(FailureKind.PROTOCOL, text)
        (fenced if is_fenced else active)[broker_id] = HostPort(host or "", port)
    if not active:
        return Failure(FailureKind.BROKER, f"{endpoint}: DescribeCluster lists no active broker")
    membership = Membership(
        cluster_id=response.cluster_id or None,
        active={broker_id: str(address) for broker_id, address in active.items()},
        fenced={broker_id: str(address) for broker_id, address in fenced.items()}
        if lists_fenced
        else None,
    )
    return ClusterList(membership, active)


def read_log_dirs(
    response: Response, broker_id: int, read_at: float, principal: str
) -> Reading | Failure:
    """The volumes in a DescribeLogDirs answer.

    Args:
        response: v4 or v5; topics in it are ignored.
        broker_id: who answered.
        read_at: when it was asked, steady seconds.
        principal: whom to grant what is missing, for the failure's message.
    """
    if code := response.error_code:
        broker = f"broker {broker_id}"
        return refused(broker, "DescribeLogDirs", code, None, "Describe", principal=principal)
    volumes: list[Volume] = []
    offline: list[OfflineLogDir] = []
    # Fields are taken by position: there are 12,000 of these in a poll of a large cluster.
    for error_code, log_dir, _topics, total_bytes, usable_bytes, *_rest in response.results or ():
        if log_dir is None:
            text = f"broker {broker_id}: DescribeLogDirs names a log dir without a path"
            return Failure(FailureKind.PROTOCOL, text)
        if error_code == KAFKA_STORAGE_ERROR:
            offline.append(OfflineLogDir(log_dir, f"offline: {error_name(error_code)}"))
        elif error_code:
            offline.append(OfflineLogDir(log_dir, error_name(error_code)))
        elif total_bytes < 0 or usable_bytes < 0:
            offline.append(OfflineLogDir(log_dir, "the broker does not report its sizes (-1)"))
        else:
            volumes.append(Volume(broker_id, log_dir, total_bytes, usable_bytes))
    if not volumes and not offline:
        # An answer without log dirs shows nothing, so it must not count as sight of this broker.
        text = f"broker {broker_id}: DescribeLogDirs lists no log dir"
        return Failure(FailureKind.PROTOCOL, text)
    return Reading(broker_id, read_at, tuple(volumes), tuple(offline))
