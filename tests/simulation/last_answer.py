"""What sidecars answered a quota callback last, and whose word counts.

A document is valid while now <= answer + validity; each answer, a 304 too, renews it. An operator's
word at the broker's own sidecar comes first. Else, of the sidecars that answer and see, or of all
with a valid document when none does: any that sees a violation, the strictest; then the one with
the youngest observation; a word by no observation (a fallback, another sidecar's override) comes
last, and ends no dead sidecar's.

Example: the own sidecar was killed a second ago and saw no violation 3 s ago, another sees one now:
the other's. Both are alive, and the other saw none 60 s ago: the own.

Source: LastAnswer in deploy/quota-callback.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation.throttles import WHOLE, Leak

if TYPE_CHECKING:
    from tests.simulation.following import Answer, Document

_MS = 1_000_000
_SILENT_NANOS = 5_000 * _MS
"""A sidecar that has not answered for so long is silent, whether its last request failed or not."""


class LastAnswer:
    """What one sidecar said last. All times are nanoseconds on one monotonic clock.

    Attributes:
        document: the last one; None before the first.
        until_nanos: to the end of which moment it is valid.
        answers: whether its last request had a valid answer.
        leak: of the broker, by its last answer.
        observed_nanos: when what it said was observed.
        answered_nanos: when it answered last.
    """

    __slots__ = (
        "_factor_now",
        "_limit_nanos",
        "answered_nanos",
        "answers",
        "document",
        "leak",
        "observed_nanos",
        "until_nanos",
    )

    def __init__(self) -> None:
        self.document: Document | None = None
        self.until_nanos = 0
        self.answers = False
        self.leak = WHOLE
        self.observed_nanos = 0
        self.answered_nanos = 0
        self._factor_now: float | None = None
        self._limit_nanos: int | None = None

    def is_valid(self, now_nanos: int) -> bool:
        """Whether there is a document that counts."""
        return self.document is not None and now_nanos <= self.until_nanos

    @property
    def sees(self) -> bool:
        """Whether its document is by an observation."""
        return self.document is not None and self.document.sees

    @property
    def factor(self) -> float:
        """The document's, or where that is on its slope by now."""
        assert self.document is not None
        factors = self.document.factors
        moves = factors.is_sloped and self._factor_now is not None
        return self._factor_now or 0.0 if moves else factors.factor

    @property
    def sees_violation(self) -> bool:
        """Whether it throttles, or stops, by an observation."""
        return self.sees and (self.factor < 1.0 or self.says_stop)

    @property
    def says_stop(self) -> bool:
        """Whether it says that nothing is to be admitted, by whatever."""
        return self.document is not None and self.document.says_stop

    def hear(self, answer: "Answer", began_nanos: int) -> None:
        """It answered, from a moment on."""
        self.answers = True
        if answer.document is not None:
            self.document = answer.document
        self._factor_now = answer.factor
        self.leak = answer.leak
        self.until_nanos = began_nanos + answer.valid_for_ms * _MS
        self.observed_nanos = began_nanos - answer.observed_ms_ago * _MS
        self.answered_nanos = began_nanos
        in_ms = answer.limit_in_ms
        self._limit_nanos = None if in_ms < 0 else began_nanos + in_ms * _MS

    def expects_limit_before(self, nanos: int) -> bool:
        """Whether it expects a volume at its limit before a moment."""
        return self._limit_nanos is not None and self._limit_nanos < nanos

    def changes_nanos(self, now_nanos: int) -> int:
        """When its word is another one by time alone: a valid document expires, or forecasts."""
        moments = [self.until_nanos]
        if self._limit_nanos is not None:
            moments += [self._limit_nanos, self.answered_nanos + _SILENT_NANOS]
        # Each counts to the end of that moment.
        return 1 + min(each for each in moments if each >= now_nanos)

    def remember(self, document: "Document", age_ms: int, now_nanos: int) -> None:
        """What a broker's disk has of it, at the broker's start."""
        self.document = document
        self.observed_nanos = now_nanos - age_ms * _MS
        self.until_nanos = self.observed_nanos + document.valid_for_ms * _MS

    def counts_more_than(self, other: "LastAnswer") -> bool:
        """Of two with valid documents."""
        one, two = (each.sees + each.sees_violation for each in (self, other))
        if one != two:
            return one > two
        if self.sees_violation and self.factor != other.factor:
            return self.factor < other.factor
        if self.says_stop != other.says_stop:
            return self.says_stop
        return self.observed_nanos > other.observed_nanos


def counting(own: LastAnswer, others: Sequence[LastAnswer], now_nanos: int) -> list[LastAnswer]:
    """Whose word counts."""
    if own.document is not None and own.document.lifts and own.is_valid(now_nanos):
        return [own]
    valid = [last for last in (own, *others) if last.is_valid(now_nanos)]
    any_sees = any(each.sees for each in valid)
    if any(each.answers and each.sees == any_sees for each in valid):
        valid = [each for each in valid if each.answers]
    return valid


def users_of(words: Sequence[LastAnswer]) -> dict[str, float]:
    """The factors of single users: of each user, the smallest of all answers."""
    users: dict[str, float] = {}
    for last in words:
        assert last.document is not None
        for user, factor in last.document.factors.users.items():
            users[user] = min(factor, users.get(user, factor))
    return users


def leak_of(own: LastAnswer, words: Sequence[LastAnswer]) -> Leak:
    """The own sidecar's where that sees a violation, else the smallest of those that count."""
    if own in words and own.answers and own.sees_violation:
        return own.leak
    return min((WHOLE, *(last.leak for last in words)), key=lambda leak: leak.share)


def forecasts(own: LastAnswer, others: Sequence[LastAnswer], now_nanos: int) -> bool:
    """Whether none answers any more, and the last one's forecast is that a limit was reached."""
    seeing = [each for each in (own, *others) if each.is_valid(now_nanos) and each.sees]
    if any(each.answers and now_nanos - each.answered_nanos <= _SILENT_NANOS for each in seeing):
        return False
    youngest = max(seeing, key=lambda each: each.observed_nanos, default=None)
    return youngest is not None and youngest.expects_limit_before(now_nanos)


def strictest(words: Sequence[LastAnswer]) -> LastAnswer | None:
    """Of those that count the one that says most; None: there is none."""
    best: LastAnswer | None = None
    for last in words:
        if best is None or last.counts_more_than(best):
            best = last
    return best
