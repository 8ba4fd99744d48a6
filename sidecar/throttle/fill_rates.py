"""How fast volumes fill, while throttled clients write in bursts between waits of some seconds.

A volume's rate is the higher one of 5 and of ``SLOW_S`` seconds, so a wait of all clients does not
look as if nobody wrote. A broker's highest rate of the last 15 minutes bounds what its clients
write, while they are throttled too.

Example: 12 MB/s for a minute, then nothing for 5 s. The rate is 9 MB/s, that of 20 s.
"""

from dataclasses import dataclass, field
from typing import Final

from sidecar.throttle.fill import WINDOW_S, Fill, first_fill, next_fill, rate_over
from sidecar.throttle.memory import LogDir, Memory
from sidecar.throttle.peak import Peak, growth_of

SLOW_S: Final = 20.0


@dataclass(slots=True)
class FillRates:
    """The fill rates of volumes and brokers, bytes/s, >= 0; initially none is known."""

    _fills: dict[LogDir, Fill] = field(default_factory=dict)
    _peaks: dict[int, Peak] = field(default_factory=dict)

    def note(self, memory: Memory, now: float) -> None:
        """Note the last readings; ``now`` in steady seconds."""
        fills = {}
        for state in memory.volumes():
            key, at, used = state.volume.place, state.read_at, state.volume.used_bytes
            fill = self._fills.get(key)
            fills[key] = first_fill(at, used) if fill is None else next_fill(fill, at, used)
        self._fills = fills
        growths = {
            broker.volumes[0].volume.broker_id: sum(growth_of(each.fill) for each in broker.volumes)
            for broker in memory.active_brokers()
            if broker.volumes
        }
        for broker_id, growth in growths.items():
            self._peaks.setdefault(broker_id, Peak()).add(growth, now)
        self._peaks = {
            key: peak for key, peak in self._peaks.items() if key in growths or peak.highest(now)
        }

    def of(self, log_dir: LogDir) -> float:
        """Return a volume's fill rate; 0.0 if it empties, or if its rate is not known."""
        fill = self._fills.get(log_dir)
        if fill is None:
            return 0.0
        return max(0.0, rate_over(fill, WINDOW_S) or 0.0, rate_over(fill, SLOW_S) or 0.0)

    def highest(self, now: float) -> dict[int, float]:
        """Return the highest rate of each broker; 0.0 for one whose volumes did not fill."""
        return {key: peak.highest(now) or 0.0 for key, peak in self._peaks.items()}
