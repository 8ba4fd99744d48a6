"""A state of the search, and what can happen next in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.throttle.decision import Decision, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.memory import Memory
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


@dataclass(slots=True)
class State:
    """What is known after some events.

    Attributes:
        memory: what the program remembers.
        ghost: what the rules need.
        now: steady seconds.
        decision: the decision at ``now``.
        before: the state before the last event; None at the beginning.
        event: the last event.
        twins: which places are equal; set by the search.
    """

    memory: Memory
    ghost: Ghost
    now: float
    decision: Decision
    before: "State | None" = None
    event: Event | None = None
    twins: Twins = NO_TWINS

    def story(self) -> str:
        """The events that led here, one a line."""
        lines: list[str] = []
        state: State | None = self
        while state is not None and state.event is not None:
            lines.append(f"{state.now / VALIDITY_S:g}: {state.event}")
            state = state.before
        return "\n".join(reversed(lines))


def first(factors: VolumeLimit) -> State:
    """The state before the first event."""
    return State(Memory(), Ghost(), 0.0, factors.decide(Memory(), 0.0))


def step(state: State, event: Event, factors: VolumeLimit, scope: Scope) -> State:
    """The state after an event."""
    now = state.now + WAITS.get(event.kind, 0.0)
    memory = remembered(state.memory, event, now, factors)
    ghost = state.ghost.after(event, now, scope)
    return State(memory, ghost, now, factors.decide(memory, now), state, event)


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


def events(state: State, scope: Scope) -> Iterator[Event]:
    """Everything that can happen next; of events that differ only by equal places, one."""
    yield from (Event("fail"), Event("expire"))
    twins = state.twins
    for number in (1,) if twins.brokers else (1, 2):
        log_dirs = LOG_DIRS[:1] if twins.volumes[number - 1] else LOG_DIRS
        yield from (Event("forget", broker=number, log_dir=each) for each in (None, *log_dirs))
        yield from observations(state, number, scope)


def observations(state: State, number: int, scope: Scope) -> Iterator[Event]:
    """The observations in which one broker changes, and the one beside it repeats its answer."""
    brokers = state.ghost.brokers
    broker = brokers[number - 1]
    again = broker.again(state.now)
    readings = {again, *((size, again[1]) for size in scope.sizes)}
    if not state.twins.volumes[number - 1]:
        readings |= {(again[0], size) for size in scope.sizes}
    readings_and_silent: list[Answer] = [*sorted(readings), SILENT]
    if broker.place == "active" and state.memory.membership is not None:
        for answer in readings_and_silent:
            yield Event("partial", ((number, answer),))
    other = brokers[2 - number]
    beside: Answer = other.place if other.place != "active" else other.again(state.now)
    for lists_fenced in scope.lists_fenced:
        # Without the fenced brokers in the list, a fenced broker is one that left.
        gone = [FENCED, LEFT] if lists_fenced else [LEFT]
        for answer in (*readings_and_silent, *gone):
            yield Event("whole", pair(number, answer, beside), lists_fenced)
        if other.place == "active":
            for answer in (SILENT, *gone):
                yield Event("whole", pair(number, answer, SILENT), lists_fenced)


def pair(number: int, answer: Answer, beside: Answer) -> tuple[tuple[int, Answer], ...]:
    """The answers of a broker and of the one beside it."""
    return ((1, answer), (2, beside)) if number == 1 else ((1, beside), (2, answer))
