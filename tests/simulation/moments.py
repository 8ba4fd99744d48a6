"""A moment of a world: a small record from which it is counted what a world has reached.

The world hands itself over at each check. Reading it changes nothing: no callback takes a step for
it, and no chance is used, so a seed's trace is the same with it and without it.

Example: sidecar 0 has the factor 0.0 by an observation of before its start, since it was killed and
restarted in a throttle: its ``origin`` is ``Origin.DISK``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from sidecar.control.board import Snapshot
from sidecar.control.poller import Poller
from sidecar.peers.observers import Observers
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.memory import BrokerState, Memory, VolumeState
from sidecar.volumes import FailureKind
from tests.simulation import throttles
from tests.simulation.faults import Fault, Kind
from tests.simulation.pairs import lasts_until
from tests.simulation.refusals import Refusal

if TYPE_CHECKING:
    from tests.simulation.callback import Callback
    from tests.simulation.sidecars import SimulatedSidecar
    from tests.simulation.world import World

_HAIR_S: Final = 1e-6


class Origin(StrEnum):
    """From where a sidecar has its decision."""

    OBSERVATION = "an observation"
    FALLBACK = "the fallback"
    OVERRIDE = "an override"
    NOTHING = "nothing, before the first observation"
    DISK = "the state on disk"


class Role(StrEnum):
    """How a sidecar sees the brokers, in a world with peers."""

    OBSERVER = "observer"
    FOLLOWER = "follower"
    ALONE = "a follower of nobody"
    """No observer answers it, so it polls all brokers itself."""


@dataclass(frozen=True, slots=True)
class SidecarMoment:
    """A sidecar's decision, why it is so, and what it sees.

    Attributes:
        number: the sidecar's.
        starts: how often it was started.
        runs: whether its process runs; one that does not run has no decision.
        origin: from where the decision is.
        origins: the same of all decisions since the last moment.
        factor: that applies.
        is_sloped: whether a volume is between the soft limit and the limit.
        stops: whether the stop line is reached.
        violating: the brokers whose volumes violate, an override or not.
        log_dirs: how many of their volumes violate.
        is_held: whether all of them have room again, though not the release margin.
        stop_is_held: whether those at the stop line are all above it, though not by a tenth.
        offline: brokers whose violating volume has no sizes any more.
        active: the brokers of the last list.
        silent: those of them that failed last, or never answered.
        retained: brokers that are not active, and whose volumes count.
        failures: of those that are silent, and of the last poll.
        failed_polls: in a row.
        override_is_old: whether the override is of an earlier process.
        did: what operators did since the last moment.
        role: in a world with peers; else None.
        asks_itself: whether a follower asked a broker itself since the last moment.
    """

    number: int
    starts: int
    runs: bool
    origin: Origin = Origin.NOTHING
    origins: frozenset[Origin] = frozenset()
    factor: float = 1.0
    is_sloped: bool = False
    stops: bool = False
    violating: frozenset[int] = frozenset()
    log_dirs: int = 0
    is_held: bool = False
    stop_is_held: bool = False
    offline: frozenset[int] = frozenset()
    active: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    retained: frozenset[int] = frozenset()
    failures: frozenset[FailureKind] = frozenset()
    failed_polls: int = 0
    override_is_old: bool = False
    did: tuple[str, ...] = ()
    role: Role | None = None
    asks_itself: bool = False

    @property
    def is_blind(self) -> bool:
        """Whether no active broker answered it last."""
        return self.active == self.silent

    @property
    def sees_partly(self) -> bool:
        """Whether some active brokers answered it last, and some did not."""
        return bool(self.silent) and not self.is_blind


@dataclass(frozen=True, slots=True)
class CallbackMoment:
    """What a broker's callback applies, and whom it has it from.

    Attributes:
        number: the broker's.
        source: of the factor.
        factor: of all clients.
        stops: whether it admits nothing.
        is_sloped: whether the factor is on the slope.
        is_lifted: whether an operator's override shuts the eyes of the broker.
        is_emergency: whether pauses are longer than usual, since a volume fills all the same.
        ramps: whether clients are paced after a release.
        own_answers: whether its own sidecar answered last.
        others_answer: whether another one did.
        is_from_disk: whether it still has the document of an earlier process of the broker.
    """

    number: int
    source: throttles.Source
    factor: float = 1.0
    stops: bool = False
    is_sloped: bool = False
    is_lifted: bool = False
    is_emergency: bool = False
    ramps: bool = False
    own_answers: bool = True
    others_answer: bool = False
    is_from_disk: bool = False


@dataclass(frozen=True, slots=True)
class BrokerMoment:
    """How a broker really is.

    Attributes:
        number: which of the machines.
        broker_id: its node id.
        runs: whether its process runs.
        is_fenced: whether the controller says so.
        violates: whether one of its volumes does.
        full: how many of its volumes are full, and so offline.
        offline: how many of its log dirs are offline, for whatever reason.
        serves: how many are not.
        leads: whether it leads a partition.
    """

    number: int
    broker_id: int
    runs: bool = True
    is_fenced: bool = False
    violates: bool = False
    full: int = 0
    offline: int = 0
    serves: int = 1
    leads: bool = True


@dataclass(frozen=True, slots=True)
class Moment:
    """All of it; equal to another one when nothing changed but the time.

    Attributes:
        at_s: when.
        faults: under way; one that only happens counts for a while, as in ``pairs``.
        sidecars: by number.
        callbacks: those of the brokers that are alive.
        brokers: by number.
        refusals: why requests were refused since the last moment.
        former: node ids that nobody has any more, and that are still registered.
    """

    at_s: float = field(compare=False)
    faults: tuple[Fault, ...] = ()
    sidecars: tuple[SidecarMoment, ...] = ()
    callbacks: tuple[CallbackMoment, ...] = ()
    brokers: tuple[BrokerMoment, ...] = ()
    refusals: frozenset[Refusal] = frozenset()
    former: frozenset[int] = frozenset()

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that are under way."""
        return frozenset(fault.kind for fault in self.faults)

    @property
    def deciding(self) -> Iterator[SidecarMoment]:
        """The sidecars that run."""
        return (each for each in self.sidecars if each.runs)


