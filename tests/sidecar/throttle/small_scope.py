"""A search through all short lives of a small cluster, by the rules alone.

Two brokers have two volumes each. One event happens after another: a whole or a partial
observation, a failed poll a validity later, the end of all validities, or a forget. A search in
breadth visits every sequence of events up to a depth, and tries an override in each state. Two
sequences are one state if no later decision can differ: times count as ages, ages beyond the
validity are one age, and the two brokers and the two volumes of a broker may change places.

Beside the program's memory, each state has a ``Ghost``: what each broker last answered and when,
what was fenced since, and what an operator forgot. The claims compare each decision with the ghost
alone.

``python -m tests.sidecar.throttle.small_scope`` prints how much the search visits.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override, Slope, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import TURN_S, SlopeRules
from sidecar.volumes import Failure, FailureKind, Observation, Reading
from tests.sidecar.throttle.build import partial, reading, whole

VALIDITY_S: Final = 100.0
FALLBACK: Final = 0.5
OVERRIDE: Final = 0.25
LOG_DIRS: Final = ("/d0", "/d1")
LIMIT, MARGIN, STOP_LINE, SOFT_LIMIT = 300, 100, 100, 600
SIZES: Final[Mapping[str, int]] = {
    "roomy": 800,
    "soft": 450,
    "near": 350,
    "full": 250,
    "low": 110,
    "stopped": 100,
}
"""Available bytes: near is within the release margin, low within the stop line's margin."""
OFFLINE, UNREADABLE = "offline", "unreadable"
SILENT, FENCED, LEFT = "is silent", "is fenced", "left"
NO_ANSWER: Final = Failure(FailureKind.CONNECT, "nothing listens")

Answer = tuple[str, str] | str
"""What a broker's two log dirs show, or why the broker did not answer."""


@dataclass(frozen=True)
class Scope:
    """What is searched.

    Attributes:
        sizes: what a log dir may show.
        lists_fenced: whether a list of brokers has the fenced ones: always, never, or either.
        margin: the release margin in bytes.
        stop_line: whether a stop line is set.
        soft_limit: whether a soft limit is set.
        depth: the number of events of the longest sequences.
    """

    sizes: tuple[str, ...]
    lists_fenced: tuple[bool, ...] = (True,)
    margin: int = 0
    stop_line: bool = False
    soft_limit: bool = False
    depth: int = 5

    def factors(self) -> VolumeLimit:
        """The factor source with these rules."""
        rules = Rules(
            MinAvailableBytes(LIMIT, self.margin),
            VALIDITY_S,
            MinAvailableBytes(STOP_LINE) if self.stop_line else None,
            SlopeRules(MinAvailableBytes(SOFT_LIMIT)) if self.soft_limit else None,
        )
        return VolumeLimit(rules, FALLBACK)


SCOPES: Final[Mapping[str, Scope]] = {
    "limit": Scope(("roomy", "full"), depth=8),
    "before Kafka 4.0": Scope(("roomy", "full"), (False,), depth=8),
    "during an upgrade": Scope(("roomy", "full"), (True, False), depth=5),
    "release margin": Scope(("roomy", "near", "full"), margin=MARGIN, depth=5),
    "stop line": Scope(("roomy", "low", "stopped"), stop_line=True, depth=5),
    "unreadable": Scope(("roomy", "full", UNREADABLE), depth=5),
    "offline": Scope(("roomy", "full", OFFLINE), depth=5),
    "soft limit": Scope(("roomy", "soft"), soft_limit=True, depth=5),
}


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


class SeenVolume(NamedTuple):
    """A log dir as its broker last answered.

    Attributes:
        size: the last sizes that count; None without any.
        read_at: when they were read.
        violates: whether they violate, by the limit and the margin.
        shows: what the last answer has: "sizes", offline or unreadable.
    """

    size: str | None = None
    read_at: float = -math.inf
    violates: bool = False
    shows: str = "sizes"


