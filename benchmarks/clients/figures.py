"""The figures of a client's run, worked out of its course; nothing here measures.

Example: 2 MB/s land until the throttle at 20.0 s, then one record of 10 kB in each second: that is
10 kB/s, least and most, from 21.0 s on. What landed in the first second is the callback's time to
hear of it, and what was under way.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import Final

from benchmarks.clients.course import Course

RECORD_BYTES: Final = 10_000
BEFORE_S: Final = 8.0
"""The earlier rate is that of so many seconds before the throttle."""
SETTLE_S: Final = 1.0
"""From so long after the beginning of the throttle on is counted what lands in it."""
SLOT_S: Final = 10.0
BACK_SHARE: Final = 0.9
BACK_S: Final = 2.0
"""A client is back when so many seconds bring that share of the earlier rate."""
MINUTE_S: Final = 60.0
PEAK_S: Final = 10.0
_STEP_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of which nothing is in the log.

    Attributes:
        records: how many.
        acknowledged: how many of them the client called written.
        first_s: when the client first reported on one of them, seconds after the throttle began.
    """

    records: int
    acknowledged: int
    first_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One run's.

    Attributes:
        before: bytes/s landed before the throttle.
        least: bytes/s landed in the 10 s of the throttle with the least.
        most: likewise, with the most.
        mean: over the throttle.
        counted_s: how long that was, seconds.
        minute: bytes/s in the minute of the throttle with the most, from when the client dialed
            anew, if it did; None: less than a minute was left.
        request: bytes of values in the largest request that landed in the throttle.
        first_error_s: the first failure reported to the application, seconds after the throttle
            began; None: there was none.
        first_error: its text.
        lost: what it lost; None: nothing.
        failed_but_landed: records that were reported failed, and are in the log.
        unreported: records sent, neither reported on nor in the log at the end.
        twice: records in the log beyond the first of their number.
        disordered: records, the first of their number, behind one of the same partition that was
            sent after them.
        for_nothing: bytes that the broker read beyond those of records in the log, once each.
        connections: how many the client made.
        dialed: how many of those in the throttle, from its first second or two on.
        refused: produce requests of it that its broker refused; None: nobody counted.
        back_s: from the release to 90 % of the earlier rate; None: not seen.
        watched_s: how long after the release that was watched.
        peak: bytes/s in the second with the most, of the first 10 s after the release.
        peak_s: when that began, seconds after the release.
    """

    before: float
    least: float
    most: float
    mean: float
    counted_s: float
    minute: float | None
    request: int
    first_error_s: float | None
    first_error: str
    lost: Loss | None
    failed_but_landed: int
    unreported: int
    twice: int
    disordered: int
    for_nothing: int
    connections: int
    dialed: int
    refused: int | None
    back_s: float | None
    watched_s: float
    peak: float
    peak_s: float


def figures(course: Course) -> Figures:
    """All of them."""
    times = sorted(at for at, _, _ in course.landed)
    began, released = course.throttled_at, course.released_at
    before = _rate(times, began - BEFORE_S, began)
    settled = began + SETTLE_S
    slots = slot_rates(times, settled, released)
    dialed, dialed_at = _dialed(course)
    counted = max(settled, dialed_at)
    minute = most(times, counted, released, MINUTE_S)[0] if released - counted >= MINUTE_S else None
    peak, peak_at = most(times, released, min(released + PEAK_S, course.ended_at), 1.0)
    copies = Counter(number for _, _, number in course.landed)
    failed = {number for _, number, _ in course.failed}
    reported = failed | {number for _, number in course.acknowledged}
    error = min(course.failed, default=None)
    return Figures(
        before=before,
        least=min(slots),
        most=max(slots),
        mean=_rate(times, settled, released),
        counted_s=released - settled,
        minute=minute,
        request=largest_request(course, settled),
        first_error_s=None if error is None else error[0] - began,
        first_error="" if error is None else error[2],
        lost=_loss(course, copies),
        failed_but_landed=len(failed & copies.keys()),
        unreported=len({number for _, number in course.sent} - reported - copies.keys()),
        twice=copies.total() - len(copies),
        disordered=disordered(course),
        for_nothing=course.received - RECORD_BYTES * len(copies),
        connections=course.connections,
        dialed=dialed,
        refused=course.refused,
        back_s=_back_s(course, times, before),
        watched_s=course.ended_at - released,
        peak=peak,
        peak_s=peak_at - released,
    )


def slot_rates(times: list[float], begin: float, end: float) -> list[float]:
    """Bytes/s of each whole 10 s; of all the time, where that is shorter."""
    count = int((end - begin) / SLOT_S)
    if count == 0:
        return [_rate(times, begin, end)]
    starts = [begin + SLOT_S * index for index in range(count)]
    return [_rate(times, start, start + SLOT_S) for start in starts]


def most(times: list[float], begin: float, end: float, window_s: float) -> tuple[float, float]:
    """The highest rate of a window that begins between two times, and when that one began.

    A window ends at the second time at the latest, and is divided by its whole length all the same.
    So the most is in one that begins with a record. Nothing at all is a rate of 0.0 from the first.

    Example: records at 0.1, 0.9, 1.0 and 1.5 s, and windows of 1 s: 3 records from 0.1 s on, and
    three from 0.9 s; the first counts: 30 kB/s at 0.1 s.

    Args:
        times: of records, sorted, seconds.
        begin: the first time.
        end: the second.
        window_s: seconds.
    """
    found, at = 0, begin
    stop = bisect_left(times, end)
    for index in range(bisect_left(times, begin), stop):
        count = min(bisect_left(times, times[index] + window_s), stop) - index
        if count > found:
            found, at = count, times[index]
    return RECORD_BYTES * found / window_s, at


def largest_request(course: Course, settled: float) -> int:
    """Bytes of values in the largest request that landed from a moment of the throttle on.

    The broker stamps a batch as a whole, and a request has one batch of each partition. In a
    throttle two requests of a client are further apart than the stamps' 1 ms.
    """
    stamps = Counter(at for at, _, _ in course.landed if settled <= at < course.released_at)
    return RECORD_BYTES * max(stamps.values(), default=0)


def _dialed(course: Course) -> tuple[int, float]:
    """How many connections were made in the throttle, and when the first of them was seen."""
    if not course.dialed:
        return 0, course.throttled_at
    first = course.dialed[0][1]
    seen = (at for at, count in course.dialed if count > first)
    return course.dialed[-1][1] - first, next(seen, course.throttled_at)


def disordered(course: Course) -> int:
    """Records behind one of the same partition that was sent after them; copies don't count.

    Example: 1, 2, 4, 3, 4, 5 has one: the 3.
    """
    found = 0
    highest: dict[int, int] = {}
    seen: set[int] = set()
    for _, partition, number in course.landed:
        if number in seen:
            continue
        seen.add(number)
        found += number < highest.get(partition, -1)
        highest[partition] = max(number, highest.get(partition, -1))
    return found


def _loss(course: Course, landed: Counter[int]) -> Loss | None:
    """Reported failed or written, and not there."""
    acknowledged = {number: at for at, number in course.acknowledged if number not in landed}
    failed = {number: at for at, number, _ in course.failed if number not in landed}
    lost = failed | acknowledged
    if not lost:
        return None
    return Loss(len(lost), len(acknowledged), min(lost.values()) - course.throttled_at)


def _back_s(course: Course, times: list[float], before: float) -> float | None:
    steps = int((course.ended_at - BACK_S - course.released_at) / _STEP_S + 1e-9)
    for step in range(steps + 1):
        at = course.released_at + step * _STEP_S
        if _rate(times, at, at + BACK_S) >= BACK_SHARE * before:
            return at - course.released_at
    return None


def _rate(times: list[float], begin: float, end: float) -> float:
    """Bytes/s of the records of so many sorted times that lie in it."""
    return RECORD_BYTES * (bisect_left(times, end) - bisect_left(times, begin)) / (end - begin)
