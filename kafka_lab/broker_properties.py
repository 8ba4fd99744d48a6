"""The server.properties of brokers and of the controller.

Times are short, so that a scenario takes seconds. A dead broker is fenced after 4 s, which are 8
heartbeats of 500 ms. A machine that pauses for 3 s therefore fences no broker. Retention runs every
second, deleted segments are removed after half a second, and segments have 1 MiB. A broker notices
a log dir that can't be written within about a second, when it writes checkpoints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONTROLLER_ID = 100
"""The node id of the dedicated controller; broker ids begin with 0."""

SESSION_TIMEOUT_MS = 4000
"""The time from a broker's last heartbeat until it is fenced, in ms."""

_QUORUM = {
    "controller.listener.names": "CONTROLLER",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
}
_BROKER = {
    "auto.create.topics.enable": "false",
    "log.segment.bytes": str(1 << 20),
    "log.index.size.max.bytes": str(1 << 20),
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    # Without this, retention first runs after 30 s. Kafka 3.3 has no such property.
    "log.initial.task.delay.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    # The default takes 128 MB of heap.
    "log.cleaner.dedupe.buffer.size": str(2 << 20),
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The loopback port of a node's listener."""

    listener: str
    protocol: str
    port: int

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"127.0.0.1:{self.port}"


def controller_properties(port: int, log_dir: str) -> dict[str, str]:
    """Return the properties of the dedicated controller."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "controller.quorum.voters": _voters(port),
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": log_dir,
        **_QUORUM,
    }


def broker_properties(
    broker_id: int,
    *,
    endpoints: Sequence[Endpoint],
    log_dirs: Sequence[str],
    metadata_log_dir: str,
    controller_port: int,
    brokers: int,
) -> dict[str, str]:
    """Return the properties of a broker.

    Args:
        broker_id: the broker's node id.
        endpoints: the broker's listeners, beginning with the one between brokers.
        log_dirs: a log dir for each volume.
        metadata_log_dir: a folder outside the volumes, because a full volume with the metadata log
            would stop the whole broker.
        controller_port: the controller's port.
        brokers: the number of brokers, which limits the replicas of internal topics.
    """
    listeners = ",".join(f"{e.listener}://{e.address}" for e in endpoints)
    protocols = [f"{e.listener}:{e.protocol}" for e in endpoints]
    replicas = str(min(3, brokers))
    in_sync = str(min(2, brokers))
    return {
        "process.roles": "broker",
        "node.id": str(broker_id),
        "controller.quorum.voters": _voters(controller_port),
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": endpoints[0].listener,
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
        "log.dirs": ",".join(log_dirs),
        "metadata.log.dir": metadata_log_dir,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        **_QUORUM,
        **_BROKER,
    }


def controller_too(broker: Mapping[str, str], controller_port: int) -> dict[str, str]:
    """Return the properties of a broker that is also the controller (combined mode)."""
    return dict(broker) | {
        "process.roles": "broker,controller",
        "controller.quorum.voters": _voters(controller_port, int(broker["node.id"])),
        "listeners": f"{broker['listeners']},CONTROLLER://127.0.0.1:{controller_port}",
    }


def combined_properties(node_port: int, controller_port: int, log_dir: str) -> dict[str, str]:
    """Return the properties of a cluster with a single node, which is broker and controller."""
    plain = Endpoint("PLAIN", "PLAINTEXT", node_port)
    properties = broker_properties(
        CONTROLLER_ID,
        endpoints=[plain],
        log_dirs=[log_dir],
        metadata_log_dir=log_dir,
        controller_port=controller_port,
        brokers=1,
    )
    return controller_too(properties, controller_port)


def authorizer_properties(super_users: Sequence[str]) -> dict[str, str]:
    """Return the properties of StandardAuthorizer; ANONYMOUS, for helpers, is a super user too."""
    users = ";".join(f"User:{user}" for user in ("ANONYMOUS", *super_users))
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": users,
    }


def meta_properties(cluster_id: str, node_id: int, directory_id: str | None) -> str:
    """Return the file that marks a formatted log dir, as the storage tool writes it.

    Args:
        cluster_id: the id of the cluster.
        node_id: the id of the log dir's node.
        directory_id: the id of the log dir; None before Kafka 3.7, which requires the same file in
            all log dirs of a node.
    """
    properties = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}
    if directory_id is not None:
        properties["directory.id"] = directory_id
    return render(properties)


def render(properties: Mapping[str, str]) -> str:
    """Return a Java properties file, with all special characters escaped.

    Example: a value of two lines becomes one line, with a backslash and an n between them.
    """
    return "".join(
        f"{_escaped(key, ' =:#!')}={_escaped(value, '')}\n" for key, value in properties.items()
    )


def _escaped(text: str, special: str) -> str:
    out = []
    for position, char in enumerate(text):
        if char in "\n\r\t\f":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}[char])
        elif char == "\\" or char in special or (char == " " and position == 0):
            out.append("\\" + char)
        elif char.isascii() and char.isprintable():
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out.extend(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return "".join(out)


def _voters(port: int, node_id: int = CONTROLLER_ID) -> str:
    return f"{node_id}@127.0.0.1:{port}"