class SeenBroker(NamedTuple):
    """A broker as last listed and as it last answered.

    Attributes:
        place: "active", FENCED or LEFT.
        answered_at: when it last answered.
        was_fenced: whether it was listed as fenced since.
        absent_since: since when lists of the fenced brokers lack it; None if the last has it.
        volumes: its log dirs.
    """

    place: str = "active"
    answered_at: float = -math.inf
    was_fenced: bool = False
    absent_since: float | None = None
    volumes: tuple[SeenVolume, SeenVolume] = (SeenVolume(), SeenVolume())

    @property
    def seen_at(self) -> float:
        """When all its log dirs were seen: with sizes, or offline, where nothing is written."""
        unreadable = (each for each in self.volumes if each.shows == UNREADABLE)
        return min(self.answered_at, *(each.read_at for each in unreadable), math.inf)

    def counts(self, now: float) -> bool:
        """Whether its violations count at an observation."""
        return self.was_fenced or is_fresh(self.answered_at, now)

    def again(self, now: float) -> tuple[str, str]:
        """The answer that repeats its last one; roomy for what no longer counts."""
        first, second = (
            "roomy"
            if not each.violates and not is_fresh(self.answered_at, now)
            else each.size or "roomy"
            if each.shows == "sizes"
            else each.shows
            for each in self.volumes
        )
        return first, second


class Ghost(NamedTuple):
    """What the rules need to know of the past.

    Attributes:
        brokers: the brokers 1 and 2.
        listed_at: when they were last listed.
        whole_at: the oldest of what the last sight of all active brokers was made of.
    """

    brokers: tuple[SeenBroker, SeenBroker] = (SeenBroker(), SeenBroker())
    listed_at: float = -math.inf
    whole_at: float = -math.inf

    def violating(self, now: float) -> dict[tuple[int, str], float]:
        """Broker and log dir -> when its violation was last shown, for those that count."""
        return {
            (number, log_dir): self.shown_at(broker, volume)
            for number, broker in enumerate(self.brokers, 1)
            for log_dir, volume in zip(LOG_DIRS, broker.volumes, strict=True)
            if volume.violates and broker.counts(now)
        }

    def shown_at(self, broker: SeenBroker, volume: SeenVolume) -> float:
        """When a violation was last shown: by sizes, a later answer, or a list with the broker."""
        return max(
            volume.read_at, broker.answered_at, self.listed_at if broker.was_fenced else -math.inf
        )

    def sight(self) -> float:
        """The oldest of what all active brokers and the list show; minus infinity without."""
        active = [broker.seen_at for broker in self.brokers if broker.place == "active"]
        return min(self.listed_at, *active) if active else -math.inf

    def after(self, event: Event, now: float, scope: Scope) -> "Ghost":
        """The ghost after an event."""
        match event.kind:
            case "forget":
                brokers = list(self.brokers)
                brokers[event.broker - 1] = forgotten(self.brokers[event.broker - 1], event.log_dir)
                ghost = self._replace(brokers=(brokers[0], brokers[1]))
                # Only where a violation was forgotten, the rest is looked at again.
                return ghost._replace(whole_at=ghost.sight()) if self.violating(now) else ghost
            case "whole" | "partial":
                ghost = self.listed(event, now, scope) if event.kind == "whole" else self
                answers = dict(event.answers)
                first, second = (
                    answered(broker, answers.get(number), now, scope)
                    for number, broker in enumerate(ghost.brokers, 1)
                )
                ghost = ghost._replace(brokers=(first, second))
                sight = ghost.sight()
                whole_at = sight if is_fresh(sight, now) else ghost.whole_at
                return ghost._replace(whole_at=whole_at)
        return self

    def listed(self, event: Event, now: float, scope: Scope) -> "Ghost":
        """The ghost after a list of the brokers."""
        answers = dict(event.answers)
        first, second = (
            placed(broker, answers[number], now, event.lists_fenced, scope)
            for number, broker in enumerate(self.brokers, 1)
        )
        return self._replace(brokers=(first, second), listed_at=now)


def is_fresh(at: float, now: float) -> bool:
    """Whether what was seen still counts."""
    return now <= at + VALIDITY_S


def forgotten(broker: SeenBroker, log_dir: str | None) -> SeenBroker:
    """A broker after an operator had it, or one of its log dirs, forgotten."""
    if log_dir is None:
        return SeenBroker(broker.place)
    if broker.answered_at == -math.inf:
        return broker
    volumes = [
        SeenVolume(shows=volume.shows) if path == log_dir else volume
        for path, volume in zip(LOG_DIRS, broker.volumes, strict=True)
    ]
    return broker._replace(volumes=(volumes[0], volumes[1]))


