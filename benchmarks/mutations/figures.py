"""The figures of a course.

A wait that was not over when the watching ended counts with what was seen of it, and the longest
says so; so does one for what failed. Example: due at 10 s, watched until 40 s and without a record
by then: "> 30 s".
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.mutations.course import Course, Operation

SLOWER: Final = 3.0
"""So many times the median before the storm is no longer "as before"."""
LEAST_SLOWER_S: Final = 0.25
"""Likewise, seconds: nobody minds less, and a machine's noise is less."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long others waited for one thing, seconds.

    Attributes:
        before: the median of those due before the storm.
        during: the median of those due in the storm's time.
        longest: the longest of those due from its beginning on.
        unseen: whether the longest was not over when the watching ended.
    """

    before: float
    during: float
    longest: float
    unseen: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """What is reported of a course.

    Attributes:
        answer: waits for the answer of another's operation.
        record: waits for the first record in the topic that it created.
        over_s: when the last operation was due that waited longer than before for its first record,
            seconds from the storm's beginning; None: none did.
        failed: others' operations that failed.
        sent: requests of the storm that reached Kafka.
        created: topics that the storm got.
        rejected: topics that Kafka rejected for the quota; each as often as it was asked for.
        kept: topics that the endpoint kept from Kafka; likewise.
        own_s: the median wait of the storm's requests for Kafka's answer, seconds, with the asking
            before; None: it has none.
        asking_s: the median wait for an endpoint's answer that admitted nothing, seconds; None: it
            gave none.
        errors: requests of the storm that failed otherwise.
    """

    answer: Waits
    record: Waits
    over_s: float | None
    failed: int
    sent: int
    created: int
    rejected: int
    kept: int
    own_s: float | None
    asking_s: float | None
    errors: int


def figures(course: Course) -> Figures:
    """All of them.

    Raises:
        ValueError: there was no operation before the storm, or none in its time.
    """
    record = _waits(course, lambda each: each.usable)
    slower = slower_s(record.before)
    slow = [
        each.due
        for each in course.operations
        if each.due >= 0 and _wait(each.due, each.usable, course.watched_until) > slower
    ]
    sent = [each for each in course.requests if each.admitted]
    own = [each.answered - each.due for each in sent if each.answered is not None]
    kept = [each for each in course.requests if not each.admitted and not each.error]
    asking = [each.answered - each.due for each in kept if each.answered is not None]
    return Figures(
        answer=_waits(course, lambda each: each.answered),
        record=record,
        over_s=max(slow) if slow else None,
        failed=sum(bool(each.error) for each in course.operations),
        sent=len(sent),
        created=sum(each.created for each in sent),
        rejected=sum(each.throttled for each in sent),
        kept=sum(each.asked - each.admitted for each in course.requests if not each.error),
        own_s=median(own) if own else None,
        asking_s=median(asking) if asking else None,
        errors=sum(bool(each.error) for each in course.requests),
    )


def slower_s(before: float) -> float:
    """The longest wait that is still as before, seconds; of a median of 0.1 s it is 0.3 s."""
    return max(SLOWER * before, LEAST_SLOWER_S)


def created_so_far(course: Course) -> list[tuple[float, float]]:
    """(seconds, topics of the storm that are there), as the answers say it."""
    so_far = 0
    points = [(0.0, 0.0)]
    answers = sorted(
        (each.answered, each.created)
        for each in course.requests
        if each.answered is not None and each.created
    )
    for at, created in answers:
        so_far += created
        points.append((at, float(so_far)))
    return points


def _waits(course: Course, get: Callable[[Operation], float | None]) -> Waits:
    waits = [
        (each.due, _wait(each.due, get(each), course.watched_until), get(each) is None)
        for each in course.operations
    ]
    before = [wait for due, wait, _ in waits if due < 0]
    during = [wait for due, wait, _ in waits if 0 <= due < course.storm_s]
    if not before or not during:
        raise ValueError("there were no operations before the storm, or none in its time")
    longest, unseen = max((wait, unseen) for due, wait, unseen in waits if due >= 0)
    return Waits(median(before), median(during), longest, unseen)


def _wait(due: float, end: float | None, until: float) -> float:
    return (until if end is None else end) - due
