"""When the first volume will be full, and when the first volume will reach its limit.

A callback pauses clients for longer when a volume will soon be full. If no sidecar answers, it
begins to throttle when a volume reaches its limit. A volume is full when 0 bytes are available;
then the broker stops.

Example: read at 10 s with 400 bytes available and a fill rate of 20 bytes/s, a volume is full at
30 s. With a validity of 300 s and no later reading, this counts until 310 s.
"""

from collections.abc import Iterable

from sidecar.throttle.fill import rate_over, seconds_to
from sidecar.throttle.memory import Memory, VolumeState


def soonest_full_at(volumes: Iterable[VolumeState], window_s: float) -> float | None:
    """When the first of these volumes has 0 bytes available at its fill rate over ``window_s``.

    Returns:
        Steady seconds, which may be past; None when none is within ten years.
    """
    times = []
    for state in volumes:
        left_s = seconds_to(state.volume.available_bytes, rate_over(state.fill, window_s))
        if left_s is not None:
            # Counted from the reading and not from now, so the time comes nearer between polls too.
            times.append(state.read_at + left_s)
    return min(times, default=None)


def limit_at(memory: Memory, validity_s: float, now: float) -> float | None:
    """When the first volume reaches its limit at its published rate.

    Returns:
        Steady seconds, which may be past; None when none does within ten years.
    """
    times = [
        state.read_at + state.seconds_left
        for state in memory.valid_volumes(validity_s, now)
        if state.seconds_left is not None
    ]
    return min(times, default=None)
