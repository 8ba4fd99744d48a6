"""A slow reference of the throttle factor's whole life, written from the rules alone.

It keeps every event that ever happened and answers each question by looking through all of them
again; it folds nothing and remembers nothing. It was written before the code that it is compared
with was read. Where the rules leave room, the readings taken are:

- An offline log dir retains its last state while its broker answers and is gone when no longer
  reported; a healthy or a never seen one blocks nothing. One that is unreadable for another reason
  does so too, but its broker is seen only as long ago as its sizes were.
- The violations of fenced brokers and the last ones of silent members count like those of brokers
  that answered: the factor is 0.0 even if other members are missing.
- A broker that was fenced retains its violation until it answers, is unregistered (for the validity
  lists with the fenced brokers have it neither as active nor as fenced) or is forgotten. To be
  active again without answering ends nothing, and a list without the fenced brokers ends nothing.
- A broker that leaves the active ones without a violation is not remembered when it comes back.
- Partial observations never fail. The time of the computed factor is that of the newest reading
  that shows a violation, or of the last list that has its broker as fenced; without a violation
  that of the oldest member's reading, or of the list of brokers. Once that is older than the
  validity nothing can say that all is well.
- A whole observation without active brokers and without a violation counts as failed.
- An observation with another cluster id is a failed poll while a broker is remembered. If all are
  forgotten, it forgets everything but the override.
- To forget a broker takes its violations out of the computed factor, which is then as old as the
  rest; where that does not suffice, no computed factor is left.
- To start with the fallback is not a transition to it.
- Volumes stop only if they violate the limit. A stop begins with one at or below the stop line.
  While it lasts those stop too that have at most a tenth more, and it has lasted until an
  observation if the computed factor before was valid then; a forgotten broker ends no other's.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from sidecar.throttle.limits import Limit, MinAvailableBytes
from sidecar.volumes import Observation, Reading, Volume

LogDirs = frozenset[tuple[int, str]]
"""Broker ids with the paths of log dirs."""


@dataclass(frozen=True)
class Seen:
    """A poll that returned an observation, whole or partial."""

    observation: Observation

    @property
    def at(self) -> float:
        return self.observation.observed_at


@dataclass(frozen=True)
class Failed:
    """A poll that returned nothing at all."""

    at: float


@dataclass(frozen=True)
class Overridden:
    """An operator set a factor by hand."""

    at: float
    factor: float
    reason: str
    until: float


@dataclass(frozen=True)
class Cleared:
    """An operator ended the override."""

    at: float


@dataclass(frozen=True)
class Forgotten:
    """An operator had a broker, or one of its log dirs, forgotten."""

    at: float
    broker_id: int
    log_dir: str | None = None


@dataclass(frozen=True)
class Restarted:
    """The sidecar started again, with or without its state file."""

    at: float
    with_state: bool


Event = Seen | Failed | Overridden | Cleared | Forgotten | Restarted


@dataclass(frozen=True)
class Computed:
    """The factor that follows from the volumes."""

    factor: float
    computed_at: float
    violating: LogDirs
    stopping: LogDirs = frozenset()


@dataclass(frozen=True)
class InForce:
    """What is in force at one instant: two that differ in anything but ``until`` are a change.

    Attributes:
        until: the last instant at which this is in force without news, or infinity.
    """

    factor: float
    source: str
    violating: LogDirs
    override: Overridden | None
    until: float
    stopping: LogDirs = frozenset()

    @property
    def stop(self) -> bool:
        return self.source == "observation" and self.stopping != frozenset()

    @property
    def identity(self) -> tuple[object, ...]:
        return self.factor, self.source, self.violating, self.stopping, self.override


class Reference:
    """The factor's life under one limit, validity (seconds), fallback and stop line."""

    def __init__(
        self, limit: Limit, validity_s: float, fallback: float, stop_line: Limit | None = None
    ) -> None:
        self.limit = limit
        self.stop_line = stop_line
        self.validity_s = validity_s
        self.fallback = fallback
        self.events: list[Event] = []
        self._pasts: dict[int, _Past] = {}

    def past(self, count: int) -> "_Past":
        """Returns all that follows from the first so many events."""
        if count not in self._pasts:
            self._pasts[count] = _Past(self, tuple(self.events[:count]))
        return self._pasts[count]

    def at(self, now: float) -> InForce:
        """What is in force at an instant, no earlier than the last event."""
        return self.past(len(self.events)).in_force(now)

    def expiries(self, before: float) -> Iterator[tuple[float, InForce]]:
        """The changes that come by themselves after the last event and before an instant.

        Each is reported at the first float after its boundary.
        """
        yield from self.past(len(self.events)).expiries(before)

    def failed_polls(self) -> int:
        """How many polls in a row have failed, the partial ones left out."""
        return self.past(len(self.events)).failed_polls()

    def since_start(self) -> list[InForce]:
        """All that was in force since the sidecar last started, up to the last event."""
        restarts = [n for n, event in enumerate(self.events) if isinstance(event, Restarted)]
        life = [] if restarts else [self.past(0).in_force(-math.inf)]
        for number in range(restarts[-1] if restarts else 0, len(self.events)):
            past = self.past(number + 1)
            life.append(past.in_force(self.events[number].at))
            if number + 1 < len(self.events):
                life.extend(after for _, after in past.expiries(self.events[number + 1].at))
        return life

    def generation(self) -> int:
        """1, and one more for each change since the start."""
        return 1 + sum(a.identity != b.identity for a, b in pairwise(self.since_start()))

    def fallbacks(self) -> int:
        """How often the fallback came into force since the start."""
        sources = [moment.source for moment in self.since_start()]
        return sum(a != "fallback" == b for a, b in pairwise(sources))


