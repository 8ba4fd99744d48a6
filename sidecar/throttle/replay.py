"""Replays decisions over a recorded history of volumes, and collects the periods of throttling.

The decisions do not change the recorded volumes. If producers had been throttled, a volume would
have filled more slowly from then on. So the first throttle of a day is exact, and the later ones
are an upper bound.

Example: a volume is at its limit of 10 bytes from 60 s to 180 s and is read every minute. The
result is one throttle, from 60 s to 180 s, by that volume, which had at least 8 bytes left.

Durations leave out the times in which readings are missing, because nothing is known of them. If
they are missing from 100 s to 150 s, the throttle of the example lasted for 70 s. It is one
throttle also if the fallback is 1.0, because the next reading still violates.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidecar.throttle.decision import Decider, Decision, Source
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.volumes import Observation

# A decision is still valid at its end, so the next one is made a little later.
_AFTER_THE_END_S: Final = 0.001

_MOST_POINTS: Final = 4000
"""The most points of a chart; more points are merged in pairs."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A period in which producers are throttled.

    Attributes:
        began_at: epoch seconds.
        ended_at: epoch seconds; None when it lasts until the end of the history.
        factor: the smallest factor.
        source: the source of the first decision.
        reason: the reason of the first decision.
        worst: the violating volume with the least room above its limit; None when no volume
            violated (a fallback).
        lasted_s: how long it lasted, without the times in which readings are missing, seconds.
        stop_line_s: how long of that the stop line would have been reached, seconds.
    """

    began_at: float
    ended_at: float | None
    factor: float
    source: Source
    reason: str
    worst: VolumeState | None
    lasted_s: float = 0.0
    stop_line_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of the history.

    Attributes:
        at: epoch seconds.
        factor: the factor that applied.
        headroom_bytes: the least room of a volume above its limit, negative below it; None before
            a volume was read.
    """

    at: float
    factor: float
    headroom_bytes: float | None


class Replay:
    """Decides after each observation, as the daemon would have.

    Attributes:
        first_at: the time of the first observation, epoch seconds; None before one.
        last_at: the time of the last observation, epoch seconds.
        observations: the number of observations.
        known_s: the time between first and last observation without missing readings, seconds.
    """

    def __init__(self, factors: Decider, missing: Sequence[tuple[float, float]] = ()) -> None:
        """Begins without an observation.

        Args:
            factors: decides.
            missing: the times in which readings are missing, epoch seconds; disjoint, in order.
        """
        self._factors = factors
        self._missing = missing
        self._memory = Memory()
        self._decision: Decision | None = None
        self._episodes: list[Episode] = []
        self._open: Episode | None = None
        self._points: list[Point] = []
        # The number of decisions that become one point, and the decisions that wait for a point.
        self._decisions_per_point = 1
        self._unmerged: list[Point] = []
        self._ended_by_expiry = False
        self.first_at: float | None = None
        self.last_at = 0.0
        self.observations = 0
        self.known_s = 0.0

    @property
    def points(self) -> list[Point]:
        """The points of a chart, ``_MOST_POINTS`` + 1 at most, each the worst of its period."""
        last = [min(self._unmerged, key=_severity)] if self._unmerged else []
        return [*self._points, *last]

    def see(self, observation: Observation) -> None:
        """Take the next observation; observations come in the order of their times."""
        now = observation.observed_at
        # Between two observations, time alone may have changed the decision (an expiry).
        while self._decision is not None:
            end = self._decision.changes_after
            if end is None or end + _AFTER_THE_END_S >= now:
                break
            self._decide(end + _AFTER_THE_END_S, is_expiry=True)
        self._memory = self._factors.fold(self._memory, observation)
        if self.first_at is None:
            self.first_at = now
        self.observations += 1
        self._decide(now)

    def episodes(self) -> list[Episode]:
        """Return all periods so far; the last period may not have ended."""
        return [*self._episodes, *([self._open] if self._open else [])]

    def _decide(self, now: float, *, is_expiry: bool = False) -> None:
        before, since = self._decision, self.last_at
        # A replay shows what enforce mode would do, also for the settings of observe mode.
        decision = self._factors.decide(self._memory, now).decided
        self._decision, self.last_at = decision, now
        self._add_point(now, decision)
        known_s = self._known_between(since, now) if before is not None else 0.0
        self.known_s += known_s
        if self._open is not None:
            stop_line_s = known_s if before is not None and before.stop_line_reached else 0.0
            self._open = replace(
                self._open,
                lasted_s=self._open.lasted_s + known_s,
                stop_line_s=self._open.stop_line_s + stop_line_s,
            )
        if decision.factor == 1.0:
            # A fallback for want of readings is none of the cluster's.
            if self._open is not None and (self._open.lasted_s or self._open.worst):
                self._episodes.append(replace(self._open, ended_at=now))
                self._ended_by_expiry = is_expiry
            self._open = None
            return
        worst = min(decision.violations, key=lambda state: state.headroom_bytes, default=None)
        if self._open is None and self._is_interrupted(now):
            self._open = replace(self._episodes.pop(), ended_at=None)
        if self._open is None:
            self._open = Episode(
                now, None, decision.factor, decision.source, decision.reason, worst
            )
            return
        self._open = replace(
            self._open,
            factor=min(self._open.factor, decision.factor),
            worst=_worse(self._open.worst, worst),
        )

    def _is_interrupted(self, now: float) -> bool:
        """Whether time alone ended the last throttle, and nothing is known of the time since."""
        ended_at = self._episodes[-1].ended_at if self._ended_by_expiry else None
        return ended_at is not None and self._known_between(ended_at, now) <= 0.0

    def _known_between(self, begin: float, end: float) -> float:
        """Return the seconds between two moments in which no readings are missing."""
        known_s = end - begin
        # The last time that is missing before ``begin`` may reach beyond it.
        first = max(0, bisect_right(self._missing, (begin, begin)) - 1)
        for began_at, ended_at in self._missing[first:]:
            if began_at >= end:
                break
            known_s -= max(0.0, min(end, ended_at) - max(begin, began_at))
        return known_s

    def _add_point(self, now: float, decision: Decision) -> None:
        headrooms = [state.headroom_bytes for state in self._memory.volumes()]
        self._unmerged.append(Point(now, decision.factor, min(headrooms, default=None)))
        if len(self._unmerged) < self._decisions_per_point:
            return
        self._points.append(min(self._unmerged, key=_severity))
        self._unmerged = []
        # When there are too many points, the worse of every two stays. So no throttle vanishes from
        # the chart, however long the history is.
        if len(self._points) > _MOST_POINTS:
            halves = range(0, len(self._points), 2)
            self._points = [min(self._points[at : at + 2], key=_severity) for at in halves]
            self._decisions_per_point *= 2


def _worse(first: VolumeState | None, second: VolumeState | None) -> VolumeState | None:
    states = [state for state in (first, second) if state is not None]
    return min(states, key=lambda state: state.headroom_bytes, default=None)


def _severity(point: Point) -> tuple[float, float]:
    headroom = float("inf") if point.headroom_bytes is None else point.headroom_bytes
    return point.factor, headroom
