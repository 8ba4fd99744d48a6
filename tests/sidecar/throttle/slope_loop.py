"""A volume that fills under the slope in a closed loop, with Kafka's own rates; a simulation.

Clients with a backlog send requests to it. Each has a quota of the factor times its rate before,
and pauses by Kafka's rule (rate over quota, less one, times the window of up to 11 s), 4 s at most,
as the quota callback lets them. A cleaner deletes. The volume is polled, and a factor is in force
some time after it is decided.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import Reading, Volume
from tests.sidecar.throttle.build import whole

MB = 1_000_000
_TICK_S = 0.05
_PAUSE_MAX_S = 4.0
_BACKLOG_BYTES = 64 * MB
_RAMP = 1.2
"""Of the rate before a client may send at most: as after a release."""


@dataclass(frozen=True, slots=True)
class Seen:
    """At a poll: the factor decided, and the bytes until the limit."""

    at: float
    factor: float
    left_bytes: float


@dataclass(frozen=True, slots=True)
class Loop:
    """What happens.

    Attributes:
        bytes_per_s: what all clients want to write before anything is throttled.
        demand: seconds -> what they want then; None: the same.
        clients: how many.
        request_bytes: each of theirs.
        deleted_per_s: by the cleaner, bytes/s.
        deletes_every_s: how often.
        width_bytes: from the soft limit to the limit.
        horizon_s: the setting.
        poll_s: from one poll to the next.
        delay_s: from a decision until it is in force.
        minutes: how long it lasts.
    """

    bytes_per_s: float = 18 * MB
    demand: Callable[[float], float] | None = None
    clients: int = 3
    request_bytes: float = MB
    deleted_per_s: float = 4 * MB
    deletes_every_s: float = 1.0
    width_bytes: int = 2000 * MB
    horizon_s: float = 300.0
    poll_s: float = 5.0
    delay_s: float = 1.0
    minutes: float = 30.0

    def run(self) -> list[Seen]:
        """From a tenth of the slope above the soft limit on."""
        limit = self.width_bytes // 10
        rules = VolumeLimit(
            Rules(
                MinAvailableBytes(limit),
                300.0,
                slope=SlopeRules(MinAvailableBytes(limit + self.width_bytes), self.horizon_s),
            ),
            1.0,
        )
        total = limit + 2 * self.width_bytes
        available = limit + 1.1 * self.width_bytes
        clients = [_Client(self.bytes_per_s / self.clients) for _ in range(self.clients)]
        memory, factor, decided = Memory(), 1.0, deque[tuple[float, float]]()
        seen: list[Seen] = []
        polled_s = cleaned_s = 0.0
        for tick in range(round(self.minutes * 60 / _TICK_S)):
            now = tick * _TICK_S
            while decided and decided[0][0] <= now:
                factor = decided.popleft()[1]
            wanted = self.demand(now) if self.demand else self.bytes_per_s
            for client in clients:
                share = wanted / self.clients * _TICK_S
                available -= sum(client.send(share, self.request_bytes, factor, now))
            if now - cleaned_s >= self.deletes_every_s:
                available = min(total, available + self.deleted_per_s * (now - cleaned_s))
                cleaned_s = now
            if now >= polled_s:
                volume = Volume(1, "/d", total, max(0, int(available)))
                memory = rules.fold(memory, whole(now, [Reading(1, now, (volume,))]))
                decision = rules.decide(memory, now)
                decided.append((now + self.delay_s, decision.factor))
                seen.append(Seen(now, decision.factor, available - limit))
                polled_s += self.poll_s
        return seen


@dataclass(slots=True)
class _Client:
    rate_before: float
    backlog: float = 0.0
    allowed: float = 0.0
    muted_until: float = 0.0
    rate: Rate = field(default_factory=lambda: Rate(QuotaWindow()))

    def send(self, more: float, request_bytes: float, factor: float, now: float) -> Iterator[float]:
        """What lands of it now, request by request."""
        self.backlog = min(_BACKLOG_BYTES, self.backlog + more)
        self.allowed = min(request_bytes, self.allowed + _RAMP * self.rate_before * _TICK_S)
        least = min(request_bytes, 2 * more + 1)
        while self.muted_until <= now and min(self.backlog, self.allowed) >= least:
            size = min(request_bytes, self.backlog, self.allowed)
            self.backlog -= size
            self.allowed -= size
            now_ms = int(now * 1000)
            self.rate.record(size, now_ms)
            yield size
            if factor == 0.0:
                self.muted_until = now + _PAUSE_MAX_S
            elif factor < 1.0:
                observed, window_ms = self.rate.observe(now_ms)
                quota = factor * self.rate_before
                pause_s = (observed / quota - 1.0) * window_ms / 1000
                self.muted_until = now + min(_PAUSE_MAX_S, max(0.0, pause_s))


def last(seen: Sequence[Seen], minutes: float = 10.0) -> list[Seen]:
    """What was seen last."""
    return [each for each in seen if each.at >= seen[-1].at - minutes * 60]


def turns(seen: Sequence[Seen]) -> int:
    """How often the factor changed its direction."""
    moves = [later.factor - earlier.factor for earlier, later in pairwise(seen)]
    directions = [move > 0 for move in moves if move != 0.0]
    return sum(one != other for one, other in pairwise(directions))
