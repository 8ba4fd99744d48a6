"""All throttles in one picture: ids that begin to be used, ids retained, the neighbour."""

from collections.abc import Sequence
from typing import Final

from benchmarks.producer_ids.course import Course
from benchmarks.producer_ids.variants import VARIANTS
from kafka_lab.series import Series
from sidecar.cli.chart import Line, Panel, Point, svg

_STEP_S: Final = 0.5
_WINDOW_S: Final = 3.0
_STYLES: Final = {each.key: (style, each.name) for style, each in enumerate(VARIANTS)}


def picture(title: str, courses: Sequence[Course]) -> str:
    """An SVG document; time is counted from the clients' beginning.

    Args:
        title: above it.
        courses: one for each variant, on clusters alike.
    """
    used, remembered, neighbour = [], [], []
    for course in courses:
        style, name = _STYLES[course.variant]
        before = course.counted.at(course.began_at)
        used.append(Line(name, _from(course, _rates(course.counted)), style))
        since = [(at, count - before) for at, count in course.counted]
        remembered.append(Line(name, _from(course, since), style))
        mb = [(at, value / 1e6) for at, value in _rates(course.neighbour)]
        neighbour.append(Line(name, _from(course, mb), style))
    return svg(
        title,
        "seconds from the clients' beginning",
        [
            Panel("new ids used, a second", used),
            Panel("ids that the brokers remember", remembered),
            Panel("neighbour, MB/s", neighbour),
        ],
    )


def _rates(series: Series) -> list[Point]:
    return series.rates(_STEP_S, _WINDOW_S)


def _from(course: Course, points: Sequence[Point]) -> list[Point]:
    end = course.ended_at - course.began_at
    found = ((at - course.began_at, value) for at, value in points)
    return [(at, value) for at, value in found if 0.0 <= at <= end]
