"""The decision over a recorded history of volumes: when, for how long and for what it throttles.

It is open loop: volumes are what they were, whatever is decided. If producers had been throttled,
the volume would have filled more slowly from then on; so what the first throttle of a day says is
what would have happened, and the ones behind it are an upper bound.

Example: a volume at its limit of 10 bytes from 60 s to 180 s, read every minute: one throttle, from
60 s to 180 s, for that volume, which had 8 bytes left at least.
"""

from dataclasses import dataclass, replace
from typing import Final

from sidecar.throttle.decision import Decision, FactorSource, Source
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.volumes import Observation

_HAIR_S: Final = 0.001
"""At a boundary itself the decision before it is still valid."""

_MOST_POINTS: Final = 4000
"""Of a picture; more are thinned."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A time in which producers are throttled.

    Attributes:
        began_at: epoch seconds.
        ended_at: epoch seconds; None: they still are at the end of the history.
        factor: the smallest.
        source: where the first factor came from.
        reason: the first decision's.
        worst: the violating volume that had the least left, in relation to its limit; None where no
            volume violated (a fallback).
        stop_line_s: how long the stop line would have been reached, seconds.
    """

    began_at: float
    ended_at: float | None
    factor: float
    source: Source
    reason: str
    worst: VolumeState | None
    stop_line_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of the history.

    Attributes:
        at: epoch seconds.
        factor: the factor in force then.
        headroom_bytes: what the first volume has beyond its limit, negative below it; None before
            one was read.
    """

    at: float
    factor: float
    headroom_bytes: float | None


class Replay:
    """Decides upon one observation after the other, as the daemon would have."""

    def __init__(self, factors: FactorSource) -> None:
        """Nothing is seen yet."""
        self._factors = factors
        self._memory = Memory()
        self._decision: Decision | None = None
        self._at = 0.0
        self._episodes: list[Episode] = []
        self._open: Episode | None = None
        self._points: list[Point] = []
        # How many decisions a point is of, and those that have none yet.
        self._step = 1
        self._waiting: list[Point] = []
        self._seen = 0
        self.first_at: float | None = None

    @property
    def observations(self) -> int:
        """How many were seen."""
        return self._seen

    @property
    def last_at(self) -> float:
        """When the last one was, epoch seconds."""
        return self._at

    @property
    def points(self) -> list[Point]:
        """For a picture: ``_MOST_POINTS`` and one at most, each the worst of its time."""
        last = [min(self._waiting, key=_severity)] if self._waiting else []
        return [*self._points, *last]

    def see(self, observation: Observation) -> None:
        """Takes the next observation, in the order of time."""
        now = observation.observed_at
        while self._decision is not None:
            end = self._decision.changes_after
            if end is None or end + _HAIR_S >= now:
                break
            self._decide(end + _HAIR_S)
        self._memory = self._factors.fold(self._memory, observation)
        if self.first_at is None:
            self.first_at = now
        self._seen += 1
        self._decide(now)

    def episodes(self) -> list[Episode]:
        """All of them so far; the last may be open."""
        return [*self._episodes, *([self._open] if self._open else [])]

    def _decide(self, now: float) -> None:
        before, since = self._decision, self._at
        decision = self._factors.decide(self._memory, now).decided
        self._decision, self._at = decision, now
        self._picture(now, decision)
        if self._open is not None:
            stop_line_s = now - since if before is not None and before.stop_line_reached else 0.0
            self._open = replace(self._open, stop_line_s=self._open.stop_line_s + stop_line_s)
        if decision.factor == 1.0:
            if self._open is not None:
                self._episodes.append(replace(self._open, ended_at=now))
            self._open = None
            return
        worst = min(decision.violations, key=lambda state: state.headroom_bytes, default=None)
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

    def _picture(self, now: float, decision: Decision) -> None:
        headrooms = [state.headroom_bytes for state in self._memory.volumes()]
        self._waiting.append(Point(now, decision.factor, min(headrooms, default=None)))
        if len(self._waiting) < self._step:
            return
        self._points.append(min(self._waiting, key=_severity))
        self._waiting = []
        if len(self._points) > _MOST_POINTS:
            halves = range(0, len(self._points), 2)
            self._points = [min(self._points[at : at + 2], key=_severity) for at in halves]
            self._step *= 2


def _worse(one: VolumeState | None, other: VolumeState | None) -> VolumeState | None:
    known = [state for state in (one, other) if state is not None]
    return min(known, key=lambda state: state.headroom_bytes, default=None)


def _severity(point: Point) -> tuple[float, float]:
    headroom = float("inf") if point.headroom_bytes is None else point.headroom_bytes
    return point.factor, headroom
