"""``python -m benchmarks.enforcement [PART ...]``: ours and Strimzi's plugin side by side.

All parts take about two hours and 16 GB of memory for volumes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from benchmarks.enforcement import costs, tenants
from benchmarks.enforcement.figures import compare, comparison, figures, promise, targets
from benchmarks.enforcement.scene import SCENARIOS, Run, Scenario, happen
from benchmarks.enforcement.tenants import Tenants
from benchmarks.harness import program
from benchmarks.harness.page import Pictures
from benchmarks.harness.program import Benchmark, Task, task
from benchmarks.harness.results import Results
from benchmarks.harness.tables import notes
from benchmarks.harness.throttles import NOTHING, OURS, PEER, SHORTEST, ClientQuotas
from sidecar.cli.chart import Line, Mark, Panel, Point, svg

ARMS: Final = {each.key: each for each in (PEER, OURS)}
_NAMES: Final = {key: each.name for key, each in ARMS.items()}
_QUOTAS: Final = ClientQuotas(tenants.FLOOR, reads_log=True)
_OF_TENANTS: Final = {**ARMS, _QUOTAS.key: _QUOTAS}
"""The arms of the two parts with tenants."""
_SCOPE: Final = "scope"
_BUDGET: Final = "budget"
_TITLES: Final = {
    _SCOPE: "Two tenants of one broker",
    _BUDGET: "Two tenants, one of them past its storage budget",
}
_OVERHEAD: Final = "overhead"
_POLLS: Final = "polls"


def section(part: str, results: Results, pictures: Pictures) -> str:
    """A part's table, and its picture if it has one."""
    if part in SCENARIOS:
        return _scenario(part, results, pictures)
    if part in _TITLES:
        return _tenants(part, results, pictures)
    if part == _OVERHEAD:
        found = results.load(dict, f"{_OVERHEAD}.*.*")
        rows = [row for rates in found for row in costs.overhead_rows(rates)]
    else:
        of = {arm: results.load(costs.Cost, f"{part}.{arm}.*") for arm in (NOTHING.key, *ARMS)}
        last = {arm: each[-1] for arm, each in of.items() if each}
        rows = list(costs.poll_rows(last)) if NOTHING.key in last else []
    title = "What it costs" if part == _OVERHEAD else "What a poll costs"
    return f"## {title}\n\n{comparison(rows)}" if rows else ""


def _scenario(part: str, results: Results, pictures: Pictures) -> str:
    runs = results.by_arm(Run, part, ARMS)
    if not runs:
        return ""
    scenario = SCENARIOS[part]
    peer, ours = (list(map(figures, runs.get(arm, ()))) for arm in ARMS)
    promises = [each for run in runs.get(OURS.key, ()) if (each := promise(run)) is not None]
    # While a volume is beyond its limit the sidecar polls at its interval.
    poll_s = 1.0 if scenario.polls is SHORTEST else 60.0
    rows = compare(targets(peer, ours, promises, poll_s), peer, ours)
    # The first rounds, which were watched to their end.
    firsts = {_NAMES[arm]: of[0] for arm, of in runs.items()}
    image = pictures.add(part, scenario.title, picture(scenario.title, firsts))
    noted = notes({_NAMES[arm]: of for arm, of in runs.items()})
    return f"## {scenario.title}\n\n{comparison(rows)}{noted}\n{image}"


def _tenants(part: str, results: Results, pictures: Pictures) -> str:
    runs = results.by_arm(Tenants, part, _OF_TENANTS)
    if not runs:
        return ""
    title = _TITLES[part]
    found = {key: list(map(tenants.figures, runs.get(key, ()))) for key in _OF_TENANTS}
    goals = tenants.targets([*found[OURS.key], *found[_QUOTAS.key]])
    names = [each.name for each in _OF_TENANTS.values()]
    compared = comparison(compare(goals, *found.values()), names)
    # Whole names, with their clients, are wider than the picture.
    short = {PEER.key: "plugin", OURS.key: "ours", _QUOTAS.key: "quotas"}
    image = tenants.picture(title, {short[arm]: of[0] for arm, of in runs.items()})
    shown = pictures.add(part, f"{title}: web has its throughput while etl is throttled", image)
    return f"## {title}\n\n{compared}\n{shown}"