class Camera:
    """Takes the moments of a world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._faults = [*world.plan.schedule()]
        self._under_way: list[Fault] = []
        self._sidecars = [_Watched(each) for each in world.sidecars.values()]
        self._refused: dict[Refusal, int] = {}

    def take(self) -> Moment:
        """The moment that is now."""
        world = self._world
        leaders = {each.leader for each in world.partitions}
        return Moment(
            world.now(),
            tuple(self._faults_now()),
            tuple(each.moment() for each in self._sidecars),
            tuple(
                _callback(number, callback)
                for number, callback in world.callbacks.items()
                if world.brokers[number].is_running
            ),
            tuple(
                BrokerMoment(
                    number,
                    broker.broker_id,
                    broker.is_running,
                    broker.fenced,
                    any(each.violates_since is not None for each in broker.volumes),
                    sum(each in world._full for each in broker.volumes),
                    sum(each.is_offline for each in broker.volumes),
                    sum(not each.is_offline for each in broker.volumes),
                    number in leaders,
                )
                for number, broker in world.brokers.items()
            ),
            frozenset(self._refusals()),
            frozenset(world.former),
        )

    def _faults_now(self) -> Sequence[Fault]:
        # The time of a look is a sum of many waits, so it may be a hair before a fault of then.
        now = self._world.now() + _HAIR_S
        while self._faults and self._faults[0].at_s <= now:
            self._under_way.append(self._faults.pop(0))
        self._under_way = [each for each in self._under_way if lasts_until(each) >= now]
        return self._under_way

    def _refusals(self) -> Iterator[Refusal]:
        for refusal in Refusal:
            count = self._world.claims._past[f"refused: {refusal}"]
            if count > self._refused.get(refusal, 0):
                self._refused[refusal] = count
                yield refusal


class _Watched:
    """A sidecar, and what was last read of it."""

    def __init__(self, sidecar: "SimulatedSidecar") -> None:
        self._sidecar = sidecar
        self._starts = 0
        self._parts: object = None
        self._started_at = 0.0
        self._has_computed = False
        self._generation = 0
        self._snapshot: Snapshot | None = None
        self._last = SidecarMoment(sidecar.number, 0, runs=False)
        self._asked_at = 0.0

    def moment(self) -> SidecarMoment:
        """What it is now; the same object while there is no news."""
        sidecar = self._sidecar
        parts = sidecar.parts
        has_started = self._starts != sidecar.starts
        # A process that has just started still has the parts of the former one.
        is_composed = parts is not self._parts or not has_started
        if not sidecar.is_running or not is_composed or parts is None or not parts.board.changes:
            self._last = SidecarMoment(sidecar.number, sidecar.starts, runs=False)
            self._snapshot = None
            return self._last
        board = parts.board
        if has_started:
            self._starts, self._parts, self._generation = sidecar.starts, parts, 0
            self._started_at, self._asked_at = board.changes[0].changed_at, 0.0
            self._has_computed = False
        observers, poller = _task(parts.supervised, Observers), _own(parts.vital["poller"])
        role = None if observers is None else _role(observers)
        asked_at = max(poller._asked_at.values(), default=0.0)
        asks_itself, self._asked_at = asked_at > self._asked_at, asked_at
        snapshot, last = board.snapshot, self._last
        if snapshot is self._snapshot and (role, asks_itself) == (last.role, last.asks_itself):
            if last.did or len(last.origins) > 1:
                self._last = replace(last, did=(), origins=frozenset({last.origin}))
            return self._last
        new = [each for each in board.changes if each.generation > self._generation]
        self._snapshot, self._generation = snapshot, snapshot.generation
        decision, memory = snapshot.decision, snapshot.memory
        silent, violations = frozenset(_silent(memory)), decision.violations
        origins = [self._origin(each.decision) for each in new]
        origin = self._origin(decision)
        failures = {state.failure.kind for state in memory.active_brokers() if state.failure}
        self._last = SidecarMoment(
            sidecar.number,
            sidecar.starts,
            runs=True,
            origin=origin,
            origins=frozenset({origin, *origins}),
            factor=decision.factor,
            is_sloped=decision.is_sloped,
            stops=decision.stop_line_reached,
            violating=frozenset(each.volume.broker_id for each in violations),
            log_dirs=len(violations),
            is_held=bool(violations) and all(map(_has_room, violations)),
            stop_is_held=decision.stop_line_reached
            and not any(each.is_at_stop_line for each in decision.at_stop_line),
            offline=frozenset(each.volume.broker_id for each in violations if not each.online),
            active=frozenset(memory.active),
            silent=silent,
            retained=frozenset(memory.brokers.keys() - memory.active.keys()),
            failures=frozenset(failures | ({memory.failure.kind} if memory.failure else set())),
            failed_polls=memory.failed_polls,
            override_is_old=decision.override is not None
            and decision.override.set_at < self._started_at,
            did=tuple(each.operation.what for each in new if each.operation is not None),
            role=role,
            asks_itself=asks_itself,
        )
        return self._last

    def _origin(self, decision: Decision) -> Origin:
        """From where a decision is; each decision of a process once, in their order."""
        at = decision.computed_at
        self._has_computed |= at is not None
        if decision.source is Source.OVERRIDE:
            return Origin.OVERRIDE
        if decision.source is Source.FALLBACK:
            return Origin.FALLBACK if self._has_computed else Origin.NOTHING
        return Origin.DISK if at is not None and at < self._started_at else Origin.OBSERVATION


def _silent(memory: Memory) -> Iterator[int]:
    for broker_id in memory.active:
        state = memory.brokers.get(broker_id, BrokerState())
        if state.failure is not None or state.read_at is None:
            yield broker_id


def _has_room(state: VolumeState) -> bool:
    """Whether a volume that violates does so by the release margin alone."""
    verdict = state.verdict
    return verdict.violates and state.volume.available_bytes > verdict.threshold_bytes


def _role(observers: Observers) -> Role:
    if not observers.is_observer:
        return Role.FOLLOWER
    if any(each.is_self for each in observers.followed):
        return Role.OBSERVER
    is_late = observers._clock() > observers._fresh_until
    return Role.ALONE if is_late else Role.OBSERVER


def _own(task: Any) -> Poller:
    """The poller whose task it is."""
    poller: Poller = task.__self__
    return poller


def _task(supervised: Sequence[tuple[str, str, Any]], of: type[Observers]) -> Observers | None:
    owners = (getattr(task, "__self__", None) for _, _, task in supervised)
    return next((owner for owner in owners if isinstance(owner, of)), None)


def _callback(number: int, callback: "Callback") -> CallbackMoment:
    """What it last applied: to ask it what it applies now would be a step."""
    following, enforcement = callback._following, callback._enforcement
    factors, own = enforcement.factors, following._own
    return CallbackMoment(
        number,
        factors.source,
        factors.factor,
        factors.stop,
        factors.is_sloped,
        following.is_lifted,
        enforcement.is_emergency,
        enforcement._all.ramps,
        own.answers,
        any(each.answers for each in following._others),
        own.document is not None and own.answered_nanos == 0,
    )
