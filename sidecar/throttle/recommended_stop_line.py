"""Recommends a stop line that leaves room for all writes until brokers act.

Brokers act within the reaction time (``sidecar.throttle.schedule``). The line is half of the limit,
or what a network of 10 Gbit/s brings in that time, if that is less.

Example: a limit of 100 GB and a reaction time of 79 s: 50 GB, which is room for 632.9 MB/s. A limit
of 1 TB: 98 GB, what 1.25 GB/s write in 79 s. A volume that fills by 900 MB/s needs a limit of
142.2 GB.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.sizes import size

ENOUGH_BYTES_PER_SECOND: Final = 1.25e9
"""10 Gbit/s: more than the networks of most brokers have, here all on one volume."""

# Room for the reaction time is needed twice: between the limit and the stop line, so that an
# ordinary throttle does not reach the line, and below the line, so that refusals come in time. Half
# of the limit leaves the same room for both, so no other line allows a higher write rate.
_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class RecommendedStopLine:
    """A stop line to set.

    Attributes:
        line: the line, of the limit's type.
        room_bytes: the room that it leaves, on the volume with the least.
        reaction_s: how long brokers may take to act, seconds.
        too_fast: a volume that fills faster than the room allows; None when there is none.
    """

    line: Limit
    room_bytes: float
    reaction_s: float
    too_fast: VolumeState | None

    @property
    def bytes_per_second(self) -> float:
        """The highest rate on one volume for which the room is enough."""
        return self.room_bytes / self.reaction_s

    def sentences(self, setting: str) -> list[str]:
        """The recommendation in sentences; ``setting`` is the name of the setting."""
        sentences = [
            f"No stop line is set. Recommended: {setting}={self.line.value}. At this line, "
            f"{self.line.describe()}, brokers with the authorizer refuse all producers. The rest "
            f"has room for {size(self.bytes_per_second)}/s on a volume during the "
            f"{self.reaction_s:.0f} s that brokers may take to act."
        ]
        fast = self.too_fast
        if fast is not None:
            rate = fast.fill.bytes_per_second or 0.0
            # Above the line and below it, as for the line itself.
            needed = 2 * rate * self.reaction_s
            sentences.append(
                f"Broker {fast.volume.broker_id} {fast.volume.log_dir} fills by {size(rate)}/s. "
                f"A limit of {size(needed)} would leave room for that."
            )
        return sentences


def recommended_stop_line(
    limit: Limit, volumes: Iterable[VolumeState], reaction_s: float
) -> RecommendedStopLine | None:
    """The stop line to set beside a limit.

    Args:
        limit: of every volume.
        volumes: as last read.
        reaction_s: the time until brokers act after a volume reached a line, seconds, > 0.

    Returns:
        The line; None where no volume was read, the limit is too low for a line below it, or an
        empty volume would violate the line.
    """
    known = [state for state in volumes if state.verdict.threshold_bytes > 0]
    if not known:
        return None
    # A ratio is fewer bytes on a smaller volume, so the volume with the lowest limit decides.
    least_bytes = min(state.verdict.threshold_bytes for state in known)
    needed_bytes = ENOUGH_BYTES_PER_SECOND * reaction_s
    line = limit.scaled(min(_SHARE, needed_bytes / least_bytes))
    if line is None or any(line.judge(state.volume.emptied).violates for state in known):
        return None
    # Rounding to two digits may have made the line lower than the share asked for.
    share = line.value / limit.value
    # The current rate does not decide on the line, because a line for the rate of the night is too
    # low for the day. It only shows whether the limit itself leaves enough room.
    room_bytes = share * least_bytes
    fastest = max(known, key=lambda state: _used_up(state, share, reaction_s))
    too_fast = fastest if _used_up(fastest, share, reaction_s) > 1.0 else None
    return RecommendedStopLine(line, room_bytes, reaction_s, too_fast)


def _used_up(state: VolumeState, share: float, reaction_s: float) -> float:
    """The part of a volume's room that its current rate uses up in the reaction time."""
    rate = state.fill.bytes_per_second if state.online else None
    return (rate or 0.0) * reaction_s / (share * state.verdict.threshold_bytes)
