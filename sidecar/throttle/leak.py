"""How much each broker may let through while producers are throttled, and how long it may pause.

At factor 0.0 a quota callback still lets through its leak budget: 1 % of the rate before, in pauses
of at most 4 s. Where a volume would become full all the same, the disk comes before the clients.
The brokers that feed that volume then get a share of their leak budget, and longer pauses.

If the first volume becomes full sooner than the horizon, the share shrinks. If it becomes full
later than four horizons, the share grows. Either way the step aims at two horizons. The share
stays between 0.001 and 1. One step divides the share by 2.5 at most if the volume would not be full
before the next step, and else by ten at most.

Example: 3 clients with requests of 1 MB and pauses of 4 s, 15 MB left, a horizon of 600 s. They
write 750 kB/s, so the volume is full in 20 s, a sixtieth of two horizons. A step to pauses of 10 s
would be judged 4 + 3 x 10 s later, when the volume would be full. So the step is a tenth: pauses of
40 s, 75 kB/s, judged again 4 + 3 x 40 s later. If 15 MB are left then, the volume is full in 200 s,
a sixth of two horizons. Pauses of 100 s would be judged too late again: pauses of 240 s, 12.5 kB/s.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.throttle.fill import WINDOW_S, has_rate_since
from sidecar.throttle.full import soonest_full_at
from sidecar.throttle.memory import Memory, VolumeState

LEAST: Final = 0.001
"""The smallest share. A client that wrote 100 MB/s then writes 1 kB/s."""

_PAUSE_MAX_S: Final = 4.0
"""The default of ``pause.max.ms`` in a quota callback."""

_PAUSES_OF_A_RATE: Final = 2.0
"""A rate over less than one pause shows a request of every client, or of none."""

_RATES_AT_MOST: Final = 1.5
"""A rate covers the requested window, or up to half as much again."""

_STEP_S: Final = 10.0
"""The shortest time between two changes of a share."""

_AIM: Final = 2.0
"""The number of horizons after which a volume should become full. One is
required, and the second is a reserve."""

_LARGEST_STEP: Final = 10.0
"""The largest factor of a single change."""

_USUAL_STEP: Final = 2.5
"""The largest factor by which a share shrinks while there is time for another step. The first one
leads to pauses of 10 s: longer than that, clients' own time-outs begin, and most throttles end
before the second."""


@dataclass(frozen=True, slots=True)
class Leak:
    """The leak of one broker at factor 0.0.

    Attributes:
        share: the share of its leak budget, 0.001 to 1.
        since: when the share was set, steady seconds.
        pause_before_s: the longest pause under the previous share; 0.0 when there was none.
    """

    share: float
    since: float
    pause_before_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leaks:
    """The leaks of all brokers.

    Attributes:
        throttled_at: since when the factor is 0.0, steady seconds; None while it is not.
        brokers: broker id -> its leak. A broker that is missing here has its whole budget.
    """

    throttled_at: float | None = None
    brokers: Mapping[int, Leak] = field(default_factory=dict)

    @property
    def shares(self) -> Mapping[int, float]:
        """Broker id -> its share, for the brokers whose share is below 1."""
        return {key: leak.share for key, leak in self.brokers.items() if leak.share < 1.0}

    @property
    def share(self) -> float:
        """The smallest share of all brokers."""
        return min((leak.share for leak in self.brokers.values()), default=1.0)


NO_LEAKS: Final = Leaks()
"""No producer is throttled."""


@dataclass(frozen=True, slots=True)
class LeakRules:
    """The rules by which shares change.

    Attributes:
        horizon_s: the shortest time in which a volume may become full, seconds, > 0.
        pause_max_s: the longest pause, seconds, > 0.
    """

    horizon_s: float = 600.0
    pause_max_s: float = 300.0

    def pause_s(self, share: float) -> float:
        """The longest pause under a share, seconds."""
        return min(self.pause_max_s, _PAUSE_MAX_S / share)

    def window_s(self, leaks: Leaks) -> float:
        """How long the window of a fill rate must be so that pauses do not distort it, seconds."""
        if leaks.throttled_at is None:
            return WINDOW_S
        # The smallest share has the longest pauses, and all brokers may feed the same volume.
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
            leaks: the leaks before.
            memory: the memory, with what was read until now.
            throttled: whether the factor is 0.0.
            validity_s: how long a reading counts, seconds.
            now: steady seconds.
        """
        if not throttled:
            # The next throttle begins with whole budgets.
            return NO_LEAKS
        began = now if leaks.throttled_at is None else leaks.throttled_at
        volumes = tuple(memory.valid_volumes(validity_s, now))
        if not volumes:
            # Without a valid reading the fill rates are unknown. Guessing could fill a disk (a
            # larger share) or starve clients for nothing (a smaller one), so the shares stay.
            return Leaks(began, leaks.brokers)
        first = Leak(1.0, began)
        # In a cluster of a thousand brokers, most have the same leak and feed the same volumes.
        # Each pair is judged once, since each judgement reads the rates of all fed volumes.
        judged: dict[tuple[Leak, frozenset[int] | None], Leak] = {}
        brokers: dict[int, Leak] = {}
        for broker_id in memory.active:
            leak = leaks.brokers.get(broker_id, first)
            # None: the volumes that this broker feeds are unknown, for example because the sidecar
            # lacks DESCRIBE on topics. The broker may feed each volume, so all are considered.
            fed = memory.feeds.get(broker_id)
            new_leak = judged.get((leak, fed))
            if new_leak is None:
                fed_volumes = [
                    state for state in volumes if fed is None or state.volume.broker_id in fed
                ]
                new_leak = judged[leak, fed] = self._judge(leak, fed_volumes, now)
            # A broker with its whole budget is remembered only while pauses of its previous share
            # may still last, because these distort its rate.
            if new_leak.share < 1.0 or new_leak.pause_before_s > 0.0:
                brokers[broker_id] = new_leak
        return Leaks(began, brokers)

    def resumed(self, shares: Mapping[int, float], now: float) -> Leaks:
        """The leaks of a throttle that began before the sidecar was restarted.

        Args:
            shares: broker id -> its share.
            now: the start, steady seconds.
        """
        # When the shares were set is not stored. The longest pause under them may have begun just
        # before the restart, so it counts as a pause of the previous share.
        return Leaks(
            now,
            {broker: Leak(share, now, self.pause_s(share)) for broker, share in shares.items()},
        )

    def _judge(self, leak: Leak, volumes: Collection[VolumeState], now: float) -> Leak:
        pause_s = self.pause_s(leak.share)
        window_s = _PAUSES_OF_A_RATE * pause_s
        if now - leak.since < self._settles_s(leak):
            return leak
        # A broker that fell silent has no rate under this share. Its rate from before would be that
        # of clients that nobody throttled.
        since = leak.since + leak.pause_before_s
        known = [state for state in volumes if has_rate_since(state.fill, since, window_s)]
        full_at = soonest_full_at(known, window_s)
        # If no volume fills, the time is infinite and the share grows.
        horizons = math.inf if full_at is None else max(0.0, full_at - now) / self.horizon_s
        # Between one and four horizons the share stays. Both ends are a factor of two from the aim,
        # and a rate over two pauses is at most 1.5 times the long-term rate. So noise alone does
        # not make the share go up and down. It does not grow either while a rate is unknown.
        if horizons > 1.0 and (len(known) < len(volumes) or horizons <= _AIM * _AIM):
            return leak
        # The rate is proportional to the share: half the share doubles the time until full. The
        # step is limited because the rate may be wrong just after a throttle began, while replicas
        # still fetch earlier records.
        step = min(_LARGEST_STEP, max(1.0 / _LARGEST_STEP, horizons / _AIM))
        usual = Leak(max(LEAST, leak.share / _USUAL_STEP), now, pause_s)
        # The rate before the step is an upper bound of the rate after it.
        if full_at is not None and full_at - now > self._settles_s(usual):
            step = max(step, 1.0 / _USUAL_STEP)
        share = min(1.0, max(LEAST, leak.share * step))
        return leak if share == leak.share else Leak(share, now, pause_s)

    def _settles_s(self, leak: Leak) -> float:
        """From a step until the rate is that of its share, seconds."""
        # All pauses under the previous share must be over, and then a whole window under the
        # current share must have passed.
        window_s = _PAUSES_OF_A_RATE * self.pause_s(leak.share)
        return max(_STEP_S, leak.pause_before_s + _RATES_AT_MOST * window_s)
