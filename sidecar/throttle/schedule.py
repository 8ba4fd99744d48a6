"""When to look again, and at whom.

The next poll comes after half the time that the volume nearest to its limit still has, at most the
interval, at least the minimum; while a volume's rate is not known yet, after the minimum. Every
sidecar asks every broker, so a whole poll never comes sooner than 20 ms x brokers after the last.
Until then the brokers with a volume close to its limit are asked alone, down to the minimum, and no
sooner than 20 ms x brokers asked. Halving converges: a volume that fills evenly is read at 1/2,
3/4, 7/8 ... of its way to the limit.

After a failed poll the next comes after the minimum, then twice that, and so on up to the interval:
a sidecar that cannot see looks again soon, without hammering a cluster in trouble.

Example: interval 60 s, minimum 1 s, 3 brokers, the nearest volume 20 s from its limit: the next
poll comes 10 s later. Of 1,000 brokers a whole poll comes every 20 s at the soonest; the one broker
whose volume is 8 s from its limit is asked alone after 4 s.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sidecar.throttle.memory import BrokerState, Memory, VolumeState

_SPACING_PER_BROKER_S = 0.02
"""N sidecars that each ask a broker every 20 ms x N ask it 50 times a second together."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How often to look.

    Attributes:
        interval_s: the longest wait between two whole polls, seconds, > 0.
        minimum_s: the shortest wait between two polls, seconds, > 0 and <= interval_s.
    """

    interval_s: float
    minimum_s: float

    @property
    def deadline_s(self) -> float:
        """The longest deadline of a poll: the interval, within 2 to 10 s.

        A deadline that shrinks with the interval ends at none: the Strimzi plugin with an interval
        of 1 s has a time-out of 0 s, fails every poll and never throttles.
        """
        return min(10.0, max(2.0, self.interval_s))

    def deadline_after(self, delay_s: float) -> float:
        """The deadline of a poll that comes after a wait: that long, within 1 s and the longest.

        While a volume is close to its limit its broker is not left alone for another's silence. A
        slow broker is seen all the same: its answer may come after the poll that asked for it.
        """
        return min(self.deadline_s, max(1.0, delay_s))


@dataclass(frozen=True, slots=True)
class NextPoll:
    """What to ask next.

    Attributes:
        delay_s: how long from now, seconds, > 0.
        brokers: who to ask alone; None for a whole poll.
    """

    delay_s: float
    brokers: frozenset[int] | None = None


def next_poll(memory: Memory, timing: Timing, now: float, since_whole_s: float) -> NextPoll:
    """Decides the next poll when one has just ended.

    Args:
        memory: what is remembered, the poll that just ended folded in.
        timing: interval and minimum.
        now: steady seconds.
        since_whole_s: how long ago, at ``now``, the last whole poll started.
    """
    active = memory.membership.active if memory.membership else {}
    states = {key: memory.brokers[key] for key in active if key in memory.brokers}
    wait = _within(timing, _half_of_nearest(states.values(), now))
    if memory.failed_polls:
        wait = min(wait, timing.minimum_s * 2.0 ** min(memory.failed_polls - 1, 62))
    until_whole = max(
        _SPACING_PER_BROKER_S * len(active) - since_whole_s,
        min(wait, timing.interval_s - since_whole_s),
        timing.minimum_s,
    )
    close = {
        key: state
        for key, state in states.items()
        if state.failure is None and any(map(_known_to_fill, state.volumes))
    }
    alone_in = _within(timing, _half_of_nearest(close.values(), now))
    if close and memory.failed_polls == 0 and alone_in < until_whole:
        near = frozenset(
            key
            for key, state in close.items()
            if _within(timing, _half_of_nearest([state], now)) <= alone_in
        )
        alone_in = max(alone_in, _SPACING_PER_BROKER_S * len(near))
        if alone_in < until_whole:
            return NextPoll(alone_in, near)
    return NextPoll(until_whole)


def _half_of_nearest(states: Iterable[BrokerState], now: float) -> float | None:
    """Half the time that the nearest online volume has; None when none fills."""
    left = [
        _time_left(volume, now)
        for state in states
        for volume in state.volumes
        if volume.online and not _still(volume)
    ]
    return min(left) / 2 if left else None


def _time_left(volume: VolumeState, now: float) -> float:
    """Seconds to the limit at ``now``; 0.0 while no rate is known."""
    if volume.soonest_to_limit_s is None:
        return 0.0
    return max(0.0, volume.soonest_to_limit_s - (now - volume.read_at))


def _still(volume: VolumeState) -> bool:
    """Known not to fill."""
    return volume.soonest_to_limit_s is None and volume.fill.bytes_per_second is not None


def _known_to_fill(volume: VolumeState) -> bool:
    return volume.online and volume.soonest_to_limit_s is not None


def _within(timing: Timing, wait_s: float | None) -> float:
    return (
        timing.interval_s
        if wait_s is None
        else min(timing.interval_s, max(timing.minimum_s, wait_s))
    )
