"""The figures of a course.

Rates are of the time in which the throttle has settled; what passed before that is in the
picture. Example: 9 ids allocated from 10.0 to 28.0 s are 0.5 a second, and at that rate brokers
that forget an id after a day come to remember 43,200 of them.
"""

from dataclasses import dataclass
from typing import Final

from benchmarks.producer_ids.course import Course
from benchmarks.producer_ids.variants import RATE, WINDOWS

EXPIRATION_S: Final = 86_400.0
"""Kafka's default of producer.id.expiration.ms, seconds."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is reported of a course.

    Attributes:
        stopped_s: from the first id too many until every sidecar throttled the user; None: never.
        allocated: ids that brokers allocated, a second.
        produced: ids that began to be remembered, a second: they were used.
        a_day: how many of them brokers would come to remember at that rate.
        init_ms: the longest throttle time in an answer with an id.
        produce_ms: the longest in an answer to a batch.
        neighbour: bytes a second.
        neighbour_least: in the slowest second.
        neighbour_ms: the longest throttle time of the neighbour.
    """

    stopped_s: float | None
    allocated: float
    produced: float
    a_day: float
    init_ms: int
    produce_ms: int
    neighbour: float
    neighbour_least: float
    neighbour_ms: int


def figures(course: Course) -> Figures:
    """All of them."""
    begin, end = course.settled_at, course.ended_at
    produced = course.counted.rate(begin, end)
    seconds = range(int(end - begin))
    return Figures(
        stopped_s=_throttled_s(course),
        allocated=course.allocated.rate(begin, end),
        produced=produced,
        a_day=produced * EXPIRATION_S,
        init_ms=course.throttle_ms.get("INIT_PRODUCER_ID", 0),
        produce_ms=course.throttle_ms.get("PRODUCE", 0),
        neighbour=course.neighbour.rate(begin, end),
        neighbour_least=min(
            course.neighbour.rate(begin + each, begin + each + 1) for each in seconds
        ),
        neighbour_ms=course.neighbour_throttled_ms,
    )


def _throttled_s(course: Course) -> float | None:
    over_at = next((at for at, count in course.allocated if count > RATE * WINDOWS), None)
    if course.throttled_at is None or over_at is None:
        return None
    # Both clocks are read some milliseconds late; throttled before is throttled at once.
    return max(0.0, course.throttled_at - over_at)
