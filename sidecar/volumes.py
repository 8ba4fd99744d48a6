"""What a poll sees: volumes, brokers, and what failed.

A volume is what a log dir lies on (KIP-827; proposal 047, section "Volumes"). An observation is one
look at the cluster: a value with its time and its origin, so that it may come from another place
than this sidecar's own poller. It is whole when it says which brokers are members of the cluster,
and partial when only some brokers were asked again between two whole ones.

Times are seconds on the daemon's steady clock (epoch seconds that never step), sizes are bytes.

Example: a volume of 100 bytes with 25 available has 75 used and an available ratio of 0.25; a
volume of 0 bytes has a ratio of 0.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Volume:
    """The volume behind one log dir of one broker.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path on the broker.
        total_bytes: the size of the file system, >= 0.
        available_bytes: what the broker may still write there, >= 0.
    """

    broker_id: int
    log_dir: str
    total_bytes: int
    available_bytes: int

    @property
    def used_bytes(self) -> int:
        """Total less available bytes."""
        return self.total_bytes - self.available_bytes

    @property
    def available_ratio(self) -> float:
        """Available over total bytes; 0.0 when the total is 0."""
        return self.available_bytes / self.total_bytes if self.total_bytes else 0.0


@dataclass(frozen=True, slots=True)
class OfflineLogDir:
    """A log dir whose sizes the broker can't tell: it is offline (error 56), or they are -1.

    Attributes:
        log_dir: the log dir's path on the broker.
        reason: why, for a person.
    """

    log_dir: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What one broker said of all its log dirs.

    Attributes:
        broker_id: the broker's node id.
        read_at: when it was asked, steady seconds.
        volumes: one for each log dir whose sizes are known.
        offline: the log dirs whose sizes are not.
    """

    broker_id: int
    read_at: float
    volumes: tuple[Volume, ...]
    offline: tuple[OfflineLogDir, ...] = ()


class FailureKind(StrEnum):
    """Why a call gave nothing: the label of a metric, so a closed list."""

    CONNECT = "connect"
    """Nothing listens, the name has no address, or the connection broke."""
    TIMEOUT = "timeout"
    """No answer by the deadline."""
    TLS = "tls"
    """The TLS handshake failed: certificate, name or protocol."""
    AUTHENTICATION = "authentication"
    """The broker refused the credentials or the SASL mechanism."""
    AUTHORIZATION = "authorization"
    """The principal lacks an ACL; the message names it."""
    UNSUPPORTED = "unsupported"
    """The broker is older than Kafka 3.3 and can't tell sizes."""
    PROTOCOL = "protocol"
    """The answer is not Kafka's, or makes no sense."""
    BROKER = "broker"
    """The broker answered with another error."""
    INCOMPLETE = "incomplete"
    """No violation was seen, and a member was neither seen nor remembered."""
    UNEXPECTED = "unexpected"
    """A bug of the sidecar, which goes on all the same; its log has the traceback."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An expected failure, as a value.

    Attributes:
        kind: the class of failure.
        message: one line for a person: what failed and what to do; never a secret.
    """

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class Membership:
    """Which brokers the cluster has.

    Attributes:
        cluster_id: the cluster's id, None when the brokers did not tell.
        active: node id -> "host:port" of the unfenced brokers.
        fenced: node id -> "host:port" of the fenced ones; None when the brokers can't list them
            (before Kafka 4.0, KIP-1073).
    """

    cluster_id: str | None
    active: Mapping[int, str]
    fenced: Mapping[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at the cluster.

    Attributes:
        observed_at: when it was complete, steady seconds.
        origin: who looked: "poll" for this sidecar's own poller.
        membership: None when the observation is partial.
        answers: node id -> what the broker said or why it said nothing; of a whole observation,
            one for each active broker.
    """

    observed_at: float
    origin: str
    membership: Membership | None
    answers: Mapping[int, Reading | Failure]


class VolumeSource(Protocol):
    """Where observations come from."""

    async def observe(
        self, brokers: Collection[int] | None, timeout_s: float
    ) -> Observation | Failure:
        """Look at the cluster once.

        Args:
            brokers: the ids to ask, for a partial observation; None asks which brokers there are,
                then every active one, for a whole one.
            timeout_s: one deadline for all of it, seconds, > 0. Brokers that did not answer by
                then have a ``Failure`` of kind timeout as their answer.

        Returns:
            The observation, or why there is none at all (the brokers could not be listed).
        """
        ...
