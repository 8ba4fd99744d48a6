"""Others' waits over time, and how many topics the storm got, in one picture.

Example: an operation that was due 5 s after the storm began and took 2 s is the point (5, 2).
"""

from collections.abc import Mapping, Sequence

from benchmarks.mutations.course import Course, Operation
from benchmarks.mutations.figures import created_so_far
from sidecar.cli.chart import Line, Mark, Panel, Point, svg


def picture(title: str, courses: Sequence[Course], names: Mapping[str, str]) -> str:
    """An SVG document; time is counted from the storm's beginning.

    Args:
        title: above it.
        courses: one of each contender.
        names: contender's key -> name.
    """
    answers, records, topics = [], [], []
    for style, course in enumerate(courses):
        name = names[course.contender]
        of = course.operations
        answers.append(Line(name, [_point(each, each.answered, course) for each in of], style))
        records.append(Line(name, [_point(each, each.usable, course) for each in of], style))
        so_far = created_so_far(course)
        # Flat to the end of the watching, as the others' lines.
        topics.append(Line(name, [*so_far, (course.watched_until, so_far[-1][1])], style))
    moments = [
        Mark("the storm begins", 0.0),
        Mark("its time is over", max(course.storm_s for course in courses)),
    ]
    return svg(
        title,
        "seconds from the storm's beginning",
        [
            Panel("answered after, s", answers, moments),
            Panel("first record after, s", records, moments),
            Panel("the storm's topics", topics, moments),
        ],
    )


def _point(each: Operation, end: float | None, course: Course) -> Point:
    return each.due, (course.watched_until if end is None else end) - each.due
