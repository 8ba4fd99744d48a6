"""What a fault may make blind, deaf or slow, or hides: only that is judged less.

Processes and log dirs have their names, and so has what is between two processes, a link. A cut of
links touches these alone: whoever sees or hears by another way has to go on.

Example: sidecar 1 is cut off from broker 2 by a cut of zones. Broker 1 asks sidecar 0 too, which
sees broker 2, and has to throttle as soon as without the cut.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tests.simulation.faults import Fault, Kind, cut_brokers, cut_ways

if TYPE_CHECKING:
    from tests.simulation.world import World

LINKS: Final = "links"
"""Is touched while any link is."""

_NOBODY: Final = frozenset(
    {
        Kind.CLOCK_STEPPED,
        Kind.RELOAD,
        Kind.LEADERS_MOVE,
        Kind.BROKER_OUT_OF_DATE,
        Kind.BROKER_STAYS_SLOW,
        # Each broker is disturbed while it is down.
        Kind.BROKERS_ROLLED,
        Kind.CONTROLLER_LOST,
    }
)


def link(one: str, other: str) -> str:
    """The name of what is between two processes, either way."""
    return " - ".join(sorted((one, other)))


def touched(fault: Fault, world: "World") -> list[str]:
    """The names of all that a fault touches, each once."""
    kind, own, other = fault.kind, fault.target, fault.other
    if kind in _NOBODY:
        return []
    if kind is Kind.CUT_FROM_SOME:
        cut = cut_brokers(fault, len(world.brokers))
        return _links((f"sidecar {own}", f"broker {each}") for each in cut)
    if kind is Kind.ZONES_CUT:
        return _links(
            (f"{one} {number}", f"{another} {to}")
            for number, to in cut_ways(fault, len(world.brokers))
            for one in ("broker", "sidecar")
            for another in ("broker", "sidecar")
        )
    if kind.name.startswith("LOG_DIR"):
        return [world.volume_of(fault).name]
    names = [f"{'broker' if kind.name.startswith('BROKER') else 'sidecar'} {own}"]
    # With one address for two brokers an answer from there may be of any of them.
    if kind in {Kind.CUT_FROM_BROKER, Kind.BROKER_SHARES_ADDRESS}:
        names.append(f"broker {other:.0f}")
    return [*dict.fromkeys(names)]


def _links(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [*dict.fromkeys([LINKS, *(link(*pair) for pair in pairs)])]
