"""The issue's figures, worked out of a course; nothing here measures.

Example: 18 MB/s are stored until the limit is crossed at 100.0 s and nothing from 100.4 s on: the
producers are throttled 0.4 s after the crossing, since from then on a second brings less than a
fifth of the earlier rate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.enforcement.contenders import LEAK_RATIO, PAUSE_MAX_S
from benchmarks.enforcement.course import Course
from kafka_lab.series import Series

THROTTLED_SHARE: Final = 0.2
"""Producers are throttled when a second brings at most this share of the earlier rate."""

BACK_SHARE: Final = 0.9
"""They are back when two seconds bring at least this share of it."""

BEFORE_S: Final = 8.0
"""The earlier rate is that of so many seconds before the crossing."""

_THROTTLED_WINDOW_S: Final = 1.0
_BACK_WINDOW_S: Final = 2.0
_FLOOD_WINDOW_S: Final = 1.0
_FLOOD_S: Final = 10.0
_STEP_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Figures:
    """One course's.

    Attributes:
        before: acknowledged bytes/s before the crossing.
        stopped_s: from the crossing to producers throttled; None: never.
        past_at_throttled: bytes written past the limit on the fullest volume until then.
        past_at_freed: likewise until space was freed, with what was let through.
        throttled_s: how long after the crossing that was.
        longest_throttle_s: the longest throttle time of a client.
        let_through: bytes/s appended while throttled, all brokers together; None: not measured.
        promise: what max(budget, N x r / pause.max) comes to for them, bytes/s.
        back_s: from space freed to 90 % of the earlier rate; None: not seen.
        watched_s: how long after that was watched.
        flood: the most in one of the 10 s from when traffic was back, against before.
        failed_records: records that clients gave up.
    """

    before: float
    stopped_s: float | None
    past_at_throttled: float | None
    past_at_freed: float | None
    throttled_s: float | None
    longest_throttle_s: float
    let_through: float | None
    promise: float | None
    back_s: float | None
    watched_s: float | None
    flood: float | None
    failed_records: int


def figures(course: Course) -> Figures:
    """All of them, of a course whose limit was crossed.

    Raises:
        ValueError: it never was.
    """
    crossed, freed = course.crossed_at, course.freed_at
    if crossed is None:
        raise ValueError(f"{course.scenario}, {course.contender}: the limit was never crossed")
    throttled, back = throttled_at(course), back_at(course)
    before = course.acknowledged.rate(crossed - BEFORE_S, crossed)
    ended = last(course.acknowledged)
    return Figures(
        before=before,
        stopped_s=None if throttled is None else throttled - crossed,
        past_at_throttled=None if throttled is None else _past(course, throttled),
        past_at_freed=None if freed is None else _past(course, freed),
        throttled_s=None if freed is None else freed - crossed,
        longest_throttle_s=course.longest_throttle_s,
        let_through=_let_through(course),
        promise=_promise(course, before),
        back_s=None if back is None or freed is None else back - freed,
        watched_s=None if freed is None else ended - freed,
        flood=None if back is None else _flood(course.acknowledged, back, ended) / before,
        failed_records=course.failed_records,
    )


def throttled_at(course: Course) -> float | None:
    """The first moment whose next second has a fifth of the earlier rate at most; None: not yet.

    And so has the next fifth of a second, or a second could begin at full speed. Measured where it
    counts: in bytes stored, not in acknowledgements.
    """
    if course.crossed_at is None:
        return None
    stored = course.stored
    most = THROTTLED_SHARE * stored.rate(course.crossed_at - BEFORE_S, course.crossed_at)
    begin = course.crossed_at
    while True:
        at = _first(stored, begin, _THROTTLED_WINDOW_S, lambda rate: rate <= most)
        if at is None or stored.rate(at, at + _THROTTLED_WINDOW_S / 5) <= most:
            return at
        begin = at + _STEP_S


def back_at(course: Course) -> float | None:
    """The first moment after the space was freed whose next 2 s have 90 % of the earlier rate."""
    if course.crossed_at is None or course.freed_at is None:
        return None
    acknowledged, crossed = course.acknowledged, course.crossed_at
    least = BACK_SHARE * acknowledged.rate(crossed - BEFORE_S, crossed)
    return _first(acknowledged, course.freed_at, _BACK_WINDOW_S, lambda rate: rate >= least)


def last(series: Series) -> float:
    """The time of the last sample.

    Raises:
        ValueError: there are none.
    """
    return max(at for at, _ in series)


def _first(
    series: Series, begin: float, window_s: float, is_met: Callable[[float], bool]
) -> float | None:
    """The first moment from which the rate of a whole window, that is over, is such a one."""
    steps = int((last(series) - begin - window_s) / _STEP_S + 1e-9)
    for step in range(steps + 1):
        at = begin + step * _STEP_S
        if is_met(series.rate(at, at + window_s)):
            return at
    return None


def _past(course: Course, at: float) -> float:
    return course.limit_bytes - course.available.at(at)


def _let_through(course: Course) -> float | None:
    if not course.leaks:
        return None
    return sum(leak.bytes / leak.seconds for leak in course.leaks)


def _flood(acknowledged: Series, back: float, ended: float) -> float:
    """The highest rate of a second within 10 s."""
    end = min(back + _FLOOD_S, ended)
    rates = acknowledged.window(back, end).rates(_STEP_S, _FLOOD_WINDOW_S)
    return max((rate for _, rate in rates), default=acknowledged.rate(back, end))


def _promise(course: Course, before: float) -> float | None:
    """The sum over brokers of max(leak budget, connections x bytes of a request / pause.max).

    And of one request of each connection, by which a count that begins at any moment is off.
    """
    if not course.leaks:
        return None
    budget = LEAK_RATIO * before / len(course.leaks)
    total = 0.0
    for leak in course.leaks:
        once = course.connections * leak.bytes / max(leak.requests, 1.0)
        total += max(budget, once / PAUSE_MAX_S) + once / leak.seconds
    return total
