"""The growth of a disk's usage below the teeth that retention cuts.

A log dir fills until retention deletes old segments, so the used bytes form a saw. The level after
each deletion predicts the future, but the teeth do not. The floor is a line through the valleys
since the last change of growth (``growth``). A disk without deletions has no valleys, so the line
goes through all readings.

- A turn is a tooth if it exceeds a fifth of the spread of readings around straight lines, and a
  thousandth of the used bytes. Log cleaning and index files cause smaller turns. The lines go
  through thirds of the time, because a deleted topic affects only one of them. One or two dips
  must also be this large beside a line through all readings.
- One or two valleys have no slope, so the fit is refused.
- A jump, as of moved partitions, is a new level from the second point after it.
- The newest points determine the level of the floor, because a floor that has left its line does
  not return to it. They may be many hours old. Without deletions, the level is therefore at least
  the last reading. With deletions, it is at least the last valley if all earlier ones were lower.
- A surprise is the difference between a step from point to point and the slope of its time. The
  range of a forecast is made of surprises.

Example: 60 GB grow by 0.5 GB an hour under teeth of 20 GB every 6 h. A line through all readings of
a day has 0.39 to 0.68 GB an hour, depending on the cut of the teeth; the valleys have 0.50.

Source: Kafka's LogManager deletes whole segments, every log.retention.check.interval.ms.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from usage_pipeline.forecast.growth import FEWEST_POINTS, Floats, parts, theil_sen
from usage_pipeline.forecast.rise import Rise, present_rise

Indexes = npt.NDArray[np.int64]

FEWEST_READINGS: Final = 12
FEWEST_TEETH: Final = 3
_MOST_POINTS: Final = 64
"""64 points have 2,016 pairs; the 3,000,000 pairs of a month would not be more accurate."""
_NEWEST: Final = 5
_WITHOUT_JUMPS: Final = (0.05, 0.95)
_OF_A_JUMP: Final = 0.25
_TURN_OF_SPREAD: Final = 0.2
_TURN_OF_USED: Final = 0.001


@dataclass(frozen=True, slots=True)
class Teeth:
    """The turns of a saw.

    Attributes:
        peaks: the indexes of the readings before each deletion.
        valleys: the indexes of the readings after each deletion.
    """

    peaks: Indexes
    valleys: Indexes


@dataclass(frozen=True, slots=True)
class Saw:
    """A fitted saw. Hours count from the as-of time, so earlier hours are negative.

    Attributes:
        floor_bytes: the floor at hour 0.
        growth: the growth of the floor since the last change, bytes an hour.
        newest_growth: the growth in the newest quarter of that time, which shows a change first.
        points: the number of points on the line, at least 3.
        heights: the heights of the teeth above the floor, bytes; empty if there are none.
        rises: the rates between deletions, bytes an hour, each > 0; empty if there are none.
        step_hours: the average time between two points.
        surprises: the difference of each step from the growth of its time, bytes, also before the
            last change.
        rise: the rise at the last reading.
    """

    floor_bytes: float
    growth: float
    newest_growth: float
    points: int
    heights: Floats
    rises: Floats
    step_hours: float
    surprises: Floats
    rise: Rise

    @property
    def teeth(self) -> int:
        """The number of deletions."""
        return len(self.heights)

    def floor_at(self, hours: Floats) -> Floats:
        """Return the floor at these hours, bytes."""
        return self.floor_bytes + self.growth * hours


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason why no saw was fitted."""

    reason: str


