"""What each broker may let through while producers are throttled, and how long its pauses may be.

At factor 0.0 a quota callback lets through its leak budget (1 % of before), by pauses of 4 s at
most. Where a volume would be full all the same, the disk comes before the clients: the brokers that
feed it get a share of their budget, and longer pauses.

A share is judged by when the first of those volumes would be full: sooner than the horizon, then
it is made so much smaller that it would be in two horizons; later than four, likewise larger; by a
factor of ten at most, between 0.001 and 1. What is aimed at is twice what must be: a rate over two
pauses can be half as much again as it is in the long run, and room is lost until the next. A share
is judged when all pauses by the one before are over, and a rate over two of its own pauses began
after that. While nothing can be read it stays; where none fills it grows.

A broker is judged by the volumes of the brokers that it feeds (``Memory.feeds``): where that is not
known, as without DESCRIBE on topics, by all.

Example: 3 clients with requests of 1 MB and pauses of 4 s, 15 MB left, a horizon of 600 s:
750 kB/s, full in 20 s. Of 1,200 s that is a sixtieth, and a tenth is the largest step: pauses of
40 s, 75 kB/s. With as much left when that is judged, 4 + 3 x 40 s later, it is full in 200 s, a
sixth of 1,200: pauses of 240 s, 12.5 kB/s.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.throttle.fill import WINDOW_S
from sidecar.throttle.full import soonest_full_at
from sidecar.throttle.memory import Memory, VolumeState

LEAST: Final = 0.001
"""The smallest share: of 100 MB/s at 1 % a kilobyte a second."""

_PAUSE_MAX_S: Final = 4.0
"""A callback's ``pause.max.ms`` by default."""

_PAUSES_OF_A_RATE: Final = 2.0
"""A rate over less than one pause has all clients in it or none."""

_RATES_AT_MOST: Final = 1.5
"""A rate is over the window that was asked for, to half as much again."""

_STEP_S: Final = 10.0
"""From one change to the next at least."""

_AIM: Final = 2.0
_LARGEST_STEP: Final = 10.0
"""Just after the throttle began, replicas may still fetch what they lack: no step is larger."""


@dataclass(frozen=True, slots=True)
class Leak:
    """What a broker may let through at factor 0.0.

    Attributes:
        share: of its leak budget, 0.001 to 1.
        since: when the share was set, steady seconds.
        pause_before_s: the longest pause by the share before; 0.0: there was none.
    """

    share: float
    since: float
    pause_before_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leaks:
    """The leaks of all brokers.

    Attributes:
        throttled_at: since when the factor is 0.0, steady seconds; None: it is not.
        brokers: broker id -> its leak; who is not there may let through its whole budget.
    """

    throttled_at: float | None = None
    brokers: Mapping[int, Leak] = field(default_factory=dict)

    @property
    def shares(self) -> Mapping[int, float]:
        """Broker id -> its share, of those whose share is below 1."""
        return {key: leak.share for key, leak in self.brokers.items() if leak.share < 1.0}

    @property
    def share(self) -> float:
        """The smallest of a broker."""
        return min((leak.share for leak in self.brokers.values()), default=1.0)


NO_LEAKS: Final = Leaks()
"""Nobody is throttled."""


@dataclass(frozen=True, slots=True)
class LeakRules:
    """How leaks are judged.

    Attributes:
        horizon_s: no volume may be full sooner, seconds, > 0.
        pause_max_s: the longest pause, seconds, > 0.
    """

    horizon_s: float = 600.0
    pause_max_s: float = 300.0

    def pause_s(self, share: float) -> float:
        """The longest pause by a share, seconds."""
        return min(self.pause_max_s, _PAUSE_MAX_S / share)

    def window_s(self, leaks: Leaks) -> float:
        """Over how long a fill rate has to be, so that pauses do not show in it, seconds."""
        if leaks.throttled_at is None:
            return WINDOW_S
        return _PAUSES_OF_A_RATE * self.pause_s(leaks.share)

    def next(
        self,
        leaks: Leaks,
        memory: Memory,
        *,
        throttled: bool,
        validity_s: float,
        now: float,
    ) -> Leaks:
        """The leaks at ``now``, steady seconds.

        Args:
            leaks: those before.
            memory: of the cluster, with the news of now.
            throttled: whether the factor is 0.0.
            validity_s: how long a reading counts, seconds.
            now: steady seconds.
        """
        if not throttled:
            return NO_LEAKS
        began = now if leaks.throttled_at is None else leaks.throttled_at
        volumes = tuple(memory.valid_volumes(validity_s, now))
        if not volumes:
            return Leaks(began, leaks.brokers)
        first = Leak(1.0, began)
        # Of a thousand brokers most have the same leak, and feed the same volumes.
        judged: dict[tuple[Leak, frozenset[int] | None], Leak] = {}
        brokers: dict[int, Leak] = {}
        for broker_id in memory.active:
            leak = leaks.brokers.get(broker_id, first)
            fed = memory.feeds.get(broker_id)
            found = judged.get((leak, fed))
            if found is None:
                theirs = [
                    known for known in volumes if fed is None or known.volume.broker_id in fed
                ]
                found = judged[leak, fed] = self._judge(leak, theirs, now)
            if found.share < 1.0 or found.pause_before_s > 0.0:
                brokers[broker_id] = found
        return Leaks(began, brokers)

    def resumed(self, shares: Mapping[int, float], now: float) -> Leaks:
        """The leaks of a throttle that an earlier process of the sidecar began.

        Args:
            shares: broker id -> its share.
            now: the start, steady seconds.
        """
        return Leaks(
            now,
            {broker: Leak(share, now, self.pause_s(share)) for broker, share in shares.items()},
        )

    def _judge(self, leak: Leak, volumes: Iterable[VolumeState], now: float) -> Leak:
        pause_s = self.pause_s(leak.share)
        window_s = _PAUSES_OF_A_RATE * pause_s
        if now - leak.since < max(_STEP_S, leak.pause_before_s + _RATES_AT_MOST * window_s):
            return leak
        full_at = soonest_full_at(volumes, window_s)
        horizons = math.inf if full_at is None else max(0.0, full_at - now) / self.horizon_s
        if 1.0 < horizons <= _AIM * _AIM:
            return leak
        step = min(_LARGEST_STEP, max(1.0 / _LARGEST_STEP, horizons / _AIM))
        share = min(1.0, max(LEAST, leak.share * step))
        return leak if share == leak.share else Leak(share, now, pause_s)
