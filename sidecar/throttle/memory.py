"""What the sidecar remembers of the cluster, as a value that observations are folded into.

Rules (docs/how-it-decides.md):

- A member is an active broker. One that did not answer counts with its last volumes while
  now <= read_at + validity.
- Of a fenced broker, or one that has left a cluster that can't list its fenced brokers, only the
  volumes that violated when last read are retained: fenced without end, departed for the validity.
  So restarting the full broker releases nobody, and a dead healthy one blocks nothing.
- The last state of an offline log dir is retained while its broker answers, until an operator says
  forget; a log dir that its broker no longer reports is forgotten.
- What is remembered is of one cluster: another cluster id forgets all but the override and what
  capabilities retain.

Example: broker 1 was read at 0 s with a full volume and is fenced at 10 s: at 1,000 s it still
violates. Broker 2 was read healthy and is fenced: nothing of it is retained.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.throttle.fill import Fill, seconds_to
from sidecar.throttle.limits import Verdict
from sidecar.throttle.user_throttles import UserThrottles
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, Membership, OfflineLogDir, Volume


@dataclass(frozen=True, slots=True)
class VolumeState:
    """A volume as last read, and what follows from it.

    Attributes:
        volume: the sizes as last read.
        read_at: when its broker was asked for them, steady seconds.
        verdict: the result of comparing them with the limit.
        online: False while its broker reports the log dir without sizes.
        fill: how it fills.
        stop_line_verdict: the result of comparing them with the stop line; None without one.
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

        0.0 when it violates already; None when it does not fill or no rate is known.
        """
        return self._seconds_left(self.fill.bytes_per_second)

    @property
    def soonest_s(self) -> float | None:
        """The same at the fastest rate of the last readings, which the schedule uses."""
        return self._seconds_left(self.fill.fastest_bytes_per_second)

    @property
    def stop_line_bytes(self) -> float | None:
        """The available bytes at which the stop line lies, at the limit at most; None: no line."""
        if self.stop_line_verdict is None:
            return None
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
        read_at: when it was asked what it last answered, steady seconds; None when it never did.
        volumes: its volumes whose sizes were ever known.
        offline: its log dirs without sizes in its last answer.
        failure: why it did not answer when last asked; None when it did.
        failed_since: when that failure began, steady seconds.
        retained: the broker was fenced since it last answered: its violating volumes count until it
            answers, is unregistered or is forgotten, however long that takes.
    """

    read_at: float | None = None
    volumes: tuple[VolumeState, ...] = ()
    offline: tuple[OfflineLogDir, ...] = ()
    failure: Failure | None = None
    failed_since: float | None = None
    retained: bool = False

    @property
    def violating(self) -> tuple[VolumeState, ...]:
        """The volumes that violated the limit when last read."""
        return tuple(state for state in self.volumes if state.violates)


@dataclass(frozen=True, slots=True)
class Computed:
    """The newest factor that was computed from what was seen.

    Attributes:
        factor: 0.0 when a volume violated the limit, else the slope's, and 1.0 without one.
        computed_at: when, steady seconds: the validity runs from here.
        violations: the violating volumes, by broker and log dir.
        at_stop_line: the violating volumes because of which nothing is admitted.
    """

    factor: float
    computed_at: float
    violations: tuple[VolumeState, ...]
    at_stop_line: tuple[VolumeState, ...] = ()


@dataclass(frozen=True, slots=True)
class Learned:
    """How a volume on the slope fills.

    Attributes:
        first_rate: when it came onto it, bytes/s.
        written: what producers would write at a factor of 1.0, bytes/s: the largest estimate.
    """

    first_rate: float
    written: float


