"""Throughput and free space over time, the plugin and ours in one picture."""

from collections.abc import Sequence
from typing import Final

from benchmarks.enforcement.course import Course
from sidecar.cli.chart import Line, Mark, Panel, Point, svg

_STEP_S: Final = 0.25
_WINDOW_S: Final = 0.5
_EARLIER_S: Final = 10.0
_TOP: Final = 2.5
"""Lines are cut at so many times the earlier throughput, for the sake of what is below."""


def picture(title: str, courses: Sequence[Course], names: dict[str, str]) -> str:
    """An SVG document; time is counted from the crossing of the limit.

    Args:
        title: above it.
        courses: of one scenario, whose limit was crossed.
        names: contender's key -> name.
    """
    rates, spaces, moments = [], [], [Mark("limit crossed", 0.0)]
    before = 0.0
    for style, course in enumerate(courses):
        crossed = course.crossed_at or 0.0
        name = names[course.contender]
        begin = crossed - _EARLIER_S
        rate = _shifted(course.acknowledged.rates(_STEP_S, _WINDOW_S), begin, crossed)
        rates.append(Line(name, [(at, value / 1e6) for at, value in rate], style))
        before = max(before, course.acknowledged.rate(begin, crossed) / 1e6)
        space = _shifted(_thinned(list(course.available)), begin, crossed)
        spaces.append(Line(name, [(at, value / 1e6) for at, value in space], style))
        if course.freed_at is not None:
            moments.append(Mark(f"freed ({name})", course.freed_at - crossed))
    limit = Mark("limit", courses[0].limit_bytes / 1e6)
    return svg(
        title,
        "seconds from the crossing of the limit",
        [
            Panel("throughput, MB/s", rates, _apart(moments), top=_TOP * before),
            Panel("free on the fullest volume, MB", spaces, heights=[limit]),
        ],
    )


def _shifted(points: Sequence[Point], begin: float, origin: float) -> list[Point]:
    return [(at - origin, value) for at, value in points if at >= begin]


def _thinned(points: Sequence[Point]) -> list[Point]:
    """At most ten a second, and at most two thousand."""
    found: list[Point] = []
    step_s = max(0.1, (points[-1][0] - points[0][0]) / 2000) if points else 0.0
    for at, value in points:
        if not found or at - found[-1][0] >= step_s:
            found.append((at, value))
    return found


def _apart(moments: Sequence[Mark]) -> list[Mark]:
    """Moments of several courses that fall together are one."""
    found: list[Mark] = []
    for mark in sorted(moments, key=lambda mark: mark.at):
        if found and mark.at - found[-1].at < 1.0:
            found[-1] = Mark(found[-1].name.partition(" (")[0], found[-1].at)
        else:
            found.append(mark)
    return found