def picture(title: str, runs: dict[str, Run]) -> str:
    """Throughput and free space over time as SVG; time is counted from the crossing of the limit.

    Args:
        title: above it.
        runs: arm's name -> a run of one scenario, whose limit was crossed.
    """
    rates, spaces, moments = [], [], [Mark("limit crossed", 0.0)]
    before = 0.0
    for style, (name, run) in enumerate(runs.items()):
        crossed = run.crossed_at or 0.0
        begin = crossed - 10.0
        rate = run.acknowledged.rates(0.25, 0.5)
        rates.append(Line(name, _since(rate, begin, crossed), style))
        spaces.append(Line(name, _since(_thinned(list(run.available)), begin, crossed), style))
        before = max(before, run.acknowledged.rate(begin, crossed) / 1e6)
        if run.freed_at is not None:
            moments.append(Mark(f"freed ({name})", run.freed_at - crossed))
    limit = Mark("limit", next(iter(runs.values())).limit_bytes / 1e6)
    return svg(
        title,
        "seconds from the crossing of the limit",
        [
            # Lines are cut at so many times the earlier throughput, to show what is below.
            Panel("throughput, MB/s", rates, _apart(moments), top=2.5 * before),
            Panel("free on the fullest volume, MB", spaces, heights=[limit]),
        ],
    )


def _since(points: Sequence[Point], begin: float, origin: float) -> list[Point]:
    return [(at - origin, value / 1e6) for at, value in points if at >= begin]


def _thinned(points: Sequence[Point]) -> list[Point]:
    """At most ten a second, and at most two thousand."""
    found: list[Point] = []
    step_s = max(0.1, (points[-1][0] - points[0][0]) / 2000) if points else 0.0
    for at, value in points:
        if not found or at - found[-1][0] >= step_s:
            found.append((at, value))
    return found


def _apart(moments: Sequence[Mark]) -> list[Mark]:
    """Moments of several runs that fall together are one."""
    found: list[Mark] = []
    for mark in sorted(moments, key=lambda mark: mark.at):
        if found and mark.at - found[-1].at < 1.0:
            found[-1] = Mark(found[-1].name.partition(" (")[0], found[-1].at)
        else:
            found.append(mark)
    return found


def _tasks(asked: argparse.Namespace) -> Iterator[Task]:
    arms, seconds = [ARMS[arm] for arm in asked.arms if arm in ARMS], asked.seconds
    for part in asked.parts:
        if part in SCENARIOS:
            yield from _rounds(asked, SCENARIOS[part])
        elif part in _TITLES:
            budget = (tenants.BUDGET_BYTES,) if part == _BUDGET else ()
            for key in asked.arms:
                default_s = tenants.QUOTAS_S if key == _QUOTAS.key else tenants.THROTTLED_S
                measure = partial(tenants.measure, _OF_TENANTS[key], seconds or default_s, *budget)
                yield task(part, key, 0, measure)
        elif part == _OVERHEAD:
            yield task(part, "all", 0, partial(costs.overhead, (NOTHING, *arms), seconds or 5.0))
        else:
            for each in (NOTHING, *arms):
                yield task(part, each.key, 0, partial(costs.polls, each, seconds or 60.0))


def _rounds(asked: argparse.Namespace, scenario: Scenario) -> Iterator[Task]:
    if scenario.is_long and asked.seconds is not None:
        scenario = replace(scenario, throttled_s=asked.seconds)
    rounds = min(asked.rounds, scenario.rounds or asked.rounds)
    for count in range(rounds):
        for key in filter(ARMS.get, asked.arms):
            # That the plugin takes minutes or for ever needs no second round.
            back_s = 0.0 if count and key == PEER.key else scenario.back_timeout_s
            measure = partial(happen, scenario, ARMS[key], count / rounds, back_s)
            yield task(scenario.key, key, count, measure)


BENCHMARK: Final = Benchmark(
    "enforcement",
    "Ours and Strimzi's plugin side by side.",
    parts=(*SCENARIOS, *_TITLES, _OVERHEAD, _POLLS),
    arms=tuple(_OF_TENANTS),
    tasks=_tasks,
    section=section,
    rounds=3,
)

if __name__ == "__main__":
    sys.exit(program.main(BENCHMARK))
