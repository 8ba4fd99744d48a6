"""``python -m benchmarks.producer_ids [BROKERS ...]``: clusters of 1 and of 3 brokers, 6 minutes.

Rates are of the time after the throttle has settled; the time before is in the picture. Example: 9
ids allocated from 10.0 to 28.0 s are 0.5 a second; brokers that forget an id after a day come to
remember 43,200 of them at that rate.
"""

import argparse
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, Final

from benchmarks.harness import program
from benchmarks.harness.page import Pictures
from benchmarks.harness.program import Benchmark, Task, earlier
from benchmarks.harness.results import Results
from benchmarks.harness.tables import Figures, Value, by_arm, number, values, whole
from benchmarks.producer_ids.scene import ARMS, CLIENTS, MEASURE_S, RATE, WINDOWS, Run, happen
from kafka_lab.series import Series
from sidecar.cli.chart import Line, Panel, Point, svg

EXPIRATION_S: Final = 86_400.0
"""Kafka's default of producer.id.expiration.ms, seconds."""
_NAMES: Final = {each.key: each.name for each in ARMS}
_USED: Final = "ids that were used and are retained, a second"
_MB: Final = 1e6


def figures(run: Run) -> Figures:
    """The figures of a run."""
    begin, end = run.settled_at, run.ended_at
    used, neighbour = run.counted.rate(begin, end), run.neighbour
    slowest = min(
        neighbour.rate(begin + each, begin + each + 1) for each in range(int(end - begin))
    )
    return {
        "throttled by every sidecar, after the first id too many": Value(_throttled_s(run), "s"),
        "ids that brokers allocated, a second": Value(run.allocated.rate(begin, end)),
        _USED: Value(used),
        "retained after a day of it (computed)": Value(used * EXPIRATION_S, text=whole),
        "longest throttle time with an id": _ms(run.throttle_ms.get("INIT_PRODUCER_ID", 0)),
        "longest throttle time with a batch": _ms(run.throttle_ms.get("PRODUCE", 0)),
        "the neighbour": Value(neighbour.rate(begin, end) / _MB, "MB/s"),
        "the neighbour's slowest second": Value(slowest / _MB, "MB/s"),
        "longest throttle time of the neighbour": _ms(run.neighbour_throttled_ms),
    }


def _ms(value: float) -> Value:
    return Value(value, "ms", whole)


def _throttled_s(run: Run) -> float | None:
    over_at = next((at for at, count in run.allocated if count > RATE * WINDOWS), None)
    if run.throttled_at is None or over_at is None:
        return None
    # Both clocks are read some milliseconds late; throttled before is throttled at once.
    return max(0.0, run.throttled_at - over_at)


def section(part: str, results: Results, pictures: Pictures) -> str:
    """The table of a cluster, what it promises, and the picture."""
    runs = results.by_arm(Run, part, _NAMES)
    if not runs:
        return ""
    title = "1 broker" if part == "1" else f"{part} brokers"
    found = {_NAMES[arm]: list(map(figures, of)) for arm, of in runs.items()}
    image = pictures.add(part, title, picture(title, [of[0] for of in runs.values()]))
    return f"## {title}\n\n{by_arm('figure', found)}\n{_promise(found)}{image}"


def _promise(found: Mapping[str, Sequence[Figures]]) -> str:
    ids = {name: median(values(rounds, _USED)) for name, rounds in found.items()}
    free = ids.pop(_NAMES["none"], None)
    if free is None or not ids:
        return ""
    lines = []
    for name, rate in ids.items():
        each = f"one in {number(CLIENTS / rate)} s" if rate > 0 else "none"
        lines.append(
            f"- {name}: {number(rate)} ids a second, {number(free)} without a throttle; "
            f"of each client {each}\n"
        )
    return "".join([*lines, "\n"])


def picture(title: str, runs: Sequence[Run]) -> str:
    """All arms as an SVG document; time is counted from the clients' beginning."""
    used, remembered, neighbour = [], [], []
    for run in runs:
        style, name = list(_NAMES).index(run.arm), _NAMES[run.arm]
        before = run.counted.at(run.began_at)
        since = [(at, count - before) for at, count in run.counted]
        mb = [(at, value / _MB) for at, value in _rates(run.neighbour)]
        used.append(Line(name, _from(run, _rates(run.counted)), style))
        remembered.append(Line(name, _from(run, since), style))
        neighbour.append(Line(name, _from(run, mb), style))
    panels = [
        Panel("new ids used, a second", used),
        Panel("ids that the brokers remember", remembered),
        Panel("neighbour, MB/s", neighbour),
    ]
    return svg(title, "seconds from the clients' beginning", panels)


def _rates(series: Series) -> list[Point]:
    return series.rates(0.5, 3.0)


def _from(run: Run, points: Sequence[Point]) -> list[Point]:
    end = run.ended_at - run.began_at
    found = ((at - run.began_at, value) for at, value in points)
    return [(at, value) for at, value in found if 0.0 <= at <= end]


def _tasks(asked: argparse.Namespace) -> Iterator[Task]:
    async def runs(brokers: str, count: int) -> AsyncIterator[tuple[str, Any]]:
        arms = [each for each in ARMS if each.key in asked.arms]
        async for run in happen(int(brokers), arms, asked.seconds or MEASURE_S):
            yield f"{brokers}.{run.arm}.{count}", run

    for brokers in asked.parts:
        for count in range(asked.rounds):
            title = f"brokers: {brokers}, round {count + 1}"
            replaces = [earlier(brokers, arm, count) for arm in asked.arms]
            yield Task(title, brokers, replaces, partial(runs, brokers, count))


BENCHMARK: Final = Benchmark(
    "producer_ids",
    "A user who opens producer ids in a loop, throttled and not.",
    parts=("1", "3"),
    arms=tuple(_NAMES),
    tasks=_tasks,
    section=section,
)

if __name__ == "__main__":
    sys.exit(program.main(BENCHMARK))
