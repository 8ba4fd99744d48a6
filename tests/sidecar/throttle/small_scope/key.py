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
_AGES: Final = {0.0: 0, VALIDITY_S: 1}


class Twins(NamedTuple):
    """Which places of a state are equal, so that what happens to one need not happen to the other.

    Attributes:
        brokers: whether the two brokers are.
        volumes: for each broker, whether its two volumes are.
    """

    brokers: bool = False
    volumes: tuple[bool, bool] = (False, False)


NO_TWINS: Final = Twins()


class Keys:
    """The keys of the states of a search.

    Args:
        scope: what is searched.
    """

    def __init__(self, scope: Scope) -> None:
        self._dated = UNREADABLE in scope.sizes
        self._numbers: dict[Key, int] = {}
        # With the objects, or another one could get the address of one that is gone.
        self._brokers: dict[Key, tuple[int, bool, object]] = {}

    def key(self, memory: Memory, ghost: Ghost, now: float) -> tuple[Key, Twins]:
        """Equal for states after which no decision can differ, but for names; and the twins."""
        computed, slope = memory.computed, memory.slope
        if computed and not computed.violations and not is_fresh(computed.computed_at, now):
            computed = None
        first, has_twins, _ = self._broker(1, ghost.brokers[0], memory, computed, now)
        second, has_other_twins, _ = self._broker(2, ghost.brokers[1], memory, computed, now)
        equal = (
            *((first, second) if first < second else (second, first)),
            _age(ghost.listed_at, now),
            _age(memory.membership_at, now),
            None if computed is None else _computed(computed, ghost, now),
            None if slope is None else _slope(slope, now),
        )
        return equal, Twins(first == second, (has_twins, has_other_twins))

    def clear(self) -> None:
        """Forgets the brokers of earlier states."""
        self._brokers.clear()

    def _broker(
        self, number: int, seen: SeenBroker, memory: Memory, computed: Computed | None, now: float
    ) -> tuple[int, bool, object]:
        """A broker's key as a number, and whether its volumes are twins."""
        broker, slope = memory.brokers.get(number), memory.slope
        throttling = _log_dirs(number, computed.violations) if computed else ()
        stopping = _log_dirs(number, computed.at_stop_line) if computed else ()
        name = number, now, id(seen), id(broker), id(slope), throttling, stopping
        known = self._brokers.get(name)
        if known is not None:
            return known
        kept = {} if broker is None else {each.volume.log_dir: each for each in broker.volumes}
        is_read = is_fresh(seen.answered_at, now)
        volumes: list[Key] = []
        for log_dir, volume in zip(LOG_DIRS, seen.volumes, strict=True):
            throttles = log_dir in throttling
            if is_read or volume.violates or throttles or (slope and volume.size == "soft"):
                state = kept.get(log_dir)
                shown = self._volume(volume, state, now)
                if slope is not None:
                    shown = (*shown, *_filling(slope, (number, log_dir), state))
                volumes.append((throttles, log_dir in stopping, *shown))
            else:
                # A reading that is too old is as none.
                volumes.append(())
        key = _broker(seen, broker, sorted(volumes), now)
        at = self._numbers.setdefault(key, len(self._numbers))
        known = self._brokers[name] = at, volumes[0] == volumes[1], (seen, broker, slope)
        return known

    def _volume(self, volume: SeenVolume, kept: VolumeState | None, now: float) -> Key:
        violates, shows = volume.violates, volume.shows
        shown = (
            # A log dir with room is as if it were online.
            shows if violates or shows == UNREADABLE else "",
            (volume.size or "") if violates else "",
            kept is not None and kept.violates,
            kept is not None and kept.is_at_stop_line,
        )
        if not self._dated:
            return shown
        # Without the sizes of a log dir that is written, it matters how old the last ones are, and
        # those that are too old count as those that were never known.
        kept_at = -math.inf if kept is None else kept.read_at
        return (*shown, _age(volume.read_at, now), _age(kept_at, now))


def _age(at: float | None, now: float) -> int:
    """In validities, 2 at most; -1 for none. All waits are whole validities."""
    return -1 if at is None else _AGES.get(now - at, 2)


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


def _log_dirs(number: int, states: tuple[VolumeState, ...]) -> tuple[str, ...]:
    """Those of a broker, in one order."""
    if not states:
        return ()
    return tuple(each.volume.log_dir for each in states if each.volume.broker_id == number)
