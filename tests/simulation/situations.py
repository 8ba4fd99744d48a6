"""Situations that an operator asks about: was that ever tried?

Each situation has a name and a pure function of two moments, the last one and this one; it is
reached where the function is true. ``Reached`` counts how often each one began in a world. What a
sidecar decides by is crossed with each kind of fault, so a new kind needs no line here.

A fault of a sidecar counts for that sidecar's own decision, and if it takes the sidecar away, for
the decisions of the others. Any other fault counts for the decisions of all.

Example: sidecar 0 has the fallback while broker 2 is frozen, for 10 s: "decided by the fallback,
while: broker frozen" was reached once.

Source: FoundationDB's code probes, which have to be hit in each night's simulations.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from sidecar.volumes import FailureKind
from tests.simulation import throttles
from tests.simulation.faults import Fault, Kind
from tests.simulation.moments import (
    BrokerMoment,
    CallbackMoment,
    Camera,
    Moment,
    Origin,
    Role,
    SidecarMoment,
)
from tests.simulation.refusals import Refusal

if TYPE_CHECKING:
    from tests.simulation.world import World

Situation = Callable[[Moment, Moment], bool]
"""Whether it is reached: of the last moment, and of this one."""


def decided(origin: Origin, kind: Kind) -> str:
    """The name of a decision from somewhere, while a kind of fault is under way."""
    return f"decided by {origin}, while: {kind}"


def reached(last: Moment, now: Moment) -> frozenset[str]:
    """The names of the situations that are reached at a moment."""
    names = {name for name, situation in SITUATIONS.items() if situation(last, now)}
    names.update(
        decided(origin, fault.kind)
        for fault in now.faults
        for sidecar in now.deciding
        if _concerns(fault, sidecar, now)
        for origin in sidecar.origins
    )
    return frozenset(names)


class Reached:
    """Counts how often each situation began in a world.

    Attributes:
        counts: by the situation's name.
    """

    def __init__(self, world: "World") -> None:
        self.counts: Counter[str] = Counter()
        self._camera = Camera(world)
        self._last: Moment | None = None
        self._names: frozenset[str] = frozenset()

    def look(self) -> None:
        """Counts what has begun since the last look."""
        last, now = self._last, self._camera.take()
        if now == last:
            return
        names = reached(last or now, now)
        self.counts.update(names - self._names)
        self._last, self._names = now, names


def _concerns(fault: Fault, sidecar: SidecarMoment, now: Moment) -> bool:
    """Whether a fault may matter for a sidecar's decision."""
    is_of_one = fault.concerns.endswith(f"sidecar {fault.target}")
    if not is_of_one or fault.target == sidecar.number:
        return True
    return not any(each.number == fault.target for each in now.deciding)


# Of sidecars.


def _by(origin: Origin, now: Moment) -> list[SidecarMoment]:
    return [each for each in now.deciding if origin in each.origins]


def _was(last: Moment, sidecar: SidecarMoment) -> SidecarMoment | None:
    """The same process of a sidecar at the last moment."""
    for each in last.deciding:
        if (each.number, each.starts) == (sidecar.number, sidecar.starts):
            return each
    return None


def _changes(last: Moment, now: Moment) -> Iterator[tuple[SidecarMoment, SidecarMoment]]:
    """Each process of a sidecar at the last moment, and now."""
    for sidecar in now.deciding:
        was = _was(last, sidecar)
        if was is not None and was is not sidecar:
            yield was, sidecar


def _throttling(now: Moment) -> list[SidecarMoment]:
    """The sidecars that throttle since a volume violates."""
    return [each for each in now.deciding if each.violating and each.factor == 0.0]


def _throttles_begin(last: Moment, now: Moment) -> list[SidecarMoment]:
    return [
        sidecar
        for was, sidecar in _changes(last, now)
        if sidecar.origin is Origin.OBSERVATION and sidecar.factor == 0.0 < was.factor
    ]


def _releases(last: Moment, now: Moment) -> list[SidecarMoment]:
    """The sidecars whose throttle has just ended by an observation."""
    return [
        sidecar
        for was, sidecar in _changes(last, now)
        if sidecar.origin is Origin.OBSERVATION and was.factor == 0.0 < sidecar.factor
    ]


