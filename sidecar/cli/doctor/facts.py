"""What ``doctor`` was able to see: one value, from which all findings follow.

Each part was read by itself, within its own deadline. A part that could not be read is a
``NotKnown`` with the reason, so that a finding never says more than was seen.

Example: without DESCRIBE_CONFIGS on the cluster, ``Broker.configs`` is ``NotKnown("broker 1:
DescribeConfigs returned ...")``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sidecar.client_quotas.plan import Found
from sidecar.throttle.budgets import Budget
from sidecar.throttle.readers import Enforcement
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing

BY_HISTORY: Final = "the history of up to 7 days"
BY_PROMETHEUS: Final = "Prometheus, the highest 5 min of 7 days"


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Why something could not be seen: a sentence without its full stop."""

    why: str


NO_PROMETHEUS: Final = NotKnown("whether alerts are loaded: no Prometheus was named")


@dataclass(frozen=True, slots=True)
class Refused(NotKnown):
    """Something that an ACL which is missing hides."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of the cluster's list.

    Attributes:
        id: the node id.
        problem: why it can't be read from here; "" if it answers.
        fenced: whether it is fenced.
        configs: its configuration as far as it was asked for.
        kafka: the versions that it may have by Kafka's protocol; "" if that is not known.
    """

    id: int
    problem: str = ""
    fenced: bool = False
    configs: Mapping[str, str | None] | NotKnown = NotKnown("it was not asked")
    kafka: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume as last read.

    Attributes:
        limit_bytes: the available bytes at which it violates the limit.
        stop_line_bytes: the same for the stop line; None without one.
        rate: the highest fill rate that is known, bytes/s; None if none is.
        rate_by: where that rate comes from, which follows "by".
    """

    broker_id: int
    log_dir: str
    total_bytes: int
    available_bytes: int
    limit_bytes: float
    stop_line_bytes: float | None = None
    rate: float | None = None
    rate_by: str = ""

    def __str__(self) -> str:
        return f"broker {self.broker_id} {self.log_dir}"

    @property
    def rate_is_recorded(self) -> bool:
        """Whether the rate is the highest of some days, not that of a moment."""
        return self.rate_by in {BY_HISTORY, BY_PROMETHEUS}


@dataclass(frozen=True, slots=True)
class Relief:
    """How room is to be made by these settings.

    Attributes:
        mode: "delete", or "dry-run", as in observe mode.
        patterns: of the declared topics.
        problem: why the cluster can't be read; "" if it can.
        topics: the declared topics that can be described.
        undeletable: those of them that may not be deleted from; none in a dry run.
        left_out: topic -> why nothing can be deleted from it.
        groups_unknown: why the groups that read them are not known; "" if they are.
    """

    mode: str
    patterns: Sequence[str]
    problem: str = ""
    topics: Sequence[str] = ()
    undeletable: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    groups_unknown: str = ""


TokenState = Literal["accepted", "refused", "not set here", "not set there"]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A running sidecar.

    Attributes:
        address: where it was asked.
        problem: why there is no answer; "" with one.
        version: its version; "" if it did not tell.
        factor: its answer of /v1/throttle-factor.
        failure: why its last poll failed, or it could not read a broker; "" if it read all.
        limits: its answer of /v1/quota-factors; None if it gave none.
        readers: its readers of /v1/readers; None if it gave none.
        relief: its answer of /v1/relief; None if it gave none.
        budgets: its budgets of /v1/budgets; empty if it shows none.
        started: the id of its start; "" if unknown.
        clock_ahead_s: how far its clock is ahead of this machine's, to a second; None if unknown.
        token: whether it accepts the token of these settings.
    """

    address: str
    problem: str = ""
    version: str = ""
    factor: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""
    limits: Mapping[str, Any] | None = None
    readers: tuple[Mapping[str, Any], ...] | None = None
    relief: Mapping[str, Any] | None = None
    budgets: tuple[Mapping[str, Any], ...] = ()
    started: str = ""
    clock_ahead_s: float | None = None
    token: TokenState | NotKnown = NotKnown("it was not asked")


