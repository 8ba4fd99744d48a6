"""Runs seeds: ``python -m tests.simulation --seeds 1-20 --hours 1``; 1 when a claim is broken.

Each core runs a seed of its own, in a process of its own; a line's speed is that of one core. At
the end it says which situations and which pairs of faults the seeds reached, and which they did not
reach; that is no failure.
"""

import argparse
import os
import sys
from collections import Counter

from tests.simulation.pairs import Pair, pairs
from tests.simulation.runs import play, same_hashes, seeds_of
from tests.simulation.summary import summary
from tests.simulation.world import Plan


def main() -> int:
    """Runs all, prints a line for each, all about those that break a claim, and the summary."""
    same_hashes("tests.simulation")
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="1-5", help="such as 7, 1-20 or 7,12,30-40")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--spacing", type=float, default=30.0, help="mean seconds between faults")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="how many seeds at once")
    parser.add_argument("--relief", action="store_true", help="sidecars make room in topics")
    options = parser.parse_args()
    plans = [
        Plan(seed, options.hours * 3600.0, options.brokers, options.spacing, relief=options.relief)
        for seed in seeds_of(options.seeds)
    ]
    failed = 0
    reached: Counter[str] = Counter()
    seen: set[Pair] = set()
    for played in play(plans, options.jobs):
        failed += not played.is_well
        reached.update(played.reached)
        seen |= pairs(played.plan.schedule())
        print(*played.lines, sep="\n", flush=True)
    print(*summary(len(plans), reached, seen), sep="\n")
    print()
    print(f"{len(plans)} seeds, {failed} of them broke a claim")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
