"""The stop line: from there on nothing is admitted, from anybody but those excluded.

The limit throttles producers: they wait, and a little of each passes. The stop line lies below it,
so that a volume is not filled by what passes. It judges each volume as the limit does, on the same
readings, and nothing stops that does not throttle: on a volume where the line would lie above the
limit, it is the limit.

A stop begins when a volume is at or below the line, and ends when every volume is above it by
``MARGIN``, or above the limit. Without a margin a volume at the line would stop and admit with each
segment that retention deletes. A tenth is enough, since the throttle is still in force when a stop
ends: a line with room for what producers write at full rate in the reaction time
(``sidecar.throttle.schedule``) is a tenth of that away, which a leak of a hundredth takes ten
reaction times to fill.

Example: under a limit of 100 bytes and a line of 50 a volume with 50 bytes available stops, with 55
it still does, with 56 it does not; coming from above, 51 do not stop.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sidecar.throttle.memory import VolumeState

MARGIN: Final = 0.1
"""Of the stop line's bytes."""


def volumes_at_stop_line(
    violations: Sequence[VolumeState], *, was_reached: bool
) -> tuple[VolumeState, ...]:
    """The volumes because of which nothing is admitted.

    Args:
        violations: the volumes at or below the limit that count now.
        was_reached: whether the stop line was reached until now.
    """
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
