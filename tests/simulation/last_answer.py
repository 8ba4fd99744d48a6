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


class LastAnswer:
    """What one sidecar said last. All times are nanoseconds on one monotonic clock.

    Attributes:
        document: the last one; None before the first.
        until_nanos: to the end of which moment it is valid.
        answers: whether its last request had a valid answer.
        leak: of the broker, by its last answer.
    """

    __slots__ = ("_observed_nanos", "answers", "document", "leak", "until_nanos")

    def __init__(self) -> None:
        self.document: Document | None = None
        self.until_nanos = 0
        self.answers = False
        self.leak = WHOLE
        self._observed_nanos = 0

    def is_valid(self, now_nanos: int) -> bool:
        """Whether there is a document that counts."""
        return self.document is not None and now_nanos <= self.until_nanos

    @property
    def sees(self) -> bool:
        """Whether its document is by an observation."""
        return self.document is not None and self.document.sees

    def hear(self, answer: "Answer", began_nanos: int) -> None:
        """It answered, from a moment on."""
        self.answers = True
        if answer.document is not None:
            self.document = answer.document
        self.leak = answer.leak
        self.until_nanos = began_nanos + answer.valid_for_ms * _MS
        self._observed_nanos = began_nanos - answer.observed_ms_ago * _MS

    def remember(self, document: "Document", age_ms: int, now_nanos: int) -> None:
        """What a broker's disk has of it, at the broker's start."""
        self.document = document
        self._observed_nanos = now_nanos - age_ms * _MS
        self.until_nanos = self._observed_nanos + document.valid_for_ms * _MS

    def counts_more_than(self, other: "LastAnswer") -> bool:
        """Of two with valid documents."""
        one, two = self.document, other.document
        assert one is not None
        assert two is not None
        if one.rank != two.rank:
            return one.rank > two.rank
        if one.sees_violation and one.factors.factor != two.factors.factor:
            return one.factors.factor < two.factors.factor
        if one.says_stop != two.says_stop:
            return one.says_stop
        return self._observed_nanos > other._observed_nanos


def counting(own: LastAnswer, others: Sequence[LastAnswer], now_nanos: int) -> list[LastAnswer]:
    """Whose word counts."""
    if own.document is not None and own.document.lifts and own.is_valid(now_nanos):
        return [own]
    valid = [last for last in (own, *others) if last.is_valid(now_nanos)]
    any_sees = any(each.sees for each in valid)
    if any(each.answers and each.sees == any_sees for each in valid):
        valid = [each for each in valid if each.answers]
    return valid


def leak_of(own: LastAnswer, words: Sequence[LastAnswer]) -> Leak:
    """The own sidecar's where that sees a violation, else the smallest of those that count."""
    if own in words and own.answers and own.document and own.document.sees_violation:
        return own.leak
    return min((WHOLE, *(last.leak for last in words)), key=lambda leak: leak.share)


def strictest(words: Sequence[LastAnswer]) -> LastAnswer | None:
    """Of those that count the one that says most; None: there is none."""
    best: LastAnswer | None = None
    for last in words:
        if best is None or last.counts_more_than(best):
            best = last
    return best
