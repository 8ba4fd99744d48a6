"""How fast a volume fills, and how long it takes until its limit.

There are two rates:

- The published rate is the slope of the used bytes over the last ``WINDOW_S`` to twice that, or
  since the previous reading when that is older. A shorter window would publish noise, with polls
  every 100 ms. A longer one would still show filling when producers are already throttled.
- The fastest rate is the faster of the published rate and the slope of the last two readings. The
  schedule uses it, so that neither one quiet interval nor a burst misleads it.

A callback that pauses clients for a minute needs a rate over minutes, since over 5 s such a rate is
a spike or nothing. So while producers may be throttled, marks are kept for ``LONGEST_WINDOW_S``,
and older marks are further apart. Otherwise they are kept as long as the published rate needs them.

Example: 100 bytes used at 0 s and 300 at 10 s are 20 bytes/s. With 400 bytes available and a limit
of 200, the limit is (400 - 200) / 20 = 10 s away.
"""

from dataclasses import dataclass

WINDOW_S = 5.0
"""Long enough to smooth 100 ms polls, short enough to follow a throttle within seconds."""

LONGEST_S = 10 * 366 * 86_400.0
"""Ten years. What takes longer has no time: a later moment may have no date, and is no forecast."""

LONGEST_WINDOW_S = 640.0
"""Two pauses of 5 minutes, the longest by default."""

_TRAIL_SPACING_S = WINDOW_S / 8
"""Of readings that are closer together than this, only the last is kept."""

_AGE_OVER_SPACING = 4.0
"""Marks that are closer together than a quarter of their age are thinned: about 40 are left."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Used bytes at a time.

    Attributes:
        read_at: steady seconds.
        used_bytes: the used bytes then.
    """

    read_at: float
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Fill:
    """How a volume fills.

    Attributes:
        trail: earlier marks, oldest first. The last reading of all is always the last mark.
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


def next_fill(
    fill: Fill, read_at: float, used_bytes: int, retention_s: float = LONGEST_WINDOW_S
) -> Fill:
    """The fill after one more reading; a reading that is not later changes nothing.

    Args:
        fill: the fill before.
        read_at: steady seconds.
        used_bytes: the used bytes then.
        retention_s: how long marks are kept, seconds, >= ``WINDOW_S``.
    """
    last = fill.trail[-1]
    if read_at <= last.read_at:
        # Two answers of the same moment have no slope between them.
        return fill
    mark = Mark(read_at, used_bytes)
    marks = fill.trail
    # The newest mark moves along until it is far enough from the one before: so polls every 100 ms
    # do not make the trail long, and the last reading is never lost.
    if len(marks) > 1 and last.read_at - marks[-2].read_at < _TRAIL_SPACING_S:
        marks = marks[:-1]
    trail = (*_thinned(marks, read_at, retention_s), mark)
    rate = _slope(_base(trail, WINDOW_S), mark)
    return Fill(trail, rate, max(rate, _slope(last, mark)))


def rate_over(fill: Fill, window_s: float) -> float | None:
    """The slope over ``window_s`` seconds, ``WINDOW_S`` at least, or over the trail if shorter.

    With polls that are closer than a quarter of it, the time is a third longer at most.

    Returns:
        Bytes per second, negative while the volume empties; None before a second reading.
    """
    if len(fill.trail) < 2:
        return None
    return _slope(_base(fill.trail, max(WINDOW_S, window_s)), fill.trail[-1])


def rate_since(fill: Fill, since: float, window_s: float) -> float | None:
    """The slope over ``window_s`` seconds, of readings since a moment, steady seconds.

    Returns:
        Bytes per second, negative while the volume empties; None when the readings since then are
        less than ``WINDOW_S`` apart.
    """
    last = fill.trail[-1]
    trail = tuple(mark for mark in fill.trail if mark.read_at >= since)
    if len(trail) < 2 or last.read_at - trail[0].read_at < WINDOW_S:
        # Over less than a window, one burst would look like a rate.
        return None
    return _slope(_base(trail, window_s), last)


def has_rate_since(fill: Fill, since: float, window_s: float) -> bool:
    """Whether ``rate_over`` that window has only readings since a moment, steady seconds."""
    first = next((mark.read_at for mark in fill.trail if mark.read_at >= since), None)
    return first is not None and fill.trail[-1].read_at - first >= max(WINDOW_S, window_s)


def seconds_to(headroom_bytes: float, bytes_per_second: float | None) -> float | None:
    """How long ``headroom_bytes`` last at a rate.

    Returns:
        Seconds, 0.0 when nothing is left; None when that is more than ``LONGEST_S``, when it does
        not fill, or when the rate is unknown.
    """
    if headroom_bytes <= 0:
        return 0.0
    if bytes_per_second is None or bytes_per_second <= 0:
        return None
    seconds = headroom_bytes / bytes_per_second
    return seconds if seconds <= LONGEST_S else None


def _base(trail: tuple[Mark, ...], window_s: float) -> Mark:
    """The newest mark that is at least ``window_s`` before the last mark; else the first one."""
    until = trail[-1].read_at - window_s
    return next((mark for mark in trail[-2::-1] if mark.read_at <= until), trail[0])


def _thinned(marks: tuple[Mark, ...], now: float, retention_s: float) -> list[Mark]:
    """The marks without those that are too old, and without those too close for their age."""
    retained: list[Mark] = []
    for at, mark in enumerate(marks):
        if at + 1 < len(marks):
            after = marks[at + 1].read_at
            # A mark is too old when the next one is old enough to begin the longest window.
            if after <= now - retention_s:
                continue
            # The older marks are, the further apart they may be: a rate over a long window needs no
            # exact beginning. So their number grows with the logarithm of the window.
            if retained and after - retained[-1].read_at <= (now - after) / _AGE_OVER_SPACING:
                continue
        retained.append(mark)
    return retained


def _slope(earlier: Mark, later: Mark) -> float:
    return (later.used_bytes - earlier.used_bytes) / (later.read_at - earlier.read_at)
