"""The events of the search, and the observations that they make.

Example: ``Event("whole", ((1, ("full", "roomy")), (2, SILENT)))`` is an observation in which broker
1 answers with a full and a roomy volume, and broker 2 is active but does not answer.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from sidecar.volumes import Failure, FailureKind, Observation, Reading
from tests.sidecar.throttle.build import partial, reading, whole
from tests.sidecar.throttle.small_scope.scopes import LOG_DIRS, OFFLINE, SIZES, UNREADABLE

SILENT, FENCED, LEFT = "is silent", "is fenced", "left"
NO_ANSWER: Final = Failure(FailureKind.CONNECT, "nothing listens")

Answer = tuple[str, str] | str
"""What a broker's two log dirs show, or why the broker did not answer."""


class Event(NamedTuple):
    """What happens at a tick.

    Attributes:
        kind: "whole", "partial", "fail", "expire" or "forget".
        answers: broker -> its answer, for an observation.
        lists_fenced: whether a whole observation lists the fenced brokers.
        broker: the forgotten broker.
        log_dir: the forgotten log dir; None for all.
    """

    kind: str
    answers: tuple[tuple[int, Answer], ...] = ()
    lists_fenced: bool = True
    broker: int = 0
    log_dir: str | None = None

    def __str__(self) -> str:
        if self.kind == "forget":
            return f"forget broker {self.broker} {self.log_dir or ''}".rstrip()
        said = "; ".join(
            f"broker {broker} {answer if isinstance(answer, str) else ' and '.join(answer)}"
            for broker, answer in self.answers
        )
        without = "" if self.lists_fenced else " (without the fenced brokers)"
        return f"{self.kind}{without}: {said}" if said else self.kind


@lru_cache(maxsize=10_000)
def observation(event: Event, now: float) -> Observation:
    """The observation of an event."""
    answers = dict(event.answers)
    answers_read = [
        said(number, answer, now) for number, answer in answers.items() if isinstance(answer, tuple)
    ]
    silent = [number for number, answer in answers.items() if answer == SILENT]
    if event.kind == "partial":
        return partial(now, answers_read, silent=silent)
    fenced = [number for number, answer in answers.items() if answer == FENCED]
    return whole(now, answers_read, silent=silent, fenced=fenced if event.lists_fenced else None)


@lru_cache(maxsize=1000)
def said(number: int, answer: tuple[str, str], now: float) -> Reading:
    """A broker's answer."""
    shown_by = dict(zip(LOG_DIRS, answer, strict=True))
    return reading(
        number,
        now,
        {log_dir: SIZES[shows] for log_dir, shows in shown_by.items() if shows in SIZES},
        total=1000,
        offline=[log_dir for log_dir, shows in shown_by.items() if shows == OFFLINE],
        unreadable=[log_dir for log_dir, shows in shown_by.items() if shows == UNREADABLE],
    )
