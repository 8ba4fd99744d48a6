"""The results of a poll: volumes, brokers, and failures.

A volume is the file system of a log dir (KIP-827; proposal 047, section "Volumes"). An observation
is the result of one poll, with its time and its origin, since other sidecars make observations too.
A whole observation lists the brokers of the cluster. A partial observation has only some brokers,
which were asked again between two whole polls.

Times are seconds on the daemon's steady clock (``sidecar.clock``), sizes are bytes.

Example: a volume of 100 bytes with 25 available has 75 used and an available ratio of 0.25; a
volume of 0 bytes has a ratio of 0.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

SAME_FILE_SYSTEM: Final = 0.0001
"""The share of its size by which available bytes of log dirs on one file system may differ."""


LogDir = tuple[int, str]
"""A broker's node id, and the path of one of its log dirs."""


@dataclass(frozen=True, slots=True)
class Volume:
    """The volume behind one log dir of one broker.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path on the broker.
        total_bytes: the size of the file system, >= 0.
        available_bytes: the bytes that the broker may still write there, >= 0.
    """

    broker_id: int
    log_dir: str
    total_bytes: int
    available_bytes: int

    @property
    def place(self) -> LogDir:
        """The broker's node id and the log dir's path, which identify it."""
        return self.broker_id, self.log_dir

    @property
    def used_bytes(self) -> int:
        """Total minus available bytes."""
        return self.total_bytes - self.available_bytes

    @property
    def available_ratio(self) -> float:
        """Available divided by total bytes; 0.0 when the total is 0."""
        return self.available_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def emptied(self) -> "Volume":
        """The volume if all of it was available."""
        return replace(self, available_bytes=self.total_bytes)

    def may_share(self, other: "Volume") -> bool:
        """Whether two log dirs lie on one file system, as far as their sizes tell.

        A broker reads log dirs one after another, and clients write meanwhile.
        """
        return (
            self.broker_id == other.broker_id
            and self.total_bytes == other.total_bytes
            and abs(self.available_bytes - other.available_bytes)
            <= SAME_FILE_SYSTEM * self.total_bytes
        )


@dataclass(frozen=True, slots=True)
class OfflineLogDir:
    """A log dir without sizes.

    Attributes:
        log_dir: the log dir's path on the broker.
        reason: why the sizes are missing, for a person.
        is_written: whether the broker may still write there. It does not write to a log dir that
            it reports as offline (KAFKA_STORAGE_ERROR). With any other error, or sizes of -1,
            nothing is known of the volume.
    """

    log_dir: str
    reason: str
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A broker's answer about all its log dirs.

    Attributes:
        broker_id: the broker's node id.
        read_at: when the broker was asked, steady seconds.
        volumes: one for each log dir with sizes.
        offline: the log dirs without sizes.
        cordoned: the log dirs in which Kafka puts no new partition (KIP-1066, Kafka 4.3).
    """

    broker_id: int
    read_at: float
    volumes: tuple[Volume, ...]
    offline: tuple[OfflineLogDir, ...] = ()
    cordoned: tuple[str, ...] = ()


class FailureKind(StrEnum):
    """Why a call failed. It is the label of a metric, so the list is closed."""

    CONNECT = "connect"
    """Nobody listens at the address, the name has no address, or the connection broke."""
    TIMEOUT = "timeout"
    """The answer did not come by the deadline."""
    TLS = "tls"
    """The TLS handshake failed: certificate, name or protocol."""
    AUTHENTICATION = "authentication"
    """The broker refused the credentials or the SASL mechanism."""
    AUTHORIZATION = "authorization"
    """The principal lacks an ACL; the message names it."""
    UNSUPPORTED = "unsupported"
    """The broker is older than Kafka 3.3 and does not report sizes."""
    PROTOCOL = "protocol"
    """The answer is not valid in Kafka's protocol, or makes no sense."""
    BROKER = "broker"
    """The broker answered with another error."""
    UNREADABLE_LOG_DIR = "unreadable_log_dir"
    """The broker answered without the sizes of a log dir that is not offline."""
    SHARED_ADDRESS = "shared_address"
    """Two brokers have one address, so an answer from there may be of either."""
    OTHER_CLUSTER = "other_cluster"
    """An address leads to another cluster than the one whose volumes are remembered."""
    SOURCE = "source"
    """A factor source or a quota source raised, hung, or returned a value that is not valid."""
    INCOMPLETE = "incomplete"
    """No violation was seen, and a member was neither seen nor remembered."""
    UNEXPECTED = "unexpected"
    """A bug of the sidecar, which continues; its log has the traceback."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An expected failure, as a value.

    Attributes:
        kind: the class of failure.
        message: one line for a person with the failure and the remedy, without secrets.
    """

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class Membership:
    """The brokers of a cluster.

    Attributes:
        cluster_id: the cluster's id; None when the brokers did not report it.
        active: node id -> "host:port" of the unfenced brokers.
        fenced: node id -> "host:port" of the fenced ones; None when the brokers can't list them
            (before Kafka 4.0, KIP-1073).
    """

    cluster_id: str | None
    active: Mapping[int, str]
    fenced: Mapping[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one poll.

    Attributes:
        observed_at: when the observation was complete, steady seconds.
        origin: the observer; "poll" for this sidecar's own poller.
        membership: None when the observation is partial.
        answers: node id -> the broker's answer or failure. A whole observation has one for each
            active broker.
        own: node id -> "host:port" of the broker beside this sidecar; empty if it was asked in vain
            or no list has it, None if it was not asked. While it answers this sidecar, it is
            active, whatever another sidecar lists.
    """

    observed_at: float
    origin: str
    membership: Membership | None
    answers: Mapping[int, Reading | Failure]
    own: Mapping[int, str] | None = None


class VolumeSource(Protocol):
    """A source of observations."""

    async def observe(
        self, brokers: Collection[int] | None, timeout_s: float
    ) -> Observation | Failure:
        """Poll the cluster once.

        Args:
            brokers: the ids to ask, for a partial observation. None lists the brokers and asks
                every active broker, for a whole observation.
            timeout_s: the deadline of the whole poll, seconds, > 0. A broker that did not answer
                by then has a ``Failure`` of kind timeout as its answer.

        Returns:
            The observation, or the failure if the brokers could not be listed.
        """
        ...
