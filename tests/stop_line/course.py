"""What one run came to, as data; what is worked out of it, and what is claimed of it.

Nothing here measures, and nothing has a clock: times are seconds from the beginning of the run.

A volume that reaches the stop line gets, until nothing is admitted any more, what all producers
write at their whole rate in the time of the broker's own eyes: a quarter of a second until its
next look, and until that is in force. Besides, it gets the requests that were authorized just
before: each of the broker's request threads has one at most.

Example: 6 MB/s, a fifth more after a release and 5 % more on disk, for 0.75 s are 5.7 MB; four
threads with 1 MB each 4.2 MB: the volume may be 9.9 MB below the line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tests.chaos.bound import FLOOD, OVERHEAD
from tests.chaos.claims import FULL_BYTES, Claim
from tests.chaos.schedule import clock

REFUSALS: Final = {
    "RefusedNewConnections": "new connections, beyond the leak budget",
    "RefusedBelowStopLine": "at the stop line",
    "RefusedAfterRelease": "after a release",
}
"""The callback's attribute -> why requests were refused."""


class Arm(StrEnum):
    """What keeps producers from the volume."""

    AUTHORIZER = "authorizer"
    CALLBACK = "callback"


@dataclass(frozen=True, slots=True)
class Bound:
    """How far below the line the volume may get.

    Attributes:
        bytes_per_s: of values, of all producers together.
        delays_s: from the moment at which the volume is at the line to the last admission.
        request_threads: of the broker.
        request_bytes: the largest request.
    """

    bytes_per_s: float
    delays_s: float
    request_threads: int
    request_bytes: int

    @property
    def rate(self) -> float:
        """What the volume gets while nothing is throttled, at most, bytes a second."""
        return FLOOD * OVERHEAD * self.bytes_per_s

    @property
    def authorized(self) -> float:
        """What requests append that were admitted before, bytes."""
        return OVERHEAD * self.request_threads * self.request_bytes

    @property
    def bytes(self) -> float:
        """Both."""
        return self.rate * self.delays_s + self.authorized

    def __str__(self) -> str:
        return (
            f"{self.rate / 1e6:.1f} MB/s x {self.delays_s:g} s + {self.authorized / 1e6:.1f} MB "
            f"of requests past the authorizer = {self.bytes / 1e6:.1f} MB"
        )


@dataclass(frozen=True, slots=True)
class Look:
    """The volume at a moment.

    Attributes:
        at_s: since the beginning.
        available: bytes.
        lives: whether the broker's process does.
    """

    at_s: float
    available: int
    lives: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """What the callback said at a moment.

    Attributes:
        at_s: since the beginning.
        longest_pause_s: since the broker's start.
        emergency: whether pauses may be longer than pause.max.
        refused: of ``REFUSALS``, by the attribute's name, since the broker's start.
    """

    at_s: float
    longest_pause_s: float
    emergency: bool
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sent:
    """What all producers of one kind came to.

    Attributes:
        name: their kind.
        bytes_per_s: what they send while nothing throttles them.
        acknowledged_bytes: what they know to be in the log.
        failed: records, or requests, that they gave up.
    """

    name: str
    bytes_per_s: float
    acknowledged_bytes: int
    failed: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The volume at or below the line, from one look to another.

    Attributes:
        begin_s: since when.
        end_s: until when; that of the last look where it did not end.
        least: the fewest bytes available.
    """

    begin_s: float
    end_s: float
    least: int


@dataclass(slots=True)
class Course:
    """A whole run, or as much of it as there was.

    Attributes:
        arm: see there.
        duration_s: how long it was to be.
        limit_bytes: available bytes at which producers are throttled.
        line_bytes: at which nothing is admitted.
        bound: see there.
        looks: five a second.
        figures: one for each that the callback said.
        sent: of each kind of producers.
        events: what happened, (seconds, words).
        errors: lines of logs that should not be there.
    """

    arm: Arm
    duration_s: float
    limit_bytes: int
    line_bytes: int
    bound: Bound
    looks: list[Look] = field(default_factory=list)
    figures: list[Figures] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def ran_s(self) -> float:
        """How long it was."""
        return self.looks[-1].at_s if self.looks else 0.0

    @property
    def least(self) -> int | None:
        """The fewest bytes that were available; None where nobody looked."""
        return min((look.available for look in self.looks), default=None)

    @property
    def below_bytes(self) -> int:
        """How far below the line the volume was, at most."""
        return max(0, self.line_bytes - (self.line_bytes if self.least is None else self.least))

    @property
    def ended(self) -> Look | None:
        """The first look at which the broker lived no more."""
        return next((look for look in self.looks if not look.lives), None)

    @property
    def full(self) -> Look | None:
        """The first look at which the volume was full."""
        return next((look for look in self.looks if look.available < FULL_BYTES), None)

    @property
    def refused(self) -> dict[str, int]:
        """By ``REFUSALS``; a broker that lives no more is what it said last."""
        last = self.figures[-1].refused if self.figures else {}
        return {name: last.get(name, 0) for name in REFUSALS}


def stops(course: Course) -> list[Stop]:
    """The times at which the volume was at the line."""
    found: list[Stop] = []
    run: list[Look] = []
    for look in course.looks:
        if look.available <= course.line_bytes:
            run.append(look)
        elif run:
            found.append(_stop(run, look.at_s))
            run = []
    if run:
        found.append(_stop(run, run[-1].at_s))
    return found


def _stop(run: list[Look], end_s: float) -> Stop:
    return Stop(run[0].at_s, end_s, min(look.available for look in run))


def judge(course: Course) -> list[Claim]:
    """Every claim; none of pauses alone, which can only be watched."""
    if course.arm is not Arm.AUTHORIZER:
        return [_whole(course)]
    return [_reached(course), _below(course), _lives(course), _whole(course)]


def _reached(course: Course) -> Claim:
    text = "the volume reaches the stop line"
    found = stops(course)
    detail = f"{len(found)} times"
    return Claim(text, bool(found), detail, 0.0 if found else course.ran_s)


def _below(course: Course) -> Claim:
    text = f"it is never more than {course.bound.bytes / 1e6:.1f} MB below it"
    worst = min(stops(course), key=lambda each: each.least, default=None)
    if worst is None:
        return Claim(text, True, "it was not there")
    holds = course.below_bytes <= course.bound.bytes
    detail = (
        f"{course.below_bytes / 1e6:.1f} MB, between {clock(worst.begin_s)} and "
        f"{clock(worst.end_s)}"
    )
    return Claim(text, holds, detail, 0.0 if holds else worst.end_s)


def _lives(course: Course) -> Claim:
    text = "the broker lives to the end"
    ended = course.ended
    if ended is not None:
        return Claim(text, False, f"it ended at {clock(ended.at_s)}", ended.at_s)
    return Claim(text, True, f"of {clock(course.ran_s)} minutes")


def _whole(course: Course) -> Claim:
    text = "no traceback, and no error of the callback"
    if not course.errors:
        return Claim(text, True, "none")
    return Claim(text, False, f"{len(course.errors)}: {course.errors[0]}", course.ran_s)
