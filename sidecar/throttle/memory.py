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
from dataclasses import dataclass, field, replace

from sidecar.throttle.fill import (
    LONGEST_WINDOW_S,
    WINDOW_S,
    Fill,
    first_fill,
    next_fill,
)
from sidecar.throttle.limits import Limit, Verdict
from sidecar.throttle.user_throttles import UserThrottles
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, Membership, Observation, OfflineLogDir, Reading, Volume


@dataclass(frozen=True, slots=True)
class VolumeState:
    """A volume as last read, and what follows from it.

    Attributes:
        volume: the sizes as last read.
        read_at: when its broker was asked for them, steady seconds.
        verdict: what the limit said of it then.
        online: False while its broker reports the log dir without sizes.
        fill: how it fills.
        stop: what the stop line said of it then; None while there is none.
    """

    volume: Volume
    read_at: float
    verdict: Verdict
    online: bool
    fill: Fill
    stop: Verdict | None = None

    @property
    def violates(self) -> bool:
        """Whether it violated the limit when last read."""
        return self.verdict.violates

    @property
    def headroom_bytes(self) -> float:
        """What may be written until it violates; 0 or less while it violates."""
        return self.volume.available_bytes - self.verdict.threshold_bytes

    @property
    def stop_bytes(self) -> float | None:
        """The available bytes at which the stop line lies, at the limit at most; None: nowhere."""
        if self.stop is None:
            return None
        return min(self.stop.threshold_bytes, self.verdict.threshold_bytes)

    @property
    def stops(self) -> bool:
        """Whether it was at or below the stop line, and so the limit, when last read."""
        return self.violates and self.stop is not None and self.stop.violates


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
        stopping: those of them because of which nothing is admitted.
    """

    factor: float
    computed_at: float
    violations: tuple[VolumeState, ...]
    stopping: tuple[VolumeState, ...] = ()


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
class _Judge:
    """What every volume is compared with."""

    limit: Limit
    stop_line: Limit | None


@dataclass(frozen=True, slots=True)
class Memory:
    """All that decisions are made from.

    Attributes:
        membership: who is in the cluster, by the last whole observation.
        membership_at: when that was, steady seconds.
        brokers: node id -> what is remembered of it.
        fenced_seen: node id -> when a fenced broker last answered and why it then did not: for
            people only, no decision depends on it.
        computed: the newest computed factor; None before the first.
        slope: where that is on its slope; None: on none.
        override: the operator's factor, which may have ended.
        user_throttles: users whose producers are throttled, by user and enforcer.
        retained: capability -> what it retains over a restart, as plain JSON values: no decision
            depends on it.
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


def fold_in(
    memory: Memory,
    observation: Observation,
    limit: Limit,
    validity_s: float,
    stop_line: Limit | None = None,
) -> Memory:
    """What is remembered after an observation, before anything is computed from it.

    Answers of brokers that are not active members, and readings older than the one remembered,
    are ignored.
    """
    judge = _Judge(limit, stop_line)
    now = observation.observed_at
    if observation.membership is not None:
        memory = _with_membership(memory, observation.membership, now, validity_s)
    if memory.membership is None:
        return memory
    brokers = dict(memory.brokers)
    retention_s = LONGEST_WINDOW_S if _may_throttle(memory) else WINDOW_S
    for broker_id, answer in observation.answers.items():
        if broker_id not in memory.membership.active:
            continue
        state = brokers.get(broker_id, BrokerState())
        if isinstance(answer, Failure):
            brokers[broker_id] = _failed(state, answer, now)
        elif state.read_at is None or answer.read_at >= state.read_at:
            brokers[broker_id] = _read(state, answer, judge, retention_s)
    return replace(memory, brokers=brokers)


def fail(memory: Memory, failure: Failure) -> Memory:
    """What is remembered after a poll that saw nothing."""
    return replace(memory, failed_polls=memory.failed_polls + 1, failure=failure)


def forget(memory: Memory, broker_id: int, log_dir: str | None) -> Memory:
    """Memory without the last reading of a broker, or of one of its log dirs."""
    brokers = dict(memory.brokers)
    state = brokers.pop(broker_id, None)
    if state is not None and log_dir is not None:
        left = tuple(known for known in state.volumes if known.volume.log_dir != log_dir)
        brokers[broker_id] = replace(state, volumes=left)
    return replace(memory, brokers=brokers)


def _with_membership(
    memory: Memory, membership: Membership, now: float, validity_s: float
) -> Memory:
    before = memory.membership
    if before is not None and _differ(before.cluster_id, membership.cluster_id):
        memory = Memory(override=memory.override, retained=memory.retained)
    elif before is not None and membership.cluster_id is None:
        membership = replace(membership, cluster_id=before.cluster_id)
    brokers: dict[int, BrokerState] = {}
    for broker_id, state in memory.brokers.items():
        if broker_id in membership.active:
            brokers[broker_id] = state
        elif state.violating and _retains(state, broker_id, membership, now, validity_s):
            retained = state.retained or membership.fenced is not None
            brokers[broker_id] = BrokerState(state.read_at, state.violating, retained=retained)
    fenced = membership.fenced or {}
    fenced_seen = {
        broker_id: replace(state, volumes=(), offline=())
        for broker_id, state in {**memory.brokers, **memory.fenced_seen}.items()
        if broker_id in fenced
    }
    return replace(
        memory,
        membership=membership,
        membership_at=now,
        brokers=brokers,
        fenced_seen=fenced_seen,
    )


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _retains(
    state: BrokerState, broker_id: int, membership: Membership, now: float, validity_s: float
) -> bool:
    if membership.fenced is not None:
        return broker_id in membership.fenced
    if state.retained:
        # Some brokers can list the fenced ones and this one can't: that ends nothing.
        return True
    return state.read_at is not None and is_valid(state.read_at, validity_s, now)


def _failed(state: BrokerState, failure: Failure, now: float) -> BrokerState:
    same = state.failure is not None and state.failure.kind == failure.kind
    return replace(state, failure=failure, failed_since=state.failed_since if same else now)


def _may_throttle(memory: Memory) -> bool:
    """Whether producers may be throttled, so that fill rates over long pauses may be needed."""
    return memory.override is not None or (
        memory.computed is not None and memory.computed.factor < 1.0
    )


def _read(state: BrokerState, reading: Reading, judge: _Judge, retention_s: float) -> BrokerState:
    before = {known.volume.log_dir: known for known in state.volumes}
    volumes = [
        _volume_state(volume, reading.read_at, before.get(volume.log_dir), judge, retention_s)
        for volume in reading.volumes
    ]
    volumes += [
        replace(before[offline.log_dir], online=False)
        for offline in reading.offline
        if offline.log_dir in before
    ]
    volumes.sort(key=lambda known: known.volume.log_dir)
    return BrokerState(reading.read_at, tuple(volumes), reading.offline)


def _volume_state(
    volume: Volume, read_at: float, before: VolumeState | None, judge: _Judge, retention_s: float
) -> VolumeState:
    fill = (
        next_fill(before.fill, read_at, volume.used_bytes, retention_s)
        if before is not None
        else first_fill(read_at, volume.used_bytes)
    )
    verdict = judge.limit.judge(volume, fill, before.verdict if before is not None else None)
    stop = None
    if judge.stop_line is not None:
        stop = judge.stop_line.judge(volume, fill, before.stop if before is not None else None)
    return VolumeState(volume, read_at, verdict, online=True, fill=fill, stop=stop)
