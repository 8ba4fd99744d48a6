"""What the runs of several seeds reached and what they did not, in lines for a person."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from tests.simulation.faults import Kind
from tests.simulation.moments import Origin
from tests.simulation.pairs import IMPOSSIBLE, POSSIBLE, Pair, never
from tests.simulation.situations import ALL, SITUATIONS, decided

_COLUMNS: Final = {
    Origin.OBSERVATION: "observation",
    Origin.FALLBACK: "fallback",
    Origin.OVERRIDE: "override",
    Origin.NOTHING: "nothing yet",
    Origin.DISK: "disk",
}
_WIDTH: Final = 12
_MOST_CELLS: Final = 60
"""With few seeds most pairs are missing, and a list of them says no more than their number."""


def summary(seeds: int, reached: Mapping[str, int], seen: Collection[Pair]) -> Iterator[str]:
    """The sums of what was reached, then what was not.

    Args:
        seeds: how many ran.
        reached: how often each situation began in all of them, by name.
        seen: the pairs of faults that were under way together in any of them.
    """
    yield ""
    yield f"How often each situation began in {_seeds(seeds)} (tests/simulation/situations.py):"
    yield from (f"{reached[name]:8d}  {name}" for name in SITUATIONS if reached.get(name))
    yield ""
    yield "How often a sidecar's decision came from each source while a fault was under way:"
    yield " " * 42 + "".join(f"{title:>{_WIDTH}}" for title in _COLUMNS.values())
    for kind in Kind:
        counts = (reached.get(decided(origin, kind), 0) for origin in _COLUMNS)
        yield f"  {kind:40}" + "".join(f"{count or '-':>{_WIDTH}}" for count in counts)
    yield ""
    yield from _never_together(seeds, seen)
    yield ""
    missing = [name for name in ALL if not reached.get(name)]
    yield (
        f"{len(ALL) - len(missing)} of {len(ALL)} situations were reached in {_seeds(seeds)}."
        + (" Never reached (other seeds may):" if missing else "")
    )
    yield from (f"  {name}" for name in missing if name in SITUATIONS)
    for origin in Origin:
        kinds = [kind for kind in Kind if decided(origin, kind) in missing]
        if kinds:
            yield f"  decided by {origin}, while: {', '.join(kinds)}"


def _never_together(seeds: int, seen: Collection[Pair]) -> Iterator[str]:
    missing = never(seen)
    yield (
        f"{len(POSSIBLE) - len(missing)} of {len(POSSIBLE)} pairs of faults were under way together"
        f" in {_seeds(seeds)}."
        + (
            ""
            if not missing
            else " Missing:"
            if len(missing) <= _MOST_CELLS
            else " 200 seeds have all."
        )
    )
    if len(missing) <= _MOST_CELLS:
        yield from (f"  {one} + {two}" for one, two in missing)
    yield from (f"  {one} + {two} can't be: {why}" for (one, two), why in IMPOSSIBLE.items())


def _seeds(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"
