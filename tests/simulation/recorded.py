"""A fixed list of runs, and the situations that they reach: no change may lose one of these.

Decisions of each origin during each kind of fault are not among them: ``crossed.py`` has all.

``reached.toml`` has the seeds, what they are run with, and the names. Without options this command
runs the seeds in their order until every name was reached; it returns 1 when one was not.

``--renew 1-2000`` looks at the worlds of these seeds, runs those that promise most and those in the
file, chooses the few that reach every name in the file and most others, and writes the file. A name
that is lost stays in the file: whoever deletes it says that it need not be tried.
"""

import argparse
import math
import os
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final, Self

from tests.simulation.faults import Kind
from tests.simulation.loop import VirtualLoop
from tests.simulation.runs import play, same_hashes, seeds_of
from tests.simulation.situations import SITUATIONS
from tests.simulation.world import Plan, World

FILE: Final = Path(__file__).with_name("reached.toml")
BUDGET_S: Final = 45.0
"""Processor seconds of all seeds, unless what was recorded before needs more."""
_CANDIDATES: Final = 24
"""So many seeds are run to choose from."""
_SOON_S: Final = 10.0
_SOON_BYTES: Final = 700_000_000
_HEAD: Final = """\
# Situations (tests/simulation/situations.py) that these seeds reach. A test runs the seeds again
# and fails when one is lost. Made by: make situations SEEDS={seeds}
"""


@dataclass(frozen=True, slots=True)
class Record:
    """What ``reached.toml`` has.

    Attributes:
        hours: of each run.
        spacing_s: between two faults.
        brokers: how many.
        seeds: in the order in which they are run.
        names: of the situations, in the order of ``SITUATIONS``.
    """

    hours: float
    spacing_s: float
    brokers: int
    seeds: Sequence[int]
    names: Sequence[str]

    @classmethod
    def read(cls) -> Self:
        """From the file."""
        return cls(**tomllib.loads(FILE.read_text()))

    def plans(self, seeds: Collection[int]) -> list[Plan]:
        """The plans of some seeds; nothing is reached any more when the faults have ended."""
        for_s = self.hours * 3600.0
        return [Plan(seed, for_s, self.brokers, self.spacing_s, calms=False) for seed in seeds]

    def text(self, searched: str) -> str:
        """The file's, of a record that was made from a range of seeds."""
        seeds = ", ".join(map(str, self.seeds))
        names = "".join(f'  "{name}",\n' for name in self.names)
        return (
            f"{_HEAD.format(seeds=searched)}"
            f"hours = {self.hours:g}\nspacing_s = {self.spacing_s:g}\nbrokers = {self.brokers}\n"
            f"seeds = [{seeds}]\nnames = [\n{names}]\n"
        )


def promising(plans: Sequence[Plan], count: int) -> list[Plan]:
    """The plans with the most kinds of faults in the most kinds of worlds.

    Only volumes that fill soon count: in a short world the others never come to their limit.
    """
    left: dict[Plan, set[tuple[Kind, str]]] = {}
    for plan in plans:
        loop = VirtualLoop()
        world = World(plan, loop)
        world.discard()
        loop.close()
        if world.interval_s <= _SOON_S and next(world.volumes()).total_bytes <= _SOON_BYTES:
            left[plan] = {*product((fault.kind for fault in plan.schedule()), _traits(world))}
    found: list[Plan] = []
    missing: set[tuple[Kind, str]] = set()
    while left and len(found) < count:
        missing = missing or set().union(*left.values())
        plan = max(left, key=lambda each: len(left[each] & missing))
        missing -= left.pop(plan)
        found.append(plan)
    return found


def _traits(world: World) -> Iterator[str]:
    volume = next(world.volumes())
    for trait, has in {
        "any": True,
        "authorizer": world.refuses,
        "margin": volume.margin_bytes > 0,
        "observers": world.has_observers,
        "others": world.asks_others,
        "slope": world.has_slope,
        "stop line": volume.stop_bytes is not None,
        "two volumes": len([*world.volumes()]) > len(world.brokers),
    }.items():
        if has:
            yield trait


