"""The stop line: when a volume reaches it, brokers refuse all producers but excluded principals.

At the limit, producers are throttled: they wait, and brokers let a small part through. The stop
line lies below the limit, so that this leak can't fill a volume. It is compared with the same
readings as the limit.

The stop line is reached when a volume is at or below it. It is no longer reached when every volume
is above it by ``MARGIN``, or above the limit.

Example: a limit of 100 bytes and a stop line of 50. A volume with 50 bytes available reaches the
line. With 55 it still counts as reached, with 56 not. On the way down, 51 bytes do not reach it.
"""

from collections.abc import Sequence
from typing import Final

from sidecar.throttle.memory import VolumeState

# Without a margin, each segment that retention deletes could make brokers refuse and admit in
# turns. A tenth is enough: the throttle continues, and a leak of a hundredth of the full rate needs
# ten reaction times to fill it.
MARGIN: Final = 0.1
"""The margin, as a share of the stop line's bytes."""


def volumes_at_stop_line(
    violations: Sequence[VolumeState], *, was_reached: bool
) -> tuple[VolumeState, ...]:
    """The violating volumes that count as at the stop line.

    Args:
        violations: the volumes at or below the limit that count now.
        was_reached: whether the stop line was reached until now.
    """
    # The margin only matters while the line is reached. It never makes brokers begin to refuse, so
    # without a volume at the line itself nothing has to be compared with the margin.
    if not was_reached and not any(state.is_at_stop_line for state in violations):
        return ()
    return tuple(state for state in violations if _within_margin(state))


def _within_margin(state: VolumeState) -> bool:
    line = state.stop_line_bytes
    return line is not None and state.volume.available_bytes <= (1.0 + MARGIN) * line
