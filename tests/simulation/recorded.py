"""A fixed list of runs, and the situations that they reach: no change may lose one of these.

``reached.toml`` has the seeds, what they are run with, and the names. Without options this command
runs the seeds in their order until every name was reached; it returns 1 when one was not. The first
seeds reach all; the rest are only run if a change has moved what the first ones do.

``--renew 1-100`` runs those seeds, chooses the few that reach most, and writes the file. A name
that no seed reaches any more stays in the file: whoever deletes it says that it need not be tried.
"""

import argparse
import os
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.simulation.runs import Played, play, same_hashes, seeds_of
from tests.simulation.situations import ALL
from tests.simulation.world import Plan

FILE: Final = Path(__file__).with_name("reached.toml")
BUDGET_S: Final = 35.0
"""Processor seconds of the first seeds."""
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
        names: of the situations, in the order of ``ALL``.
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


def chosen(runs: Mapping[int, tuple[frozenset[str], float]], budget_s: float) -> Iterator[int]:
    """The seeds that reach the most in so many processor seconds, then those that do it again.

    Args:
        runs: seed -> the names that it reaches, and its processor seconds.
        budget_s: for the first; the second half has as much.
    """
    left = dict(runs)
    for _ in range(2):
        spent_s, missing = 0.0, frozenset(name for names, _ in left.values() for name in names)
        while left and missing:
            seed = max(left, key=lambda each: len(left[each][0] & missing) / left[each][1])
            names, took_s = left[seed]
            if not names & missing or spent_s + took_s > budget_s:
                break
            del left[seed]
            spent_s, missing = spent_s + took_s, missing - names
            yield seed


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
    """Writes the file from a range of seeds; 1 when a name of the old one is not reached."""
    runs: dict[int, Played] = {}
    for run in play(record.plans(seeds_of(searched)), jobs):
        print(run.lines[0], flush=True)
        if run.is_well:
            runs[run.plan.seed] = run
    return write(record, searched, {key: (each.reached, each.took_s) for key, each in runs.items()})


def write(
    record: Record, searched: str, runs: Mapping[int, tuple[Mapping[str, int], float]]
) -> int:
    """Chooses seeds and writes the file; 1 when a name of the old one is not reached."""
    sets = {seed: (frozenset(names), took_s) for seed, (names, took_s) in runs.items()}
    seeds = [*chosen(sets, BUDGET_S)]
    names = {name for seed in seeds for name in sets[seed][0]}
    lost = [name for name in record.names if name not in names]
    known = [*ALL, *(name for name in lost if name not in ALL)]
    kept = [name for name in known if name in names or name in lost]
    new = Record(record.hours, record.spacing_s, record.brokers, seeds, kept)
    FILE.write_text(new.text(searched))
    print(f"{len(seeds)} of {len(runs)} seeds reach {len(names)} of {len(ALL)} situations")
    for name in lost:
        where = [seed for seed, (reached, _) in sets.items() if name in reached]
        print(f"  not among them, though recorded before: {name} (seeds {where[:5] or 'none'})")
    return 1 if lost else 0


def main() -> int:
    """Checks, or renews."""
    same_hashes("tests.simulation.recorded")
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.recorded", description=__doc__
    )
    parser.add_argument("--renew", metavar="SEEDS", help="such as 1-100 or 7,12,30-40")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="how many seeds at once")
    options = parser.parse_args()
    record = Record.read()
    return renew(record, options.renew, options.jobs) if options.renew else check(record)


if __name__ == "__main__":
    sys.exit(main())
