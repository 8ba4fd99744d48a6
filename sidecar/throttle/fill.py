"""How fast a volume fills, and how long it takes until its limit.

The published rate is the slope of the used bytes over the last ``WINDOW_S`` to twice that, or since
the previous reading when that is longer ago: polls every 100 ms would otherwise publish noise, and
a longer memory would still tell of filling when producers are already held. The schedule looks at
the faster of that and the slope of the last two readings, so that one quiet interval does not make
it blind, nor a burst find it asleep.

Example: 100 bytes used at 0 s, 300 at 10 s: 20 bytes/s. With 400 bytes available and a limit of 200
the limit is (400 - 200) / 20 = 10 s away.
"""

from dataclasses import dataclass

WINDOW_S = 5.0
"""Long enough to smooth 100 ms polls, short enough to follow a throttle within seconds."""

_TRAIL_SPACING_S = WINDOW_S / 8
"""Readings closer together than this are not kept apart: a trail has 9 or 10 points at most."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Used bytes at a time.

    Attributes:
        read_at: steady seconds.
        used_bytes: what lay on the volume then.
    """

    read_at: float
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Fill:
    """How a volume fills.

    Attributes:
        trail: earlier marks, oldest first: the first is the base of the rate. The last reading of
            all is always the last mark.
        bytes_per_second: the published rate, negative while the volume empties; None before a
            second reading.
        fastest_bytes_per_second: the faster of the published rate and that of the last two
            readings; None before a second reading.
    """

    trail: tuple[Mark, ...]
    bytes_per_second: float | None = None
    fastest_bytes_per_second: float | None = None


def first_fill(read_at: float, used_bytes: int) -> Fill:
    """The fill after one reading: no rate is known."""
    return Fill((Mark(read_at, used_bytes),))


def next_fill(fill: Fill, read_at: float, used_bytes: int) -> Fill:
    """The fill after one more reading; a reading that is not later replaces nothing."""
    last = fill.trail[-1]
    if read_at <= last.read_at:
        return fill
    mark = Mark(read_at, used_bytes)
    marks = fill.trail
    if len(marks) > 1 and last.read_at - marks[-2].read_at < _TRAIL_SPACING_S:
        marks = marks[:-1]
    while len(marks) > 1 and marks[1].read_at <= read_at - WINDOW_S:
        marks = marks[1:]
    rate = _slope(marks[0], mark)
    return Fill((*marks, mark), rate, max(rate, _slope(last, mark)))


def seconds_to(headroom_bytes: float, bytes_per_second: float | None) -> float | None:
    """How long ``headroom_bytes`` last at a rate.

    Returns:
        Seconds, 0.0 when nothing is left; None when it does not fill or the rate is unknown.
    """
    if headroom_bytes <= 0:
        return 0.0
    if bytes_per_second is None or bytes_per_second <= 0:
        return None
    return headroom_bytes / bytes_per_second


def _slope(earlier: Mark, later: Mark) -> float:
    return (later.used_bytes - earlier.used_bytes) / (later.read_at - earlier.read_at)
