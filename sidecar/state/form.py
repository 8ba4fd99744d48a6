"""The form of what is kept: plain values with wall-clock times, checked when they are read.

Times on disk are epoch seconds, since the steady clock begins anew at each start; one that lies
beyond the moment of reading (the machine's clock was set back) is read as that moment, so that
nothing is valid for longer than its validity after a restart. A factor computed under another limit
is not taken over; volumes are, and are judged by the limit of now. Fill rates are not kept: two
polls later they are known again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from sidecar.quotas.entities import DEFAULT, Default
from sidecar.quotas.id_quotas import (
    LARGEST_PERCENTAGE,
    LARGEST_RATE,
    SMALLEST_PERCENTAGE,
    SMALLEST_RATE,
    ProducerIdQuota,
)
from sidecar.throttle.decision import Source
from sidecar.throttle.fill import first_fill, seconds_to
from sidecar.throttle.holds import UserHold
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import BrokerState, Computed, Memory, Override, VolumeState
from sidecar.volumes import Membership, Volume


@dataclass(frozen=True, slots=True)
class Kept:
    """What a restart takes over.

    Attributes:
        memory: what was remembered.
        factor: the factor in force when it was kept.
        source: where that came from.
        since: when the two began, steady seconds.
    """

    memory: Memory
    factor: float
    source: Source
    since: float


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class VolumeForm(_Form):
    """One remembered volume."""

    broker_id: int
    log_dir: str
    total_bytes: NonNegativeInt
    available_bytes: NonNegativeInt
    read_at: float
    online: bool


class BrokerForm(_Form):
    """One remembered broker."""

    broker_id: int
    read_at: float | None
    held: bool
    volumes: list[VolumeForm]


class MembershipForm(_Form):
    """The brokers of the cluster by the last whole observation."""

    cluster_id: str | None
    known_at: float
    active: dict[int, str]
    fenced: dict[int, str] | None


class ComputedForm(_Form):
    """The newest computed factor."""

    factor: float = Field(ge=0.0, le=1.0)
    computed_at: float
    violations: list[VolumeForm]


class OverrideForm(_Form):
    """The operator's factor."""

    factor: float = Field(ge=0.0, le=1.0)
    reason: str
    set_at: float
    ends_at: float


class HoldForm(_Form):
    """A user whose producers are held."""

    user: str
    since: float
    ends_at: float
    reason: str


class IdQuotaForm(_Form):
    """How many producer ids a user may have; null for all others."""

    user: str | None
    producer_ids_rate: float | None = Field(ge=SMALLEST_RATE, le=LARGEST_RATE)
    held_request_percentage: float | None = Field(ge=SMALLEST_PERCENTAGE, le=LARGEST_PERCENTAGE)


class StateForm(_Form):
    """All that is kept."""

    limit: Limit
    membership: MembershipForm | None
    brokers: list[BrokerForm]
    computed: ComputedForm | None
    override: OverrideForm | None
    # With defaults: a file of before these were kept is whole.
    holds: list[HoldForm] = []
    id_quotas: list[IdQuotaForm] = []
    request_holds: dict[str, float] = {}
    factor: float
    source: Source
    since: float