def placed(
    broker: SeenBroker, answer: Answer, now: float, lists_fenced: bool, scope: Scope
) -> SeenBroker:
    """A broker after a list that has it as active, as fenced, or not at all."""
    if answer not in {FENCED, LEFT}:
        return broker._replace(place="active", absent_since=None)
    place = str(answer)
    absent_since = broker.absent_since
    if lists_fenced:
        absent_since = None if place == FENCED else now if absent_since is None else absent_since
    kept = [
        volume
        if volume.violates or (scope.soft_limit and volume.size == "soft")
        else SeenVolume(shows=volume.shows)
        for volume in broker.volumes
    ]
    left = broker._replace(
        place=place,
        was_fenced=broker.was_fenced or (place == FENCED and lists_fenced),
        absent_since=absent_since,
        volumes=(kept[0], kept[1]),
    )
    if lists_fenced and absent_since is not None:
        stays = is_fresh(absent_since, now)
    else:
        stays = left.counts(now)
    return left if stays and any(volume.size for volume in kept) else SeenBroker(place)


def answered(broker: SeenBroker, answer: Answer | None, now: float, scope: Scope) -> SeenBroker:
    """A broker after its answer."""
    if answer is None or isinstance(answer, str):
        return broker
    volumes = [
        shown(volume, shows, now, scope)
        for volume, shows in zip(broker.volumes, answer, strict=True)
    ]
    return SeenBroker("active", now, volumes=(volumes[0], volumes[1]))


def shown(volume: SeenVolume, shows: str, now: float, scope: Scope) -> SeenVolume:
    """A log dir after its broker's answer."""
    if shows in {OFFLINE, UNREADABLE}:
        return volume._replace(shows=shows)
    needed = LIMIT + (scope.margin if volume.violates else 0)
    return SeenVolume(shows, now, SIZES[shows] <= needed)


@dataclass(frozen=True)
class State:
    """What is known after some events.

    Attributes:
        memory: what the program remembers.
        ghost: what the rules need.
        now: steady seconds.
        before: the state before the last event; None at the beginning.
        event: the last event.
    """

    memory: Memory
    ghost: Ghost
    now: float
    before: "State | None" = None
    event: Event | None = None

    def story(self) -> str:
        """The events that led here, one a line."""
        lines: list[str] = []
        state: State | None = self
        while state is not None and state.event is not None:
            lines.append(f"{state.now / VALIDITY_S:g}: {state.event}")
            state = state.before
        return "\n".join(reversed(lines))


def events(state: State, scope: Scope) -> Iterator[Event]:
    """Everything that can happen next."""
    yield from (Event("fail"), Event("expire"))
    for number in (1, 2):
        yield from (Event("forget", broker=number, log_dir=each) for each in (None, *LOG_DIRS))
        yield from observations(state, number, scope)


def observations(state: State, number: int, scope: Scope) -> Iterator[Event]:
    """The observations in which one broker changes, and the one beside it repeats its answer."""
    brokers = state.ghost.brokers
    broker = brokers[number - 1]
    again = broker.again(state.now)
    readings = {again}
    for size in scope.sizes:
        readings |= {(size, again[1]), (again[0], size)}
    readings_and_silent: list[Answer] = [*sorted(readings), SILENT]
    if broker.place == "active" and state.memory.membership is not None:
        for answer in readings_and_silent:
            yield Event("partial", ((number, answer),))
    other = 3 - number
    place = brokers[other - 1].place
    beside: Answer = place if place != "active" else brokers[other - 1].again(state.now)
    for lists_fenced in scope.lists_fenced:
        # Without the fenced brokers in the list, a fenced broker is one that left.
        gone = [FENCED, LEFT] if lists_fenced else [LEFT]
        for answer in (*readings_and_silent, *gone):
            yield Event("whole", pair(number, answer, beside), lists_fenced)
        if place == "active":
            for answer in (SILENT, *gone):
                yield Event("whole", pair(number, answer, SILENT), lists_fenced)


