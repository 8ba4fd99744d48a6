"""When the first volume will be full: what lets a callback put the disk before its clients.

Unlike the limit, where throttling begins, full is the end: 0 bytes available, and the broker stops.
A volume counts while its broker is an active member and the log dir online, and while its last
reading is valid: what was seen before a broker fell silent says nothing of its present rate. It is
counted from the reading on, so the time runs between polls too.

Example: read at 10 s with 400 bytes available and filling by 20 bytes/s, a volume is full at 30 s.
With a validity of 300 s, and no reading since, it counts until 310 s.
"""

from sidecar.throttle.fill import WINDOW_S, rate_over, seconds_to
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.validity import is_valid


def full_at(
    memory: Memory, validity_s: float, now: float, window_s: float = WINDOW_S
) -> float | None:
    """When the first volume has 0 bytes available at the rate at which it fills.

    Args:
        memory: what is remembered of the volumes.
        validity_s: for how long a reading counts, seconds.
        now: steady seconds.
        window_s: over how long the rate is to be, seconds.

    Returns:
        Steady seconds, which may be past; None when no volume fills.
    """
    times = [
        at
        for broker in memory.active_brokers()
        if broker.read_at is not None and is_valid(broker.read_at, validity_s, now)
        for known in broker.volumes
        if known.online and (at := _full_at(known, window_s)) is not None
    ]
    return min(times, default=None)


def _full_at(known: VolumeState, window_s: float) -> float | None:
    left_s = seconds_to(known.volume.available_bytes, rate_over(known.fill, window_s))
    return None if left_s is None else known.read_at + left_s
