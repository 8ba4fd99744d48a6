"""Where the readings of a history are missing, and how far apart they usually are.

A reading is valid for the validity duration. A gap of a volume is the time between the end of its
last reading's validity and its next reading. Nothing is known of the volume there, so a replay
leaves these times out. Without a next reading there is no gap: the volume was removed, or its
readings were. Which of the two it is, a history does not tell.

Example: with a validity of 5 min, a volume is read at 08:00, 08:05 and 09:00. Its gap is from 08:10
to 09:00, and its steps are 5 and 55 min.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_low

from sidecar.throttle.validity import is_valid
from sidecar.volumes import LogDir, Observation, Reading


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without valid readings.

    Attributes:
        began_at: when the last readings ceased to be valid, epoch seconds.
        ended_at: the time of the next readings, epoch seconds.
        log_dirs: whose readings are missing.
    """

    began_at: float
    ended_at: float
    log_dirs: tuple[LogDir, ...]


class Coverage:
    """Collects the times of all readings."""

    def __init__(self, validity_s: float) -> None:
        """Begins without a reading. ``validity_s``: how long a reading is valid, seconds."""
        self._validity_s = validity_s
        self._first: dict[LogDir, float] = {}
        self._last: dict[LogDir, float] = {}
        self._gaps: dict[tuple[float, float], list[LogDir]] = {}
        self._broker_last: dict[int, float] = {}
        self._steps: dict[int, Counter[int]] = {}

    def see(self, observation: Observation) -> None:
        """Take the next observation; observations come in the order of their times."""
        at = observation.observed_at
        for answer in observation.answers.values():
            if isinstance(answer, Reading):
                self._see_broker(answer.broker_id, at)
                log_dirs = [each.log_dir for each in answer.volumes]
                log_dirs += [each.log_dir for each in answer.offline]
                for log_dir in log_dirs:
                    self._see_log_dir((answer.broker_id, log_dir), at)

    @property
    def gaps(self) -> list[Gap]:
        """The gaps, by time; log dirs with the same gap are together."""
        return [Gap(*times, tuple(sorted(dirs))) for times, dirs in sorted(self._gaps.items())]

    def missing(self) -> list[tuple[float, float]]:
        """Return the times in which readings of any volume are missing: disjoint and in order."""
        joined: list[tuple[float, float]] = []
        for began_at, ended_at in sorted(self._gaps):
            if joined and began_at <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], ended_at))
            else:
                joined.append((began_at, ended_at))
        return joined

    def partial(self) -> Iterator[tuple[LogDir, float, float]]:
        """Yield log dirs that have no reading at the begin or end, with their first and last."""
        begin = min(self._first.values(), default=0.0)
        end = max(self._last.values(), default=0.0)
        for log_dir, first in sorted(self._first.items()):
            last = self._last[log_dir]
            if not is_valid(begin, self._validity_s, first) or not is_valid(
                last, self._validity_s, end
            ):
                yield log_dir, first, last

    def long_steps(self) -> dict[int, int]:
        """Return the brokers with a usual step (the median) of more than the validity.

        The end of each step is then not known.
        """
        usual = {
            broker: median_low(steps.elements()) for broker, steps in sorted(self._steps.items())
        }
        return {broker: step for broker, step in usual.items() if step > self._validity_s}

    def _see_broker(self, broker_id: int, at: float) -> None:
        if broker_id in self._broker_last:
            step = round(at - self._broker_last[broker_id])
            self._steps.setdefault(broker_id, Counter())[step] += 1
        self._broker_last[broker_id] = at

    def _see_log_dir(self, log_dir: LogDir, at: float) -> None:
        last = self._last.get(log_dir)
        if last is None:
            self._first[log_dir] = at
        elif not is_valid(last, self._validity_s, at):
            self._gaps.setdefault((last + self._validity_s, at), []).append(log_dir)
        self._last[log_dir] = at