def pair(number: int, answer: Answer, beside: Answer) -> tuple[tuple[int, Answer], ...]:
    """The answers of a broker and of the one beside it."""
    return ((1, answer), (2, beside)) if number == 1 else ((1, beside), (2, answer))


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


def step(state: State, event: Event, factors: VolumeLimit, scope: Scope) -> State:
    """The state after an event, a tick later."""
    now, memory = state.now, state.memory
    match event.kind:
        case "expire":
            now += 2 * VALIDITY_S
        case "fail":
            now += VALIDITY_S
            memory = fail(memory, NO_ANSWER)
        case "forget":
            memory = factors.forget(memory, event.broker, event.log_dir)
        case _:
            memory = factors.fold(memory, observation(event, now))
    return State(memory, state.ghost.after(event, now, scope), now, state, event)


def key(state: State) -> tuple[object, ...]:
    """Equal for states after which no decision can differ, but for the brokers' names."""
    memory, ghost, now = state.memory, state.ghost, state.now
    computed, slope = memory.computed, memory.slope
    oldest = now - 2 * VALIDITY_S

    def age(at: float | None) -> float:
        return -1.0 if at is None else now - max(at, oldest)

    if computed is not None and not computed.violations and not is_fresh(computed.computed_at, now):
        computed = None
    throttling = {} if computed is None else named(computed.violations)
    stopping = {} if computed is None else named(computed.at_stop_line)
    brokers: list[Any] = []
    for number, seen in enumerate(ghost.brokers, 1):
        broker = memory.brokers.get(number)
        known = {} if broker is None else {each.volume.log_dir: each for each in broker.volumes}
        is_read = is_fresh(seen.answered_at, now)
        volumes: list[Any] = []
        for log_dir, volume in zip(LOG_DIRS, seen.volumes, strict=True):
            name = (number, log_dir)
            kept, counted = known.get(log_dir), throttling.get(name)
            if not (is_read or volume.violates or counted or slope):
                # A reading that is too old is as none.
                volumes.append(())
                continue
            volumes.append(
                (
                    volume[0] or "",
                    age(volume.read_at),
                    *volume[2:],
                    ()
                    if kept is None
                    else (
                        kept.volume.available_bytes,
                        kept.violates,
                        kept.online,
                        age(kept.read_at),
                    ),
                    ()
                    if counted is None
                    else (counted.volume.available_bytes, age(counted.read_at), name in stopping),
                    () if slope is None else filling(slope, name, kept),
                )
            )
        volumes.sort()
        if volumes == [(), ()]:
            brokers.append((seen.place == "active",))
            continue
        brokers.append(
            (
                seen.place == "active",
                seen[0],
                age(seen.answered_at),
                seen.was_fenced,
                age(seen.absent_since),
                ()
                if broker is None
                else (age(broker.read_at), broker.retained, age(broker.missing_since)),
                *volumes,
            )
        )
    brokers.sort()
    return (
        *brokers,
        age(ghost.listed_at),
        age(memory.membership_at),
        None
        if computed is None
        else (
            computed.factor,
            age(computed.computed_at),
            -1.0 if throttling else age(ghost.whole_at),
        ),
        None
        if slope is None
        else (slope.factor, round(slope.height, 2), round(slope.mean, 2), age(slope.at)),
        None if slope is None else (now - slope.fell_at < TURN_S, slope.falls),
    )


def filling(slope: Slope, name: tuple[int, str], kept: VolumeState | None) -> tuple[object, ...]:
    """What the slope knows of a volume; readings are a tick apart, so the last rate is enough."""
    learned = slope.learned.get(name)
    rate = None if kept is None else kept.fill.bytes_per_second
    return (
        -1e9 if rate is None else rate,
        *(() if learned is None else (round(learned.first_rate, 2), round(learned.written, 2))),
    )


def named(states: tuple[VolumeState, ...]) -> dict[tuple[int, str], VolumeState]:
    """The volumes by broker and log dir."""
    return {(state.volume.broker_id, state.volume.log_dir): state for state in states}


