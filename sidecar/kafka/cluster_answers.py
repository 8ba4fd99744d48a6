"""Turns decoded answers of brokers into memberships and readings.

Rules (docs/how-it-decides.md):

- A log dir whose sizes are -1 is neither empty nor full. Only KAFKA_STORAGE_ERROR means that it is
  offline, so that nothing writes there.
- Active brokers with one address are failures: nobody knows which of them answers there. An active
  broker with the address of a fenced one, which may run too, has to show its id.
- An answer without any log dir is a failure.
- An active broker is one that is not fenced. Before Kafka 4.0, answers do not list fenced brokers.

Example: sizes of 100 and 25 are a volume of 100 bytes with 25 available. Sizes of -1 and -1 are an
offline log dir.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from aiokafka.protocol.api import Response

from sidecar.kafka.client.failures import error_name, one_line
from sidecar.kafka.client.one_call import refused
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind, Membership, OfflineLogDir, Reading, Volume

KAFKA_STORAGE_ERROR = 56
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115
FENCED_FROM_VERSION = 2
CORDONED_FROM_VERSION = 5


@dataclass(frozen=True, slots=True)
class ClusterList:
    """The brokers of the cluster, and the addresses and racks of the active ones.

    Attributes:
        shared: the active brokers that share an address with another one, each with its failure.
    """

    membership: Membership
    endpoints: dict[int, HostPort]
    racks: dict[int, str]
    shared: dict[int, Failure]


def read_cluster(response: Response, endpoint: HostPort) -> ClusterList | Failure:
    """The brokers that a DescribeCluster answer lists.

    Args:
        response: an answer of v0 to v2.
        endpoint: the address that answered.

    Returns:
        At least one active broker; a failure if there is none or the answer is not valid.
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
    racks: dict[int, str] = {}
    lists_fenced = response.API_VERSION >= FENCED_FROM_VERSION
    for broker_id, host, port, rack, *rest in response.brokers or ():
        # A fenced broker may have no address on this listener. The sidecar does not connect to it.
        is_fenced = lists_fenced and rest[0]
        if not is_fenced and not (host and 0 < port < 65536):
            text = f"{endpoint}: DescribeCluster lists broker {broker_id} without an address"
            return Failure(FailureKind.PROTOCOL, text)
        (fenced if is_fenced else active)[broker_id] = HostPort(host or "", port)
        if rack and not is_fenced:
            racks[broker_id] = rack
    if not active:
        return Failure(FailureKind.BROKER, f"{endpoint}: DescribeCluster lists no active broker")
    membership = Membership(
        cluster_id=response.cluster_id or None,
        active={broker_id: str(address) for broker_id, address in active.items()},
        fenced={broker_id: str(address) for broker_id, address in fenced.items()}
        if lists_fenced
        else None,
    )
    return ClusterList(membership, active, racks, _shared_addresses(active))


def read_cluster_id(response: Response, endpoint: HostPort) -> str | Failure:
    """The id in an address's answer to ``DescribeClusterId``; empty if the broker has none."""
    if response.error_code:
        text = f"{endpoint}: DescribeCluster returned {error_name(response.error_code)}"
        return Failure(FailureKind.BROKER, text)
    return response.cluster_id or ""


def both_lists(first: ClusterList, second: ClusterList) -> ClusterList:
    """All brokers that one of two lists has as active, for the case that one is out of date.

    ``settled`` takes back those that the lists disagree about and that do not answer.
    """
    fenced = first.membership.fenced
    if second.membership.fenced is not None:
        fenced = {**(fenced or {}), **second.membership.fenced}
    endpoints = {**second.endpoints, **first.endpoints}
    active = {broker_id: str(endpoint) for broker_id, endpoint in endpoints.items()}
    membership = replace(first.membership, active=active, fenced=fenced)
    # A broker that only the other list has may share its address there with one that has another
    # address by now.
    shared = {key: each for key, each in second.shared.items() if key not in first.endpoints}
    shared |= _shared_addresses(endpoints)
    return ClusterList(membership, endpoints, {**second.racks, **first.racks}, shared)


def disputed(first: ClusterList, second: ClusterList) -> frozenset[int]:
    """The brokers that are active in only one of two lists."""
    return frozenset(first.endpoints.keys() ^ second.endpoints.keys())


