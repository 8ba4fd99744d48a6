"""Runs plans, each in a process of its own, and what each of them showed.

What killed processes of a world had is only collected after its end (``VirtualLoop.end``), and what
libraries cache of it later still; so no process runs two worlds.
"""

import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from tests.simulation.faults import Fault, shrunk
from tests.simulation.world import Plan, Report, run

_COLLECTED_AT: Final = (100_000, 20, 50)
"""gc.set_threshold: a collection for every 700 objects would take a sixth of the time."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a plan showed.

    Attributes:
        plan: the plan.
        is_well: whether all claims held.
        lines: about it, for a person.
        reached: how often each situation began, by name.
        took_s: processor seconds.
    """

    plan: Plan
    is_well: bool
    lines: Sequence[str]
    reached: Mapping[str, int]
    took_s: float


def same_hashes(module: str) -> None:
    """Starts this command again with the one hash seed, by which the order of sets goes."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]])


def seeds_of(text: str) -> list[int]:
    """The seeds of a text such as "7,12,30-40"."""
    ranges = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in ranges for seed in range(int(first), int(last or first) + 1)]


def play(plans: Sequence[Plan], jobs: int, *, explains: bool = True) -> Iterator[Played]:
    """Runs plans, so many at once; what they showed, in their order.

    Args:
        plans: each is run in a process of its own.
        jobs: how many at once.
        explains: whether it is searched which faults break a claim, which takes many runs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AT)
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        results = pool.imap(partial(played, explains=explains), plans)
        for plan in plans:
            # A process that is killed has no result.
            yield results.next(plan.duration_s * plan.brokers + 60.0)


def played(plan: Plan, *, explains: bool = True) -> Played:
    """Runs a plan in this process."""
    began = time.process_time()
    report = run(plan)
    took_s = time.process_time() - began
    is_well = not report.violations
    line = (
        f"seed {plan.seed}: {'ok' if is_well else 'FAILED'} {report.digest[:12]}"
        f" {report.simulated_s / took_s:.0f} times real time {report.figures}"
    )
    broken = [f"  broken at {violation}" for violation in report.violations[:5]]
    why = explanation(plan, report) if explains and broken else ()
    return Played(plan, is_well, [line, *broken, *why], report.reached, took_s)


def explanation(plan: Plan, report: Report) -> Iterator[str]:
    """The faults that matter, the last events, and how to repeat it."""

    def fails(faults: Sequence[Fault]) -> bool:
        return bool(run(replace(plan, faults=faults)).violations)

    needed = shrunk(plan.schedule(), fails)
    yield from (f"  needs {fault}" for fault in needed)
    if not needed:
        yield "  needs no fault"
    yield from (f"    {event}" for event in report.events)
    yield (
        f"  repeat: make simulate SEEDS={plan.seed} HOURS={plan.duration_s / 3600:g} "
        f"SPACING={plan.spacing_s:g} BROKERS={plan.brokers}{' RELIEF=1' if plan.relief else ''}"
    )
