"""The schedule: when the next poll comes, and which brokers it asks.

- The next poll comes after half the time that the volume nearest to its limit has left, within the
  minimum and the interval. While the rate of a volume is unknown, it comes after the minimum.
- A whole poll comes 20 ms x brokers after the last one at the soonest. Until then, only the brokers
  with a volume close to its limit are asked.
- All sidecars together ask a broker with a full volume 2.5 times a second, and each of them asks it
  at least once in the interval. During a throttle this applies to whole polls too.
- A broker that misses a deadline is asked again after the minimum, then after twice that, and so
  on, if one of its volumes was close to its limit.
- While the factor is on its slope, brokers with a volume below the soft limit are asked every 5 s.
  So are those whose volumes decide how far client quotas are lowered.
  A volume above the soft limit is also read after half the time until the soft limit.
- After a failed poll, the next poll comes after the minimum, then after twice that, and so on up to
  the interval.
- After a release, the next poll comes after a quarter of the time since then, at the latest.

Example: interval 60 s, minimum 1 s, 3 brokers, and the nearest volume is 20 s from its limit. The
next poll comes 10 s later. Nothing fills after a release at 0 s: polls at 1, 2, 3, 4, 5, 6.25 s
..., and from 240 s on every 60 s. Of 1,000 brokers a whole poll comes every 20 s at the soonest;
the one broker whose volume is 8 s from its limit is asked alone after 4 s.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import BrokerState, Memory, VolumeState

_SLOPE_S = 5.0
"""A dozen readings in the window of a rate (``sidecar.throttle.slope``)."""

_SPACING_PER_BROKER_S = 0.02
"""N sidecars that each ask a broker every 20 ms x N ask it 50 times a second in total."""

_FULL_PER_S = 2.5
"""How often all sidecars together ask a broker with a full volume; whole polls add a few."""

_HEARD_S = 4.0
"""How long a reader may need to get a decision: two long polls and a time-out."""

_SLOW_ANSWERS_S = 5.0
"""Two answers of a broker that takes 2.5 s for each."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The interval and the minimum between polls, and the times that follow from them.

    Attributes:
        interval_s: the longest wait between two whole polls, seconds, > 0.
        minimum_s: the shortest wait between two polls, seconds, > 0 and <= interval_s.
        observers: the number of sidecars that poll all brokers; None if every sidecar does.
    """

    interval_s: float
    minimum_s: float
    observers: int | None = None

    @property
    def deadline_s(self) -> float:
        """The longest deadline of a poll: the interval, within 2 to 10 s.

        The deadline must not shrink with the interval: the Strimzi plugin with an interval of 1 s
        has a time-out of 0 s, fails every poll and never throttles.
        """
        return min(10.0, max(2.0, self.interval_s))

    @property
    def reaction_s(self) -> float:
        """The longest time from when a volume reaches its limit until brokers throttle, seconds.

        It holds without a fault, for a volume that did not fill before, so that the next poll comes
        an interval later (docs/reliability.md, "Past the limit"). With an interval of 60 s: 79 s.
        """
        return self.interval_s + self.deadline_s + _HEARD_S + _SLOW_ANSWERS_S

    def deadline_after(self, delay_s: float) -> float:
        """The deadline of a poll that comes after a wait: as long as the wait, but at least 1 s.

        So while a volume is close to its limit, another broker's silence does not delay its
        reading. A slow broker is seen all the same: its answer may come after the poll's deadline.
        """
        return min(self.deadline_s, max(1.0, delay_s))

    def within(self, wait_s: float) -> float:
        """The wait, limited to the minimum and the interval."""
        return min(self.interval_s, max(self.minimum_s, wait_s))

    def between_polls_of_full_s(self, brokers: int) -> float:
        """The wait between two polls of a broker with a full volume, seconds.

        A full volume is read to notice that it has space again, and producers already wait. So the
        broker's load has precedence, until the interval. With 3 of 1,000 sidecars as observers: the
        observers and the sidecar beside the broker each ask it every 1.6 s.
        """
        asking = brokers if self.observers is None else min(brokers, self.observers + 1)
        return self.within(asking / _FULL_PER_S)


@dataclass(frozen=True, slots=True)
class Release:
    """A factor that rose.

    Attributes:
        at: when it rose, steady seconds.
        brokers: the brokers whose volumes violated until then.
    """

    at: float
    brokers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NextPoll:
    """When the next poll comes.

    Attributes:
        delay_s: the time from now, seconds, > 0.
        brokers: the ids of the only brokers to ask; None for a whole poll.
    """

    delay_s: float
    brokers: frozenset[int] | None = None


def next_poll(
    memory: Memory,
    timing: Timing,
    now: float,
    since_whole_s: float,
    released: Release | None = None,
    *,
    soft_limit: Limit | None = None,
    steering: Collection[int] = (),
) -> NextPoll:
    """Decides the next poll when one has just ended.

    Args:
        memory: the memory, after the poll that just ended.
        timing: interval and minimum.
        now: steady seconds.
        since_whole_s: how long ago, at ``now``, the last whole poll started.
        released: the last release; None if there was none since the start.
        soft_limit: the soft limit, where the slope begins; None if there is no slope.
        steering: the brokers whose volumes decide how far client quotas are lowered.
    """
    # For each active broker, half the time until its first volume reaches a line. A volume that
    # fills evenly is then read at 1/2, 3/4, 7/8 ... of the time until its limit. So the last poll
    # comes close to the limit, and a rate that doubles after a poll is still noticed in time.
    active = memory.active
    states = {key: memory.brokers[key] for key in active if key in memory.brokers}
    sloped = {key for key, _ in memory.slope.learned} if memory.slope else set()
    sloped |= active.keys() & steering
    full_s = timing.between_polls_of_full_s(len(active))
    halves = {
        key: min(
            _until_needed(state, full_s, now),
            _SLOPE_S if key in sloped else _half_to_slope(state, soft_limit, now),
        )
        for key, state in states.items()
    }
    # A volume that did not fill while producers were throttled does not show how it will fill after
    # the release. Producers come back one by one, as their pauses end. A client that comes back at
    # t is noticed within a quarter of t, and the polls become rarer while nothing happens.
    quarter = math.inf if released is None else (now - released.at) / 4
    wait = timing.within(min([quarter, *halves.values()]))
    back_off_s = 0.0
    if memory.failed_polls:
        # The wait doubles from the minimum. So one lost answer costs little, and a cluster in
        # trouble gets few requests. The exponent is bounded because 2.0 ** 1024 overflows a float.
        back_off_s = timing.minimum_s * 2.0 ** min(memory.failed_polls - 1, 62)
        wait = min(wait, back_off_s)
    # Every sidecar asks every broker, so the spacing grows with the cluster. It protects the
    # brokers, so it has precedence even when a volume is near its limit.
    spacing_s = _SPACING_PER_BROKER_S * len(active)
    if any(map(_full, states.values())):
        spacing_s = max(spacing_s, full_s)
    until_whole = max(
        spacing_s - since_whole_s,
        min(wait, timing.interval_s - since_whole_s),
        timing.minimum_s,
    )
    # A broker is worth a poll of its own when one of its volumes is known to fill, is on the slope,
    # or was just released. After a failed whole poll, its answer shows at least that broker.
    back = frozenset() if released is None else released.brokers
    waits = {
        key: timing.within(
            max(
                min(half, quarter) if key in back else half, _silent_s(states[key], now), back_off_s
            )
        )
        for key, half in halves.items()
        if key in back or key in sloped or any(map(_known_to_fill, states[key].volumes))
    }
    return _alone(waits, until_whole)


@dataclass(frozen=True, slots=True)
class OwnPolls:
    """The polls of a sidecar whose observers poll the cluster.

    Attributes:
        own_broker: the id of the broker beside this sidecar; None if it is not known.
        asked_at: broker id -> when this sidecar last asked it, steady seconds.
        read_at: broker id -> when it sent the request of the last answer that it got itself.
    """

    own_broker: int | None
    asked_at: Mapping[int, float]
    read_at: Mapping[int, float]


def next_followers_poll(
    memory: Memory, timing: Timing, now: float, polls: OwnPolls
) -> tuple[float, frozenset[int]]:
    """The next poll of a sidecar whose observers poll the cluster.

    It polls the brokers that the observers do not see, since they may be cut off from a broker that
    this sidecar reaches. It always polls its own broker too, which observers' lists may lack.

    Args:
        memory: the memory, with what the observers saw.
        timing: interval and minimum.
        now: steady seconds.
        polls: its own polls so far.

    Returns:
        The time from now, seconds, >= 0, and the ids of the brokers to ask; infinite if no broker
        is known.
    """
    if not memory.active:
        return math.inf, frozenset()
    own = set() if polls.own_broker is None else {polls.own_broker}
    due = {key: _due(key, memory, timing, polls) for key in memory.active.keys() | own}
    first = max(now, min(due.values()))
    brokers = frozenset(broker_id for broker_id, at in due.items() if at <= first)
    return first - now, brokers


def _due(broker_id: int, memory: Memory, timing: Timing, polls: OwnPolls) -> float:
    """When a follower has to ask a broker itself, steady seconds."""
    state = memory.brokers.get(broker_id, BrokerState())
    asked_at = polls.asked_at.get(broker_id, -math.inf)
    if broker_id not in memory.active or state.read_at is None or state.is_silent:
        return asked_at + timing.interval_s
    is_own = broker_id == polls.own_broker
    brokers = len(memory.active)
    # All followers may ask a broker that no observer sees.
    spacing_s = 0.0 if is_own else _SPACING_PER_BROKER_S * brokers
    if not is_own and state.read_at != polls.read_at.get(broker_id):
        # An observer has read it, and reads it again each interval. Its answer may be late.
        observed_by = state.read_at + timing.interval_s + timing.deadline_s
        return max(observed_by, asked_at + max(timing.minimum_s, spacing_s))
    asking = timing if is_own else replace(timing, observers=None)
    full_s = asking.between_polls_of_full_s(brokers)
    wait_s = timing.within(_until_needed(state, full_s, state.read_at))
    return asked_at + max(wait_s, spacing_s)


def _alone(waits: Mapping[int, float], until_whole_s: float) -> NextPoll:
    """A poll of the brokers that can't wait for the next whole poll, or that whole poll."""
    # Brokers whose turn comes at the same time share one poll.
    alone_in = min(waits.values(), default=math.inf)
    near = frozenset(key for key, wait in waits.items() if wait <= alone_in)
    # Many of them at once cost this sidecar as much as a whole poll, so they get its spacing. Only
    # observers bound what one broker near its limit is asked: its answers must come soon.
    alone_in = max(alone_in, _SPACING_PER_BROKER_S * len(near))
    return NextPoll(alone_in, near) if alone_in < until_whole_s else NextPoll(until_whole_s)


