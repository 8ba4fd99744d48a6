"""The form of the state on disk: plain values with wall-clock times, checked when they are read.

- Times on disk are epoch seconds, because the steady clock begins anew at each start. A time later
  than the moment of reading (the machine's clock was set back) is read as that moment. So nothing
  is valid for longer than its validity after a restart.
- A factor computed under another limit is not used. Volumes are used, and judged by the current
  limit and stop line. That the stop line was reached is only used under the same stop line.
- Fill rates are not stored: after two polls they are known again.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Annotated

from pydantic import Field, NonNegativeInt

from sidecar.control.board import PersistedState
from sidecar.state.records import Record
from sidecar.throttle.decision import Source
from sidecar.throttle.fill import first_fill
from sidecar.throttle.leak import LEAST
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import (
    BrokerState,
    Computed,
    Contents,
    Learned,
    Memory,
    Override,
    Slope,
    VolumeState,
)
from sidecar.throttle.rules import Rules
from sidecar.throttle.stop_line import volumes_at_stop_line
from sidecar.throttle.user_throttles import UserThrottle
from sidecar.volumes import Membership, OfflineLogDir, Volume


class VolumeRecord(Record):
    """A remembered volume."""

    broker_id: int
    log_dir: str
    total_bytes: NonNegativeInt
    available_bytes: NonNegativeInt
    read_at: float
    online: bool
    violates: bool


class OfflineRecord(Record):
    """A log dir without sizes."""

    log_dir: str
    reason: str
    is_written: bool


class BrokerRecord(Record):
    """A remembered broker."""

    broker_id: int
    read_at: float | None
    retained: bool
    volumes: list[VolumeRecord]
    # A version without them forgot them at a restart.
    offline: list[OfflineRecord] = Field(default_factory=list)
    missing_since: float | None = None


class MembershipRecord(Record):
    """The brokers of the cluster by the last whole observation."""

    cluster_id: str | None
    known_at: float
    active: dict[int, str]
    fenced: dict[int, str] | None


class ComputedRecord(Record):
    """The newest computed factor."""

    factor: float = Field(ge=0.0, le=1.0)
    computed_at: float
    violations: list[VolumeRecord]
    # A version without it had no stop line.
    is_at_stop_line: bool = False


class SlopeRecord(Record):
    """The position of the factor on its slope."""

    factor: float = Field(gt=0.0, le=1.0)
    height: float = Field(ge=0.0, le=1.0)
    mean: float = Field(ge=0.0, le=1.0)
    at: float
    fell_at: float
    falls: bool
    # Broker id, log dir, first rate, estimated write rate at 1.0.
    learned: list[tuple[int, str, float, float]]


class ContentsRecord(Record):
    """The contents of a log dir."""

    broker_id: int
    log_dir: str
    topics: list[str]
    read_at: float


class OverrideRecord(Record):
    """The operator's factor."""

    factor: float = Field(ge=0.0, le=1.0)
    reason: str
    set_at: float
    ends_at: float
    # A version without it forgot the author at a restart.
    by: str = ""


class UserThrottleRecord(Record):
    """A user whose producers are throttled."""

    user: str
    since: float
    ends_at: float
    reason: str
    enforcer: str


class StateRecord(Record):
    """The stored state."""

    # Empty with a factor source.
    limit: dict[str, str | int | float]
    # A version without it had no stop line.
    stop_line: dict[str, str | int | float] | None = None
    membership: MembershipRecord | None
    brokers: list[BrokerRecord]
    computed: ComputedRecord | None
    override: OverrideRecord | None
    user_throttles: list[UserThrottleRecord]
    retained: dict[str, object]
    factor: float
    source: Source
    since: float
    # A version without it had no slope.
    slope: SlopeRecord | None = None
    # A version without it throttled all clients.
    contents: list[ContentsRecord] = Field(default_factory=list)
    # In a version without them, the brokers' callbacks kept them.
    shares: dict[int, Annotated[float, Field(ge=LEAST, lt=1.0)]] = Field(default_factory=dict)


def to_record(kept: PersistedState, rules: Rules, wall: Callable[[float], float]) -> StateRecord:
    """Convert the state to its form on disk.

    Args:
        kept: the state, in steady seconds.
        rules: the rules by which the factor was computed.
        wall: steady to epoch seconds.
    """
    memory = kept.memory
    membership, known_at = memory.membership, memory.membership_at
    computed, override = memory.computed, memory.override
    return StateRecord(
        limit=_limit_form(rules.limit) if rules.limit else {},
        stop_line=_limit_form(rules.stop_line) if rules.stop_line else None,
        membership=MembershipRecord(
            cluster_id=membership.cluster_id,
            known_at=wall(known_at),
            active=dict(membership.active),
            fenced=None if membership.fenced is None else dict(membership.fenced),
        )
        if membership is not None and known_at is not None
        else None,
        brokers=[
            BrokerRecord(
                broker_id=broker_id,
                read_at=None if state.read_at is None else wall(state.read_at),
                retained=state.retained,
                volumes=[_volume_form(volume, wall) for volume in state.volumes],
                offline=[OfflineRecord(**asdict(each)) for each in state.offline],
                missing_since=None if state.missing_since is None else wall(state.missing_since),
            )
            for broker_id, state in sorted(memory.brokers.items())
        ],
        computed=ComputedRecord(
            factor=computed.factor,
            computed_at=wall(computed.computed_at),
            violations=[_volume_form(volume, wall) for volume in computed.violations],
            is_at_stop_line=bool(computed.at_stop_line),
        )
        if computed
        else None,
        override=OverrideRecord(
            factor=override.factor,
            reason=override.reason,
            set_at=wall(override.set_at),
            ends_at=wall(override.ends_at),
            by=override.by,
        )
        if override
        else None,
        user_throttles=[
            UserThrottleRecord(
                user=user,
                since=wall(throttle.since),
                ends_at=wall(throttle.ends_at),
                reason=throttle.reason,
                enforcer=throttle.enforcer,
            )
            for (user, _), throttle in sorted(memory.user_throttles.items())
        ],
        retained=dict(memory.retained),
        factor=kept.factor,
        source=kept.source,
        since=wall(kept.since),
        slope=_slope_form(memory.slope, wall) if memory.slope else None,
        contents=[
            ContentsRecord(
                broker_id=broker_id,
                log_dir=log_dir,
                topics=sorted(known.topics),
                read_at=wall(known.read_at),
            )
            for (broker_id, log_dir), known in sorted(memory.contents.items())
        ],
        shares=dict(kept.shares),
    )


