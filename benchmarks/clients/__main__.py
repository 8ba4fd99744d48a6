"""``python -m benchmarks.clients [PART ...]``: producers of many clients in a throttle.

Clients can be measured alone (``--clients``): the tables are of all results that the folder has.
"""

import argparse
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from benchmarks.clients.clients import CLIENTS, EXPIRING, INSTALLED, Client, versions
from benchmarks.clients.figures import (
    GOALS,
    Figures,
    back,
    figures,
    kb,
    returned,
    verdicts,
)
from benchmarks.clients.run import Run
from benchmarks.clients.scene import ARMS, PARTS, QUOTA, RELEASE, Case, happen
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
_RETURN_HEAD: Final = (
    "client",
    "acknowledged before, kB/s",
    "failed in the throttle; after it",
    "connections; refused",
    "three seconds in a row with 90 %, from",
    "MB acknowledged in each second after the release",
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


def return_row(run: Run) -> list[str]:
    """A run's cells in the part of clients whose records expire."""
    before, seconds, back_s = returned(run)
    later = sum(at >= run.released_at for at, _, _ in run.failed)
    (name,) = [each.name for each in EXPIRING if each.key == run.client]
    return [
        name,
        kb(before),
        f"{len(run.failed) - later:,}; {later:,}",
        f"{run.connections}; {'' if run.refused is None else whole(run.refused)}",
        "not seen" if back_s is None else f"{back_s} s",
        " ".join(f"{rate / 1e6:.1f}" for rate in seconds[:20]),
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
    if part == RELEASE:
        tables = [
            f"### {ARMS[arm]}, records that expire after 20 s, a throttle of "
            f"{_duration(of[0].throttle_s)}\n\n{table(_RETURN_HEAD, map(return_row, of))}"
            for arm, of in runs.items()
        ]
        return "\n".join(tables)
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
    for part, count in product((PARTS[key] for key in asked.parts), range(asked.rounds)):
        if count and part.key != RELEASE:
            continue
        chosen = [each for each in part.clients if each.key in asked.clients]
        timed = replace(part, throttle_s=asked.seconds or part.throttle_s)
        for arm in asked.arms:
            case = Case(timed, arm, asked.partitions, jar)
            if not case.is_possible:
                print(f"{jar} has nothing for the arm {arm}: left out", file=sys.stderr)
                continue
            for placed in timed.placed(chosen, asked.abreast):
                keys = [client.key for of in placed for client in of]
                title = f"{', '.join(keys)}; {arm}, {timed.throttle_s:g} s"
                title += f", round {count + 1}" if part.key == RELEASE else ""
                stems = [f"{part.key}.{arm}.{key}{_round(count)}" for key in keys]
                stems += [] if count else [f"{stem}.*" for stem in stems]
                yield Task(
                    title, part.key, stems, partial(_runs, placed, case, count, asked.results)
                )


def _round(count: int) -> str:
    return f".{count}" if count else ""


async def _runs(
    placed: Sequence[Sequence[Client]], case: Case, count: int, folder: Path
) -> AsyncIterator[tuple[str, Any]]:
    for key, run in (await happen(placed, case, folder)).items():
        yield f"{case.part.key}.{case.arm}.{key}{_round(count)}", run


def _options(parser: argparse.ArgumentParser) -> None:
    keys = [each.key for each in (*CLIENTS, *EXPIRING)]
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
