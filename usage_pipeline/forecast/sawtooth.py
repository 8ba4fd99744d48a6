"""What a disk's use grows by, below the teeth that retention cuts.

A log dir fills until segments are old enough, then retention deletes some: the used bytes make a
saw. The teeth say nothing of the future; what each deletion leaves does. So the floor is a line
through the valleys, of those that came since growth last changed: ``growth``. A disk that has not
deleted yet has no valleys, and the line goes through all it has.

- A turn counts as a tooth's when it is more than a fifth of what readings spread around straight
  lines, and more than a thousandth of the used bytes: log cleaning and index files make small ones.
  The lines go through thirds of the time, since a topic's deletion is in one of them; one or two
  dips must be so great beside a line through all of it too.
- One or two valleys have no slope: that is refused.
- The floor's level is where the newest points have it: a floor that has wandered off its line does
  not come back to it.
- What each step from point to point differs from the slope of its time by, a surprise, is kept:
  the range of a forecast is made of them.

Example: 60 GB that grow by 0.5 GB an hour, under teeth of 20 GB every 6 h: a line through all
readings of a day says 0.39 to 0.68 GB an hour, by where the teeth were cut; the valleys say 0.50.

Source: Kafka's LogManager deletes whole segments, every log.retention.check.interval.ms.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from usage_pipeline.forecast.growth import FEWEST_POINTS, Floats, parts, theil_sen

Indexes = npt.NDArray[np.int64]

FEWEST_READINGS: Final = 12
FEWEST_TEETH: Final = 3
_MOST_POINTS: Final = 64
"""2,016 pairs; 3,000,000 of a month's readings would be no surer."""
_NEWEST: Final = 5
_TURN_OF_SPREAD: Final = 0.2
_TURN_OF_USED: Final = 0.001


@dataclass(frozen=True, slots=True)
class Teeth:
    """Where a saw turns.

    Attributes:
        peaks: indexes of readings before a deletion.
        valleys: of those after it, as many.
    """

    peaks: Indexes
    valleys: Indexes


