"""Lowers and raises one produce quota in steps, so that no step makes a client wait for long.

Kafka charges a produce request after the append. With B bytes in the window W of 10 to 11 s and a
quota T, the client then waits for B / T - W, without a bound, and no later change of the quota ends
that wait. So a quota falls in steps. From a quota T that has applied for ``STEP_S``, the next is

    (W T + P F) / (W + P)        with W = 11 s, P = 2 s and the floor F

and never below F. No wait is longer than ``LONGEST_PAUSE_S`` if no request has more bytes than F
has in a second: 512 KiB for the default floor. A simulation over Kafka's own arithmetic shows this
for a connection that sends whatever it likes (``tests/sidecar/throttle/test_quota_steps.py``).
The requests of all connections that share a quota count together. Larger requests wait longer.

If the clients of a quota are known to write no more than ``rate``, the next value is twice that
at most, and nobody waits. With R of them for the bytes in the window and b since that was seen, the
wait is (R W + b) / 2R - W: 6 s at most while b is less than 23 s of R. Without a known rate, steps
begin at the original quota, which bounds what its clients write. A client without a quota begins at
``FIRST``; if it writes more than that to one broker, its first wait is longer.

Every value is a rung of one fixed ladder, each about 1 % above the one below. So a lowered quota is
recognised by its number, and sidecars that act at the same time agree: the next value depends only
on the value that applies, and each waits for a step after it first saw that value. Two of them
set the same rung, or the second finds a new rung and waits again. If they know different rates,
both are bounds. A quota falls to twice a known rate without waiting for a step, so the lower one is
reached, although the other sidecar may have set its higher one last.

Example: an original of 100 MB/s, a floor of 100 kB/s. The next quotas are 85.2 and 72.7 MB/s, and
after 30 steps (3 min) less than a hundredth is left. A release multiplies the quota by 3 each
step, so a hundredth becomes the original again in 5 steps (30 s).

Source: Kafka's QuotaUtils and Rate; ``sidecar.quotas.throttle_time`` and ``sidecar.quotas.rate``.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

STEP_S: Final = 6.0
"""The time between two changes of a quota, at least."""

LONGEST_PAUSE_S: Final = 6.0
"""The longest wait of a client under the condition above."""

FIRST: Final = float(1 << 30)
"""More than a client writes to one broker, where no rate is known."""

RISE: Final = 3.0
"""By how much a quota rises in a step, at most."""

SMALLEST_FLOOR: Final = 16 << 10
"""Rungs below 10 kB/s would be so close together that they recognise nothing."""

_WINDOW_S: Final = 11.0
_PAUSE_S: Final = 2.0
_SPARE: Final = 2.0
_BOTTOM: Final = 10_007
_TOP: Final = 10**13


def _rungs() -> Iterator[int]:
    # In whole numbers, so that every machine has the same ladder.
    rung = _BOTTOM
    while rung < _TOP:
        yield rung
        rung += rung // 100 + 1


_LADDER: Final = tuple(_rungs())


@dataclass(frozen=True, slots=True)
class Held:
    """A produce quota, bytes/s on each broker.

    Attributes:
        original: the quota that is to be restored; None if there was none.
        base: the rate that a factor is a share of: the original, or what clients wrote before.
        value: the quota that applies; None if there is none.
        since: when this value was first seen, steady seconds.
    """

    original: float | None
    base: float
    value: float | None
    since: float


def is_rung(value: float | None) -> bool:
    """Whether this may be a quota that a sidecar has set."""
    if value is None:
        return False
    at = bisect_left(_LADDER, value)
    return at < len(_LADDER) and _LADDER[at] == value


def highest_rung(most: float) -> float:
    """The highest rung that is not above a quota of 10 kB/s or more."""
    return float(_LADDER[bisect_right(_LADDER, most) - 1])


def next_quota(
    held: Held,
    factor: float,
    floor: float,
    now: float,
    rate: float | None = None,
    *,
    rise: float = RISE,
) -> float | None:
    """The quota to set now; the value of ``held`` if nothing changes.

    Args:
        held: the quota.
        factor: the throttle factor, 0.0 to 1.0.
        floor: the lowest quota, bytes/s, >= ``SMALLEST_FLOOR``; a lower original stays as it is.
        now: steady seconds.
        rate: the most that a client of this quota writes to one broker, bytes/s; None if unknown,
            or if it may be too low by now.
        rise: by how much the quota may rise in a step, 1.0 to ``RISE``.
    """
    value, target = held.value, _target(held, factor, floor)
    if rate is not None and value is not None and target is not None:
        # Nobody waits for that, so it needs no step. A sidecar that knows less may have set more.
        bound = max(target, _first(rate))
        if bound < value:
            return bound
    if now < held.since + STEP_S:
        return value
    if target == value:
        return value
    if target is None or (value is not None and value < target):
        return _raised(held, target, rise)
    if value is None:
        return max(target, _first(rate))
    below = _rung(max(floor, (_WINDOW_S * value + _PAUSE_S * floor) / (_WINDOW_S + _PAUSE_S)))
    # The ladder may have no rung between the step and the value, just above the floor.
    return min(value, max(below, target))


def _target(held: Held, factor: float, floor: float) -> float | None:
    """The quota for a factor, once all steps are done."""
    if factor >= 1.0:
        return held.original
    target = _rung(max(floor, factor * held.base))
    return target if held.original is None else min(target, held.original)


def _raised(held: Held, target: float | None, rise: float) -> float | None:
    if held.value is None:
        return None
    raised = _rung(rise * held.value)
    # A quota that was not there ends where it began: nobody waited for that. From the highest rung,
    # the next step is the original, such as 2^63 - 1 for "unlimited".
    end = _first(held.base) if target is None else min(target, float(_LADDER[-1]))
    return target if raised >= end else raised


def _first(rate: float | None) -> float:
    return _rung(FIRST if rate is None else max(_SPARE * rate, SMALLEST_FLOOR))


def _rung(least: float) -> float:
    """The lowest rung that is not below a quota."""
    return float(_LADDER[min(bisect_left(_LADDER, least), len(_LADDER) - 1)])
