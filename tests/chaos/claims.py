"""The claims about a run, judged by its data alone.

Example: a volume 78.7 MB past its limit where 60 MB are allowed: ``Claim("bytes past the limit are
within the bound", False, "… broker 1 at 3:12: 78.7 MB, 60.0 MB are allowed …", 192.0)``.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.auditor import audit
from tests.chaos.course import Course, crossings, unseen_by_the_settled, unthrottled
from tests.chaos.recorded import trace
from tests.chaos.samples import Sample
from tests.chaos.schedule import clock

FULL_BYTES: Final = 1 << 20
"""A volume with less than a segment left is full: its broker can't append."""
CLIENTS_BYTES: Final = 15_000_000
"""Clients may land so much past the limit, at 9 MB/s, whatever is away. Where no sidecar answers, a
broker with more room leads on until its own volume is at the limit, so that counts too."""
LONGEST_WAIT_S: Final = 10.0
PAUSE_SPARE_S: Final = 1.0
"""Kafka counts a throttle time from when the request came, and a busy machine is late."""
EMERGENCY_PAUSE_S: Final = 300.0
"""pause.emergency.max."""
_AGREE_S: Final = 10.0
"""All must have agreed once in so many seconds before the end: a factor may change there."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, judged.

    Attributes:
        text: what is claimed.
        holds: whether it held.
        detail: what was seen.
        at_s: when it was broken first; 0.0 where it holds.
    """

    text: str
    holds: bool
    detail: str
    at_s: float = 0.0


def judge(course: Course) -> list[Claim]:
    """Every claim."""
    return [
        _not_full(course),
        _past(course),
        _landed(course),
        _eyes(course),
        _safe(course),
        _waits(course),
        _agree(course),
        _whole(course),
        _audited(course),
    ]


def full_at(sample: Sample) -> int | None:
    """The broker whose volume is full, if one is."""
    full = [key for key, least in sample.least.items() if least < FULL_BYTES]
    return full[0] if full else None


def _not_full(course: Course) -> Claim:
    text = "no volume is full"
    for sample in course.samples:
        broker_id = full_at(sample)
        if broker_id is not None:
            return Claim(text, False, f"that of broker {broker_id} is", sample.at_s)
    least = min((min(each.least.values()) for each in course.samples), default=0)
    return Claim(text, True, f"{least / 1e6:.1f} MB were available at least")


def _past(course: Course) -> Claim:
    text = "bytes past the limit are within the bound"
    found = crossings(course)
    beyond = [each for each in found if each.past_bytes > each.allowed(course.bound)]
    if not beyond:
        return Claim(text, True, f"in {len(found)} crossings")
    worst = max(beyond, key=lambda each: each.past_bytes)
    detail = (
        f"in {len(beyond)} of {len(found)} crossings they are not; broker {worst.broker_id} at "
        f"{clock(worst.past_at_s)}: {worst.past_bytes / 1e6:.1f} MB, "
        f"{worst.allowed(course.bound) / 1e6:.1f} MB are allowed"
    )
    return Claim(text, False, detail, worst.past_at_s)


def _landed(course: Course) -> Claim:
    text = f"clients land {CLIENTS_BYTES / 1e6:.0f} MB past the limit at most"
    worst = max(
        crossings(course), key=lambda each: each.clients_bytes - each.ahead_bytes, default=None
    )
    if worst is None:
        return Claim(text, True, "there was no crossing")
    holds = worst.clients_bytes - worst.ahead_bytes <= CLIENTS_BYTES
    detail = (
        f"{worst.clients_bytes / 1e6:.1f} MB, broker {worst.broker_id}, in the crossing from "
        f"{clock(worst.begin_s)} to {clock(worst.end_s)}"
    )
    if worst.ahead_bytes:
        detail += (
            f"; no sidecar answered, and {worst.ahead_bytes / 1e6:.1f} MB were free above the limit"
            " on another broker"
        )
    return Claim(text, holds, detail, 0.0 if holds else worst.end_s)


def _eyes(course: Course) -> Claim:
    text = (
        "a settled broker whose own volume is at its limit throttles within "
        f"{course.throttles_within_s:.1f} s"
    )
    found = unthrottled(course)
    if not found:
        return Claim(text, True, "always")
    return Claim(text, False, f"{found[0][1]}, in {len(found)} samples", found[0][0])


def _safe(course: Course) -> Claim:
    text = f"a settled sidecar sees a violation within {course.seen_within_s:.1f} s"
    found = unseen_by_the_settled(course)
    if not found:
        return Claim(text, True, "always")
    return Claim(text, False, f"{found[0][1]}, in {len(found)} samples", found[0][0])


