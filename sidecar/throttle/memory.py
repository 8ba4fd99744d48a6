"""The memory: what the sidecar knows of the cluster from all observations so far.

Rules (docs/how-it-decides.md; ``sidecar.throttle.fold`` applies them):

- A member is an active broker. A member that did not answer counts with its last volumes while
  now <= read_at + validity.
- Volumes of a fenced broker that violated when last read are kept without an end; its other volumes
  are dropped. If a cluster can't list its fenced brokers, the violating volumes of a broker that
  left are kept for the validity.
- The last state of an offline log dir is kept while its broker answers, until an operator says
  forget. A log dir that its broker no longer reports is forgotten.
- The memory is of one cluster. When all its brokers are forgotten, another cluster clears the
  rest, except the override and what capabilities keep.

Example: broker 1 was read at 0 s with a full volume and is fenced at 10 s. At 1,000 s its volume
still counts. Broker 2 was healthy when last read and is fenced: its volumes are dropped.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sidecar.throttle.fill import Fill, first_fill, seconds_to
from sidecar.throttle.limits import Verdict
from sidecar.throttle.user_throttles import UserThrottles
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, FailureKind, LogDir, Membership, OfflineLogDir, Volume


@dataclass(frozen=True, slots=True)
class VolumeState:
    """A volume as last read, with its verdicts and its fill rate.

    Attributes:
        volume: the sizes as last read.
        read_at: when its broker was asked for them, steady seconds.
        verdict: the result of comparing the sizes with the limit.
        online: False while its broker reports the log dir without sizes.
        fill: how it fills.
        stop_line_verdict: the result of comparing the sizes with the stop line; None without one.
    """

    volume: Volume
    read_at: float
    verdict: Verdict
    online: bool
    fill: Fill
    stop_line_verdict: Verdict | None = None

    @property
    def violates(self) -> bool:
        """Whether it violated the limit when last read."""
        return self.verdict.violates

    @property
    def headroom_bytes(self) -> float:
        """The bytes that may still be written until it violates; 0 or less at the limit."""
        return self.volume.available_bytes - self.verdict.threshold_bytes

    @property
    def seconds_left(self) -> float | None:
        """How long after its reading it violates at the published fill rate.

        0.0 when it violates already; None when that is not within ten years, or no rate is known.
        """
        return self._seconds_left(self.fill.bytes_per_second)

    @property
    def soonest_s(self) -> float | None:
        """``seconds_left`` at the fastest rate of the last readings, which the schedule uses."""
        return self._seconds_left(self.fill.fastest_bytes_per_second)

    @property
    def stop_line_bytes(self) -> float | None:
        """The available bytes at which the stop line lies, at the limit at most; None: no line."""
        if self.stop_line_verdict is None:
            return None
        # A stop line in bytes may be above a limit that is a ratio of a small volume. There the
        # limit is the stop line, because a volume that does not throttle must not make brokers
        # refuse.
        return min(self.stop_line_verdict.threshold_bytes, self.verdict.threshold_bytes)

    @property
    def is_at_stop_line(self) -> bool:
        """Whether it was at or below the stop line, and so the limit, when last read."""
        line = self.stop_line_verdict
        return self.violates and line is not None and line.violates

    def _seconds_left(self, bytes_per_second: float | None) -> float | None:
        # Within the release margin a volume violates although it has room above the limit.
        return seconds_to(0.0 if self.violates else self.headroom_bytes, bytes_per_second)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker as last seen.

    Attributes:
        read_at: when the request of its last answer was sent, steady seconds; None before one.
        volumes: its volumes whose sizes were ever known.
        offline: its log dirs without sizes in its last answer.
        failure: why it did not answer the last request, or answered without all sizes; None when
            all is known.
        failed_since: when that failure began, steady seconds.
        retained: whether the broker was fenced since its last answer. Its volumes at or below the
            limit or the soft limit then count until it answers, is unregistered or is forgotten,
            however long that takes.
        missing_since: when a list of brokers first lacked it, steady seconds; None while the last
            list has it.
        cordoned: its log dirs in which Kafka puts no new partition, by its last answer.
    """

    read_at: float | None = None
    volumes: tuple[VolumeState, ...] = ()
    offline: tuple[OfflineLogDir, ...] = ()
    failure: Failure | None = None
    failed_since: float | None = None
    retained: bool = False
    missing_since: float | None = None
    cordoned: tuple[str, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether it did not answer the last request; without some sizes, it did answer."""
        failure = self.failure
        return failure is not None and failure.kind is not FailureKind.UNREADABLE_LOG_DIR

    @property
    def seen_at(self) -> float | None:
        """When the last of its log dirs was seen, steady seconds; None if one never was.

        An offline log dir is seen, since nothing is written there. One whose sizes are missing for
        another reason was last seen when its sizes were last read.
        """
        unreadable = {each.log_dir for each in self.offline if each.is_written}
        known = [each.read_at for each in self.volumes if each.volume.log_dir in unreadable]
        if self.read_at is None or len(known) < len(unreadable):
            return None
        return min([self.read_at, *known])

    def counts_until(self, membership: Membership, validity_s: float) -> float:
        """The last moment at which its volumes count while it is not active, steady seconds.

        Returns:
            Infinity while a list of brokers has it as fenced.
        """
        if self.missing_since is not None and membership.fenced is not None:
            # It was unregistered, or the broker that was asked for the list lags behind: two
            # observers may have two lists. So its volumes are forgotten only after the validity.
            return self.missing_since + validity_s
        # During an upgrade only some brokers can list fenced brokers. A list of one that can't says
        # nothing about a broker that was fenced before.
        if self.retained:
            return math.inf
        return -math.inf if self.read_at is None else self.read_at + validity_s

    @property
    def violating(self) -> tuple[VolumeState, ...]:
        """The volumes that violated the limit when last read."""
        return tuple(state for state in self.volumes if state.violates)


@dataclass(frozen=True, slots=True)
class Computed:
    """The newest factor that was computed from what was seen.

    Attributes:
        factor: 0.0 when a volume violated the limit, else the slope's, and 1.0 without one.
        computed_at: when it was computed, steady seconds; the validity begins here.
        violations: the violating volumes, by broker and log dir.
        at_stop_line: the violating volumes that count as at the stop line.
    """

    factor: float
    computed_at: float
    violations: tuple[VolumeState, ...]
    at_stop_line: tuple[VolumeState, ...] = ()


@dataclass(frozen=True, slots=True)
class Learned:
    """The rates that are known of a volume on the slope.

    Attributes:
        first_rate: its fill rate when it came below the soft limit, bytes/s.
        written: the largest estimate of what producers would write at a factor of 1.0, bytes/s.
    """

    first_rate: float
    written: float


@dataclass(frozen=True, slots=True)
class Slope:
    """The position of the factor between the soft limit and the limit (``throttle.slope``).

    Attributes:
        factor: the factor, a multiple of the step, > 0.0.
        height: the factor before it is rounded down to a step; it rises continuously.
        mean: the mean of the factor that applied during the window of the rates.
        at: when this position was computed, steady seconds.
        fell_at: when the factor last began to fall, steady seconds.
        falls: whether its last move was down.
        learned: broker id and log dir -> how the volume fills, for those below the soft limit.
    """

    factor: float
    height: float
    mean: float
    at: float
    fell_at: float
    falls: bool
    learned: Mapping[LogDir, Learned] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a log dir.

    Attributes:
        topics: the topics with a replica there, or with one that is being moved there.
        read_at: when the request to its broker was sent, steady seconds.
    """

    topics: frozenset[str]
    read_at: float


@dataclass(frozen=True, slots=True)
class BudgetThrottle:
    """The throttle of an owner past its storage budget (``throttle.budgets``).

    Attributes:
        factor: the factor of clients that write to one of the topics, 0.0 to below 1.0.
        topics: the owner's topics, sorted.
        at: when it was computed, steady seconds; it applies for the validity.
        principals: the users that client quotas slow, where these enforce the decision.
    """

    factor: float
    topics: tuple[str, ...]
    at: float
    principals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Override:
    """A factor that an operator set.

    Attributes:
        factor: the factor, 0.0 to 1.0.
        reason: the operator's reason.
        set_at: when it was set, steady seconds.
        ends_at: the last moment at which it applies, steady seconds.
        by: the operator and the address, such as "user alice from 10.0.0.7"; "" if unknown.
    """

    factor: float
    reason: str
    set_at: float
    ends_at: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the sidecar remembers of the cluster. Decisions are made from it.

    No decision depends on ``fenced_seen`` and ``retained``, which are only kept here.

    Attributes:
        membership: the brokers of the cluster, by the last whole observation.
        membership_at: when that observation was made, steady seconds.
        brokers: node id -> the broker as last seen.
        own: node id -> "host:port" of the broker beside this sidecar, while it answers this
            sidecar; it is active even if other sidecars' lists lack it.
        fenced_seen: node id -> when a fenced broker last answered, and why it then did not; shown
            to people.
        computed: the newest computed factor; None before the first.
        slope: the position of the factor on the slope; None outside of a slope.
        override: the operator's factor, which may have ended.
        user_throttles: the throttles of single users, by user and enforcer.
        retained: capability -> what it keeps over a restart, as plain JSON values.
        feeds: node id -> the brokers with replicas of the partitions that it leads, as far as that
            is known. A broker that is missing here may feed all brokers.
        contents: the contents of log dirs that throttle or soon will, as far as they are known;
            only where the scope of a throttle is the volume (``throttle.scope``).
        unread: log dirs that throttle and whose contents were not read yet -> since when, steady
            seconds.
        budgets: owner -> the throttle of its writers, for owners past their storage budgets.
        failed_polls: the number of failed polls in a row.
        failure: why the last poll failed; None when it succeeded.
    """

    membership: Membership | None = None
    membership_at: float | None = None
    brokers: Mapping[int, BrokerState] = field(default_factory=dict)
    own: Mapping[int, str] = field(default_factory=dict)
    fenced_seen: Mapping[int, BrokerState] = field(default_factory=dict)
    computed: Computed | None = None
    slope: Slope | None = None
    override: Override | None = None
    user_throttles: UserThrottles = field(default_factory=dict)
    retained: Mapping[str, object] = field(default_factory=dict)
    feeds: Mapping[int, frozenset[int]] = field(default_factory=dict)
    contents: Mapping[LogDir, Contents] = field(default_factory=dict)
    unread: Mapping[LogDir, float] = field(default_factory=dict)
    budgets: Mapping[str, BudgetThrottle] = field(default_factory=dict)
    failed_polls: int = 0
    failure: Failure | None = None

    @property
    def cluster_id(self) -> str | None:
        """The Kafka cluster's id; None before the first observation."""
        return self.membership.cluster_id if self.membership else None

    @property
    def active(self) -> Mapping[int, str]:
        """Node id -> address of the active brokers; empty before the first observation."""
        return self.membership.active if self.membership else {}

    @property
    def fenced(self) -> Mapping[int, str]:
        """Node id -> address of the fenced brokers; empty where the cluster can't list them."""
        return (self.membership.fenced if self.membership else None) or {}

    def active_brokers(self) -> Iterator[BrokerState]:
        """The active brokers as last seen."""
        active = self.active
        return (state for broker_id, state in self.brokers.items() if broker_id in active)

    def expires_at(self, broker_id: int, validity_s: float) -> float | None:
        """When the readings of a broker that left expire, steady seconds; None if they don't."""
        broker = self.brokers.get(broker_id)
        if broker is None or self.membership is None or broker_id in self.active:
            return None
        until = broker.counts_until(self.membership, validity_s)
        return None if math.isinf(until) else until

    def volumes(self) -> Iterator[VolumeState]:
        """Every remembered volume, by broker."""
        for broker_id in sorted(self.brokers):
            yield from self.brokers[broker_id].volumes

    def volumes_on_slope(self, validity_s: float, now: float) -> Iterator[VolumeState]:
        """Every remembered volume, those that are not read now without their fill rates of then.

        A rate that is old must not let the factor rise. Without a rate a volume below the soft
        limit holds the factor: while its broker restarts, while its log dir has no sizes, and until
        its broker answers again.
        """
        read = {id(state) for state in self.valid_volumes(validity_s, now)}
        for broker in self.brokers.values():
            for state in broker.volumes:
                if id(state) in read and not broker.retained:
                    yield state
                else:
                    yield replace(state, fill=first_fill(state.read_at, state.volume.used_bytes))

    def valid_volumes(self, validity_s: float, now: float) -> Iterator[VolumeState]:
        """The online volumes of active brokers whose last reading is valid at ``now``, seconds.

        Older readings of a silent broker don't show its current fill rate.
        """
        for broker in self.active_brokers():
            if is_valid(broker.read_at, validity_s, now):
                yield from (state for state in broker.volumes if state.online)
