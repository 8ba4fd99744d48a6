"""Which two kinds of faults were under way together, by the schedules of seeds: no world runs.

A kind that only happens, such as a reload, counts for ``SETTLES_S`` from its moment on. Two faults
of one kind are a pair too, on two targets.

Example: a reload at 10 s and a broker that is killed from 14 s to 20 s were together; a reload at
10 s and one at 16 s were not.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Final

from tests.simulation.faults import Fault, Kind

SETTLES_S: Final = 5.0
"""The shortest check interval of the worlds. Until its next poll a sidecar has not met what a
moment changed, and the callbacks have not met the decision that follows from it."""

Pair = tuple[Kind, Kind]
"""In the order of ``Kind``."""

IMPOSSIBLE: Final[Mapping[Pair, str]] = {
    (Kind.BROKERS_ROLLED, Kind.BROKERS_ROLLED): "one operator restarts all brokers",
    (Kind.CONTROLLER_LOST, Kind.CONTROLLER_LOST): "a cluster has one active controller",
    (Kind.ZONES_CUT, Kind.ZONES_CUT): "one fault cuts any set of the links between zones",
}
"""Pairs that no schedule can have, with the reason."""

POSSIBLE: Final[Sequence[Pair]] = tuple(
    pair for pair in combinations_with_replacement(Kind, 2) if pair not in IMPOSSIBLE
)
_ORDER: Final = {kind: place for place, kind in enumerate(Kind)}


def lasts_until(fault: Fault) -> float:
    """When a fault no longer counts as under way, seconds."""
    return fault.ends_s if fault.for_s else fault.at_s + SETTLES_S


def pairs(faults: Iterable[Fault]) -> frozenset[Pair]:
    """The pairs of kinds that were under way together in a schedule, in order of beginnings."""
    return frozenset(_pairs(faults))


def never(seen: Collection[Pair]) -> Sequence[Pair]:
    """The pairs that are possible and were not seen."""
    return [pair for pair in POSSIBLE if pair not in seen]


def _pairs(faults: Iterable[Fault]) -> Iterator[Pair]:
    under_way: list[Fault] = []
    for fault in faults:
        under_way = [each for each in under_way if lasts_until(each) >= fault.at_s]
        for each in under_way:
            one, two = sorted((each.kind, fault.kind), key=_ORDER.__getitem__)
            yield one, two
        under_way.append(fault)