def to_form(kept: Kept, limit: Limit, wall: Callable[[float], float]) -> StateForm:
    """What is written.

    Args:
        kept: in steady seconds.
        limit: what the factor was computed under.
        wall: steady to epoch seconds.
    """
    memory = kept.memory
    membership, known_at = memory.membership, memory.membership_at
    computed, override = memory.computed, memory.override
    return StateForm(
        limit=limit,
        membership=MembershipForm(
            cluster_id=membership.cluster_id,
            known_at=wall(known_at),
            active=dict(membership.active),
            fenced=None if membership.fenced is None else dict(membership.fenced),
        )
        if membership is not None and known_at is not None
        else None,
        brokers=[
            BrokerForm(
                broker_id=broker_id,
                read_at=None if state.read_at is None else wall(state.read_at),
                held=state.held,
                volumes=[_volume_form(volume, wall) for volume in state.volumes],
            )
            for broker_id, state in sorted(memory.brokers.items())
        ],
        computed=ComputedForm(
            factor=computed.factor,
            computed_at=wall(computed.computed_at),
            violations=[_volume_form(volume, wall) for volume in computed.violations],
        )
        if computed
        else None,
        override=OverrideForm(
            factor=override.factor,
            reason=override.reason,
            set_at=wall(override.set_at),
            ends_at=wall(override.ends_at),
        )
        if override
        else None,
        holds=[
            HoldForm(
                user=user,
                since=wall(hold.since),
                ends_at=wall(hold.ends_at),
                reason=hold.reason,
            )
            for user, hold in sorted(memory.holds.items())
        ],
        id_quotas=[
            IdQuotaForm(
                user=None if isinstance(user, Default) else user,
                producer_ids_rate=quota.producer_ids_rate,
                held_request_percentage=quota.held_request_percentage,
            )
            for user, quota in memory.id_quotas.items()
        ],
        request_holds=dict(memory.request_holds),
        factor=kept.factor,
        source=kept.source,
        since=wall(kept.since),
    )


def from_form(form: StateForm, limit: Limit, now: float) -> Kept:
    """What was kept.

    Args:
        form: as read.
        limit: the limit of now.
        now: epoch seconds, which the steady clock equals at the start.
    """

    def volume_state(volume: VolumeForm) -> VolumeState:
        return _volume_state(volume, limit, now)

    known, computed, override = form.membership, form.computed, form.override
    if form.limit != limit:
        computed = None
    memory = Memory(
        membership=Membership(known.cluster_id, known.active, known.fenced) if known else None,
        membership_at=min(known.known_at, now) if known else None,
        brokers={
            broker.broker_id: BrokerState(
                read_at=None if broker.read_at is None else min(broker.read_at, now),
                volumes=tuple(map(volume_state, broker.volumes)),
                held=broker.held,
            )
            for broker in form.brokers
        },
        computed=Computed(
            computed.factor,
            min(computed.computed_at, now),
            tuple(map(volume_state, computed.violations)),
        )
        if computed
        else None,
        override=_override(override, now) if override else None,
        holds={hold.user: _hold(hold, now) for hold in form.holds},
        id_quotas={
            DEFAULT if quota.user is None else quota.user: ProducerIdQuota(
                quota.producer_ids_rate, quota.held_request_percentage
            )
            for quota in form.id_quotas
        },
        request_holds=form.request_holds,
    )
    return Kept(memory, form.factor, form.source, min(form.since, now))


def _override(form: OverrideForm, now: float) -> Override:
    # One that was set in the future lasts from now on for as long as it was set for.
    ahead = max(0.0, form.set_at - now)
    return Override(form.factor, form.reason, form.set_at - ahead, form.ends_at - ahead)


def _hold(form: HoldForm, now: float) -> UserHold:
    ahead = max(0.0, form.since - now)
    return UserHold(form.since - ahead, form.ends_at - ahead, form.reason)


def _volume_form(state: VolumeState, wall: Callable[[float], float]) -> VolumeForm:
    return VolumeForm(
        broker_id=state.volume.broker_id,
        log_dir=state.volume.log_dir,
        total_bytes=state.volume.total_bytes,
        available_bytes=state.volume.available_bytes,
        read_at=wall(state.read_at),
        online=state.online,
    )


def _volume_state(form: VolumeForm, limit: Limit, now: float) -> VolumeState:
    volume = Volume(form.broker_id, form.log_dir, form.total_bytes, form.available_bytes)
    read_at = min(form.read_at, now)
    violates = limit.violated_by(volume)
    to_limit = seconds_to(0.0 if violates else 1.0, None)
    return VolumeState(
        volume=volume,
        read_at=read_at,
        violates=violates,
        online=form.online,
        fill=first_fill(read_at, volume.used_bytes),
        seconds_to_limit=to_limit,
        soonest_to_limit_s=to_limit,
    )
