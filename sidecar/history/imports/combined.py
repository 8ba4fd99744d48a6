"""Combines points into observations, and names what is left out.

Example: points of the total and of the available bytes of broker 3's ``/data`` at 08:00 are one
reading. At 08:05 there are only available bytes: that is counted, and no reading.

A replay takes an observation for all log dirs of a broker. Readings of a broker's log dirs within
10 s are one observation, at the time of the latest. If times differ by more, an observation also
has the last sizes of the broker's other log dirs. Sizes apply until the log dir's next ones; if
these are missing, for one usual step (the median) of the log dir. They apply for at most 10
minutes, or one and a half usual steps of the broker's log dir with the most readings if that is
longer.

Example: ``/data1`` is read at 08:00:00, 08:01:00 and so on, and ``/data2`` 20 s later, for the last
time at 09:00:20. The observations from 08:00:20 to 09:01:00 have both log dirs, later ones only
``/data1``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from math import inf
from statistics import median_low
from typing import Final

from sidecar.history.imports.points import DataError, Kind, Point, Series
from sidecar.history.imports.volume_names import VolumeNames
from sidecar.volumes import LogDir, Observation, Reading, Volume

_STEPS_OF_A_GAP: Final = 1.5
"""From that many usual steps on, sizes are missing; fewer are a step that came late."""
_TOGETHER_S: Final = 10.0
"""A broker may take that long to answer for all its log dirs."""
_LONGEST_S: Final = 600.0
"""Sizes may apply for that long, even if other log dirs of the broker are read more often."""


@dataclass(slots=True)
class Combined:
    """What points are together.

    Attributes:
        observations: by time, each with the brokers of which a log dir was read at that time.
        readings: log dirs, with how many readings there are of each.
        unmapped: the series that are no volume's total or available bytes, with their points.
        unpaired: log dirs, with how many points had no other size at the same time.
    """

    observations: list[Observation] = field(default_factory=list)
    readings: Counter[LogDir] = field(default_factory=Counter)
    unmapped: Counter[Series] = field(default_factory=Counter)
    unpaired: Counter[LogDir] = field(default_factory=Counter)


def combine(points: Iterable[Point], names: VolumeNames, origin: str) -> Combined:
    """Combine points.

    Args:
        points: in any order.
        names: maps their labels to volumes.
        origin: the origin of the observations.

    Raises:
        DataError: two points are of the same volume, time and kind, but differ; or a volume has
            more available than total bytes.
    """
    combined = Combined()
    sizes: dict[tuple[float, LogDir], dict[Kind, Point]] = {}
    log_dirs: dict[Series, LogDir | None] = {}
    for point in points:
        series = point.series
        if series not in log_dirs:
            log_dirs[series] = names.volume_of(dict(series.labels))
        log_dir, kind = log_dirs[series], series.kind
        if log_dir is None or kind is None:
            combined.unmapped[series] += 1
            continue
        known = sizes.setdefault((point.at, log_dir), {}).setdefault(kind, point)
        if known.size_bytes != point.size_bytes:
            raise DataError(_conflict(known, point, log_dir))
    rows = _rows(sizes, combined.unpaired)
    combined.readings.update(row.volume.place for row in rows)
    latest: dict[int, dict[LogDir, _Row]] = {}
    for at, groups in groupby(_together(rows), key=lambda group: group[-1].at):
        answers: dict[int, Reading] = {}
        for group in groups:
            broker = group[0].volume.broker_id
            newest = latest.setdefault(broker, {})
            newest.update((row.volume.place, row) for row in group)
            volumes = (
                row.volume for row in newest.values() if row.at >= group[0].at or at < row.until
            )
            answers[broker] = Reading(broker, at, tuple(volumes))
        combined.observations.append(Observation(at, origin, None, answers))
    return combined


@dataclass(frozen=True, slots=True)
class _Row:
    """A reading of one log dir.

    Attributes:
        at: its time, epoch seconds.
        until: the end (exclusive) of the time for which its sizes apply, epoch seconds.
        volume: the log dir's sizes.
    """

    at: float
    until: float
    volume: Volume


def _rows(
    sizes: dict[tuple[float, LogDir], dict[Kind, Point]], unpaired: Counter[LogDir]
) -> list[_Row]:
    """Return the readings, sorted by time and log dir."""
    volumes: dict[LogDir, list[tuple[float, Volume]]] = {}
    for (at, log_dir), both in sorted(sizes.items(), key=lambda item: item[0]):
        total, available = both.get(Kind.TOTAL), both.get(Kind.AVAILABLE)
        if total is None or available is None:
            unpaired[log_dir] += 1
            continue
        if available.size_bytes > total.size_bytes:
            raise DataError(
                f"{available.place}: {available.size_bytes} available bytes are more than the"
                f" {total.size_bytes} total bytes ({total.place})"
            )
        volume = Volume(*log_dir, total.size_bytes, available.size_bytes)
        volumes.setdefault(log_dir, []).append((at, volume))
    usual = {log_dir: _usual_step([at for at, _ in each]) for log_dir, each in volumes.items()}
    # The last of a broker is its log dir with the most readings.
    most = sorted(volumes, key=lambda log_dir: len(volumes[log_dir]))
    longest = {log_dir[0]: max(_LONGEST_S, _STEPS_OF_A_GAP * usual[log_dir]) for log_dir in most}
    return sorted(
        (
            _Row(at, min(until, at + longest[log_dir[0]]), volume)
            for log_dir, each in volumes.items()
            for (at, volume), until in zip(
                each, _ends([at for at, _ in each], usual[log_dir]), strict=True
            )
        ),
        key=lambda row: (row.at, row.volume.place),
    )


def _together(rows: Iterable[_Row]) -> list[list[_Row]]:
    """Return the readings of each observation of a broker, sorted by the last one's time.

    Args:
        rows: sorted by time.
    """
    groups: list[list[_Row]] = []
    begun: dict[int, list[_Row]] = {}
    for row in rows:
        group = begun.get(row.volume.broker_id)
        if (
            group is None
            or row.at - group[0].at > _TOGETHER_S
            or any(row.volume.place == each.volume.place for each in group)
        ):
            group = begun[row.volume.broker_id] = []
            groups.append(group)
        group.append(row)
    return sorted(groups, key=lambda group: (group[-1].at, group[0].volume.broker_id))


def _usual_step(times: Sequence[float]) -> float:
    """Return the median of the steps between the times of a log dir; 0 without a step."""
    steps = [following - at for at, following in pairwise(times)]
    return median_low(steps) if steps else 0.0


def _ends(times: Sequence[float], usual: float) -> Iterator[float]:
    """Yield until when the sizes of each time of a log dir apply."""
    for at, following in pairwise((*times, inf)):
        yield following if following - at < _STEPS_OF_A_GAP * usual else at + usual


def _conflict(known: Point, point: Point, log_dir: LogDir) -> str:
    text = (
        f"{point.place}: {point.size_bytes} {point.series.kind} bytes of broker {log_dir[0]}"
        f" {log_dir[1]}, but {known.size_bytes} at the same time in {known.place}. "
    )
    if known.series == point.series:
        return f"{text}Remove one of the two"
    return (
        f"{text}{known.series} and {point.series} are mapped to the same volume: let --match or"
        " --log-dir distinguish them, or use the smallest of both in the query: min by (__name__,"
        " and the labels that --match reads)"
    )