def _waits(course: Course) -> Claim:
    """A pause may be that of an emergency of its broker, while that lasts."""
    most_s = course.bound.rules.pause_max_s + PAUSE_SPARE_S
    text = f"no throttle time is longer than {most_s:.0f} s, but in an emergency"
    allowed_s, broken = _pauses(course, most_s)
    if broken is not None:
        return broken.of(text)
    longest = max(course.producers, key=lambda each: each.longest_throttle_s, default=None)
    if longest is None:
        return Claim(text, True, "there are no producers")
    detail = f"{longest.longest_throttle_s:.1f} s, {longest.name}"
    if allowed_s > most_s:
        detail += f"; in emergencies up to {allowed_s:.1f} s"
    holds = longest.longest_throttle_s <= allowed_s
    return Claim(text, holds, detail, 0.0 if holds else course.samples[-1].at_s)


def longest_wait(course: Course) -> Claim:
    """No throttle time is longer than ``LONGEST_WAIT_S``, in an emergency neither."""
    text = f"no throttle time is longer than {LONGEST_WAIT_S:.0f} s, in an emergency neither"
    worst = max(course.producers, key=lambda each: each.longest_throttle_s, default=None)
    if worst is None:
        return Claim(text, True, "there are no producers")
    holds = worst.longest_throttle_s <= LONGEST_WAIT_S
    detail = f"{worst.longest_throttle_s:.1f} s, {worst.name}"
    return Claim(text, holds, detail, 0.0 if holds else course.samples[-1].at_s)


@dataclass(frozen=True, slots=True)
class _TooLong:
    """A pause that no emergency explains."""

    broker_id: int
    pause_s: float
    at_s: float

    def of(self, text: str) -> Claim:
        return Claim(text, False, f"{self.pause_s:.1f} s, broker {self.broker_id}", self.at_s)


def _pauses(course: Course, most_s: float) -> tuple[float, _TooLong | None]:
    """The longest throttle time that producers may have got, seconds, and the first too long pause.

    A broker reports the longest pause since its start, so a pause is judged when that grows. A
    broker that was not seen in the sample before is not judged.
    """
    allowed_s = most_s
    for before, after in pairwise(course.samples):
        for broker_id, sight in after.callbacks.items():
            last = before.callbacks.get(broker_id)
            if sight is None or last is None or sight.longest_pause_s <= last.longest_pause_s:
                continue
            pause_s = sight.longest_pause_s
            in_emergency = sight.emergency or last.emergency
            if pause_s > (EMERGENCY_PAUSE_S + PAUSE_SPARE_S if in_emergency else most_s):
                return allowed_s, _TooLong(broker_id, pause_s, after.at_s)
            allowed_s = max(allowed_s, pause_s + PAUSE_SPARE_S)
    return allowed_s, None


def _agree(course: Course) -> Claim:
    text = "after the faults all sidecars and callbacks see, and agree"
    if not course.samples:
        return Claim(text, False, "nothing was seen")
    end_s = course.samples[-1].at_s
    if any(fault.end_s > end_s for fault in course.plan.faults):
        return Claim(text, True, "the run ended before")
    last = [each for each in course.samples if each.at_s > end_s - _AGREE_S]
    disagreement = ""
    for sample in reversed(last):
        disagreement = _disagreement(sample)
        if not disagreement:
            return Claim(text, True, f"factor {_factors(sample).pop():g}")
    return Claim(text, False, disagreement, end_s)


def _factors(sample: Sample) -> set[float]:
    sidecars = {each.factor for each in sample.sidecars.values() if each is not None}
    return sidecars | {each.factor for each in sample.callbacks.values() if each is not None}


def _disagreement(sample: Sample) -> str:
    for broker_id, sidecar in sample.sidecars.items():
        if sidecar is None:
            return f"sidecar {broker_id} does not answer"
        if not sidecar.sees:
            return f"sidecar {broker_id} goes by {sidecar.source}"
    for broker_id, callback in sample.callbacks.items():
        if callback is None:
            return f"callback {broker_id} does not answer"
        if callback.source != "SIDECAR":
            return f"callback {broker_id} goes by {callback.source}"
    factors = _factors(sample)
    return (
        f"factors {', '.join(f'{each:g}' for each in sorted(factors))}" if len(factors) > 1 else ""
    )


def _whole(course: Course) -> Claim:
    text = "no traceback, no task or process that ended by itself"
    found = [*course.tracebacks, *(words for _, words in course.ended)]
    if not found:
        return Claim(text, True, "none")
    at_s = (
        course.ended[0][0] if course.ended else course.samples[-1].at_s if course.samples else 0.0
    )
    return Claim(text, False, f"{len(found)}: {found[0]}", at_s)


def _audited(course: Course) -> Claim:
    text = "by volumes and brokers alone, every claim holds (tests/auditor)"
    found = audit(trace(course))
    if not found:
        return Claim(text, True, f"in {len(course.samples)} seconds")
    return Claim(text, False, f"{len(found)}: {found[0]}", found[0].at_s)