@dataclass(frozen=True, slots=True)
class Slope:
    """Where the factor is on the slope between the soft limit and the limit (``throttle.slope``).

    Attributes:
        factor: a multiple of its step, > 0.0.
        height: the same before it is rounded up; it rises bit by bit.
        mean: of the factor in force in the time that rates are of.
        at: when that was, steady seconds.
        fell_at: when it last began to fall, steady seconds.
        falls: whether it moved down last.
        learned: broker id and log dir -> how the volume fills, of those below the soft limit.
    """

    factor: float
    height: float
    mean: float
    at: float
    fell_at: float
    falls: bool
    learned: Mapping[tuple[int, str], Learned] = field(default_factory=dict)


LogDir = tuple[int, str]
"""A broker's node id, and the path of one of its log dirs."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies in a log dir.

    Attributes:
        topics: those with a replica there, or one that is on its way there.
        read_at: when its broker was asked, steady seconds.
    """

    topics: frozenset[str]
    read_at: float


@dataclass(frozen=True, slots=True)
class Override:
    """A factor that an operator set by hand.

    Attributes:
        factor: 0.0 to 1.0.
        reason: the operator's.
        set_at: when, steady seconds.
        ends_at: the last moment at which it is in force, steady seconds.
    """

    factor: float
    reason: str
    set_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What the sidecar remembers of the cluster; decisions are made from it.

    Two fields are only kept here, and no decision depends on them: ``fenced_seen`` and
    ``retained``.

    Attributes:
        membership: who is in the cluster, by the last whole observation.
        membership_at: when that was, steady seconds.
        brokers: node id -> what is remembered of it.
        fenced_seen: node id -> when a fenced broker last answered, and why it then did not; shown
            to people.
        computed: the newest computed factor; None before the first.
        slope: where that is on its slope; None: on none.
        override: the operator's factor, which may have ended.
        user_throttles: users whose producers are throttled, by user and enforcer.
        retained: capability -> what it keeps over a restart, as plain JSON values.
        feeds: node id -> the brokers that have replicas of what it leads, as far as that is known:
            a broker that is not there may feed all.
        contents: what lies in log dirs that throttle, or soon will, as far as that is known; only
            where the scope of a throttle is the volume (``throttle.scope``).
        unread: log dirs that throttle and were not read yet -> since when, steady seconds.
        failed_polls: how many polls in a row have failed.
        failure: why the last one failed; None when it did not.
    """

    membership: Membership | None = None
    membership_at: float | None = None
    brokers: Mapping[int, BrokerState] = field(default_factory=dict)
    fenced_seen: Mapping[int, BrokerState] = field(default_factory=dict)
    computed: Computed | None = None
    slope: Slope | None = None
    override: Override | None = None
    user_throttles: UserThrottles = field(default_factory=dict)
    retained: Mapping[str, object] = field(default_factory=dict)
    feeds: Mapping[int, frozenset[int]] = field(default_factory=dict)
    contents: Mapping[LogDir, Contents] = field(default_factory=dict)
    unread: Mapping[LogDir, float] = field(default_factory=dict)
    failed_polls: int = 0
    failure: Failure | None = None

    @property
    def active(self) -> Mapping[int, str]:
        """Node id -> address of the active brokers; none before the first observation."""
        return self.membership.active if self.membership else {}

    @property
    def fenced(self) -> Mapping[int, str]:
        """Likewise of the fenced ones; none where the cluster can't list them."""
        return (self.membership.fenced if self.membership else None) or {}

    def active_brokers(self) -> Iterator[BrokerState]:
        """What is remembered of the active brokers."""
        active = self.active
        return (state for broker_id, state in self.brokers.items() if broker_id in active)

    def volumes(self) -> Iterator[VolumeState]:
        """Every remembered volume, by broker."""
        for broker_id in sorted(self.brokers):
            yield from self.brokers[broker_id].volumes

    def valid_volumes(self, validity_s: float, now: float) -> Iterator[VolumeState]:
        """Online volumes of active brokers whose last reading is valid at ``now``, both seconds.

        What was read before a broker fell silent says nothing of its present rate.
        """
        for broker in self.active_brokers():
            if broker.read_at is not None and is_valid(broker.read_at, validity_s, now):
                yield from (known for known in broker.volumes if known.online)