def check_edge(before: State, after: State, factors: VolumeLimit, scope: Scope) -> None:
    """The claims about what an event may change.

    Raises:
        AssertionError: a claim does not hold.
    """
    assert after.event is not None
    now, kind = after.now, after.event.kind
    was, decision = factors.decide(before.memory, now), factors.decide(after.memory, now)
    check_moment(after, decision, scope)
    if kind in {"fail", "expire"}:
        assert identity(was) == identity(decision), "only time changes a decision without news"
        return
    if kind == "forget":
        # What counted when the factor was computed, and was not read with room since.
        still = set(after.ghost.violating(now if was.computed_at is None else was.computed_at))
        assert log_dirs(decision) == log_dirs(was) or log_dirs(decision) <= still, (
            "a volume that has room is not named"
        )
        if decision.computed_at is not None:
            # Where the forgotten violation was the only one, the factor is as old as the rest,
            # which may be younger than the violation was.
            oldest = was.computed_at if decision.violations else after.ghost.whole_at
            assert oldest is not None, "forgetting begins no throttle"
            assert decision.computed_at <= oldest, "forgetting renews nothing"
        lost = log_dirs(was) - log_dirs(decision)
        assert (
            all(
                (broker == after.event.broker and after.event.log_dir in {None, log_dir})
                or (broker, log_dir) not in still
                for broker, log_dir in lost
            )
            or decision.source is Source.FALLBACK
        ), "forgetting drops no other violation"
        return
    if decision.computed_at is not None and was.computed_at is not None:
        same = log_dirs(was) == log_dirs(decision)
        # Without a violation the time is that of the oldest reading, so a broker that joined
        # with an older one may set it back.
        assert not (same and was.violations and decision.computed_at < was.computed_at), (
            "the time of the factor goes back while the same volumes violate"
        )
    violating = after.ghost.violating(now)
    is_whole = is_fresh(after.ghost.sight(), now)
    if violating:
        assert log_dirs(decision) >= {
            name for name, shown_at in violating.items() if is_fresh(shown_at, now)
        }, "each violation that counts is published"
    elif is_whole:
        assert decision.source is Source.OBSERVATION, "a whole sight ends the fallback"
        assert not decision.violations, "a whole sight without a violation releases"
        assert scope.soft_limit or decision.factor == 1.0, "a whole sight releases"
    if decision.factor > was.factor:
        assert is_whole, "the factor rises without a sight of every active broker"
        assert not violating, "the factor rises while a violation counts"
    if scope.soft_limit and was.source is decision.source is Source.OBSERVATION:
        on_slope = any(
            broker.was_fenced and volume.size == "soft"
            for old, broker in zip(before.ghost.brokers, after.ghost.brokers, strict=True)
            if old.volumes == broker.volumes
            for volume in broker.volumes
        )
        assert not (on_slope and decision.factor > was.factor > 0.0), (
            "the factor rises while a broker on the slope is fenced"
        )
    if scope.stop_line:
        check_stop(was, decision, violating, after.ghost)


def check_moment(state: State, decision: Decision, scope: Scope) -> None:
    """The claims about a decision at one moment."""
    now, ghost = state.now, state.ghost
    shown = [at for at in ghost.violating(now).values() if is_fresh(at, now)]
    if shown:
        assert decision.factor == 0.0, "a violation that counts throttles"
        assert decision.source is Source.OBSERVATION, "a violation that counts is the source"
    if decision.source is Source.FALLBACK:
        assert decision.factor == FALLBACK, "the fallback is the one that is set"
        assert not decision.violations, "the fallback has no violations"
        return
    assert decision.computed_at is not None, "an observation has its time"
    if decision.violations:
        assert decision.factor == 0.0, "a published violation throttles"
        remembered = {
            (number, log_dir)
            for number, broker in enumerate(ghost.brokers, 1)
            for log_dir, volume in zip(LOG_DIRS, broker.volumes, strict=True)
            if volume.violates
        }
        # Until all active brokers are seen, the last factor stays for its validity.
        assert log_dirs(decision) <= remembered or not is_fresh(ghost.sight(), now), (
            "no volume throttles that was seen otherwise"
        )
    else:
        assert is_fresh(ghost.whole_at, now), "without a whole sight the fallback applies"
        assert decision.factor == 1.0 or (scope.soft_limit and decision.factor > 0.0), (
            "only a violation throttles"
        )
    assert set(decision.at_stop_line) <= set(decision.violations), "the stop line implies the limit"