def settled(
    membership: Membership, disputed: frozenset[int], answers: Mapping[int, Reading | Failure]
) -> Membership:
    """The membership by two lists and the answers of the brokers.

    A broker that the lists disagree about is active if it answers. A broker without the newest
    metadata, which the controllers don't reach, still lists a dead broker as active.
    """
    gone = {each for each in disputed if isinstance(answers.get(each), Failure)}
    active = {key: address for key, address in membership.active.items() if key not in gone}
    fenced = membership.fenced
    if fenced is not None:
        fenced = {key: address for key, address in fenced.items() if key not in active}
    return replace(membership, active=active, fenced=fenced)


def _shared_addresses(endpoints: Mapping[int, HostPort]) -> dict[int, Failure]:
    """An answer from there may be of any of them, so none of their volumes can be told apart."""
    by_endpoint: dict[HostPort, list[int]] = defaultdict(list)
    for broker_id in sorted(endpoints):
        by_endpoint[endpoints[broker_id]].append(broker_id)
    return {
        broker_id: Failure(
            FailureKind.SHARED_ADDRESS,
            f"broker {broker_id}: {len(brokers)} active brokers have the address {endpoint}, so "
            "nobody knows which of them answers there; set advertised.listeners so that each "
            "broker has an address of its own",
        )
        for endpoint, brokers in by_endpoint.items()
        if len(brokers) > 1
        for broker_id in brokers
    }


def shared_with_fenced(cluster: ClusterList) -> dict[int, Failure]:
    """The active brokers that have the address of a fenced one, each with its failure.

    The failure applies if the broker there does not show its id. A fenced broker may be down, or
    run without reaching the controllers. A broker with a new id has the address of its old one.
    """
    fenced = {
        address: broker_id
        for broker_id, address in (cluster.membership.fenced or {}).items()
        if broker_id not in cluster.endpoints
    }
    return {
        broker_id: Failure(
            FailureKind.SHARED_ADDRESS,
            f"broker {broker_id}: fenced broker {fenced[address]} has the same address {address}, "
            f"and the broker there does not show its id; unregister broker {fenced[address]} if it "
            "is gone, grant DescribeConfigs on the cluster, or set advertised.listeners so that "
            "each broker has an address of its own",
        )
        for broker_id, address in cluster.membership.active.items()
        if address in fenced
    }


def read_log_dirs(
    response: Response, broker_id: int, read_at: float, principal: str
) -> Reading | Failure:
    """The volumes in a DescribeLogDirs answer.

    Args:
        response: an answer of v4 or v5; its topics are ignored.
        broker_id: the broker that answered.
        read_at: when the broker was asked, steady seconds.
        principal: the sidecar's principal, for the hint in an authorization failure.
    """
    if code := response.error_code:
        broker = f"broker {broker_id}"
        return refused(broker, "DescribeLogDirs", code, None, "Describe", principal=principal)
    volumes: list[Volume] = []
    offline: list[OfflineLogDir] = []
    cordoned: list[str] = []
    has_cordons = response.API_VERSION >= CORDONED_FROM_VERSION
    # Unpacked by position for speed: a poll of a large cluster has 12,000 log dirs.
    for error_code, log_dir, _topics, total_bytes, usable_bytes, *rest in response.results or ():
        if log_dir is None:
            text = f"broker {broker_id}: DescribeLogDirs names a log dir without a path"
            return Failure(FailureKind.PROTOCOL, text)
        if has_cordons and rest[0]:
            cordoned.append(log_dir)
        if error_code == KAFKA_STORAGE_ERROR:
            offline.append(OfflineLogDir(log_dir, f"offline: {error_name(error_code)}"))
        elif error_code:
            offline.append(OfflineLogDir(log_dir, error_name(error_code), is_written=True))
        elif total_bytes < 0 or usable_bytes < 0:
            why = "the broker does not report them (-1)"
            offline.append(OfflineLogDir(log_dir, why, is_written=True))
        else:
            volumes.append(Volume(broker_id, log_dir, total_bytes, usable_bytes))
    if not volumes and not offline:
        # Without log dirs the answer shows no volume, so it must not count as a reading.
        text = f"broker {broker_id}: DescribeLogDirs lists no log dir"
        return Failure(FailureKind.PROTOCOL, text)
    return Reading(broker_id, read_at, tuple(volumes), tuple(offline), tuple(cordoned))
