"""``python -m benchmarks.clients [PART ...]``: producers of many clients in a throttle.

Clients can be measured alone (``--clients``): the tables are of all results that the folder has.
"""

import argparse
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.clients.clients import CLIENTS, INSTALLED, Client, versions
from benchmarks.clients.figures import GOALS, Figures, back, figures, kb, verdicts
from benchmarks.clients.run import Run
from benchmarks.clients.scene import ARMS, PARTS, QUOTA, Case, happen
from benchmarks.harness import program
from benchmarks.harness.page import Pictures
from benchmarks.harness.program import Benchmark, Task
from benchmarks.harness.results import Results
from benchmarks.harness.tables import table, whole
from sidecar.cli.callback.jar import callback_jar

_HEAD: Final = (
    "client",
    "kB/s before",
    "kB/s landed: least to most (mean)",
    "first error",
    "records lost, from",
    "failed, yet landed",
    "twice",
    "out of order",
    "sent for nothing, MB; connections",
    "refused",
    "back to 90 %",
    "most in a second of the 10 s after it, over before",
)


def row(name: str, found: Figures) -> list[str]:
    """A client's cells."""
    peak = f"{found.peak / found.before:.2f} x after {found.peak_s:.1f} s" if found.before else ""
    return [
        name,
        kb(found.before),
        f"{kb(found.least)} to {kb(found.most)} ({kb(found.mean)})",
        _error(found),
        _lost(found),
        whole(found.failed_but_landed),
        whole(found.twice),
        whole(found.disordered),
        f"{found.for_nothing / 1e6:.1f}; {found.connections}",
        "" if found.refused is None else whole(found.refused),
        back(found),
        peak,
    ]


def _error(found: Figures) -> str:
    if found.first_error_s is None:
        return "none"
    text = " ".join(found.first_error.replace("|", "/").split())
    return f"{found.first_error_s:.0f} s: {text if len(text) <= 60 else f'{text[:60]}...'}"


def _lost(found: Figures) -> str:
    text = "none"
    if (lost := found.lost) is not None:
        text = f"{lost.records:,} from {lost.first_s:.0f} s"
        text += f", {lost.acknowledged:,} of them acknowledged" if lost.acknowledged else ""
    return text + (f"; {found.unreported:,} not reported" if found.unreported else "")


def section(part: str, results: Results, _: Pictures) -> str:
    """Two tables for each arm: the figures of each client, and its goals."""
    runs = results.by_arm(Run, part, ARMS)
    found = {(arm, run.client): figures(run) for arm, of in runs.items() for run in of}
    tables = []
    for arm, of in runs.items():
        title = f"a throttle of {_duration(of[0].throttle_s)}"
        title += ", seven clients at once" if PARTS[part].is_shared else ""
        clients = [each for each in CLIENTS if (arm, each.key) in found]
        rows = [row(each.name, found[arm, each.key]) for each in clients]
        tables.append(f"### {ARMS[arm]}, {title}\n\n{table(_HEAD, rows)}")
        if arm != QUOTA:
            goals = [
                [each.name, *map(str, verdicts(each, arm, found[arm, each.key], without))]
                for each in clients
                for without in [found.get((QUOTA, each.key))]
            ]
            goal_table = table(["client", *GOALS], goals)
            tables.append(f"Whether each goal was reached:\n\n{goal_table}")
    return "\n".join(tables)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} s"


def _tasks(asked: argparse.Namespace) -> Iterator[Task]:
    jar = callback_jar(asked.jar)
    chosen = [each for each in CLIENTS if each.key in asked.clients]
    for part in (PARTS[key] for key in asked.parts):
        timed = replace(part, throttle_s=asked.seconds or part.throttle_s)
        for arm in asked.arms:
            case = Case(timed, arm, asked.partitions, jar)
            if not case.is_possible:
                print(f"{jar} has nothing for the arm {arm}: left out", file=sys.stderr)
                continue
            for placed in timed.placed(chosen, asked.abreast):
                keys = [client.key for of in placed for client in of]
                title = f"{', '.join(keys)}; {arm}, {timed.throttle_s:g} s"
                stems = [f"{part.key}.{arm}.{key}" for key in keys]
                yield Task(title, part.key, stems, partial(_runs, placed, case, asked.results))


async def _runs(
    placed: Sequence[Sequence[Client]], case: Case, folder: Path
) -> AsyncIterator[tuple[str, Any]]:
    for key, run in (await happen(placed, case, folder)).items():
        yield f"{case.part.key}.{case.arm}.{key}", run


def _options(parser: argparse.ArgumentParser) -> None:
    keys = [each.key for each in CLIENTS]
    parser.add_argument("--clients", nargs="+", choices=keys, default=keys, metavar="CLIENT")
    parser.add_argument("--partitions", type=int, default=1, help="of each topic")
    parser.add_argument("--abreast", type=int, default=2, help="brokers at once, if short")
    parser.add_argument("--jar", type=Path, help="the quota callback's; default: that of make jar")
    parser.set_defaults(arms=[arm for arm in ARMS if arm != QUOTA], results=INSTALLED / "results")


BENCHMARK: Final = Benchmark(
    "clients",
    "Producers of many clients in a throttle, with their defaults.",
    parts=tuple(PARTS),
    arms=tuple(ARMS),
    tasks=_tasks,
    section=section,
    options=_options,
    compared=("seconds", "partitions"),
    machine=lambda: [versions()],
)

if __name__ == "__main__":
    sys.exit(program.main(BENCHMARK))
