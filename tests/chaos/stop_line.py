"""The scenario at the stop line: its runs as data, the claims about them, and the table.

A volume that reaches the stop line gets, until nothing is admitted any more, what all producers
write at their whole rate until the broker reads its own volumes again, within a quarter of a
second, and applies the result. It also gets the requests that were authorized just before: each of
the broker's request threads has one at most.

Example: 6 MB/s, 1.42 times that after a release and 5 % more on disk, for 0.75 s are 6.7 MB; four
threads with 1 MB each 4.2 MB: the volume may be 10.9 MB below the line.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.bound import FLOOD, OVERHEAD
from tests.chaos.callbacks import REFUSALS
from tests.chaos.claims import FULL_BYTES, Claim
from tests.chaos.cleaner import Cleaning
from tests.chaos.course import Watched
from tests.chaos.samples import CallbackSight, Sample
from tests.chaos.schedule import clock
from tests.chaos.table import arm, mb, table

LITTLE_BYTES: Final = 4_000_000
"""Beyond the tenth that ends a stop."""
MUCH_BYTES: Final = 60_000_000
"""Above the limit."""
BROKER: Final = "broker 0"

_AFTER_S: Final = (10.0, 40.0)
_KEPT_SHARE: Final = 0.95
"""Records have this share of the used space: the rest are indexes and whole segments."""
_WHY: Final = ("new connections, beyond the leak budget", "at the stop line", "after a release")


@dataclass(frozen=True, slots=True)
class StopBound:
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


def cleanings(
    seed: int, duration_s: float, limit_bytes: int, line_bytes: int, total_bytes: int
) -> list[Cleaning]:
    """Those of a seed, enough for the duration.

    Half of the times so little is freed that the stop ends and the throttle does not, so that what
    leaks reaches the line again; else so much that producers are released.
    """
    chance = random.Random(f"stop line {seed} {duration_s:g}")
    little, much = int(line_bytes * 1.1) + LITTLE_BYTES, limit_bytes + MUCH_BYTES
    found = []
    for _ in range(int(duration_s / _AFTER_S[0]) + 1):
        after_s, wanted = round(chance.uniform(*_AFTER_S), 1), chance.choice((little, much))
        found.append(Cleaning(after_s, int((total_bytes - wanted) * _KEPT_SHARE), wanted))
    return found


@dataclass(frozen=True, slots=True)
class Stop:
    """The volume at or below the line, from one sample to another.

    Attributes:
        begin_s: since when.
        end_s: until when; that of the last sample where it did not end.
        least: the fewest bytes available.
    """

    begin_s: float
    end_s: float
    least: int


@dataclass(slots=True, kw_only=True)
class StopCourse(Watched):
    """A run of this scenario.

    Attributes:
        line_bytes: available bytes at which nothing is admitted.
        bound: how far below that the volume may get.
    """

    line_bytes: int
    bound: StopBound

    @property
    def least(self) -> int | None:
        """The fewest bytes that were available; None where there is no sample."""
        return min((sample.least[0] for sample in self.samples), default=None)

    @property
    def below_bytes(self) -> int:
        """How far below the line the volume was, at most."""
        return max(0, self.line_bytes - (self.line_bytes if self.least is None else self.least))

    @property
    def ended_s(self) -> float | None:
        """When the broker ended."""
        return next((at_s for at_s, words in self.ended if words.startswith(BROKER)), None)

    @property
    def full(self) -> Sample | None:
        """The first sample in which the volume was full."""
        return next((each for each in self.samples if each.least[0] < FULL_BYTES), None)

    @property
    def sights(self) -> list[tuple[float, CallbackSight]]:
        """What the callback reported, and when."""
        found = [(each.at_s, each.callbacks.get(0)) for each in self.samples]
        return [(at_s, sight) for at_s, sight in found if sight is not None]

    @property
    def refused(self) -> dict[str, int]:
        """Refused requests by ``REFUSALS``, as the callback reported them last."""
        last = self.sights[-1][1].refused if self.sights else {}
        return {name: last.get(name, 0) for name in REFUSALS}


def stops(course: StopCourse) -> list[Stop]:
    """The times at which the volume was at the line."""
    found: list[Stop] = []
    run: list[Sample] = []
    for sample in course.samples:
        if sample.least[0] <= course.line_bytes:
            run.append(sample)
        elif run:
            found.append(_stop(run, sample.at_s))
            run = []
    return [*found, _stop(run, run[-1].at_s)] if run else found


def _stop(run: list[Sample], end_s: float) -> Stop:
    return Stop(run[0].at_s, end_s, min(sample.least[0] for sample in run))


def judge(course: StopCourse) -> list[Claim]:
    """Every claim; none of pauses alone, which can only be watched."""
    if not course.refuses:
        return [_whole(course)]
    return [_reached(course), _below(course), _lives(course), _whole(course)]


def _reached(course: StopCourse) -> Claim:
    found = stops(course)
    at_s = 0.0 if found else course.ran_s
    return Claim("the volume reaches the stop line", bool(found), f"{len(found)} times", at_s)


def _below(course: StopCourse) -> Claim:
    text = f"it is never more than {mb(course.bound.bytes)} below it"
    worst = min(stops(course), key=lambda each: each.least, default=None)
    if worst is None:
        return Claim(text, True, "it was not there")
    holds = course.below_bytes <= course.bound.bytes
    between = f"between {clock(worst.begin_s)} and {clock(worst.end_s)}"
    return Claim(text, holds, f"{mb(course.below_bytes)}, {between}", 0.0 if holds else worst.end_s)


def _lives(course: StopCourse) -> Claim:
    text = "the broker lives to the end"
    ended_s = course.ended_s
    if ended_s is not None:
        return Claim(text, False, f"it ended at {clock(ended_s)}", ended_s)
    return Claim(text, True, f"of {clock(course.ran_s)} minutes")


def _whole(course: StopCourse) -> Claim:
    text = "no traceback, no ended task, and no error of the callback"
    tasks = [words for _, words in course.ended if not words.startswith(BROKER)]
    found = [*course.tracebacks, *tasks]
    if not found:
        return Claim(text, True, "none")
    return Claim(text, False, f"{len(found)}: {found[0]}", course.ran_s)


def report(courses: Sequence[StopCourse]) -> str:
    """The arms side by side, and what was claimed, as text."""
    first = courses[0]
    claims = [
        [arm(course), claim.text, "yes" if claim.holds else "NO", claim.detail]
        for course in courses
        for claim in judge(course)
    ]
    head = (
        f"{first.bound.bytes_per_s / 1e6:.1f} MB/s; producers are throttled from "
        f"{first.limit_bytes / 1e6:.0f} MB available on, and nothing is admitted from "
        f"{first.line_bytes / 1e6:.0f} MB on\nbelow that, at most: {first.bound}"
    )
    compared = table(["what", *map(arm, courses)], _rows(courses))
    return f"{head}\n\n{compared}\n\n{table(['arm', 'claim', 'held', 'seen'], claims)}\n"


def _rows(courses: Sequence[StopCourse]) -> list[list[str]]:
    rows = [
        ["lasted", *map(_lasted, courses)],
        ["lowest available", *("" if each.least is None else mb(each.least) for each in courses)],
        ["below the stop line, at most", *map(_lowest, courses)],
        ["reached the stop line", *(f"{len(stops(each))} times" for each in courses)],
        ["at or below it", *map(_under, courses)],
    ]
    for name, why in zip(REFUSALS, _WHY, strict=True):
        rows.append([f"requests refused: {why}", *(f"{each.refused[name]:,}" for each in courses)])
    rows.append(["longest pause", *map(_pause, courses)])
    kinds = dict.fromkeys(each.name for course in courses for each in course.producers)
    return rows + [
        [f"{kind}: acknowledged, given up", *(_sent(each, kind) for each in courses)]
        for kind in kinds
    ]


def _lasted(course: StopCourse) -> str:
    words = f"{clock(course.ran_s)} of {clock(course.duration_s)} minutes"
    words += f"; full at {clock(course.full.at_s)}" if course.full is not None else ""
    ended_s = course.ended_s
    return words + ("" if ended_s is None else f"; the broker ended at {clock(ended_s)}")


def _lowest(course: StopCourse) -> str:
    allowed = f", where {mb(course.bound.bytes)} may be" if course.refuses else ""
    return mb(course.below_bytes) + allowed


def _under(course: StopCourse) -> str:
    lasted = [each.end_s - each.begin_s for each in stops(course)]
    return f"{sum(lasted):.0f} s, at once {max(lasted):.0f} s at most" if lasted else "never"


def _pause(course: StopCourse) -> str:
    longest = max((sight.longest_pause_s for _, sight in course.sights), default=0.0)
    emergency = next((at_s for at_s, sight in course.sights if sight.emergency), None)
    more = "" if emergency is None else f", longer ones allowed from {clock(emergency)} on"
    return f"{longest:.1f} s{more}"


def _sent(course: StopCourse, kind: str) -> str:
    mine = [each for each in course.producers if each.name == kind]
    landed = sum(value for each in mine for _, value in list(each.acknowledged)[-1:])
    return f"{mb(landed)}, {sum(each.failed_records for each in mine):,}"
