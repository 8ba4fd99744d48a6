"""One run as data, and what follows from it: crossings, blindness, returns.

Nothing here measures, and nothing has a clock: times are seconds from the beginning of the run.

Example: the volume of broker 0 is at its limit at 30 s, 9 MB past it at 41 s, and free at 50 s. Its
callback throttled by what it saw itself, since no sidecar was there, and one released it:
``Crossing(0, 30.0, 50.0, 9e6, 41.0, 9e6, 0, ..., throttled=(SourceUse("LOCAL", 31.0),),
released=SourceUse("SIDECAR", 50.2))``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_lab.series import Series
from tests.chaos.bound import Bound
from tests.chaos.samples import CallbackSight, Sample
from tests.chaos.schedule import Plan

SETTLED_S: Final = 5.0
"""A process that has run for so long since its last fault has no excuse left."""
CAUGHT_UP_S: Final = 10.0
"""A broker that has run for so long since its last fault has copied what it missed: at 9 MB/s that
is 108 MB at most, and its clients' leaders are where they were."""
BACK_SHARE: Final = 0.9
BACK_WINDOW_S: Final = 2.0
_STEP_S: Final = 0.25
_SPARE_S: Final = 1.0
"""How late a sample may be."""
_BEAN_S: Final = 0.5
"""How old a callback's report in a sample may be."""
_WAITS_S: Final = 12.0
"""A callback's request waits for at most 10 s, and its answer is not older."""
_SIGHTS: Final = frozenset({"SIDECAR", "LOCAL"})
"""Sources that see the volumes."""


@dataclass(frozen=True, slots=True)
class Producer:
    """One producer's course.

    Attributes:
        name: its kind, and where to.
        target: what it sends while nothing throttles it, bytes a second.
        acknowledged: bytes so far.
        longest_throttle_s: the longest throttle time that a broker reported to it.
        failed_records: those that it gave up.
        last_failure: why the last of them was; None without any.
    """

    name: str
    target: float
    acknowledged: Series
    longest_throttle_s: float
    failed_records: int
    last_failure: str | None = None


@dataclass(slots=True, kw_only=True)
class Watched:
    """A whole run of a scenario, or as much of it as there was.

    Attributes:
        seed: decides what happens, with the duration.
        duration_s: how long it was to be, seconds.
        limit_bytes: available bytes at which a volume violates.
        refuses: whether brokers have the authorizer too, and not the quota callback alone.
        samples: one a second.
        producers: of all kinds.
        events: what happened, (seconds, words).
        tracebacks: one for each in a log: whose, and its last line.
        ended: tasks and processes that ended and that no fault had ended, (seconds, words).
    """

    seed: int
    duration_s: float
    limit_bytes: int
    refuses: bool = True
    samples: list[Sample] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    ended: list[tuple[float, str]] = field(default_factory=list)

    @property
    def ran_s(self) -> float:
        """How long it was."""
        return self.samples[-1].at_s if self.samples else 0.0


@dataclass(slots=True, kw_only=True)
class Course(Watched):
    """A run of the scenario with faults.

    Attributes:
        plan: what was to happen.
        bound: of this cluster.
        scenario: its name.
    """

    plan: Plan
    bound: Bound
    scenario: str = "faults"

    @property
    def seen_within_s(self) -> float:
        """How long a violation of a settled broker may stay unseen by a settled sidecar."""
        return self.bound.rules.heard_s + _SPARE_S

    @property
    def throttles_within_s(self) -> float:
        """How long a settled broker's own volume may violate before its callback is seen to act."""
        return self.bound.rules.eyes_s + _SPARE_S + _BEAN_S


