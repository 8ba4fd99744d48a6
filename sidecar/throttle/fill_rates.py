"""How fast volumes fill, while throttled clients write in bursts between waits of some seconds.

A volume's rate is the higher one of 5 and of ``SLOW_S`` seconds, so a wait of all clients does not
look as if nobody wrote. A broker's highest rate of the last 15 minutes bounds what its clients
write, while they are throttled too: over 10 s for bursts, and over ``LONG_S`` for what lasts, in
which a file that was copied to a volume counts less.

Example: 12 MB/s for a minute, then nothing for 5 s. The rate is 9 MB/s, that of 20 s.
"""

from dataclasses import dataclass, field
from typing import Final

from sidecar.throttle.fill import WINDOW_S, Fill, first_fill, next_fill, rate_over
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.peak import Peak, growth_of
from sidecar.volumes import LogDir

SLOW_S: Final = 20.0
LONG_S: Final = 60.0


@dataclass(slots=True)
class FillRates:
    """The fill rates of volumes and brokers, bytes/s, >= 0; initially none is known."""

    _read_at: dict[int, float | None] = field(default_factory=dict)
    _fills: dict[int, dict[str, Fill]] = field(default_factory=dict)
    _peaks: dict[int, Peak] = field(default_factory=dict)
    _lasting: dict[int, Peak] = field(default_factory=dict)

    def note(self, memory: Memory, now: float) -> None:
        """Note the last readings; ``now`` in steady seconds."""
        for broker_id in self._fills.keys() - memory.brokers.keys():
            del self._fills[broker_id], self._read_at[broker_id]
        for broker_id, broker in memory.brokers.items():
            # Of a thousand brokers, one may have been read.
            if broker_id in self._fills and self._read_at[broker_id] == broker.read_at:
                continue
            before = self._fills.get(broker_id, {})
            self._read_at[broker_id] = broker.read_at
            self._fills[broker_id] = {
                state.volume.log_dir: _next(before.get(state.volume.log_dir), state)
                for state in broker.volumes
            }
            if broker.volumes and broker_id in memory.active:
                growth = sum(growth_of(state.fill) for state in broker.volumes)
                self._peaks.setdefault(broker_id, Peak()).add(growth, now)
                fills = self._fills[broker_id].values()
                lasting = sum(max(0.0, rate_over(each, LONG_S) or 0.0) for each in fills)
                self._lasting.setdefault(broker_id, Peak()).add(min(growth, lasting), now)
        gone = self._peaks.keys() - memory.active.keys()
        for broker_id in (each for each in gone if not self._peaks[each].highest(now)):
            del self._peaks[broker_id], self._lasting[broker_id]

    def of(self, log_dir: LogDir, age_s: float = 0.0) -> float:
        """Return a volume's fill rate; 0.0 if it empties, or if its rate is not known.

        Nobody knows whether a burst went on after a reading that is older than ``SLOW_S``, so the
        rate over ``LONG_S`` counts then.

        Args:
            log_dir: the volume.
            age_s: the age of its last reading, seconds.
        """
        broker_id, path = log_dir
        fill = self._fills.get(broker_id, {}).get(path)
        if fill is None:
            return 0.0
        if age_s > SLOW_S:
            return max(0.0, rate_over(fill, LONG_S) or 0.0)
        return max(0.0, rate_over(fill, WINDOW_S) or 0.0, rate_over(fill, SLOW_S) or 0.0)

    def highest(self, now: float) -> dict[int, float]:
        """Return the highest rate of each broker; 0.0 for one whose volumes did not fill."""
        return {key: peak.highest(now) or 0.0 for key, peak in self._peaks.items()}

    def lasting(self, now: float) -> dict[int, float]:
        """Return the same over ``LONG_S``."""
        return {key: peak.highest(now) or 0.0 for key, peak in self._lasting.items()}


def _next(fill: Fill | None, state: VolumeState) -> Fill:
    at, used = state.read_at, state.volume.used_bytes
    return first_fill(at, used) if fill is None else next_fill(fill, at, used)