def _until_needed(state: BrokerState, full_s: float, now: float) -> float:
    """The longest wait at ``now`` until the broker's volumes are read again, seconds."""
    if full := _full(state):
        return max(0.0, full_s - (now - full[0].read_at))
    return _half_of_nearest(state, now)


def _full(state: BrokerState) -> list[VolumeState]:
    """The volumes that can be read, and violated the limit when last read."""
    return [volume for volume in state.violating if volume.online]


def _silent_s(state: BrokerState, now: float) -> float:
    """How long the broker has not answered, seconds; a wait of that time doubles."""
    since = state.failed_since if state.is_silent else None
    return 0.0 if since is None else now - since


def _half_of_nearest(state: BrokerState, now: float) -> float:
    """Half the time until the first online volume is at its limit, seconds; inf if none fills."""
    left = [
        _time_left(volume, now) for volume in state.volumes if volume.online and not _still(volume)
    ]
    return min(left, default=math.inf) / 2


def _half_to_slope(state: BrokerState, soft_limit: Limit | None, now: float) -> float:
    """Half the time until the first volume is at the soft limit, seconds; inf if none fills."""
    if soft_limit is None:
        return math.inf
    left = []
    for volume in state.volumes:
        # The same volume, judged by the soft limit in place of the limit.
        soft = replace(volume, verdict=soft_limit.judge(volume.volume))
        if volume.online and not soft.violates and soft.soonest_s is not None:
            left.append(soft.soonest_s - (now - volume.read_at))
    # Judged by the limit alone, a slope that takes two minutes would be noticed a minute late, when
    # half of it is gone. The floor of 5 s is the pace of polls on the slope itself.
    return max(_SLOPE_S, min(left, default=math.inf) / 2)


def _time_left(volume: VolumeState, now: float) -> float:
    """Seconds to the limit at ``now``; 0.0 while no rate is known."""
    if volume.soonest_s is None:
        # ``_still`` has left out volumes that don't fill, so here the rate is unknown: ask soon.
        return 0.0
    return max(0.0, volume.soonest_s - (now - volume.read_at))


def _still(volume: VolumeState) -> bool:
    """Whether the volume is known not to fill."""
    return volume.soonest_s is None and volume.fill.bytes_per_second is not None


def _known_to_fill(volume: VolumeState) -> bool:
    return volume.online and volume.soonest_s is not None