def _stops_begin(last: Moment, now: Moment) -> bool:
    return any(each.stops and not was.stops for was, each in _changes(last, now))


def _sloped(now: Moment) -> list[SidecarMoment]:
    return [each for each in now.deciding if each.is_sloped]


def _did(now: Moment, what: str) -> list[SidecarMoment]:
    """The sidecars at which an operator has just done something."""
    return [each for each in now.deciding if any(did.startswith(what) for did in each.did)]


def _gone(now: Moment) -> bool:
    """Whether a sidecar does not run."""
    return any(not each.runs for each in now.sidecars)


def _roles(now: Moment, role: Role) -> list[SidecarMoment]:
    return [each for each in now.deciding if each.role is role]


def _blind_to_full(now: Moment) -> Iterator[list[SidecarMoment]]:
    """Of each broker whose volume violates, the sidecars that it did not answer last."""
    for broker in now.brokers:
        if broker.violates:
            yield [each for each in now.deciding if broker.broker_id in each.silent]


def _disagree(now: Moment) -> bool:
    """Whether one sidecar throttles for a violation, and another one sees none."""
    return bool(_throttling(now)) and any(
        each.factor == 1.0 and not each.violating for each in now.deciding
    )


# Of faults, brokers and callbacks.


def _parted(now: Moment) -> bool:
    """Whether some hosts don't reach each other."""
    return any(kind.name.startswith(("CUT", "ZONE")) for kind in now.kinds)


def _zones_cut(now: Moment) -> bool:
    return Kind.ZONES_CUT in now.kinds


def _rolled(now: Moment) -> bool:
    return Kind.BROKERS_ROLLED in now.kinds


def _fenced(now: Moment) -> list[BrokerMoment]:
    return [each for each in now.brokers if each.is_fenced]


def _back(last: Moment, now: Moment) -> list[BrokerMoment]:
    """The brokers that are no longer fenced."""
    fenced = {each.number for each in _fenced(last)}
    return [each for each in now.brokers if each.number in fenced and not each.is_fenced]


def _fenced_full(now: Moment) -> frozenset[int]:
    """The node ids of fenced brokers whose volumes hold a throttle."""
    return frozenset(
        broker_id for each in _throttling(now) for broker_id in each.retained & each.violating
    )


def _from(source: throttles.Source, now: Moment) -> list[CallbackMoment]:
    return [each for each in now.callbacks if each.source is source]


def _eyes(now: Moment) -> list[CallbackMoment]:
    return _from(throttles.Source.LOCAL, now)


def _says(now: Moment, number: int) -> SidecarMoment | None:
    """The sidecar beside a broker, if it runs."""
    return next((each for each in now.deciding if each.number == number), None)


def _broker_started(last: Moment, now: Moment) -> list[BrokerMoment]:
    """The brokers that run again."""
    ran = {each.number for each in last.brokers if each.runs}
    return [each for each in now.brokers if each.runs and each.number not in ran]


def _restarted(last: Moment, now: Moment) -> list[SidecarMoment]:
    """The sidecars that run as another process than before."""
    starts = {each.number: each.starts for each in last.sidecars}
    return [each for each in now.deciding if 1 <= starts[each.number] < each.starts]


def _without_controller(now: Moment) -> bool:
    return Kind.CONTROLLER_LOST in now.kinds


def _leaders_moved(last: Moment, now: Moment) -> bool:
    return [each.leads for each in last.brokers] != [each.leads for each in now.brokers]


_EVENTS: Final[Mapping[str, Callable[[Moment, Moment], object]]] = {
    "a throttle begins": _throttles_begin,
    "a release": _releases,
    "a stop begins": _stops_begin,
    "on the slope": lambda _, now: _sloped(now),
    "two sidecars disagree": lambda _, now: _disagree(now),
}
_WHILE: Final[Mapping[str, Callable[[Moment], object]]] = {
    "during a partition": _parted,
    "while zones are cut": _zones_cut,
    "while a broker is fenced": _fenced,
    "while brokers restart one after another": _rolled,
    "while a sidecar is away": _gone,
    "without a controller": _without_controller,
}