def chosen(
    runs: Mapping[int, tuple[frozenset[str], float]], wanted: Collection[str], budget_s: float
) -> list[int]:
    """The seeds that reach all that is wanted, and then most others in so many processor seconds.

    Args:
        runs: seed -> the names that it reaches, and its processor seconds.
        wanted: the names that are reached whatever that takes.
        budget_s: for all seeds.
    """
    left = dict(runs)
    seeds: list[int] = []
    spent_s = 0.0
    reached: frozenset[str] = frozenset()
    everything = frozenset[str]().union(*(names for names, _ in runs.values()))
    for aims, most_s in ((everything.intersection(wanted), math.inf), (everything, budget_s)):
        while fitting := {
            seed: len(names & aims - reached) / took_s
            for seed, (names, took_s) in left.items()
            if names & aims - reached and spent_s + took_s <= most_s
        }:
            seed = max(fitting, key=fitting.__getitem__)
            names, took_s = left.pop(seed)
            spent_s += took_s
            reached |= names
            seeds.append(seed)
    return seeds


def check(record: Record) -> int:
    """Runs the seeds until all is reached; 1 when something is not, or a claim is broken."""
    missing = {*record.names}
    took_s = 0.0
    for run in play(record.plans(record.seeds), 1):
        print(*run.lines, sep="\n", flush=True)
        if not run.is_well:
            return 1
        took_s += run.took_s
        missing -= run.reached.keys()
        if not missing:
            print(f"{len(record.names)} situations were reached again, in {took_s:.0f} s")
            return 0
    print(f"Reached before ({FILE.name}), and not any more:")
    print(*(f"  {name}" for name in record.names if name in missing), sep="\n")
    print("If the change only moved what the seeds do, `make situations` finds other seeds.")
    return 1


def renew(record: Record, searched: str, jobs: int) -> int:
    """Writes the file from a range of seeds; 1 when a claim is broken, or a name is lost."""
    plans = promising(record.plans(seeds_of(searched)), _CANDIDATES)
    plans += [plan for plan in record.plans(record.seeds) if plan not in plans]
    runs: dict[int, tuple[frozenset[str], float]] = {}
    for run in play(plans, jobs, explains=False):
        print(*run.lines, sep="\n", flush=True)
        if run.is_well:
            names = frozenset(SITUATIONS.keys() & run.reached.keys())
            runs[run.plan.seed] = names, run.took_s
    return max(write(record, searched, runs), len(runs) < len(plans))


def write(record: Record, searched: str, runs: Mapping[int, tuple[frozenset[str], float]]) -> int:
    """Chooses seeds and writes the file; 1 when a name of the old one is not reached."""
    seeds = chosen(runs, record.names, BUDGET_S)
    names = {name for seed in seeds for name in runs[seed][0]}
    lost = [name for name in record.names if name not in names]
    known = [*SITUATIONS, *(name for name in lost if name not in SITUATIONS)]
    kept = [name for name in known if name in names or name in lost]
    new = replace(record, seeds=seeds, names=kept)
    FILE.write_text(new.text(searched))
    print(f"{len(seeds)} of {len(runs)} seeds reach {len(names)} of {len(SITUATIONS)} situations")
    for name in lost:
        where = [seed for seed, (reached, _) in runs.items() if name in reached]
        print(f"  not among them, though recorded before: {name} (seeds {where[:5] or 'none'})")
    return 1 if lost else 0


def main() -> int:
    """Checks, or renews."""
    same_hashes("tests.simulation.recorded")
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.recorded", description=__doc__
    )
    parser.add_argument("--renew", metavar="SEEDS", help="such as 1-2000")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="how many seeds at once")
    options = parser.parse_args()
    record = Record.read()
    return renew(record, options.renew, options.jobs) if options.renew else check(record)


if __name__ == "__main__":
    sys.exit(main())
