"""The figures of a course; nothing here measures.

Example: a volume with a limit of 300 MB that had 420 MB available at least in the last ten minutes
was 120 MB above it; a factor that went 0.3, 0.25, 0.25, 0.3 turned once.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from benchmarks.slope.course import Course

REST_S: Final = 600.0
"""For so long, up to the end, the volume is to be at rest."""
RATE_S: Final = 300.0
"""Throughput is that of so many seconds up to the end."""
WINDOW_S: Final = 10.0
"""In windows of so many seconds: more than two of the longest pauses."""
_STEP_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """One course's.

    Attributes:
        rest_s: the time that is called the last ten minutes; shorter in a shorter course.
        least_above: the fewest bytes above the limit in that time; 0 and less: at the limit.
        violations: how often the volume came to its limit in the whole course.
        before: bytes/s acknowledged in the last 30 s before the soft limit.
        mean: bytes/s in the last five minutes.
        lowest: of the windows in it.
        highest: likewise.
        factors: the lowest and the highest in the last ten minutes.
        turns: how often the factor changed its direction in them.
        longest_throttle_s: the longest throttle time of a client.
        failed_records: records that clients gave up.
    """

    rest_s: float
    least_above: float
    violations: int
    before: float
    mean: float
    lowest: float
    highest: float
    factors: tuple[float, float]
    turns: int
    longest_throttle_s: float
    failed_records: int


def figures(course: Course) -> Figures:
    """All of them, of a course that came to the soft limit.

    Raises:
        ValueError: it never did.
    """
    crossed = course.crossed_at
    if crossed is None:
        raise ValueError(f"{course.arm}: the volume never was at the soft limit")
    ended = max(at for at, _ in course.acknowledged)
    rest = max(crossed, ended - REST_S)
    rated = max(crossed, ended - RATE_S)
    windows = course.acknowledged.window(rated, ended).rates(_STEP_S, WINDOW_S)
    rates = [rate for _, rate in windows] or [course.acknowledged.rate(rated, ended)]
    factors = [value for _, value in course.factor.window(rest, ended)]
    available = course.available.window(rest, ended)
    return Figures(
        rest_s=ended - rest,
        least_above=min(value for _, value in available) - course.limit_bytes,
        violations=violations(course),
        before=course.acknowledged.rate(crossed - 30.0, crossed),
        mean=course.acknowledged.rate(rated, ended),
        lowest=min(rates),
        highest=max(rates),
        factors=(min(factors), max(factors)),
        turns=turns(factors),
        longest_throttle_s=course.longest_throttle_s,
        failed_records=course.failed_records,
    )


def violations(course: Course) -> int:
    """How often the volume came to its limit, by its own bytes or by the sidecar's word.

    A dip between two samples is in the factor, which is 0.0 at the limit and nowhere else.
    """
    factors = dict(course.factor)
    is_full = [
        available <= course.limit_bytes or factors[at] == 0.0 for at, available in course.available
    ]
    return sum(later and not earlier for earlier, later in pairwise([False, *is_full]))


def turns(factors: list[float]) -> int:
    """How often it changed its direction; where it stands still it has none."""
    rises = [later > earlier for earlier, later in pairwise(factors) if later != earlier]
    return sum(later != earlier for earlier, later in pairwise(rises))
