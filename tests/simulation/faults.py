"""Which faults happen when, by a seed: a value that is made before the world begins.

Each fault begins, lasts, and ends; no two of the same target overlap, so that each end is the end.
A schedule can be shortened and is still one: that is how a failure is reduced to what matters.
Each seed has a random half of the kinds, so that two rare kinds often meet in one world.

Example: ``schedule(1, 3600.0, 60.0, 3)`` has some 60 faults of 13 kinds, the same in every run.
"""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What goes wrong."""

    BROKER_KILLED = "broker killed"
    BROKER_FROZEN = "broker frozen"
    BROKER_SLOW = "broker slow"
    BROKER_STAYS_SLOW = "broker stays slow"
    BROKER_CUTS_ANSWERS = "broker cuts answers"
    BROKER_SENDS_GARBAGE = "broker sends garbage"
    BROKER_OUT_OF_DATE = "broker lists the brokers of then"
    BROKER_SHARES_ADDRESS = "broker behind another one's address"
    BROKER_OF_ANOTHER_CLUSTER = "another cluster's broker at the address"
    BROKERS_ROLLED = "brokers restarted one after another"
    LOG_DIR_OFFLINE = "log dir offline"
    LOG_DIR_UNREADABLE = "log dir unreadable"
    LEADERS_MOVE = "leaders move away"
    BROKER_RENUMBERED = "broker renumbered"
    CONTROLLER_LOST = "no controller"
    SIDECAR_KILLED = "sidecar killed"
    SIDECAR_STOPPED = "sidecar stopped"
    SIDECAR_FROZEN = "sidecar frozen"
    SIDECAR_REPLACED = "sidecar replaced, on an empty disk"
    CUT_FROM_BROKER = "sidecar cut off from broker"
    CUT_FROM_SOME = "sidecar cut off from some brokers"
    CUT_FROM_CALLBACK = "sidecar cut off from its callback"
    CUT_FROM_PEER = "sidecar cut off from sidecar"
    ZONES_CUT = "zones cut off from each other"
    NO_NAMES = "names don't resolve"
    NAMES_HANG = "name server hangs"
    CLOCK_STEPPED = "wall clock stepped"
    DISK_FULL = "disk of the state full"
    DISK_SLOW = "disk of the state slow"
    DISK_HANGS = "disk of the state hangs"
    STATE_DAMAGED = "state file damaged"
    CREDENTIALS_TURNED = "secrets rotated in files"
    OVERRIDE = "override"
    FORGET = "forget"
    RELOAD = "reload"


_LONGEST_S: Final[Mapping[Kind, float]] = {
    Kind.STATE_DAMAGED: 0.0,
    Kind.LEADERS_MOVE: 0.0,
    Kind.RELOAD: 0.0,
    Kind.FORGET: 0.0,
    Kind.SIDECAR_STOPPED: 5.0,
    Kind.OVERRIDE: 60.0,
    Kind.BROKER_STAYS_SLOW: 300.0,
    Kind.CUT_FROM_SOME: 120.0,
    Kind.ZONES_CUT: 120.0,
    Kind.BROKERS_ROLLED: 180.0,
    Kind.BROKER_OF_ANOTHER_CLUSTER: 60.0,
}
_USUAL_LONGEST_S: Final = 20.0
_VERY_LONG: Final = 0.08
"""So many of the usual ones last longer than the validity, so that the fallback applies."""
_VERY_LONG_S: Final = (330.0, 600.0)
SEEN_SLOW_S: Final = 2.5
"""A broker that takes so long for its log dirs is seen all the same."""
_TAKEN_AFTER_S: Final = 1.0
"""An address is not taken before its broker is fenced: no sidecar asks which cluster's broker has
answered for its log dirs."""
_SHORTEST_S: Final = 0.5
_PAUSE_S: Final = 1.0
_ZONES: Final = 3
_WAYS: Final = tuple(itertools.permutations(range(_ZONES), 2))


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at_s: when it begins.
        for_s: how long it lasts; 0.0 for one that only happens.
        kind: what goes wrong.
        target: the broker's or sidecar's number.
        other: a second one, or a number of the kind's own: seconds of a step, a factor, or a bit
            for each of several.
    """

    at_s: float
    for_s: float
    kind: Kind
    target: int
    other: float = 0.0

    @property
    def ends_s(self) -> float:
        """When it ends."""
        return self.at_s + self.for_s

    @property
    def concerns(self) -> str:
        """Whom it befalls: a broker, a sidecar or its operator, or all of a kind."""
        if self.kind in _OF_ALL:
            return _OF_ALL[self.kind]
        if self.kind in _OF_OPERATORS:
            return f"operator of sidecar {self.target}"
        # What an operator does has to work while these last.
        if self.kind in {Kind.DISK_HANGS, Kind.NAMES_HANG}:
            return f"{self.kind} {self.target}"
        return f"{'broker' if self.kind in _OF_BROKERS else 'sidecar'} {self.target}"

    def __str__(self) -> str:
        lasts = f" for {self.for_s:.1f} s" if self.for_s else ""
        return f"{self.at_s:9.3f} s  {self.kind}: {self.target} ({self.other:g}){lasts}"