@dataclass(frozen=True, slots=True)
class SourceUse:
    """The source that a callback used, from a moment on.

    Attributes:
        source: SIDECAR, LOCAL, FORECAST, FALLBACK or DISABLED.
        at_s: when it was first seen to use it.
    """

    source: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """A volume at or below its limit, from one moment to another.

    Attributes:
        broker_id: whose volume.
        begin_s: since when.
        end_s: until when; that of the last sample where it did not end.
        past_bytes: the most that it was past the limit.
        past_at_s: when that was.
        clients_bytes: the most that it was past the limit while its broker had nothing to catch up
            with: what clients landed. What a replica fetches that was away, others have already.
        ahead_bytes: the most that another broker's volume had above the limit when no sidecar
            answered and none had throttled by this crossing: that broker can't know, and leads on
            until its own volume is at the limit. 0 where a sidecar saw the crossing.
        behind_s: for how long its broker had been away that had not caught up at ``past_at_s``; 0.0
            where it had.
        moves: how often leaders have moved until then: of each broker that a fault took, there and
            back.
        throttled: the sources by which its callback throttled, each once, in order.
        released: the source by which it was released; None: not seen before the next crossing.
    """

    broker_id: int
    begin_s: float
    end_s: float
    past_bytes: int
    past_at_s: float
    clients_bytes: int
    ahead_bytes: int
    behind_s: float
    moves: int
    throttled: tuple[SourceUse, ...]
    released: SourceUse | None

    @property
    def violates_s(self) -> float:
        """How long it lasted."""
        return self.end_s - self.begin_s

    def allowed(self, bound: Bound) -> float:
        """How far past the limit the volume may have been, bytes."""
        return bound.bytes(self.violates_s, self.moves, self.behind_s)


@dataclass(frozen=True, slots=True)
class Blind:
    """A sidecar or callback that did not see, from its first such sample to its last one.

    Attributes:
        who: "sidecar 0" or "callback 0".
        begin_s: since when.
        end_s: until when.
        why: in words.
        past_bytes: by how much the fullest volume got further past its limit meanwhile.
    """

    who: str
    begin_s: float
    end_s: float
    why: str
    past_bytes: int


@dataclass(frozen=True, slots=True)
class Return:
    """How long a producer took to be back after a release.

    Attributes:
        name: the producer's.
        release_s: when no volume was at its limit any more.
        back_s: from then to the first 2 s at 90 % of its rate; None: not before the next crossing.
        disturbed: whether a fault began, or was there, between.
    """

    name: str
    release_s: float
    back_s: float | None
    disturbed: bool


def crossings(course: Course) -> list[Crossing]:
    """Those of each volume, by their beginnings."""
    found: list[Crossing] = []
    samples = course.samples
    for broker_id in sorted({key for sample in samples for key in sample.least}):
        run: list[int] = []
        for index, sample in enumerate(samples):
            if sample.least.get(broker_id, course.limit_bytes + 1) <= course.limit_bytes:
                run.append(index)
            elif run and broker_id in sample.least:
                found.append(_crossing(course, broker_id, run, index))
                run = []
        if run:
            found.append(_crossing(course, broker_id, run, len(samples)))
    return sorted(found, key=lambda each: each.begin_s)


def _crossing(course: Course, broker_id: int, run: Sequence[int], end: int) -> Crossing:
    samples = [course.samples[index] for index in run]
    fullest = min(samples, key=lambda sample: sample.least[broker_id])
    until = [each for each in samples if each.at_s <= fullest.at_s]
    later = course.samples[end:]
    caught_up = [each.least[broker_id] for each in samples if _caught_up(each, broker_id)]
    return Crossing(
        broker_id,
        samples[0].at_s,
        (later or samples[-1:])[0].at_s,
        course.limit_bytes - fullest.least[broker_id],
        fullest.at_s,
        course.limit_bytes - min(caught_up, default=course.limit_bytes),
        _ahead_bytes(samples, broker_id, course.limit_bytes),
        _behind_s(course.samples[: course.samples.index(fullest) + 1], broker_id),
        2 * sum(any(not _caught_up(each, other) for each in until) for other in fullest.least),
        tuple(_throttled(samples, broker_id)),
        _released(course, later, broker_id),
    )