@dataclass(frozen=True, slots=True)
class Saw:
    """What was fitted. Hours are from the last moment that counts, so they are negative before it.

    Attributes:
        floor_bytes: what retention leaves, at hour 0.
        growth: of it since the last change, bytes an hour.
        newest_growth: the newest quarter's of that time alone: it knows of a change first.
        points: that the line goes through, 3 at least.
        heights: of the teeth above the floor, bytes; empty when there was none.
        rises: bytes an hour between two deletions, each > 0; empty when there was none.
        step_hours: between two of the points that the line goes through, on average.
        surprises: what each step differed from the growth of its time by, bytes; before the last
            change too.
    """

    floor_bytes: float
    growth: float
    newest_growth: float
    points: int
    heights: Floats
    rises: Floats
    step_hours: float
    surprises: Floats

    @property
    def teeth(self) -> int:
        """How many deletions were seen."""
        return len(self.heights)

    def floor_at(self, hours: Floats) -> Floats:
        """What retention leaves at these hours, bytes."""
        return self.floor_bytes + self.growth * hours


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing was fitted."""

    reason: str


def fit(hours: Floats, used: Floats) -> Saw | Refused:
    """Fits a saw.

    Args:
        hours: of the readings, ascending, in hours from the last moment that counts.
        used: bytes.
    """
    if len(hours) < FEWEST_READINGS:
        return Refused(f"{len(hours)} readings: {FEWEST_READINGS} are needed")
    found = teeth(hours, used)
    if 0 < len(found.valleys) < FEWEST_TEETH:
        found = teeth(hours, used, lines=1)
    count = len(found.valleys)
    if 0 < count < FEWEST_TEETH:
        return Refused(
            f"deletions were seen {count} times: {FEWEST_TEETH} are needed to separate growth from"
            " retention's teeth; if they were a topic's, --history-days leaves out what was before"
        )
    points = found.valleys if count else np.arange(len(hours))
    x, y = _thinned(hours[points], used[points], lowest=bool(count))
    rises = _rises(hours, used, found)
    unsure = float(np.median(np.diff(hours)) * np.median(rises)) if count else 0.0
    times = parts(x, y, unsure)
    newest = times[-1]
    growth, _ = theil_sen(x[newest], y[newest])
    newer = max(FEWEST_POINTS, len(x[newest]) // 4)
    return Saw(
        floor_bytes=float(np.median((y - growth * x)[newest][-_NEWEST:])),
        growth=growth,
        newest_growth=theil_sen(x[-newer:], y[-newer:])[0],
        points=len(x[newest]),
        heights=used[found.peaks] - np.interp(hours[found.peaks], x, y),
        rises=rises,
        step_hours=float(x[-1] - x[0]) / (len(x) - 1),
        surprises=np.concatenate([_surprises(x[time], y[time]) for time in times]),
    )


def teeth(hours: Floats, used: Floats, lines: int = 3) -> Teeth:
    """Where retention began and ended deleting.

    A valley counts once the disk has filled again by more than a turn's least height; the first
    reading and what follows the last valley are parts of teeth.

    Args:
        hours: of the readings, ascending.
        used: bytes.
        lines: that the least height is taken around.
    """
    least = max(_TURN_OF_SPREAD * _spread(hours, used, lines), _TURN_OF_USED * float(used.max()))
    steps = np.sign(np.diff(used))
    moving = np.flatnonzero(steps)
    turns = moving[1:][steps[moving[1:]] != steps[moving[:-1]]]
    peaks: list[int] = []
    valleys: list[int] = []
    peak, valley, is_falling = 0, 0, False
    for turn in (*turns.tolist(), len(used) - 1):
        if is_falling:
            if used[turn] < used[valley]:
                valley = turn
            elif used[turn] - used[valley] > least:
                peaks.append(peak)
                valleys.append(valley)
                peak, is_falling = turn, False
        elif used[turn] > used[peak]:
            peak = turn
        elif used[peak] - used[turn] > least:
            valley, is_falling = turn, True
    return Teeth(np.array(peaks, dtype=np.int64), np.array(valleys, dtype=np.int64))


def _spread(hours: Floats, used: Floats, lines: int) -> float:
    """Around straight lines through as many parts of the time, in most of them."""
    found = []
    for part in np.array_split(np.arange(len(hours)), lines):
        off = used[part] - np.polyval(np.polyfit(hours[part], used[part], 1), hours[part])
        lower, upper = np.quantile(off, (0.05, 0.95))
        found.append(upper - lower)
    return float(np.median(found))


def _thinned(x: Floats, y: Floats, *, lowest: bool) -> tuple[Floats, Floats]:
    """At most so many points: of each stretch of time the lowest, or the middle one."""
    if len(x) <= _MOST_POINTS:
        return x, y
    edges = np.linspace(x[0], x[-1], _MOST_POINTS + 1)[1:-1]
    stretches = np.split(np.arange(len(x)), np.searchsorted(x, edges))
    kept = [
        stretch[np.argsort(y[stretch], kind="stable")[0 if lowest else len(stretch) // 2]]
        for stretch in stretches
        if len(stretch)
    ]
    return x[kept], y[kept]


def _surprises(x: Floats, y: Floats) -> Floats:
    slope, _ = theil_sen(x, y)
    off = np.diff(y) - slope * np.diff(x)
    # Few points lie nearer to their own line than to the true one.
    found: Floats = (off - off.mean()) * np.sqrt(len(x) / (len(x) - 2))
    return found


def _rises(hours: Floats, used: Floats, found: Teeth) -> Floats:
    """From each valley to the next peak, bytes an hour."""
    starts, ends = found.valleys[:-1], found.peaks[1:]
    rises: Floats = (used[ends] - used[starts]) / (hours[ends] - hours[starts])
    return rises
