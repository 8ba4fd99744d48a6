"""Combines points into observations, and names what is left out.

Example: points of the total and of the available bytes of broker 3's ``/data`` at 08:00 are one
reading. At 08:05 there are only available bytes: that is counted, and no reading.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from sidecar.history.coverage import LogDir
from sidecar.history.imports.points import DataError, Kind, Point, Series
from sidecar.history.imports.volume_names import VolumeNames
from sidecar.volumes import Observation, Reading, Volume


@dataclass(slots=True)
class Combined:
    """What points are together.

    Attributes:
        observations: by time, each with the readings of that time.
        unmapped: the series that are no volume's total or available bytes, with their points.
        unpaired: log dirs, with how many points had no other size at the same time.
    """

    observations: list[Observation] = field(default_factory=list)
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
    readings = list(_readings(sizes, combined.unpaired))
    readings.sort(key=lambda reading: (reading.read_at, reading.broker_id))
    for at, group in groupby(readings, key=lambda reading: reading.read_at):
        answers: dict[int, Reading] = {}
        for each in group:
            before = answers.get(each.broker_id)
            volumes = (*before.volumes, *each.volumes) if before else each.volumes
            answers[each.broker_id] = Reading(each.broker_id, at, volumes)
        combined.observations.append(Observation(at, origin, None, answers))
    return combined


def _readings(
    sizes: dict[tuple[float, LogDir], dict[Kind, Point]], unpaired: Counter[LogDir]
) -> Iterator[Reading]:
    """Yield a reading for each volume and time."""
    for (at, log_dir), both in sizes.items():
        total, available = both.get(Kind.TOTAL), both.get(Kind.AVAILABLE)
        if total is None or available is None:
            unpaired[log_dir] += 1
            continue
        if available.size_bytes > total.size_bytes:
            raise DataError(
                f"{available.place}: {available.size_bytes} available bytes are more than the"
                f" {total.size_bytes} total bytes ({total.place})"
            )
        broker, path = log_dir
        yield Reading(broker, at, (Volume(broker, path, total.size_bytes, available.size_bytes),))


def _conflict(known: Point, point: Point, log_dir: LogDir) -> str:
    text = (
        f"{point.place}: {point.size_bytes} {point.series.kind} bytes of broker {log_dir[0]}"
        f" {log_dir[1]}, but {known.size_bytes} at the same time in {known.place}. "
    )
    if known.series == point.series:
        return f"{text}Remove one of the two"
    return (
        f"{text}{known.series} and {point.series} are mapped to the same volume: let --match or"
        " --log-dir distinguish them, or use the smallest of both in the query (min by)"
    )
