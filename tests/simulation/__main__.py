"""Runs seeds: ``python -m tests.simulation --seeds 1-20 --hours 1``; 1 when a claim is broken.

Each core runs a seed of its own, in a process of its own; a line's speed is that of one core.
"""

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from tests.simulation.faults import Fault, shrunk
from tests.simulation.world import Plan, Report, run

_COLLECTED_AT: Final = (20_000, 20, 50)
"""gc.set_threshold: a collection for every 700 objects would take a sixth of the time."""


def main() -> int:
    """Runs all, prints a line for each, and all about those that break a claim."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="1-5", help="one, or FIRST-LAST")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--spacing", type=float, default=60.0, help="mean seconds between faults")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="how many seeds at once")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    plans = [
        Plan(seed, options.hours * 3600.0, options.brokers, options.spacing)
        for seed in range(int(first), int(last or first) + 1)
    ]
    failed = 0
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AT)
    # A process for each: what killed processes of a world had is never collected, since their
    # coroutines would go on to their ends then.
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        results = pool.imap(played, plans)
        for plan in plans:
            # A process that is killed has no result.
            is_well, lines = results.next(plan.duration_s * plan.brokers + 60.0)
            failed += not is_well
            print(*lines, sep="\n", flush=True)
    print(f"{len(plans)} seeds, {failed} of them broke a claim")
    return 1 if failed else 0


def played(plan: Plan) -> tuple[bool, Sequence[str]]:
    """Runs a plan; whether all claims held, and lines about it."""
    began = time.process_time()
    report = run(plan)
    took_s = time.process_time() - began
    is_well = not report.violations
    line = (
        f"seed {plan.seed}: {'ok' if is_well else 'FAILED'} {report.digest[:12]}"
        f" {report.simulated_s / took_s:.0f} times real time {report.figures}"
    )
    return is_well, [line, *(() if is_well else explanation(plan, report))]


def explanation(plan: Plan, report: Report) -> Iterator[str]:
    """What was broken, the faults that matter, the last events, and how to repeat it."""
    for violation in report.violations[:5]:
        yield f"  broken at {violation}"

    def fails(faults: Sequence[Fault]) -> bool:
        fewer = Plan(plan.seed, plan.duration_s, plan.brokers, plan.spacing_s, faults)
        return bool(run(fewer).violations)

    needed = shrunk(plan.schedule(), fails)
    yield from (f"  needs {fault}" for fault in needed)
    if not needed:
        yield "  needs no fault"
    yield from (f"    {event}" for event in report.events)
    yield (
        f"  repeat: make simulate SEEDS={plan.seed} HOURS={plan.duration_s / 3600:g} "
        f"SPACING={plan.spacing_s:g} BROKERS={plan.brokers}"
    )


if __name__ == "__main__":
    sys.exit(main())