def _ahead_bytes(samples: Iterable[Sample], broker_id: int, limit_bytes: int) -> int:
    for sample in samples:
        answers = [each for each in sample.sidecars.values() if each is not None]
        if any(each.factor < 1.0 for each in answers):
            return 0
        if not answers:
            others = (least for other, least in sample.least.items() if other != broker_id)
            return max(0, max(others, default=0) - limit_bytes)
    return 0


def _caught_up(sample: Sample, broker_id: int) -> bool:
    """Whether a broker has had the time; at the beginning of a run nobody lacks anything."""
    ran_s = sample.steady_s.get(f"broker {broker_id}")
    return ran_s is not None and ran_s >= min(CAUGHT_UP_S, sample.at_s)


def _behind_s(samples: Sequence[Sample], broker_id: int) -> float:
    """For how long a broker was away the last time, if it has not caught up in the last sample."""
    if _caught_up(samples[-1], broker_id):
        return 0.0
    end_s = samples[-1].at_s
    for sample in reversed(samples):
        if not sample.runs(broker_id):
            continue
        if _caught_up(sample, broker_id):
            return end_s - sample.at_s
        end_s = sample.at_s
    return end_s


def _throttled(samples: Iterable[Sample], broker_id: int) -> Iterator[SourceUse]:
    seen: set[str] = set()
    for sample in samples:
        sight = sample.callbacks.get(broker_id)
        if sight is not None and sight.throttles and sight.source not in seen:
            seen.add(sight.source)
            yield SourceUse(sight.source, sample.at_s)


def _released(course: Course, later: Iterable[Sample], broker_id: int) -> SourceUse | None:
    for sample in later:
        if sample.least.get(broker_id, course.limit_bytes + 1) <= course.limit_bytes:
            return None
        sight = sample.callbacks.get(broker_id)
        if sight is not None and not sight.throttles:
            return SourceUse(sight.source, sample.at_s)
    return None


def blindness(course: Course) -> list[Blind]:
    """Each sidecar and callback that did not see, by their beginnings."""
    found: list[Blind] = []
    open_: dict[str, tuple[str, Sample, Sample]] = {}
    for sample, violates_s in _violations(course):
        blind = blind_in(sample, violates_s, course.seen_within_s)
        over = [who for who, (why, _, _) in open_.items() if blind.get(who) != why]
        found += [_blind(course, who, *open_.pop(who)) for who in over]
        for who, why in blind.items():
            begin = open_[who][1] if who in open_ else sample
            open_[who] = (why, begin, sample)
    found += [_blind(course, who, *each) for who, each in open_.items()]
    return sorted(found, key=lambda each: (each.begin_s, each.who))


def _blind(course: Course, who: str, why: str, begin: Sample, end: Sample) -> Blind:
    grown = _past(course, end) - _past(course, begin)
    return Blind(who, begin.at_s, end.at_s, why, max(0, grown))


def _past(course: Course, sample: Sample) -> int:
    return max(0, course.limit_bytes - min(sample.available.values(), default=course.limit_bytes))


def _violations(course: Course) -> Iterator[tuple[Sample, dict[int, float]]]:
    """Each sample, with for how long each settled broker's volume has violated, if it does."""
    since: dict[int, float] = {}
    for sample in course.samples:
        for broker_id, available in sample.available.items():
            settled = sample.steady_s.get(f"broker {broker_id}", 0.0) >= SETTLED_S
            if available <= course.limit_bytes and settled:
                since.setdefault(broker_id, sample.at_s)
            else:
                since.pop(broker_id, None)
        yield sample, {broker_id: sample.at_s - at_s for broker_id, at_s in since.items()}