def from_record(form: StateRecord, rules: Rules, now: float) -> PersistedState:
    """Convert the form on disk to the state.

    Args:
        form: the form as read.
        rules: the current rules.
        now: epoch seconds, which the steady clock equals at the start.
    """
    same_limit = form.limit == (_limit_form(rules.limit) if rules.limit else {})
    if rules.limit is None:
        # With a factor source, no volume is judged.
        form = form.model_copy(update={"membership": None, "brokers": [], "contents": []})

    def volume_state(volume: VolumeRecord) -> VolumeState:
        return _volume_state(volume, rules, now, same_limit=same_limit)

    known, computed, override = form.membership, form.computed, form.override
    if not same_limit:
        computed = None
    violations = tuple(map(volume_state, computed.violations)) if computed else ()
    line = rules.stop_line
    same_line = line is not None and form.stop_line == _limit_form(line)
    was_reached = same_line and computed is not None and computed.is_at_stop_line
    memory = Memory(
        membership=Membership(known.cluster_id, known.active, known.fenced) if known else None,
        membership_at=min(known.known_at, now) if known else None,
        brokers={
            broker.broker_id: BrokerState(
                read_at=None if broker.read_at is None else min(broker.read_at, now),
                volumes=tuple(map(volume_state, broker.volumes)),
                offline=tuple(OfflineLogDir(**dict(each)) for each in broker.offline),
                retained=broker.retained,
                missing_since=None
                if broker.missing_since is None
                else min(broker.missing_since, now),
            )
            for broker in form.brokers
        },
        computed=Computed(
            computed.factor,
            min(computed.computed_at, now),
            violations,
            volumes_at_stop_line(violations, was_reached=was_reached),
        )
        if computed
        else None,
        slope=_slope(form.slope, now) if form.slope and same_limit else None,
        contents={
            (each.broker_id, each.log_dir): Contents(frozenset(each.topics), min(each.read_at, now))
            for each in form.contents
        },
        override=_override(override, now) if override else None,
        user_throttles={
            (each.user, each.enforcer): _user_throttle(each, now) for each in form.user_throttles
        },
        retained=form.retained,
    )
    return PersistedState(memory, form.factor, form.source, min(form.since, now), form.shares)


def _slope_form(slope: Slope, wall: Callable[[float], float]) -> SlopeRecord:
    return SlopeRecord(
        factor=slope.factor,
        height=slope.height,
        mean=slope.mean,
        at=wall(slope.at),
        fell_at=wall(slope.fell_at),
        falls=slope.falls,
        learned=[
            (*key, each.first_rate, each.written) for key, each in sorted(slope.learned.items())
        ],
    )


def _slope(form: SlopeRecord, now: float) -> Slope:
    learned = {(broker, log_dir): Learned(*rates) for broker, log_dir, *rates in form.learned}
    at = min(form.at, now)
    return Slope(
        form.factor, form.height, form.mean, at, min(form.fell_at, at), form.falls, learned
    )


def _override(form: OverrideRecord, now: float) -> Override:
    # If the start is in the future, the throttle begins now and keeps its length.
    ahead = max(0.0, form.set_at - now)
    return Override(form.factor, form.reason, form.set_at - ahead, form.ends_at - ahead, form.by)


def _user_throttle(form: UserThrottleRecord, now: float) -> UserThrottle:
    ahead = max(0.0, form.since - now)
    return UserThrottle(form.since - ahead, form.ends_at - ahead, form.reason, form.enforcer)


def _volume_form(state: VolumeState, wall: Callable[[float], float]) -> VolumeRecord:
    return VolumeRecord(
        broker_id=state.volume.broker_id,
        log_dir=state.volume.log_dir,
        total_bytes=state.volume.total_bytes,
        available_bytes=state.volume.available_bytes,
        read_at=wall(state.read_at),
        online=state.online,
        violates=state.violates,
    )


def _volume_state(form: VolumeRecord, rules: Rules, now: float, *, same_limit: bool) -> VolumeState:
    volume = Volume(form.broker_id, form.log_dir, form.total_bytes, form.available_bytes)
    read_at = min(form.read_at, now)
    fill = first_fill(read_at, volume.used_bytes)
    verdict = rules.required_limit.judge(volume)
    if same_limit:
        # The volume may violate only because of the release margin.
        verdict = replace(verdict, violates=form.violates)
    stop_line_verdict = None if rules.stop_line is None else rules.stop_line.judge(volume)
    return VolumeState(volume, read_at, verdict, form.online, fill, stop_line_verdict)


def _limit_form(limit: Limit) -> dict[str, str | int | float]:
    return {"type": limit.name, "value": limit.value}
