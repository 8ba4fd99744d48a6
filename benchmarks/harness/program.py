"""The program of a benchmark: ``python -m benchmarks.NAME [PART ...]``.

It measures the parts that are named, or all of them, and writes the tables of all results that the
folder has. ``report`` measures nothing. One task that fails does not stop the others; its reason is
shown, and the exit code is 1. Give the machine to it alone.
"""

import argparse
import asyncio
import logging
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.machine import Stolen, describe
from benchmarks.harness.page import Pictures, fill
from benchmarks.harness.results import Results

PAGES: Final = Path("benchmarks/results")
_REPORT: Final = "report"
_BUSY: Final = 0.5
"""A machine with a higher load for each core is busy with something else."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to measure.

    Attributes:
        title: for the person who waits.
        part: whose it is.
        replaces: the patterns of earlier runs ``PART.ARM.NAME`` that it replaces.
        runs: measures, and yields each run with its ``PART.ARM.NAME``.
    """

    title: str
    part: str
    replaces: Sequence[str]
    runs: Callable[[], AsyncIterator[tuple[str, Any]]]


def task(part: str, arm: str, count: int, measure: Callable[[], Awaitable[Any]]) -> Task:
    """The task of one arm in one round."""

    async def runs() -> AsyncIterator[tuple[str, Any]]:
        yield f"{part}.{arm}.{count}", await measure()

    return Task(f"{part}, {arm}, round {count + 1}", part, [earlier(part, arm, count)], runs)


def earlier(part: str, arm: str, count: int) -> str:
    """The pattern of the runs that a round replaces: the first one all of that arm."""
    return f"{part}.{arm}.{count or '*'}"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark.

    Attributes:
        name: of its package and its page; with "-" for "_" of its make target.
        description: one sentence.
        parts: what can be measured alone.
        arms: what is compared in each part.
        tasks: what is to be measured, part by part, of ``parts``, ``arms``, ``rounds``, ``seconds``
            and ``options``.
        section: a part's tables and pictures; "" where it has no results.
        rounds: how often each arm is measured by default.
        options: adds options of its own.
        compared: the options that all results of a folder must have in common.
        machine: lines about the machine besides the usual ones.
        holds: whether the results show what the benchmark is to show.
    """

    name: str
    description: str
    parts: Sequence[str]
    arms: Sequence[str]
    tasks: Callable[[argparse.Namespace], Iterable[Task]]
    section: Callable[[str, Results, Pictures], str]
    rounds: int = 1
    options: Callable[[argparse.ArgumentParser], object] = lambda _: None
    compared: Sequence[str] = ("seconds",)
    machine: Callable[[], Sequence[str]] = tuple
    holds: Callable[[Results], bool] = lambda _: True

    @property
    def key(self) -> str:
        """The name as in file names and make targets."""
        return self.name.replace("_", "-")


def main(benchmark: Benchmark, words: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; the exit code."""
    parser = _parser(benchmark)
    asked = parser.parse_args(words)
    if unknown := set(asked.parts) - {*benchmark.parts, _REPORT}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    measures = asked.parts != [_REPORT]
    asked.parts = [part for part in asked.parts if part != _REPORT] or benchmark.parts
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # It logs every login.
    results = Results(asked.results)
    tasks = list(benchmark.tasks(asked)) if measures else []
    settings = {name: getattr(asked, name) for name in benchmark.compared}
    if tasks:
        patterns = (pattern for each in tasks for pattern in each.replaces)
        replaced = set().union(*map(results.stems, patterns))
        others = results.stems() - replaced
        if others and results.settings != settings:
            parser.error(f"{results.folder} has results of other settings: name another folder")
        results.settings = settings
    failed = sum(
        _measure(benchmark, part, list(group), results)
        for part, group in groupby(tasks, lambda each: each.part)
    )
    tables = report(benchmark, results, asked.out)
    print(tables)
    return 1 if failed or not benchmark.holds(results) else 0


def report(benchmark: Benchmark, results: Results, page: Path) -> str:
    """Write the tables of all results into the page, and its pictures beside it; the tables."""
    pictures, tables = Pictures(page), []
    sections = {part: benchmark.section(part, results, pictures) for part in benchmark.parts}
    measured = [(text, results.machine(part)) for part, text in sections.items() if text]
    # Parts that were measured on one machine have its description once, after the last of them.
    for machine, group in groupby(measured, lambda each: each[1]):
        tables += [text for text, _ in group]
        if machine:
            tables.append("Measured on:\n\n" + "".join(f"- {line}\n" for line in machine))
    text = "\n".join([*tables, ""])
    fill(page, f"bench-{benchmark.key}", text)
    return text


def _parser(benchmark: Benchmark) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{benchmark.name}", description=benchmark.description
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(benchmark.parts)}, {_REPORT}"
    )
    arms = list(benchmark.arms)
    parser.add_argument("--arms", nargs="+", choices=arms, default=arms)
    parser.add_argument("--rounds", type=int, default=benchmark.rounds, help="of each arm")
    parser.add_argument("--seconds", type=float, help="how long is measured, for a try")
    cache = Path(".cache") / benchmark.key
    parser.add_argument("--results", type=Path, default=cache, metavar="FOLDER")
    page = PAGES / f"{benchmark.key}.md"
    parser.add_argument("--out", type=Path, default=page, metavar="FILE", help="the page")
    benchmark.options(parser)
    return parser


def _measure(benchmark: Benchmark, part: str, tasks: Sequence[Task], results: Results) -> int:
    """Measure a part; how many of its tasks failed."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > _BUSY * cores:
        _say(f"the machine is busy (load {load:.1f} on {cores} cores): the figures will show it\n")
    machine, stolen = [f"measured on {datetime.now(UTC).date()}", *describe()], Stolen()
    failed = sum(not asyncio.run(_try(each, results)) for each in tasks)
    results.set_machine(part, [*machine, *benchmark.machine(), str(stolen)])
    return failed


async def _try(task: Task, results: Results) -> bool:
    began = time.monotonic()
    _say(f"{task.title} ...")
    for pattern in task.replaces:
        results.clear(pattern)
    failures = []
    try:
        async for stem, run in task.runs():
            if isinstance(run, Exception):
                failures.append(f"{stem} was not measured: {run}\n")
            else:
                results.save(stem, run)
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        failures.append(traceback.format_exc())
    _say(f" {'failed after ' if failures else ''}{time.monotonic() - began:.0f} s\n")
    _say("".join(failures))
    return not failures


def _say(words: str) -> None:
    print(words, end="", flush=True, file=sys.stderr)