def _crossed() -> Iterator[tuple[str, Situation]]:
    """Each event, and each while something else is so."""
    for name, event in _EVENTS.items():
        yield name, _during(event, lambda _: True)
        for when, state in _WHILE.items():
            yield f"{name} {when}", _during(event, state)


def _during(
    event: Callable[[Moment, Moment], object], state: Callable[[Moment], object]
) -> Situation:
    return lambda last, now: bool(event(last, now)) and bool(state(now))


def _fails(kind: FailureKind) -> Situation:
    return lambda _, now: any(kind in each.failures for each in now.deciding)


_NOT_SIMULATED: Final = (
    FailureKind.SOURCE,
    FailureKind.TLS,
    FailureKind.AUTHORIZATION,
    FailureKind.UNSUPPORTED,
    FailureKind.BROKER,
    FailureKind.UNEXPECTED,
)
"""Simulated sidecars have no factor source, and brokers no TLS, ACLs, or old versions; the last
kind is a bug."""

SITUATIONS: Final[Mapping[str, Situation]] = {
    **dict(_crossed()),
    **{f"a poll fails: {kind}": _fails(kind) for kind in FailureKind if kind not in _NOT_SIMULATED},
    # Throttles and releases.
    "a throttle begins by a part of the brokers": lambda last, now: any(
        each.sees_partly for each in _throttles_begin(last, now)
    ),
    "two brokers' volumes violate at once": lambda _, now: any(
        len(each.violating) > 1 for each in now.deciding
    ),
    "two volumes of one broker violate at once": lambda _, now: any(
        each.log_dirs > len(each.violating) for each in now.deciding
    ),
    "a release while a broker does not answer": lambda last, now: any(
        each.silent for each in _releases(last, now)
    ),
    "the release margin holds a throttle": lambda _, now: any(
        each.is_held for each in _throttling(now)
    ),
    "a release after the margin held the throttle": lambda last, now: any(
        was.is_held and each.factor > 0.0 and each.origin is Origin.OBSERVATION
        for was, each in _changes(last, now)
    ),
    "a sidecar sees nobody in a throttle": lambda _, now: any(
        each.is_blind for each in _throttling(now)
    ),
    "a sidecar sees a part of the brokers in a throttle": lambda _, now: any(
        each.sees_partly for each in _throttling(now)
    ),
    "no sidecar runs in a throttle": lambda _, now: (
        not any(now.deciding) and any(each.violates for each in now.brokers)
    ),
    "a sidecar restarts in a throttle": lambda last, now: (
        bool(_restarted(last, now)) and any(each.violates for each in now.brokers)
    ),
    "a sidecar throttles by the state of a former process": lambda _, now: any(
        each.factor == 0.0 for each in _by(Origin.DISK, now)
    ),
    "a sidecar starts without state in a throttle": lambda _, now: (
        bool(_by(Origin.NOTHING, now)) and any(each.violates for each in now.brokers)
    ),
    "the state can't be written in a throttle": lambda _, now: any(
        fault.kind is Kind.DISK_FULL
        and (says := _says(now, fault.target)) is not None
        and says.factor == 0.0
        for fault in now.faults
    ),
    "an offline log dir holds a throttle": lambda _, now: any(
        each.offline for each in _throttling(now)
    ),
    "leaders move in a throttle": lambda last, now: (
        bool(_throttling(now)) and _leaders_moved(last, now)
    ),
    "a volume is full, and its broker ends": lambda _, now: any(
        each.full and not each.runs for each in now.brokers
    ),
    "a volume is full, and its broker goes on with another one": lambda _, now: any(
        each.full and each.runs for each in now.brokers
    ),
    "one log dir of a broker is offline in a throttle, and another one serves": lambda _, now: (
        bool(_throttling(now)) and any(each.offline and each.serves for each in now.brokers)
    ),
    # Fenced brokers.
    "a fenced broker's volume holds a throttle": lambda _, now: bool(_fenced_full(now)),
    "a former node id's volume holds a throttle": lambda _, now: bool(
        _fenced_full(now) & now.former
    ),
    "a full broker is back from its fencing": lambda last, now: any(
        each.violates for each in _back(last, now)
    ),
    # The stop line.
    "the stop line's margin holds a stop": lambda _, now: any(
        each.stop_is_held for each in now.deciding
    ),
    "a stop ends in a throttle": lambda last, now: any(
        was.stops and not each.stops and each.factor == 0.0 for was, each in _changes(last, now)
    ),
    "the fallback inside a stop": lambda _, now: (
        bool(_by(Origin.FALLBACK, now)) and any(each.stops for each in now.callbacks)
    ),
    "an override inside a stop": lambda _, now: (
        bool(_by(Origin.OVERRIDE, now)) and any(each.stops for each in now.deciding)
    ),
    "a broker stops by its own eyes": lambda _, now: any(each.stops for each in _eyes(now)),
    # The slope.
    "on the slope while a fenced broker's volume counts": lambda _, now: any(
        each.retained for each in _sloped(now)
    ),
    "on the slope while a broker does not answer": lambda _, now: any(
        each.silent for each in _sloped(now)
    ),
    "on the slope by the state of a former process": lambda _, now: any(
        each.origin is Origin.DISK for each in _sloped(now)
    ),
    "the slope ends at the limit": lambda last, now: any(
        was.is_sloped and each.factor == 0.0 and each.origin is Origin.OBSERVATION
        for was, each in _changes(last, now)
    ),
    "the slope ends with room": lambda last, now: any(
        was.is_sloped and each.factor == 1.0 and each.origin is Origin.OBSERVATION
        for was, each in _changes(last, now)
    ),
    "a throttle turns into the slope": lambda last, now: any(
        each.is_sloped for each in _releases(last, now)
    ),
    # The fallback.
    "the validity ends": lambda last, now: any(
        each.origin is Origin.FALLBACK and was.origin in {Origin.OBSERVATION, Origin.DISK}
        for was, each in _changes(last, now)
    ),
    "the validity ends in a throttle": lambda last, now: any(
        each.origin is Origin.FALLBACK and was.violating for was, each in _changes(last, now)
    ),
    "an observation ends the fallback": lambda last, now: any(
        was.origin is Origin.FALLBACK and each.origin is Origin.OBSERVATION
        for was, each in _changes(last, now)
    ),
    # Operators.
    "an override ends a throttle": lambda last, now: any(
        was.factor == 0.0 < each.factor and each.origin is Origin.OVERRIDE
        for was, each in _changes(last, now)
    ),
    "an override throttles where there is room": lambda _, now: any(
        each.factor < 1.0 and not each.violating for each in _by(Origin.OVERRIDE, now)
    ),
    "an override while nothing is seen": lambda _, now: any(
        each.is_blind for each in _by(Origin.OVERRIDE, now)
    ),
    "an override of a former process": lambda _, now: any(
        each.override_is_old for each in now.deciding
    ),
    "an override ends in a throttle": lambda last, now: any(
        was.origin is Origin.OVERRIDE and each.origin is not Origin.OVERRIDE and each.violating
        for was, each in _changes(last, now)
    ),
    "an override shuts a broker's eyes on a full volume": lambda _, now: any(
        each.is_lifted and each.factor > 0.0 and broker.violates
        for each in now.callbacks
        for broker in now.brokers
        if broker.number == each.number
    ),
    "two sidecars have different overrides": lambda _, now: (
        len({each.factor for each in now.deciding if each.origin is Origin.OVERRIDE}) > 1
    ),
    "a forget": lambda _, now: bool(_did(now, "forgot")),
    "a forget while a broker is fenced": lambda _, now: (
        bool(_did(now, "forgot")) and bool(_fenced(now))
    ),
    "a forget in a throttle": lambda last, now: any(
        was is not None and was.factor == 0.0
        for was in (_was(last, each) for each in _did(now, "forgot"))
    ),
    "a forget ends a throttle": lambda last, now: any(
        was is not None and was.factor == 0.0 < each.factor
        for was, each in ((_was(last, each), each) for each in _did(now, "forgot"))
    ),
    # Several sidecars.
    "a sidecar has the fallback while another one sees": lambda _, now: (
        bool(_by(Origin.FALLBACK, now)) and bool(_by(Origin.OBSERVATION, now))
    ),
    "a volume violates, and some sidecars do not see its broker": lambda _, now: any(
        0 < len(blind) < len(now.sidecars) for blind in _blind_to_full(now)
    ),
    "a volume violates, and no sidecar sees its broker": lambda _, now: any(
        len(blind) == len([*now.deciding]) > 0 for blind in _blind_to_full(now)
    ),
    "an observer sees a part of the brokers": lambda _, now: any(
        each.sees_partly for each in _roles(now, Role.OBSERVER)
    ),
    "observers see different parts of the brokers": lambda _, now: (
        len({each.silent for each in _roles(now, Role.OBSERVER)}) > 1
    ),
    "a follower alone": lambda _, now: bool(_roles(now, Role.ALONE)),
    "a follower asks a broker that no observer sees": lambda _, now: any(
        each.asks_itself for each in now.deciding
    ),
    "an observer dies while a follower throttles": lambda last, now: (
        any(
            each.role is Role.OBSERVER and _says(now, each.number) is None for each in last.deciding
        )
        and any(each.role is Role.FOLLOWER for each in _throttling(now))
    ),
    # Callbacks.
    "a broker throttles by its own eyes": lambda _, now: bool(_eyes(now)),
    "a broker throttles by its own eyes while its sidecar runs": lambda _, now: any(
        _says(now, each.number) is not None for each in _eyes(now)
    ),
    "a broker throttles by its own eyes, and no sidecar answers": lambda _, now: any(
        not each.own_answers and not each.others_answer for each in _eyes(now)
    ),
    "a broker throttles by a forecast": lambda _, now: bool(_from(throttles.Source.FORECAST, now)),
    "a broker throttles while its own sidecar does not": lambda _, now: any(
        each.factor == 0.0 and (says := _says(now, each.number)) is not None and says.factor > 0.0
        for each in now.callbacks
    ),
    "a broker's throttle outlives its sidecar": lambda _, now: any(
        each.source is throttles.Source.SIDECAR
        and each.factor == 0.0
        and not each.own_answers
        and not each.others_answer
        for each in now.callbacks
    ),
    "another sidecar's throttle applies": lambda _, now: any(
        each.source is throttles.Source.SIDECAR
        and each.factor == 0.0
        and not each.own_answers
        and each.others_answer
        for each in now.callbacks
    ),
    "a broker restarts in a throttle": lambda last, now: (
        bool(_throttling(now)) and bool(_broker_started(last, now))
    ),
    "a broker throttles by the document on its disk": lambda _, now: any(
        each.is_from_disk and each.factor == 0.0 and each.source is throttles.Source.SIDECAR
        for each in now.callbacks
    ),
    "a broker has the fallback": lambda _, now: bool(_from(throttles.Source.FALLBACK, now)),
    "an emergency pause": lambda _, now: any(each.is_emergency for each in now.callbacks),
    "a ramp after a release": lambda _, now: any(each.ramps for each in now.callbacks),
    "a throttle begins within a ramp": lambda last, now: any(
        was.ramps and each.factor == 0.0
        for each in now.callbacks
        for was in last.callbacks
        if was.number == each.number
    ),
    # Refusals.
    "a refusal of a new connection while throttled": lambda _, now: (
        Refusal.NEW_CONNECTION in now.refusals
    ),
    "a refusal at the stop line": lambda _, now: Refusal.STOP_LINE in now.refusals,
    "a refusal after the release": lambda _, now: Refusal.RELEASE in now.refusals,
    "a refusal while a sidecar is away": lambda _, now: bool(now.refusals) and _gone(now),
    "a refusal by a broker's own eyes": lambda _, now: bool(now.refusals) and bool(_eyes(now)),
}
"""By name."""


ALL: Final = (
    *SITUATIONS,
    *(decided(origin, kind) for origin in Origin for kind in Kind),
)
"""The names of all situations."""
