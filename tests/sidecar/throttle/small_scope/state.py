"""A state of the search, and what can happen next in it."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from sidecar.throttle.decision import Decision, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.memory import Memory
from sidecar.volumes import LogDir
from tests.sidecar.throttle.small_scope.events import (
    FENCED,
    LEFT,
    NO_ANSWER,
    SILENT,
    Answer,
    Event,
    observation,
)
from tests.sidecar.throttle.small_scope.ghost import Ghost
from tests.sidecar.throttle.small_scope.key import NO_TWINS, Twins
from tests.sidecar.throttle.small_scope.scopes import LOG_DIRS, VALIDITY_S, Scope

WAITS: Final = {"fail": VALIDITY_S, "expire": 2 * VALIDITY_S}
"""Kind of event -> the seconds that pass before it."""
NONE: Final[Set[LogDir]] = frozenset()


class Story(NamedTuple):
    """The events that led to a state.

    Attributes:
        before: the earlier ones; None without any.
        now: when the last event happened, steady seconds.
        event: the last event.
    """

    before: "Story | None"
    now: float
    event: Event

    def __str__(self) -> str:
        line = f"{self.now / VALIDITY_S:g}: {self.event}"
        return line if self.before is None else f"{self.before}\n{line}"


@dataclass(slots=True)
class State:
    """What is known after some events.

    Attributes:
        memory: what the program remembers.
        ghost: what the rules need.
        now: steady seconds.
        decision: the decision at ``now``.
        named: the log dirs that violate by the decision.
        violating: those that violate by the ghost, and when that was last shown.
        story: the events that led here; None at the beginning.
        twins: which places are equal; set by the search.
    """

    memory: Memory
    ghost: Ghost
    now: float
    decision: Decision
    named: Set[LogDir]
    violating: Mapping[LogDir, float]
    story: Story | None = None
    twins: Twins = NO_TWINS

    @property
    def event(self) -> Event:
        """The last event; not of the first state."""
        assert self.story is not None
        return self.story.event


def first(factors: VolumeLimit) -> State:
    """The state before the first event."""
    return State(Memory(), Ghost(), 0.0, factors.decide(Memory(), 0.0), NONE, {})


def step(state: State, event: Event, factors: VolumeLimit, scope: Scope) -> State:
    """The state after an event."""
    now = state.now + WAITS.get(event.kind, 0.0)
    memory = remembered(state.memory, event, now, factors)
    ghost = state.ghost.after(event, now, scope)
    decision = factors.decide(memory, now)
    story = Story(state.story, now, event)
    return State(memory, ghost, now, decision, log_dirs(decision), ghost.violating(now), story)


def log_dirs(decision: Decision) -> Set[LogDir]:
    """The violating log dirs."""
    if not decision.violations:
        return NONE
    return {(state.volume.broker_id, state.volume.log_dir) for state in decision.violations}


def remembered(memory: Memory, event: Event, now: float, factors: VolumeLimit) -> Memory:
    """The program's memory after an event."""
    match event.kind:
        case "expire":
            return memory
        case "fail":
            return fail(memory, NO_ANSWER)
        case "forget":
            return factors.forget(memory, event.broker, event.log_dir)
        case _:
            return factors.fold(memory, observation(event, now))


def events(state: State, scope: Scope) -> tuple[Event, ...]:
    """Everything that can happen next; of events that differ only by equal places, one."""
    now = state.now
    first, second = ((each.place, each.again(now)) for each in state.ghost.brokers)
    return _events(first, second, state.twins, state.memory.membership is not None, scope)


Place = tuple[str, tuple[str, str]]
"""Where a broker is listed, and the answer that repeats its last one."""


@cache
def _events(
    first: Place, second: Place, twins: Twins, is_listed: bool, scope: Scope
) -> tuple[Event, ...]:
    found = [Event("fail"), Event("expire")]
    for number in (1,) if twins.brokers else (1, 2):
        is_twin = twins.volumes[number - 1]
        log_dirs = LOG_DIRS[:1] if is_twin else LOG_DIRS
        found += [Event("forget", broker=number, log_dir=each) for each in (None, *log_dirs)]
        places = (first, second) if number == 1 else (second, first)
        found += observations(number, *places, scope, is_listed=is_listed, is_twin=is_twin)
    return tuple(dict.fromkeys(found))


def observations(
    number: int, broker: Place, other: Place, scope: Scope, *, is_listed: bool, is_twin: bool
) -> Iterator[Event]:
    """The observations in which one broker changes, and the one beside it repeats its answer."""
    place, again = broker
    readings = {again, *((size, again[1]) for size in scope.sizes)}
    if not is_twin:
        readings |= {(again[0], size) for size in scope.sizes}
    readings_and_silent: list[Answer] = [*sorted(readings), SILENT]
    if place == "active" and is_listed:
        for answer in readings_and_silent:
            yield Event("partial", ((number, answer),))
    other_place, other_again = other
    beside: Answer = other_again if other_place == "active" else other_place
    for lists_fenced in scope.lists_fenced:
        # Without the fenced brokers in the list, a fenced broker is one that left.
        gone = [FENCED, LEFT] if lists_fenced else [LEFT]
        for answer in (*readings_and_silent, *gone):
            yield Event("whole", pair(number, answer, beside), lists_fenced)
        if other_place == "active":
            for answer in (SILENT, *gone):
                yield Event("whole", pair(number, answer, SILENT), lists_fenced)


def pair(number: int, answer: Answer, beside: Answer) -> tuple[tuple[int, Answer], ...]:
    """The answers of a broker and of the one beside it."""
    return ((1, answer), (2, beside)) if number == 1 else ((1, beside), (2, answer))
