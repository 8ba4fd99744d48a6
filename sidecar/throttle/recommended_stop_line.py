"""Which stop line to set: one that leaves room for what is written until brokers act.

That takes the reaction time (``sidecar.throttle.schedule``), and costs the producers' rate times
that time twice: between the limit and the stop line, so that an ordinary throttle is no stop, and
below the stop line, so that a stop comes in time. Half of the limit leaves as much room for both,
and so suits the highest rate for which there is any line at all. No more is needed than a network
of 10 Gbit/s brings in that time. The rate of now decides nothing, since a line for the rate of the
night is too low for the day; it says whether the limit itself leaves enough room.

Example: a limit of 100 GB, a reaction time of 79 s: 50 GB, which is room for 632.9 MB/s. A limit of
1 TB: 98 GB, what 1.25 GB/s are in 79 s. A volume that fills by 900 MB/s needs a limit of 142.2 GB.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.sizes import size

ENOUGH_BYTES_PER_SECOND: Final = 1.25e9
"""10 Gbit/s, which most brokers' networks have at most, all on one volume."""

_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class RecommendedStopLine:
    """A stop line to set.

    Attributes:
        line: the line, of the limit's type.
        room_bytes: what it leaves on the volume where that is least.
        reaction_s: how long a stop may take, seconds.
        too_fast: a volume that fills faster than the room allows for; None: none does.
    """

    line: Limit
    room_bytes: float
    reaction_s: float
    too_fast: VolumeState | None

    @property
    def bytes_per_second(self) -> float:
        """The rate on one volume for which the room is enough."""
        return self.room_bytes / self.reaction_s

    def sentences(self, setting: str) -> list[str]:
        """What to set, and why; ``setting`` is its name."""
        said = [
            f"No stop line is set. {setting}={self.line.value} is recommended: from "
            f"{self.line.describe()} on nothing is admitted, and what is left has room for "
            f"{size(self.bytes_per_second)}/s on a volume for {self.reaction_s:.0f} s, the time "
            "that a stop may take."
        ]
        fast = self.too_fast
        if fast is not None:
            rate = fast.fill.bytes_per_second or 0.0
            needed = 2 * rate * self.reaction_s
            said.append(
                f"Broker {fast.volume.broker_id} {fast.volume.log_dir} fills by {size(rate)}/s, "
                f"for which a limit of {size(needed)} leaves room."
            )
        return said


def recommended_stop_line(
    limit: Limit, volumes: Iterable[VolumeState], reaction_s: float
) -> RecommendedStopLine | None:
    """The stop line to set beside a limit.

    Args:
        limit: of every volume.
        volumes: as last read.
        reaction_s: from a line's being reached until brokers act, seconds, > 0.

    Returns:
        The line; None where no volume was read, or the limit is too low for a line below it.
    """
    known = [state for state in volumes if state.verdict.threshold_bytes > 0]
    if not known:
        return None
    least_bytes = min(state.verdict.threshold_bytes for state in known)
    needed_bytes = ENOUGH_BYTES_PER_SECOND * reaction_s
    line = limit.scaled(min(_SHARE, needed_bytes / least_bytes))
    if line is None:
        return None
    share = line.value / limit.value
    room_bytes = share * least_bytes
    fastest = max(known, key=lambda state: _used_up(state, share, reaction_s))
    too_fast = fastest if _used_up(fastest, share, reaction_s) > 1.0 else None
    return RecommendedStopLine(line, room_bytes, reaction_s, too_fast)


def _used_up(state: VolumeState, share: float, reaction_s: float) -> float:
    """Which part of a volume's room its present rate uses up."""
    rate = state.fill.bytes_per_second if state.online else None
    return (rate or 0.0) * reaction_s / (share * state.verdict.threshold_bytes)