class _Past:
    """What follows from all that has happened up to the last of some events.

    Numbers are those of the events. Nothing here changes, so answers are cached, which only saves
    the tests time.
    """

    def __init__(self, reference: Reference, events: Sequence[Event]) -> None:
        self.reference = reference
        self.validity_s = reference.validity_s
        self.events = events
        self.end = len(events)
        blank = [n for n, e in enumerate(events) if isinstance(e, Restarted) and not e.with_state]
        self.begin = blank[-1] if blank else 0
        self.lists = [
            (number, event.observation.membership)
            for number in range(self.begin, self.end)
            if isinstance(event := events[number], Seen)
            and event.observation.membership is not None
            and not self.is_refused(number)
        ]
        self.computed = cache(self._computed)
        self.readings = cache(self._readings)

    # What is in force.

    def in_force(self, now: float) -> InForce:
        override = self.override(now)
        computed = self.computed()
        if computed is not None and now > computed.computed_at + self.validity_s:
            computed = None
        expires = math.inf if computed is None else computed.computed_at + self.validity_s
        violating = frozenset() if computed is None else computed.violating
        stopping = frozenset() if computed is None else computed.stopping
        if override is not None:
            # An override does not hide the violating volumes, and these expire.
            until = min(override.until, expires) if violating else override.until
            return InForce(override.factor, "override", violating, override, until, stopping)
        if computed is not None:
            return InForce(computed.factor, "observation", violating, None, expires, stopping)
        return InForce(self.reference.fallback, "fallback", frozenset(), None, math.inf)

    def expiries(self, before: float) -> Iterator[tuple[float, InForce]]:
        now = -math.inf
        while (until := self.in_force(max(now, self.events[-1].at)).until) < math.inf:
            now = math.nextafter(until, math.inf)
            if now >= before:
                return
            yield now, self.in_force(now)

    def override(self, now: float) -> Overridden | None:
        words = [e for e in self.events[self.begin :] if isinstance(e, Overridden | Cleared)]
        if not words or isinstance(words[-1], Cleared) or now > words[-1].until:
            return None
        return words[-1]

    def failed_polls(self) -> int:
        failed = 0
        for number in range(self.end - 1, self.begin - 1, -1):
            event = self.events[number]
            failed += isinstance(event, Failed)
            if isinstance(event, Seen) and event.observation.membership is not None:
                if self.is_refused(number):
                    failed += 1
                    continue
                past = self.reference.past(number + 1)
                if past.computed_from(event) is not None:
                    break
                failed += 1
                if past.is_another_cluster():
                    break
        return failed

    # What the volumes say.

    def _computed(self) -> Computed | None:
        """The newest computed factor, valid or not."""
        for number in range(self.end - 1, self.begin - 1, -1):
            event = self.events[number]
            past = self.reference.past(number + 1)
            if isinstance(event, Forgotten):
                return past.computed_after_forgetting(event)
            if isinstance(event, Seen) and not self.is_refused(number):
                verdict = past.computed_from(event)
                if verdict is not None or past.is_another_cluster():
                    return verdict
        return None

    def computed_from(self, event: Seen) -> Computed | None:
        """What an observation that has just come settles; None when it does not suffice."""
        listed_at = [self.events[number].at for number, _ in self.lists]
        violating = self.violating(event.at)
        if violating:
            shown_at = self.shown_at(violating)
            before = self.reference.past(self.end - 1).computed()
            # More volumes are shown no earlier than those that violated before.
            violated = before.violating if before and not self.is_another_cluster() else None
            if before and violated and violated <= violating:
                shown_at = max(shown_at, before.computed_at)
            if event.at > shown_at + self.validity_s:
                return None
            stopping = self.stopping(violating, stopped=self.was_stopped(event.at))
            return Computed(0.0, shown_at, violating, stopping)
        if not listed_at or event.at > listed_at[-1] + self.validity_s:
            return None
        if not self.members() or not all(self.is_known(m, event.at) for m in self.members()):
            return None
        return Computed(1.0, self.all_seen_at(), frozenset())

    def computed_after_forgetting(self, event: Forgotten) -> Computed | None:
        """What is left of the factor computed before something was forgotten."""
        before = self.reference.past(self.end - 1).computed()
        if before is None:
            return None
        at = before.computed_at
        left = frozenset(
            (broker_id, log_dir)
            for broker_id, log_dir in before.violating
            if broker_id != event.broker_id or event.log_dir not in {None, log_dir}
        )
        if left == before.violating:
            return before
        left = frozenset(each for each in left if each in self.violating_log_dirs(each[0]))
        if left:
            stopping = self.stopping(left, stopped=before.stopping != frozenset())
            return Computed(0.0, self.shown_at(left), left, stopping)
        if self.members() and all(self.is_known(member, at) for member in self.members()):
            return Computed(1.0, self.all_seen_at(), left)
        return None

    def shown_at(self, violating: LogDirs) -> float:
        """When a violation was last shown."""
        at = []
        for broker_id, log_dir in violating:
            readings = self.readings(broker_id)
            if readings:
                at.append(readings[0][1].read_at)
            else:
                # It is remembered by the computed factor alone.
                at.append(self.last_read_at(broker_id, log_dir))
            if self.was_fenced(broker_id):
                at.append(self.events[self.lists[-1][0]].at)
        return max(at)

    def last_read_at(self, broker_id: int, log_dir: str) -> float:
        """When the sizes of a log dir were last read, whatever was forgotten since."""
        return max(
            answer.read_at
            for event in self.events[self.begin :]
            if isinstance(event, Seen)
            if isinstance(answer := event.observation.answers.get(broker_id), Reading)
            if log_dir in {volume.log_dir for volume in answer.volumes}
        )

    def all_seen_at(self) -> float:
        """When the brokers were last listed and all members seen."""
        seen = [at for member in self.members() if (at := self.seen_at(member)) is not None]
        return min([self.events[self.lists[-1][0]].at, *seen])

    def seen_at(self, broker_id: int) -> float | None:
        """When all log dirs of a broker were seen, with sizes or offline; None if one never was."""
        readings = self.readings(broker_id)
        if not readings:
            return None
        at = [readings[0][1].read_at]
        for missing in readings[0][1].offline:
            if missing.is_written:
                since = self.forgotten(broker_id, missing.log_dir)
                read = [
                    (number, each.read_at, volume)
                    for number, each in readings
                    if number > since
                    for volume in each.volumes
                    if volume.log_dir == missing.log_dir
                ]
                if (
                    not read
                    or not self.stays(broker_id, *read[0])
                    or self.was_gone(readings, read[0][0], missing.log_dir)
                ):
                    return None
                at.append(read[0][1])
        return min(at)

    def stays(self, broker_id: int, number: int, _: float, volume: Volume) -> bool:
        """Whether a volume is remembered although its broker may have left since."""
        return self.violates(volume) or all(
            broker_id in membership.active for at, membership in self.lists if at > number
        )

    def was_gone(self, readings: Sequence[tuple[int, Reading]], since: int, log_dir: str) -> bool:
        """Whether a broker did not report a log dir at all since some event."""
        return any(
            log_dir not in {each.log_dir for each in reading.volumes}
            and log_dir not in {each.log_dir for each in reading.offline}
            for number, reading in readings
            if number > since
        )

    def is_refused(self, number: int) -> bool:
        """Whether an observation is of another cluster while something is known of this one."""
        event = self.events[number]
        if not isinstance(event, Seen) or event.observation.membership is None:
            return False
        past = self.reference.past(number)
        known = [each.cluster_id for _, each in past.lists if each.cluster_id is not None]
        cluster_id = event.observation.membership.cluster_id
        if not known or cluster_id is None or cluster_id == known[-1]:
            return False
        brokers = {
            broker_id
            for each in past.events[past.begin :]
            if isinstance(each, Seen)
            for broker_id in each.observation.answers
        }
        return any(past.is_remembered(broker_id) for broker_id in brokers)

    def was_read(self, broker_id: int, now: float) -> bool:
        """Whether a broker answered within the validity."""
        readings = self.readings(broker_id)
        return bool(readings) and now <= readings[0][1].read_at + self.validity_s

    def is_remembered(self, broker_id: int) -> bool:
        """Whether a broker stayed since it answered, or has violating volumes."""
        readings = self.readings(broker_id)
        return bool(readings) and (
            bool(self.violating_log_dirs(broker_id))
            or all(broker_id in each.active for at, each in self.lists if at > readings[0][0])
        )

    def violating(self, now: float) -> LogDirs:
        """All log dirs that count as violating."""
        asked = {
            broker_id
            for event in self.events[self.begin :]
            if isinstance(event, Seen)
            for broker_id in event.observation.answers
        }
        return frozenset(
            log_dir
            for broker_id in asked
            if self.was_fenced(broker_id) or self.was_read(broker_id, now)
            for log_dir in self.violating_log_dirs(broker_id)
        )

    def violates(self, volume: Volume) -> bool:
        return _at_most(volume, self.reference.limit)

    def was_stopped(self, now: float) -> bool:
        """Whether a stop was in force until the last event, an observation at this moment."""
        before = self.reference.past(self.end - 1).computed()
        if before is None or self.is_another_cluster():
            return False
        return bool(before.stopping) and now <= before.computed_at + self.validity_s

    def stopping(self, violating: LogDirs, *, stopped: bool) -> LogDirs:
        """Those of the violating log dirs because of which nothing is admitted."""
        line = self.reference.stop_line
        if line is None:
            return frozenset()
        volumes = [self.last_volume(broker_id, log_dir) for broker_id, log_dir in violating]
        known = [volume for volume in volumes if volume is not None]
        if not stopped and not any(_at_most(volume, line) for volume in known):
            return frozenset()
        in_bytes = isinstance(line, MinAvailableBytes)
        return frozenset(
            (volume.broker_id, volume.log_dir)
            for volume in known
            if 10 * volume.available_bytes
            <= 11 * line.value * (1 if in_bytes else volume.total_bytes)
        )

    # Who is there.

    def members(self) -> frozenset[int]:
        return frozenset(self.lists[-1][1].active) if self.lists else frozenset()

    def is_another_cluster(self) -> bool:
        """Whether the last event is the first that came from another cluster."""
        result = [(n, m.cluster_id) for n, m in self.lists if m.cluster_id is not None]
        return len(result) > 1 and result[-1][0] == self.end - 1 and result[-1][1] != result[-2][1]

    # What is known of one broker.

    def _readings(self, broker_id: int) -> tuple[tuple[int, Reading], ...]:
        """What a broker answered, with the numbers of the events, newest first.

        As far back as something is still remembered.
        """
        found: list[tuple[int, Reading]] = []
        until = self.end
        for number in range(self.end - 1, self.begin - 1, -1):
            event = self.events[number]
            if isinstance(event, Seen) and not self.is_refused(number):
                answer = event.observation.answers.get(broker_id)
                if isinstance(answer, Reading):
                    if self.has_departed(broker_id, number, answer, until):
                        break
                    found.append((number, answer))
                    until = number
            if self.ends_all(broker_id, number):
                break
        return tuple(found)

    def ends_all(self, broker_id: int, number: int) -> bool:
        """Whether an event ends all that was known of a broker before it."""
        event = self.events[number]
        if isinstance(event, Forgotten):
            return event.broker_id == broker_id and event.log_dir is None
        if not isinstance(event, Seen) or event.observation.membership is None:
            return False
        if self.is_refused(number):
            return False
        if self.reference.past(number + 1).is_another_cluster():
            return True
        return self.has_been_missing(broker_id, number)

    def has_been_missing(self, broker_id: int, number: int) -> bool:
        """Whether a list with fenced brokers lacks this one for more than the validity."""
        lists = [each for each in self.lists if each[0] <= number]
        if not lists or lists[-1][1].fenced is None:
            return False
        since: float | None = None
        for at, membership in reversed(lists):
            if broker_id in membership.active or broker_id in (membership.fenced or ()):
                break
            if membership.fenced is not None:
                since = self.events[at].at
        return since is not None and self.events[number].at > since + self.validity_s

    def has_departed(self, broker_id: int, number: int, reading: Reading, until: int) -> bool:
        """Whether an unfenced broker was found gone when its reading was no longer valid."""
        for at, membership in self.lists:
            if number < at <= until:
                if broker_id in (membership.fenced or ()):
                    return False
                # Lists with the fenced brokers that lack it are counted by themselves.
                gone = broker_id not in membership.active and membership.fenced is None
                if gone and self.events[at].at > reading.read_at + self.validity_s:
                    return True
        return False

    def was_fenced(self, broker_id: int) -> bool:
        """Whether a broker was listed as fenced since it last answered."""
        readings = self.readings(broker_id)
        return bool(readings) and any(
            broker_id in (membership.fenced or ())
            for number, membership in self.lists
            if number > readings[0][0]
        )

    def is_known(self, broker_id: int, now: float) -> bool:
        """Whether a broker was seen, or is remembered."""
        readings, seen_at = self.readings(broker_id), self.seen_at(broker_id)
        if seen_at is None or now > seen_at + self.validity_s:
            return False
        stayed = all(
            broker_id in membership.active
            for number, membership in self.lists
            if number > readings[0][0]
        )
        return stayed or bool(self.violating_log_dirs(broker_id))

    def violating_log_dirs(self, broker_id: int) -> LogDirs:
        """The log dirs of a broker whose last state violates."""
        readings = self.readings(broker_id)
        if not readings:
            return frozenset()
        reported = {volume.log_dir for volume in readings[0][1].volumes}
        reported |= {offline.log_dir for offline in readings[0][1].offline}
        last = {log_dir: self.last_volume(broker_id, log_dir) for log_dir in reported}
        return frozenset(
            (broker_id, log_dir)
            for log_dir, volume in last.items()
            if volume is not None and self.violates(volume)
        )

    def last_volume(self, broker_id: int, log_dir: str) -> Volume | None:
        """A log dir's last state that is remembered."""
        since = self.forgotten(broker_id, log_dir)
        readings = self.readings(broker_id)
        return _last_volume([each for number, each in readings if number > since], log_dir)

    def forgotten(self, broker_id: int, log_dir: str) -> int:
        """The last event that forgot a log dir alone; -1 when there is none."""
        return max(
            (
                number
                for number, event in enumerate(self.events)
                if isinstance(event, Forgotten)
                and (broker_id, log_dir) == (event.broker_id, event.log_dir)
            ),
            default=-1,
        )


def _at_most(volume: Volume, limit: Limit) -> bool:
    """Whether a volume has at most what a limit says, in its unit."""
    if isinstance(limit, MinAvailableBytes):
        return volume.available_bytes <= limit.value
    if volume.total_bytes == 0:
        return True
    return volume.available_bytes / volume.total_bytes <= limit.value


def _last_volume(readings: Sequence[Reading], log_dir: str) -> Volume | None:
    """A log dir's last state: the newest reported, if the log dir was reported ever since."""
    for reading in readings:
        for volume in reading.volumes:
            if volume.log_dir == log_dir:
                return volume
        if log_dir not in {offline.log_dir for offline in reading.offline}:
            return None
    return None