def zone_of(machine: int) -> str:
    """The name of a machine's zone: each third one is in the same."""
    return f"zone-{machine % _ZONES}"


def cut_ways(fault: Fault, brokers: int) -> Sequence[tuple[int, int]]:
    """From and to which machines nothing passes in a cut of zones: a zone has each third one."""
    zones = [
        tuple(map(zone_of, way)) for bit, way in enumerate(_WAYS) if int(fault.other) >> bit & 1
    ]
    machines = itertools.permutations(range(brokers), 2)
    return [(one, two) for one, two in machines if (zone_of(one), zone_of(two)) in zones]


def cut_brokers(fault: Fault, brokers: int) -> Sequence[int]:
    """The brokers that a sidecar is cut off from."""
    return [number for number in range(brokers) if int(fault.other) >> number & 1]


def kinds_of(seed: int) -> tuple[Kind, ...]:
    """The kinds of faults that a seed has: a random half of all, in their order."""
    chosen = random.Random(f"kinds {seed}").sample(list(Kind), len(Kind) // 2)
    return tuple(kind for kind in Kind if kind in chosen)


def schedule(seed: int, duration_s: float, spacing_s: float, brokers: int) -> tuple[Fault, ...]:
    """The faults of a seed, in the order of their beginnings.

    Args:
        seed: decides all.
        duration_s: all have ended by then.
        spacing_s: the mean time between two.
        brokers: how many brokers, and sidecars, there are.
    """
    chance, lasting = random.Random(f"faults {seed}"), random.Random(f"lasting {seed}")
    kinds = kinds_of(seed)
    faults: list[Fault] = []
    free_at: dict[str, float] = {}
    at_s = chance.expovariate(1.0 / spacing_s)
    while at_s < duration_s:
        kind = chance.choice(kinds)
        target = chance.randrange(brokers)
        longest = min(_LONGEST_S.get(kind, _USUAL_LONGEST_S), duration_s - at_s)
        for_s = chance.uniform(min(_SHORTEST_S, longest), longest)
        if kind not in _LONGEST_S and lasting.random() < _VERY_LONG:
            for_s = min(lasting.uniform(*_VERY_LONG_S), duration_s - at_s)
        fault = Fault(round(at_s, 3), round(for_s, 3), kind, target, _other(kind, chance, brokers))
        if free_at.get(fault.concerns, 0.0) <= at_s:
            faults.append(fault)
            free_at[fault.concerns] = fault.ends_s + _PAUSE_S
        at_s += chance.expovariate(1.0 / spacing_s)
    return tuple(faults)


def shrunk(faults: Sequence[Fault], fails: Callable[[Sequence[Fault]], bool]) -> Sequence[Fault]:
    """The fewest faults found that still fail, by leaving out halves, quarters, and so on.

    Args:
        faults: that fail together.
        fails: runs the world with some of them.
    """
    size = len(faults)
    while size > 1:
        size = (size + 1) // 2
        start = 0
        while start < len(faults):
            fewer = [*faults[:start], *faults[start + size :]]
            if len(fewer) < len(faults) and fails(fewer):
                faults = fewer
            else:
                start += size
    return faults


_OF_ALL: Final = {
    Kind.CONTROLLER_LOST: "controller",
    Kind.ZONES_CUT: "zones",
    Kind.BROKERS_ROLLED: "brokers",
}
_OF_BROKERS: Final = frozenset(
    kind for kind in Kind if kind.name.startswith(("BROKER", "LOG_DIR", "LEADERS"))
)
_OF_OPERATORS: Final = (Kind.OVERRIDE, Kind.FORGET, Kind.RELOAD)
"""What operators do, also to a sidecar that has a fault already."""


def _other(kind: Kind, chance: random.Random, brokers: int) -> float:
    if kind is Kind.CLOCK_STEPPED:
        return round(chance.choice([-1, 1]) * 10 ** chance.uniform(0.0, 5.0), 1)
    if kind is Kind.OVERRIDE:
        return chance.choice([0.0, 0.5, 1.0])
    if kind is Kind.BROKER_OF_ANOTHER_CLUSTER:
        return _TAKEN_AFTER_S
    if kind is Kind.BROKER_STAYS_SLOW:
        return round(chance.uniform(0.5, SEEN_SLOW_S), 1)
    if kind is Kind.BROKER_SLOW:
        return round(chance.uniform(0.2, 8.0), 1)
    # In those of several some bit is set, and of brokers not all.
    bits = {Kind.ZONES_CUT: 1 << len(_WAYS), Kind.CUT_FROM_SOME: max(2, (1 << brokers) - 1)}
    return float(chance.randrange(1, bits[kind]) if kind in bits else chance.randrange(brokers))
