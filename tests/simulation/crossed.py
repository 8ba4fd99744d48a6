"""Every kind of fault while sidecars have decisions of every origin, in one short world.

Five sidecars have a decision of another origin each, and keep it. Then one kind of fault after
another begins, at all of them where the kind is of sidecars. So no chance decides which origin
meets which kind: a change of what seeds do loses none of these situations.

Example: sidecar 0 reaches no broker for longer than the validity, and has the fallback. Then its
names don't resolve for 6 s: "decided by the fallback, while: names don't resolve" is reached.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from tests.simulation.faults import Fault, Kind
from tests.simulation.past import VALIDITY_S
from tests.simulation.world import Plan

BROKERS: Final = 5
FALLBACK, OVERRIDE, DISK, NOTHING, OBSERVATION = range(BROKERS)
"""The sidecars, by the origins of their decisions."""

_SEED: Final = 66
"""Its sidecars ask brokers every 5 s, and have no peers that could see for them."""
_ALL_BROKERS: Final = float((1 << BROKERS) - 1)
_SEEN_S: Final = 20.0
"""By then each sidecar has observed all brokers."""
_CUT_S: Final = _SEEN_S + VALIDITY_S + 10.0
_BEGIN_S: Final = _CUT_S + 10.0
_SPACING_S: Final = 8.0
_LASTS_S: Final = 6.0

_INSTANT: Final = (
    Kind.CLOCK_STEPPED,
    Kind.FORGET,
    Kind.LEADERS_MOVE,
    Kind.RELOAD,
    Kind.STATE_DAMAGED,
)
_AWAY: Final = (
    Kind.SIDECAR_KILLED,
    Kind.SIDECAR_STOPPED,
    Kind.SIDECAR_FROZEN,
    Kind.SIDECAR_REPLACED,
)
"""These count for the decisions of the others."""
_OTHER: Final = {
    Kind.BROKER_SLOW: 3.0,
    Kind.BROKER_RENUMBERED: 0.0,
    Kind.CLOCK_STEPPED: 60.0,
    Kind.CREDENTIALS_TURNED: 0.0,
}


def plan() -> Plan:
    """The world with its faults."""
    faults = sorted(_faults(), key=lambda fault: fault.at_s)
    ends_s = max(fault.ends_s for fault in faults)
    return Plan(_SEED, ends_s + _SPACING_S, BROKERS, faults=tuple(faults), calms=False)


def _faults() -> Iterator[Fault]:
    of_all = [kind for kind in Kind if _is_of_all(kind)]
    of_each = [kind for kind in Kind if kind not in {*of_all, *_AWAY, Kind.FORGET}]
    # While one is away nobody observes, and what is forgotten may end a decision.
    last = (*_AWAY, Kind.FORGET)
    last_s = _BEGIN_S + _SPACING_S * max(len(of_all), len(of_each))
    ends_s = last_s + _SPACING_S * len(last)
    for begin_s, kinds in ((_BEGIN_S, of_all), (_BEGIN_S, of_each), (last_s, last)):
        for at_s, kind in zip(count(begin_s, _SPACING_S), kinds, strict=False):
            for sidecar in [OBSERVATION] if kind in of_all else _targets(kind):
                yield _fault(at_s, kind, sidecar)
    yield Fault(_SEEN_S, ends_s - _SEEN_S, Kind.CUT_FROM_SOME, FALLBACK, _ALL_BROKERS)
    yield Fault(_SEEN_S, ends_s - _SEEN_S, Kind.OVERRIDE, OVERRIDE, 0.5)
    for sidecar, kind in ((DISK, Kind.SIDECAR_KILLED), (NOTHING, Kind.SIDECAR_REPLACED)):
        # It reaches no broker when it starts again.
        yield Fault(_CUT_S, ends_s - _CUT_S, Kind.CUT_FROM_SOME, sidecar, _ALL_BROKERS)
        yield Fault(_CUT_S + 1.0, 1.0, kind, sidecar)


def _is_of_all(kind: Kind) -> bool:
    """Whether a kind counts for every sidecar's decision, wherever it is."""
    return not Fault(0.0, 0.0, kind, 0).concerns.endswith("sidecar 0") and kind not in {
        Kind.DISK_HANGS,
        Kind.NAMES_HANG,
    }


def _targets(kind: Kind) -> Sequence[int]:
    if kind in _AWAY:
        return [OBSERVATION]
    # A second override of a sidecar would end the first one.
    return [each for each in range(BROKERS) if (kind, each) != (Kind.OVERRIDE, OVERRIDE)]


def _fault(at_s: float, kind: Kind, target: int) -> Fault:
    return Fault(at_s, 0.0 if kind in _INSTANT else _LASTS_S, kind, target, _OTHER.get(kind, 1.0))