def fit(hours: Floats, used_bytes: Floats) -> Saw | Refused:
    """Fit a saw.

    Args:
        hours: the times of the readings, ascending, in hours from the as-of time.
        used_bytes: the used bytes of the readings.
    """
    if len(hours) < FEWEST_READINGS:
        return Refused(f"there are {len(hours)} readings; a forecast needs {FEWEST_READINGS}")
    saw_teeth = teeth(hours, used_bytes)
    if 0 < len(saw_teeth.valleys) < FEWEST_TEETH:
        saw_teeth = teeth(hours, used_bytes, lines=1)
    count = len(saw_teeth.valleys)
    if 0 < count < FEWEST_TEETH:
        return Refused(
            f"the history has {count} deletions; a forecast needs {FEWEST_TEETH} to separate growth"
            " from retention; if usage falls at weekends, wait for the third one; if a topic was"
            " deleted, exclude that time with --history-days"
        )
    points = saw_teeth.valleys if count else np.arange(len(hours))
    x, y = _thinned(hours[points], used_bytes[points], lowest=bool(count))
    if len(x) < FEWEST_POINTS:
        return Refused(
            f"the history has {len(x)} short periods far apart; exclude the earlier one with"
            " --history-days"
        )
    heights = used_bytes[saw_teeth.peaks] - np.interp(hours[saw_teeth.peaks], x, y)
    y = _at_new_level(x, y)
    rises = _rises(hours, used_bytes, saw_teeth)
    unsure = float(np.median(np.diff(hours)) * np.median(rises)) if count else 0.0
    times = parts(x, y, unsure)
    newest = times[-1]
    growth, _ = theil_sen(x[newest], y[newest])
    newer = max(FEWEST_POINTS, len(x[newest]) // 4)
    floor = float(np.median((y - growth * x)[newest][-_NEWEST:]))
    # Points may be hours apart, but a split needs three of them.
    is_earlier = (x[newest][0] <= hours[points]) & (hours[points] < x[-FEWEST_POINTS])
    levels = used_bytes[points] - growth * hours[points]
    if not count:
        # Without deletions, usage does not return below the last reading.
        floor = max(floor, float(levels[-1]))
    elif is_earlier.any() and levels[-1] > levels[is_earlier].max():
        # The last deletion ended above all earlier ones, as after partitions were moved in.
        floor = float(levels[-1])
        heights = np.minimum(heights, heights[is_earlier].max())
    return Saw(
        floor_bytes=floor,
        growth=growth,
        newest_growth=theil_sen(x[-newer:], y[-newer:])[0],
        points=len(x[newest]),
        heights=heights,
        rises=rises,
        step_hours=float(x[-1] - x[0]) / (len(x) - 1),
        surprises=np.concatenate([_surprises(x[time], y[time]) for time in times]),
        rise=present_rise(hours, used_bytes),
    )


def teeth(hours: Floats, used_bytes: Floats, lines: int = 3) -> Teeth:
    """Return the turns before and after each deletion.

    A valley counts once the disk has filled again by more than the least height of a turn. The
    first reading and the readings after the last valley belong to incomplete teeth.

    Args:
        hours: the times of the readings, ascending.
        used_bytes: the used bytes of the readings.
        lines: the number of lines around which the spread is measured.
    """
    least = max(
        _TURN_OF_SPREAD * _spread(hours, used_bytes, lines), _TURN_OF_USED * float(used_bytes.max())
    )
    steps = np.sign(np.diff(used_bytes))
    moving = np.flatnonzero(steps)
    turns = moving[1:][steps[moving[1:]] != steps[moving[:-1]]]
    peaks: list[int] = []
    valleys: list[int] = []
    peak, valley, is_falling = 0, 0, False
    for turn in (*turns.tolist(), len(used_bytes) - 1):
        if is_falling:
            if used_bytes[turn] < used_bytes[valley]:
                valley = turn
            elif used_bytes[turn] - used_bytes[valley] > least:
                peaks.append(peak)
                valleys.append(valley)
                peak, is_falling = turn, False
        elif used_bytes[turn] > used_bytes[peak]:
            peak = turn
        elif used_bytes[peak] - used_bytes[turn] > least:
            valley, is_falling = turn, True
    return Teeth(np.array(peaks, dtype=np.int64), np.array(valleys, dtype=np.int64))


def _spread(hours: Floats, used_bytes: Floats, lines: int) -> float:
    """Return the median spread around straight lines through equal parts of the time."""
    spreads = []
    for part in np.array_split(np.arange(len(hours)), lines):
        off = used_bytes[part] - np.polyval(
            np.polyfit(hours[part], used_bytes[part], 1), hours[part]
        )
        lower, upper = np.quantile(off, (0.05, 0.95))
        spreads.append(upper - lower)
    return float(np.median(spreads))


def _thinned(x: Floats, y: Floats, *, lowest: bool) -> tuple[Floats, Floats]:
    """Reduce points: keep the lowest or the middle one of each interval, and the newest valleys."""
    if len(x) <= _MOST_POINTS:
        return x, y
    edges = np.linspace(x[0], x[-1], _MOST_POINTS + 1)[1:-1]
    stretches = np.split(np.arange(len(x)), np.searchsorted(x, edges))
    kept = [
        stretch[np.argsort(y[stretch], kind="stable")[0 if lowest else len(stretch) // 2]]
        for stretch in stretches
        if len(stretch)
    ]
    # A change shows from the third valley after it, so the newest ones remain.
    newest = range(len(x) - FEWEST_POINTS, len(x)) if lowest else ()
    kept = sorted({*kept, *newest})
    return x[kept], y[kept]


def _at_new_level(x: Floats, y: Floats) -> Floats:
    """Shift the points before a jump to the level of the last two points.

    The newest part has three points, so the jump would be its slope. A disk that goes on to grow
    has a large last step too.
    """
    slope, _ = theil_sen(x, y)
    off = np.diff(y) - slope * np.diff(x)
    usual = np.quantile(np.abs(off[:-2]), _WITHOUT_JUMPS[1]) if len(off) > FEWEST_POINTS else np.inf
    if max(usual, abs(off[-1])) > _OF_A_JUMP * abs(off[-2]):
        return y
    return np.concatenate([y[:-2] + off[-2], y[-2:]])


def _surprises(x: Floats, y: Floats) -> Floats:
    slope, _ = theil_sen(x, y)
    off = np.diff(y) - slope * np.diff(x)
    # A jump is one surprise; a mean that contains it would add a drift to all others.
    mean = np.clip(off, *np.quantile(off, _WITHOUT_JUMPS)).mean()
    # Few points are closer to their own line than to the true line.
    surprises: Floats = (off - mean) * np.sqrt(len(x) / (len(x) - 2))
    return surprises


def _rises(hours: Floats, used_bytes: Floats, saw_teeth: Teeth) -> Floats:
    """Return the rates from each valley to the next peak, bytes an hour."""
    starts, ends = saw_teeth.valleys[:-1], saw_teeth.peaks[1:]
    rises: Floats = (used_bytes[ends] - used_bytes[starts]) / (hours[ends] - hours[starts])
    return rises
