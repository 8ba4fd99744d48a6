"""When two states are one: when no later decision can differ, but for names.

Times count as ages, and ages beyond the validity are one age. The two brokers and the two volumes
of a broker may change places. Of sizes, only the sides of the lines count on which they lie. On
the slope, rates count by their sign and means by their tenths, so a state there stands for others
that are near it.
"""

import math
from typing import Any, Final, NamedTuple

from sidecar.throttle.memory import BrokerState, Computed, Memory, Slope, VolumeState
from sidecar.throttle.slope import TURN_S
from tests.sidecar.throttle.small_scope.ghost import Ghost, SeenBroker, SeenVolume, is_fresh
from tests.sidecar.throttle.small_scope.scopes import (
    LOG_DIRS,
    SOFT_LIMIT,
    UNREADABLE,
    VALIDITY_S,
    Scope,
)

Key = tuple[Any, ...]


class Twins(NamedTuple):
    """Which places of a state are equal, so that what happens to one need not happen to the other.

    Attributes:
        brokers: whether the two brokers are.
        volumes: for each broker, whether its two volumes are.
    """

    brokers: bool = False
    volumes: tuple[bool, bool] = (False, False)


NO_TWINS: Final = Twins()


def key(memory: Memory, ghost: Ghost, now: float, scope: Scope) -> tuple[Key, Twins]:
    """Equal for states after which no decision can differ, but for names; and the equal places."""
    computed, slope, dated = memory.computed, memory.slope, UNREADABLE in scope.sizes
    if computed is not None and not computed.violations and not is_fresh(computed.computed_at, now):
        computed = None
    throttling = _names(() if computed is None else computed.violations)
    stopping = _names(() if computed is None else computed.at_stop_line)
    brokers: list[Key] = []
    twins: list[bool] = []
    for number, seen in enumerate(ghost.brokers, 1):
        broker = memory.brokers.get(number)
        kept = {} if broker is None else {each.volume.log_dir: each for each in broker.volumes}
        is_read = is_fresh(seen.answered_at, now)
        volumes: list[Key] = []
        for log_dir, volume in zip(LOG_DIRS, seen.volumes, strict=True):
            name = number, log_dir
            throttles = name in throttling
            if is_read or volume.violates or throttles or (slope and volume.size == "soft"):
                shown = _volume(volume, kept.get(log_dir), slope, name, now, dated=dated)
                volumes.append((throttles, name in stopping, *shown))
            else:
                # A reading that is too old is as none.
                volumes.append(())
        twins.append(volumes[0] == volumes[1])
        volumes.sort()
        brokers.append(_broker(seen, broker, volumes, now))
    equal = (
        *sorted(brokers),
        _age(ghost.listed_at, now),
        _age(memory.membership_at, now),
        None if computed is None else _computed(computed, ghost, now),
        None if slope is None else _slope(slope, now),
    )
    return equal, Twins(brokers[0] == brokers[1], (twins[0], twins[1]))


def _age(at: float | None, now: float) -> int:
    """In validities, 2 at most; -1 for none."""
    return -1 if at is None else 2 if at <= now - 2 * VALIDITY_S else int((now - at) / VALIDITY_S)


def _broker(seen: SeenBroker, broker: BrokerState | None, volumes: list[Key], now: float) -> Key:
    if volumes == [(), ()]:
        return (seen.place == "active",)
    known = (
        ()
        if broker is None
        else (_age(broker.read_at, now), broker.retained, _age(broker.missing_since, now))
    )
    return (
        seen.place == "active",
        seen.place,
        _age(seen.answered_at, now),
        seen.was_fenced,
        _age(seen.absent_since, now),
        known,
        *volumes,
    )


def _volume(
    volume: SeenVolume,
    kept: VolumeState | None,
    slope: Slope | None,
    name: tuple[int, str],
    now: float,
    *,
    dated: bool,
) -> Key:
    # Without the sizes of a log dir that is written, it matters how old the last ones are.
    shown = (
        volume.shows,
        (volume.size or "") if volume.violates else "",
        _age(volume.read_at, now) if dated else 0,
    )
    if slope is not None:
        return (*shown, *_filling(slope, name, kept))
    # Sizes that are too old count as those that were never known.
    kept_at = -math.inf if kept is None else kept.read_at
    return (
        *shown,
        kept is not None and kept.violates,
        _age(kept_at, now) if dated else 0,
        kept is not None and kept.is_at_stop_line,
    )


def _computed(computed: Computed, ghost: Ghost, now: float) -> Key:
    return (
        computed.factor,
        _age(computed.computed_at, now),
        -1 if computed.violations else _age(ghost.whole_at, now),
    )


def _slope(slope: Slope, now: float) -> Key:
    return (
        slope.factor,
        round(slope.mean, 1),
        _age(slope.at, now),
        now - slope.fell_at < TURN_S,
        slope.falls,
    )


def _filling(slope: Slope, name: tuple[int, str], kept: VolumeState | None) -> Key:
    if kept is None:
        return 0, -2, False
    if kept.volume.available_bytes > SOFT_LIMIT:
        # Its rate matters once it is on the slope.
        return 1, -2, False
    rate = kept.fill.bytes_per_second
    return 2, -2 if rate is None else (rate > 0.0) - (rate < 0.0), name in slope.learned


def _names(states: tuple[VolumeState, ...]) -> set[tuple[int, str]]:
    return {(state.volume.broker_id, state.volume.log_dir) for state in states}
