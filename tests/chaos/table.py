"""The tables at the end of a run: crossings, producers, blindness, and the claims.

Example: the row ``| 1 | 4 | 78.7 MB | 3:12 | 60.1 MB | 12.4 MB | 51.3 MB |`` is of broker 1. Its
volume was at its limit 4 times, and at 3:12 78.7 MB past it, where the rules allow 60.1 MB. Clients
landed 12.4 MB of that; the rest it fetched when it was back.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final

from tests.chaos.claims import Claim, judge
from tests.chaos.course import (
    Course,
    Producer,
    Return,
    SourceUse,
    Watched,
    blindness,
    crossings,
    returns,
)
from tests.chaos.schedule import clock

_BEFORE_S: Final = 60.0
_MB: Final = 1e6


def report(course: Course, judge: Callable[[Course], Sequence[Claim]] = judge) -> str:
    """All of it, as text."""
    claims = judge(course)
    parts = [
        _head(course),
        _volumes(course),
        _crossings(course),
        _producers(course),
        _blind(course),
        _logs(course),
        _claims(claims),
        *(_breach(course, claim) for claim in claims if not claim.holds),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def command(course: Course) -> str:
    """The command that repeats the run."""
    minutes = course.duration_s / 60
    alone = "" if course.refuses else " ARMS=callback"
    which = "" if course.scenario == "faults" else f" SCENARIO={course.scenario}"
    return f"make chaos{which} SEED={course.seed} MINUTES={minutes:g}{alone}"


def _head(course: Course) -> str:
    ran_s = course.ran_s
    begun = sum(fault.begin_s <= ran_s for fault in course.plan.faults)
    return (
        f"seed {course.seed}: {clock(ran_s)} of {clock(course.duration_s)} minutes, "
        f"{begun} of {len(course.plan.faults)} faults, "
        f"{arm(course)}\n"
        f"limit: {course.limit_bytes / _MB:.0f} MB available; bound of what is past it: "
        f"{course.bound}"
    )


def _volumes(course: Course) -> str:
    found = crossings(course)
    rows = []
    for broker_id in sorted({key for sample in course.samples for key in sample.least}):
        mine = [each for each in found if each.broker_id == broker_id]
        least = min(each.least[broker_id] for each in course.samples if broker_id in each.least)
        if not mine:
            rows.append([str(broker_id), "0", "", "", "", "", mb(least)])
            continue
        worst = max(mine, key=lambda each: each.past_bytes)
        rows.append(
            [
                str(broker_id),
                str(len(mine)),
                mb(worst.past_bytes),
                clock(worst.past_at_s),
                mb(worst.allowed(course.bound)),
                mb(max(each.clients_bytes for each in mine)),
                mb(least),
            ]
        )
    head = ["broker", "crossings", "past the limit, most", "at", "bound"]
    return table([*head, "by clients, most", "least available"], rows)


def _crossings(course: Course) -> str:
    rows = [
        [
            str(each.broker_id),
            clock(each.begin_s),
            clock(each.end_s),
            mb(each.past_bytes),
            mb(each.allowed(course.bound)),
            mb(each.clients_bytes),
            ", ".join(_source_use(use, each.begin_s) for use in each.throttled),
            "" if each.released is None else _source_use(each.released, each.end_s),
        ]
        for each in crossings(course)
    ]
    head = ["crossing of", "from", "to", "past the limit", "bound", "by clients"]
    return table([*head, "throttled by", "released by"], rows)


def _source_use(use: SourceUse, since_s: float) -> str:
    return f"{use.source} after {use.at_s - since_s:.1f} s"


def _producers(course: Course) -> str:
    found = returns(course)
    rows = []
    for producer in course.producers:
        mine = [each for each in found if each.name == producer.name]
        calm = [each for each in mine if not each.disturbed]
        rows.append(
            [
                producer.name,
                f"{producer.target / _MB:.1f} MB/s",
                f"{producer.longest_throttle_s:.1f} s",
                _back(calm),
                _back([each for each in mine if each.disturbed]),
                _given_up(producer),
            ]
        )
    head = ["producer", "rate", "longest throttle time", "back to 90 %, no fault"]
    return table([*head, "back to 90 %, with a fault", "records given up"], rows)


def _given_up(producer: Producer) -> str:
    count = f"{producer.failed_records:,}"
    return count if producer.last_failure is None else f"{count}; the last: {producer.last_failure}"


def _back(found: Sequence[Return]) -> str:
    """The median and the longest, and how often it was not back at all."""
    seen = [each.back_s for each in found if each.back_s is not None]
    parts = [f"{median(seen):.1f} s, at most {max(seen):.1f} s"] if seen else []
    never = len(found) - len(seen)
    if never:
        parts.append(f"{never} of {len(found)} not before the next crossing")
    return "; ".join(parts)


def _blind(course: Course) -> str:
    rows = [
        [each.who, clock(each.begin_s), clock(each.end_s), each.why, mb(each.past_bytes)]
        for each in blindness(course)
    ]
    return table(["blind", "from", "to", "why", "further past the limit meanwhile"], rows)


def _logs(course: Course) -> str:
    ended = [f"{clock(at_s)}  {words}" for at_s, words in course.ended]
    return "\n".join(
        [
            f"tracebacks in logs: {len(course.tracebacks)}",
            *(f"  {each}" for each in course.tracebacks),
            f"tasks and processes that ended by themselves: {len(ended)}",
            *(f"  {each}" for each in ended),
        ]
    )


def _claims(claims: Iterable[Claim]) -> str:
    return table(
        ["claim", "held", "seen"],
        [[each.text, "yes" if each.holds else "NO", each.detail] for each in claims],
    )


def _breach(course: Course, claim: Claim) -> str:
    before = [
        f"  {clock(at_s)}  {words}"
        for at_s, words in course.events
        if claim.at_s - _BEFORE_S <= at_s <= claim.at_s
    ]
    return "\n".join(
        [
            f'BROKEN at {clock(claim.at_s)}: "{claim.text}": {claim.detail}',
            f"seed {course.seed}; in the {_BEFORE_S:.0f} s before:",
            *(before or ["  nothing"]),
            f"again: {command(course)}",
        ]
    )


def arm(course: Watched) -> str:
    """What keeps producers from the volumes, for a reader."""
    return "with the authorizer" if course.refuses else "the callback alone"


def mb(count: float) -> str:
    """In megabytes."""
    return f"{count / _MB:.1f} MB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; "" without rows."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