def check_stop(
    was: Decision, decision: Decision, violating: Mapping[tuple[int, str], float], ghost: Ghost
) -> None:
    """The claims about the stop line after an observation."""
    sizes = [
        SIZES[ghost.brokers[broker - 1].volumes[LOG_DIRS.index(log_dir)].size or "roomy"]
        for broker, log_dir in violating
    ]
    if not violating or decision.source is not Source.OBSERVATION:
        return
    at_line = any(size <= STOP_LINE for size in sizes)
    within_margin = any(size <= 1.1 * STOP_LINE for size in sizes)
    if was.stop_line_reached:
        assert decision.stop_line_reached == within_margin, "a stop ends above the margin alone"
    else:
        assert decision.stop_line_reached == at_line, "a stop begins at the line alone"


def check_state(state: State, factors: VolumeLimit) -> None:
    """The claims about what follows from a state without news, and about an override."""
    memory, now = state.memory, state.now
    for known in (
        memory,
        replace(memory, override=Override(OVERRIDE, "work", now, now + VALIDITY_S / 2)),
    ):
        decision = factors.decide(known, now)
        until = decision.valid_until
        if until is None:
            until = now + 1000 * VALIDITY_S
        else:
            after = factors.decide(known, math.nextafter(until, math.inf))
            assert identity(after) != identity(decision), "the decision ends when it says"
        for moment in ((now + until) / 2, until):
            assert identity(factors.decide(known, moment)) == identity(decision), (
                "the decision lasts as long as it says"
            )
    plain, decision = factors.decide(memory, now), factors.decide(known, now)
    assert (decision.factor, decision.source) == (OVERRIDE, Source.OVERRIDE), "an override applies"
    assert not decision.stop_line_reached, "an override lifts a stop"
    assert decision.violations == plain.violations, "an override hides no violation"


def check_override(
    state: State, event: Event, after: State, factors: VolumeLimit, scope: Scope
) -> None:
    """An override changes nothing that is remembered, so each decision after it is as without."""
    override = Override(OVERRIDE, "work", state.now, state.now + VALIDITY_S)
    with_override = replace(state, memory=replace(state.memory, override=override))
    other = step(with_override, event, factors, scope)
    assert other.memory.override == override, "only an operator ends an override"
    assert key(other) == key(after), "an override changes nothing that is remembered"


def identity(decision: Decision) -> tuple[object, ...]:
    """What makes two decisions differ."""
    at_stop_line = frozenset(each.volume for each in decision.at_stop_line)
    return decision.factor, decision.source, decision.override, log_dirs(decision), at_stop_line


def log_dirs(decision: Decision) -> set[tuple[int, str]]:
    """The violating log dirs."""
    return {(state.volume.broker_id, state.volume.log_dir) for state in decision.violations}


@dataclass
class Visited:
    """What a search visited.

    Attributes:
        depth: the number of events of the longest sequences.
        states: the states, equal ones counted once.
        edges: the events that were tried.
        seconds: the time on one core.
    """

    depth: int = 0
    states: int = 1
    edges: int = 0
    seconds: float = 0.0


def search(scope: Scope) -> Visited:
    """Visits all states within the scope's depth, and checks the claims at each edge.

    Raises:
        AssertionError: a claim does not hold; the message has a shortest sequence of events.
    """
    factors = scope.factors()
    frontier = [State(Memory(), Ghost(), 0.0)]
    known = {key(frontier[0])}
    visited = Visited()
    begin = time.process_time()
    while frontier and visited.depth < scope.depth:
        following = []
        for state in frontier:
            for event in events(state, scope):
                after = step(state, event, factors, scope)
                visited.edges += 1
                try:
                    check_edge(state, after, factors, scope)
                    name = key(after)
                    if name not in known:
                        known.add(name)
                        following.append(after)
                        check_state(after, factors)
                        if not scope.soft_limit:
                            check_override(state, event, after, factors, scope)
                except AssertionError as error:
                    raise AssertionError(f"{error}, but:\n{after.story()}") from error
        frontier = following
        visited.depth += 1
    visited.states = len(known)
    visited.seconds = time.process_time() - begin
    return visited


if __name__ == "__main__":
    for scope_name, searched in SCOPES.items():
        print(scope_name, search(searched), flush=True)
