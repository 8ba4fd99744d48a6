"""Time axes: the buckets to sum over, and the positions of labels.

Example: two hours have 240 buckets of 30 s, with a label every 30 min. A week has 336 buckets of
half an hour, with a label a day.
"""

from datetime import UTC, datetime
from typing import Final

from usage_pipeline.report.plots import Axis, Tick

_MOST_BUCKETS: Final = 360
_MOST_TICKS: Final = 8
_STEPS: Final = (
    *(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(86_400 * days for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


def bucket_s(span_s: float) -> int:
    """Return the length of buckets for a span, so that there are at most a few hundred."""
    return _step(span_s, _MOST_BUCKETS)


def time_axis(first_s: float, last_s: float) -> Axis:
    """Return an axis of seconds since 1970, with labels in UTC."""
    last_s = max(last_s, first_s + 1)
    step = _step(last_s - first_s, _MOST_TICKS)
    begin = int(-(-first_s // step)) * step
    ticks = tuple(
        Tick(at, _label(at, step, is_first=at == begin))
        for at in range(begin, int(last_s) + 1, step)
    )
    return Axis(first_s, last_s, ticks)


def _step(span_s: float, most: int) -> int:
    return next((step for step in _STEPS if span_s / step <= most), _STEPS[-1])


def _label(at_s: int, step_s: int, *, is_first: bool) -> str:
    when = datetime.fromtimestamp(at_s, UTC)
    if step_s >= 86_400:
        return f"{when:%d %b}"
    if is_first or at_s % 86_400 == 0:
        return f"{when:%d %b %H:%M}"
    return f"{when:%H:%M:%S}" if step_s < 60 else f"{when:%H:%M}"
