"""The table and the picture of both arms.

Example: the row ``| least above the limit in the last 10 min | 96 MB | -2 MB |``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.slope.course import Course
from benchmarks.slope.figures import REST_S, WINDOW_S, Figures, figures
from sidecar.cli.chart import Line, Mark, Panel, Point, svg

TITLE: Final = "18 MB/s beside a cleaner of 4 MB/s"
_STEP_S: Final = 2.0
_EARLIER_S: Final = 60.0
_MB: Final = 1e6


def table(courses: Sequence[Course], names: Mapping[str, str]) -> str:
    """Markdown: a column for each arm, by its name."""
    found = [figures(each) for each in courses]
    minutes = f"{min(each.rest_s for each in found) / 60:.0f}"
    rows = [["what", *(names[each.arm] for each in courses)]]
    rows += [[what, *map(cell, found)] for what, cell in _cells(minutes)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def _cells(minutes: str) -> list[tuple[str, Callable[[Figures], str]]]:
    return [
        ("throughput before", lambda each: _mb(each.before) + "/s"),
        (
            f"least above the limit in the last {minutes} min",
            lambda each: _mb(each.least_above),
        ),
        ("the volume came to its limit", lambda each: f"{each.violations} times"),
        ("throughput in the last 5 min, mean", lambda each: _mb(each.mean) + "/s"),
        (
            f"lowest and highest {WINDOW_S:.0f} s of it",
            lambda each: f"{_mb(each.lowest)}/s, {_mb(each.highest)}/s",
        ),
        (
            f"the factor in the last {minutes} min",
            lambda each: f"{each.factors[0]:g} to {each.factors[1]:g}",
        ),
        ("it changed its direction", lambda each: f"{each.turns} times"),
        ("longest throttle time of a client", lambda each: f"{each.longest_throttle_s:.1f} s"),
        ("records given up", lambda each: f"{each.failed_records:,}"),
    ]


def _mb(count: float) -> str:
    return f"{count / _MB:.0f} MB" if abs(count) >= 100 * _MB else f"{count / _MB:.1f} MB"


def picture(courses: Sequence[Course], names: Mapping[str, str]) -> str:
    """An SVG document; time is counted from the soft limit on."""
    rates, spaces, factors = [], [], []
    for style, course in enumerate(courses):
        name, crossed = names[course.arm], course.crossed_at or 0.0
        rate = [(at, each / _MB) for at, each in course.acknowledged.rates(_STEP_S, WINDOW_S)]
        space = [(at, each / _MB) for at, each in course.available]
        rates.append(Line(name, _since(crossed, rate), style))
        spaces.append(Line(name, _since(crossed, space), style))
        factors.append(Line(name, _since(crossed, _stepped(list(course.factor))), style))
    first = courses[0]
    limits = [Mark("soft limit", first.soft_bytes / _MB), Mark("limit", first.limit_bytes / _MB)]
    cleaned = [Mark("what is deleted", first.cleaned_per_s / _MB)]
    begun = [Mark("the volume is at the soft limit", 0.0)]
    return svg(
        TITLE,
        "seconds from the soft limit on",
        [
            Panel(f"throughput over {WINDOW_S:.0f} s, MB/s", rates, begun, heights=cleaned),
            Panel("available on the volume, MB", spaces, heights=limits),
            # The slope on top: the other goes up and down too often to see anything below it.
            Panel("throttle factor", factors[::-1]),
        ],
    )


def _since(origin: float, points: Sequence[Point]) -> list[Point]:
    return [(at - origin, value) for at, value in points if at >= origin - _EARLIER_S]


def _stepped(points: Sequence[Point]) -> list[Point]:
    """It moves at once, not on a line from one sample to the next."""
    found: list[Point] = []
    for at, value in points:
        if found and found[-1][1] != value:
            found.append((at, found[-1][1]))
        found.append((at, value))
    return found


def holds(course: Course) -> bool:
    """Whether the volume came to rest above its limit: never at it, and for ten minutes."""
    found = figures(course)
    return found.violations == 0 and found.least_above > 0.0 and found.rest_s >= REST_S - 1.0