@dataclass(frozen=True, slots=True)
class Alerts:
    """What Prometheus has.

    Attributes:
        missing: the alerts that it has not loaded.
        scraped: how many sidecars of any cluster it scrapes.
    """

    missing: frozenset[str]
    scraped: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it.

    Attributes:
        version: of this program.
        target: the addresses of brokers and the login's file, for commands.
        principal: the user in ACLs, for commands.
        is_strimzi: whether ACLs belong in Strimzi's KafkaUser.
        is_iam: whether the sidecar logs in by AWS IAM, whose policies grant instead of ACLs.
        rules: limit, stop line and soft limit by these settings.
        timing: the interval, and the times that follow from it.
        horizon_s: how long the space between soft limit and limit should last, seconds.
        away_s: how long until somebody frees space, seconds.
        observes: whether these settings are for observe mode.
        by_volume: whether these settings throttle only producers of a full volume.
        alters_quotas: whether these settings let the sidecar set quotas in Kafka.
        enforcement: what is to enforce the factor by these settings.
        floor: the lowest quota that these settings let the sidecar set, bytes/s.
        by_acls: whether ACLs of Kafka say who may set quotas, and not a platform's own API.
        metrics: broker id -> the highest rate in its metrics, bytes/s, for brokers with an address.
        remarks: notices about the settings, and lines that fit no volume.
        file_problems: files without which "run" does not start.
        state_file: the path of the state file; None without one.
        state_problem: what is wrong with its place; "" if nothing is.
        cluster: None if the brokers could be listed; otherwise why not.
        cluster_id: the id of the cluster that was listed; None if it is not known.
        brokers: the brokers by id.
        rights: the user's operations on the cluster.
        topics: None if the user may describe all topics of a broker; otherwise why not.
        volumes: the volumes that were read.
        partitions: (broker, log dir) -> its partitions, for the broker with the least room.
        history: why the volume history could not be read; None if it was, or there is none.
        quotas: the produce quotas, and the originals that the cluster keeps.
        relief: how room is to be made; None if it is not.
        budgets: the storage budgets; None without a file.
        sidecars: the sidecars that were asked.
        alerts: what Prometheus has.
    """

    version: str
    target: str
    principal: str
    rules: Rules
    timing: Timing
    is_strimzi: bool = False
    is_iam: bool = False
    horizon_s: float = 1800.0
    away_s: float = 28_800.0
    observes: bool = False
    by_volume: bool = False
    alters_quotas: bool = False
    enforcement: Enforcement = "callback"
    floor: int = 512 << 10
    by_acls: bool = True
    metrics: Mapping[int, float | NotKnown] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    file_problems: tuple[str, ...] = ()
    state_file: str | None = None
    state_problem: str = ""
    cluster: NotKnown | None = None
    cluster_id: str | None = None
    brokers: tuple[Broker, ...] = ()
    rights: frozenset[str] | NotKnown = NotKnown("no broker was asked")
    topics: NotKnown | None = None
    volumes: tuple[Volume, ...] = ()
    partitions: Mapping[tuple[int, str], int] | NotKnown = NotKnown("no broker was asked")
    history: NotKnown | None = None
    quotas: Found | NotKnown = NotKnown("no broker was asked")
    relief: Relief | None = None
    budgets: tuple[Budget, ...] | None = None
    sidecars: tuple[Sidecar, ...] = ()
    alerts: Alerts | NotKnown = NO_PROMETHEUS

    @property
    def active(self) -> tuple[Broker, ...]:
        """The brokers that are not fenced."""
        return tuple(broker for broker in self.brokers if not broker.fenced)

    @property
    def answering(self) -> tuple[Sidecar, ...]:
        """The sidecars that answered."""
        return tuple(sidecar for sidecar in self.sidecars if not sidecar.problem)

    @property
    def filling(self) -> tuple[tuple[Volume, float], ...]:
        """The volumes that are known to fill, with their rates, bytes/s."""
        return tuple((each, each.rate) for each in self.volumes if each.rate and each.rate > 0.0)

    def reader(self, broker_id: int) -> Mapping[str, Any] | None:
        """The report of a broker's callback to the sidecar where it waits; None without one."""
        reports = [
            report
            for sidecar in self.answering
            for report in sidecar.readers or ()
            if report.get("broker_id") == broker_id
        ]
        return max(reports, key=_freshness, default=None)

    @property
    def throttled(self) -> bool:
        """Whether a sidecar throttles now, so that volumes fill more slowly than they would."""
        return any(
            each.factor.get("factor") != 1.0 or each.factor.get("lowered_quotas")
            for each in self.answering
        )

    @property
    def observe_only(self) -> bool:
        """Whether no sidecar enforces, as far as they answer."""
        enforcing = [each for each in self.answering if each.factor.get("shadow") is None]
        return self.observes or bool(self.answering and not enforcing)


def _freshness(report: Mapping[str, Any]) -> tuple[bool, str]:
    return bool(report.get("waiting")), str(report.get("last_seen"))
