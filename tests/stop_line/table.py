"""The table at the end: what each arm came to, beside the other, and what was claimed.

Example: the row ``| below the stop line, at most | 2.1 MB, where 15.5 MB may be | 119.4 MB |``.
"""

from collections.abc import Sequence
from typing import Final

from tests.chaos.schedule import clock
from tests.chaos.table import table
from tests.stop_line.course import REFUSALS, Arm, Course, judge, stops

_NAMES: Final = {
    Arm.AUTHORIZER: "with the authorizer",
    Arm.CALLBACK: "the callback alone",
}
_MB: Final = 1e6


def report(courses: Sequence[Course]) -> str:
    """All of it, as text."""
    claims = [
        [_NAMES[course.arm], claim.text, "yes" if claim.holds else "NO", claim.detail]
        for course in courses
        for claim in judge(course)
    ]
    parts = [
        _head(courses[0]),
        table(["what", *(_NAMES[each.arm] for each in courses)], _rows(courses)),
        table(["arm", "claim", "held", "seen"], claims),
    ]
    return "\n\n".join(parts) + "\n"


def _head(course: Course) -> str:
    return (
        f"{course.bound.bytes_per_s / _MB:.1f} MB/s; producers are throttled from "
        f"{course.limit_bytes / _MB:.0f} MB available on, and nothing is admitted from "
        f"{course.line_bytes / _MB:.0f} MB on\n"
        f"below that, at most: {course.bound}"
    )


def _rows(courses: Sequence[Course]) -> list[list[str]]:
    rows = [
        ["lasted", *(_lasted(each) for each in courses)],
        ["lowest available", *(_least(each) for each in courses)],
        ["below the stop line, at most", *(_below(each) for each in courses)],
        ["reached the stop line", *(f"{len(stops(each))} times" for each in courses)],
        ["at or below it", *(_under(each) for each in courses)],
    ]
    for attribute, why in REFUSALS.items():
        counts = (f"{each.refused[attribute]:,}" for each in courses)
        rows.append([f"requests refused: {why}", *counts])
    rows.append(["longest pause", *(_pause(each) for each in courses)])
    names = dict.fromkeys(each.name for course in courses for each in course.sent)
    return rows + [
        [f"{name}: acknowledged, given up", *(_sent(each, name) for each in courses)]
        for name in names
    ]


def _lasted(course: Course) -> str:
    words = f"{clock(course.ran_s)} of {clock(course.duration_s)} minutes"
    if course.full is not None:
        words += f"; full at {clock(course.full.at_s)}"
    if course.ended is not None:
        words += f"; the broker ended at {clock(course.ended.at_s)}"
    return words


def _least(course: Course) -> str:
    return "" if course.least is None else _mb(course.least)


def _below(course: Course) -> str:
    allowed = f", where {_mb(course.bound.bytes)} may be" if course.arm is Arm.AUTHORIZER else ""
    return _mb(course.below_bytes) + allowed


def _under(course: Course) -> str:
    lasted = [each.end_s - each.begin_s for each in stops(course)]
    return f"{sum(lasted):.0f} s, at once {max(lasted):.0f} s at most" if lasted else "never"


def _pause(course: Course) -> str:
    longest = max((each.longest_pause_s for each in course.figures), default=0.0)
    emergency = next((each.at_s for each in course.figures if each.emergency), None)
    more = "" if emergency is None else f", longer ones allowed from {clock(emergency)} on"
    return f"{longest:.1f} s{more}"


def _sent(course: Course, name: str) -> str:
    mine = [each for each in course.sent if each.name == name]
    landed = sum(each.acknowledged_bytes for each in mine)
    return f"{_mb(landed)}, {sum(each.failed for each in mine):,}"


def _mb(count: float) -> str:
    return f"{count / _MB:.1f} MB"
