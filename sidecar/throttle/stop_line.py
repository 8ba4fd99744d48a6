"""The stop line: below it nothing is admitted, from anybody but excluded principals.

At the limit, producers are throttled: they wait, and a little of each passes. The stop line lies
below the limit, so that this little can't fill a volume. It is compared with the same readings as
the limit. Where a stop line would lie above the limit of a volume, the limit is the stop line: a
volume that does not throttle never stops.

The stop line is reached when a volume is at or below it. It is no longer reached when every volume
is above it by ``MARGIN``, or above the limit. Without a margin, a volume at the line would stop and
admit with each segment that retention deletes. A tenth is enough, because the throttle goes on
after that. A line with room for what producers write at full rate in the reaction time
(``sidecar.throttle.schedule``) is a tenth of that away. A leak of a hundredth needs ten reaction
times to fill a tenth.

Example: a limit of 100 bytes and a stop line of 50. A volume with 50 bytes available reaches the
line. With 55 it still counts as reached, with 56 not. On the way down, 51 do not reach it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sidecar.throttle.memory import VolumeState

MARGIN: Final = 0.1
"""The margin, as a share of the stop line's bytes."""


def volumes_at_stop_line(
    violations: Sequence[VolumeState], *, was_reached: bool
) -> tuple[VolumeState, ...]:
    """The volumes because of which nothing is admitted.

    Args:
        violations: the volumes at or below the limit that count now.
        was_reached: whether the stop line was reached until now.
    """
    # The margin belongs to a line that is reached already; it begins nothing.
    if not was_reached and not any(state.is_at_stop_line for state in violations):
        return ()
    return tuple(state for state in violations if _within_margin(state))


def not_below_limit(states: Iterable[VolumeState]) -> list[VolumeState]:
    """The volumes on which the stop line lies at the limit or above it, as it was set."""
    return [
        state
        for state in states
        if (line := state.stop_line_verdict) is not None
        if line.threshold_bytes >= state.verdict.threshold_bytes
    ]


def _within_margin(state: VolumeState) -> bool:
    line = state.stop_line_bytes
    return line is not None and state.volume.available_bytes <= (1.0 + MARGIN) * line