def blind_in(
    sample: Sample, violates_s: Mapping[int, float], seen_within_s: float
) -> dict[str, str]:
    """The sidecars and callbacks that do not see in a second, and why.

    Args:
        sample: the second.
        violates_s: broker id -> for how long its volume has violated where all could see it.
        seen_within_s: how long that may stay unseen.
    """
    unseen = [broker_id for broker_id, for_s in violates_s.items() if for_s > seen_within_s]
    missed = f"does not see the volume of broker {unseen[0]}" if unseen else ""
    blind: dict[str, str] = {}
    for broker_id, sidecar in sample.sidecars.items():
        who = f"sidecar {broker_id}"
        if sidecar is None:
            away = who not in sample.steady_s
            blind[who] = "away" if away else "does not answer"
        elif not sidecar.sees:
            blind[who] = f"goes by {sidecar.source}" if sidecar.is_ready else "not ready"
        elif missed and sidecar.factor >= 1.0:
            blind[who] = missed
    for broker_id, callback in sample.callbacks.items():
        # A broker that is away takes nothing: there is nothing to be seen.
        if sample.runs(broker_id):
            why = _callback(callback, unseen=bool(unseen))
            if why:
                blind[f"callback {broker_id}"] = why
    return blind


def _callback(callback: CallbackSight | None, *, unseen: bool) -> str:
    if callback is None:
        return "JMX does not answer"
    if callback.source not in _SIGHTS:
        return f"goes by {callback.source}"
    if unseen and not callback.throttles:
        return "does not throttle"
    return "had no answer for 12 s" if callback.age_s > _WAITS_S else ""


def unseen_by_the_settled(course: Course) -> list[tuple[float, str]]:
    """Sidecars without an excuse that say 1.0 by observation while a volume violates."""
    found: list[tuple[float, str]] = []
    for sample, violates_s in _violations(course):
        blind = blind_in(sample, violates_s, course.seen_within_s)
        for broker_id, sidecar in sample.sidecars.items():
            who = f"sidecar {broker_id}"
            settled = sample.steady_s.get(who, 0.0) >= SETTLED_S + course.seen_within_s
            if sidecar is not None and sidecar.sees and who in blind and settled:
                found.append((sample.at_s, f"{who} {blind[who]}"))
    return found


def unthrottled(course: Course) -> list[tuple[float, str]]:
    """Settled brokers that do not throttle although their own volumes violate."""
    return [
        (sample.at_s, f"broker {broker_id}, going by {sight.source}")
        for sample, violates_s in _violations(course)
        for broker_id, for_s in violates_s.items()
        if for_s > course.throttles_within_s
        and (sight := sample.callbacks.get(broker_id)) is not None
        and not sight.throttles
    ]


def releases(course: Course) -> list[tuple[float, float]]:
    """When no volume violated any more, and until when that was so, seconds each."""
    found: list[tuple[float, float]] = []
    violated = False
    begin_s: float | None = None
    for sample in course.samples:
        violates = _past(course, sample) > 0
        if violates and begin_s is not None:
            found.append((begin_s, sample.at_s))
            begin_s = None
        if violated and not violates:
            begin_s = sample.at_s
        violated = violates
    if begin_s is not None:
        found.append((begin_s, course.samples[-1].at_s))
    return found


def returns(course: Course) -> list[Return]:
    """How long each producer took after each release."""
    return [
        _return(course, producer, begin_s, end_s)
        for begin_s, end_s in releases(course)
        for producer in course.producers
    ]


def _return(course: Course, producer: Producer, begin_s: float, end_s: float) -> Return:
    acknowledged = producer.acknowledged
    least = BACK_SHARE * producer.target
    back_s: float | None = None
    for step in range(int((end_s - begin_s - BACK_WINDOW_S) / _STEP_S) + 1 if acknowledged else 0):
        at_s = begin_s + step * _STEP_S
        if acknowledged.rate(at_s, at_s + BACK_WINDOW_S) >= least:
            back_s = at_s - begin_s
            break
    until_s = end_s if back_s is None else begin_s + back_s
    disturbed = any(
        fault.begin_s <= until_s and fault.end_s + SETTLED_S >= begin_s
        for fault in course.plan.faults
    )
    return Return(producer.name, begin_s, back_s, disturbed)
