"""When disks are full: the readings of each volume, and its forecast with a range.

The range extends between the early and the late time at which the forecast reaches the limit. The
line leads to the expected time. If a volume shrinks, or has no forecast, its plot has only the
readings, and the table shows the reason.

Example: 120 GB of 500 GB are used, and 10 GB are added each hour. The line reaches the limit of
450 GB after 33 h.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from usage_pipeline.report import figures
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.page import few, figure, paragraph, section
from usage_pipeline.report.plots import Axis, Band, Mark, Plot, Series, Tick, round_ticks, svg
from usage_pipeline.report.rows import Row, seconds, text, value
from usage_pipeline.report.times import bucket_s, time_axis

_HOUR_S: Final = 3600
_MOST_PLOTS: Final = 24
_AHEAD: Final = 3.0
"""The longest forecast in a plot, as a multiple of the history, which must remain readable."""

_Volume = tuple[str, str]


def disk_section(forecasts: Sequence[Row], volumes: Iterable[Row]) -> str:
    """Return the section from rows of GOLD_DISK_FORECAST and of SILVER_VOLUME."""
    newest = newest_forecasts(forecasts)
    if not newest:
        return section("Disks", paragraph("No forecast was made: there is no volume history."))
    readings = _readings(volumes)
    urgent = sorted(newest, key=_urgency)
    plots = [
        figure(f"Broker {text(row, 'broker')}, {text(row, 'log_dir')}", _plot(row, readings))
        for row in urgent[:_MOST_PLOTS]
    ]
    as_of = datetime.fromtimestamp(seconds(newest[0]["as_of"]), UTC)
    intro = paragraph(
        f"Hours count from {figures.moment(as_of)} UTC."
        " The line shows when the peaks of the saw-tooth reach the limit. The shaded range, from"
        " early to late, contains 80 % of the outcomes that the history suggests."
    )
    return section("Disks", intro, few(plots), _table(urgent))


def newest_forecasts(rows: Sequence[Row]) -> list[Row]:
    """Return the last forecast; a volume that it lacks had no reading in its history."""
    as_of = max((seconds(row["as_of"]) for row in rows), default=None)
    return [row for row in rows if seconds(row["as_of"]) == as_of]


def has_no_forecast(row: Row) -> bool:
    """Return whether the forecast was refused, so the volume may fill at any time."""
    return value(row, "hours_to_limit") is None and bool(row.get("refused"))


def _urgency(row: Row) -> tuple[float, bool]:
    hours = value(row, "hours_to_limit")
    return float("inf") if hours is None else hours, not has_no_forecast(row)


def _volume(row: Row) -> _Volume:
    return text(row, "broker"), text(row, "log_dir")


def _readings(rows: Iterable[Row]) -> dict[_Volume, list[tuple[float, float]]]:
    """Return each volume's readings: the time, and the bytes used."""
    readings: dict[_Volume, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        total, available = value(row, "total_bytes"), value(row, "available_bytes")
        if total is not None and available is not None:
            readings[_volume(row)].append((seconds(row["observed_ts"]), total - available))
    return readings


def _plot(row: Row, readings: dict[_Volume, list[tuple[float, float]]]) -> str:
    total, available = value(row, "total_bytes") or 0.0, value(row, "available_bytes") or 0.0
    now, level = seconds(row["as_of"]), total - available
    limit = total - (value(row, "limit_bytes") or 0.0)
    seen = _thinned(sorted(readings.get(_volume(row), [])), now) or [(now, level)]
    history = max(now - seen[0][0], _HOUR_S)
    ends = [
        now + hours * _HOUR_S if (hours := value(row, name)) is not None else None
        for name in ("hours_low", "hours_to_limit", "hours_high")
    ]
    known = [end for end in ends if end is not None]
    last = min(max(known, default=now), now + _AHEAD * history)
    series = [Series("used", seen)]
    bands = []
    if ends[1] is not None:
        series.append(Series("expected", _towards(now, level, ends[1], limit, last)))
    if ends[0] is not None:
        late = ends[2]
        high = _towards(now, level, ends[0], limit, last)
        low = _towards(now, level, late, limit, last) if late else [(now, level), (last, level)]
        xs = sorted({x for x, _ in (*high, *low)} | {last})
        bands.append(Band(xs, [_at(low, x) for x in xs], [_at(high, x) for x in xs]))
    most = max(total, limit, *(y for _, y in seen)) * 1.02 or 1.0
    ticks = tuple(Tick(at, figures.size(at)) for at in round_ticks(0.0, most))
    title = f"Used bytes of broker {text(row, 'broker')}, {text(row, 'log_dir')}"
    marks = [Mark("limit", limit)] if limit < total else []
    return svg(
        Plot(
            title,
            time_axis(seen[0][0], max(last, now)),
            Axis(0.0, most, ticks),
            series,
            bands,
            levels=[*marks, Mark("full", total)],
        )
    )


def _thinned(points: Sequence[tuple[float, float]], now: float) -> list[tuple[float, float]]:
    """Return the highest and the lowest point of each time bucket, so that the teeth remain."""
    kept = [point for point in points if point[0] <= now]
    if not kept:
        return []
    step = bucket_s(kept[-1][0] - kept[0][0])
    buckets: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for point in kept:
        buckets[point[0] // step].append(point)
    ends = [
        {min(each, key=lambda point: point[1]), max(each, key=lambda point: point[1])}
        for each in buckets.values()
    ]
    return sorted(point for each in ends for point in each)


def _towards(
    now: float, level: float, end: float, limit: float, last: float
) -> list[tuple[float, float]]:
    """Return a line from the present level to the limit and along it, cut at the last x."""
    if end <= now:
        return [(now, level), (last, level)]
    if end >= last:
        return [(now, level), (last, level + (limit - level) * (last - now) / (end - now))]
    return [(now, level), (end, limit), (last, limit)]


def _at(points: Sequence[tuple[float, float]], x: float) -> float:
    for (x1, y1), (x2, y2) in pairwise(points):
        if x1 <= x <= x2:
            return y1 if x2 == x1 else y1 + (y2 - y1) * (x - x1) / (x2 - x1)
    return points[-1][1]


def _table(rows: Sequence[Row]) -> str:
    headings = (
        *("Broker", "Log dir", "Total", "Available", "Limit", "Growth", "To the limit", "Early"),
        *("Late", "History", "Teeth", "Back-test error", "Refused because"),
    )
    return table("Each volume, the most urgent first", headings, [_row(row) for row in rows])


def _row(row: Row) -> list[Cell]:
    sizes = [
        Cell(figures.size(value(row, name)), value(row, name))
        for name in ("total_bytes", "available_bytes", "limit_bytes")
    ]
    growth = value(row, "growth_bytes_per_hour")
    error = value(row, "backtest_error_bytes")
    times = [
        Cell(figures.hours(value(row, name)), value(row, name))
        for name in ("hours_to_limit", "hours_low", "hours_high", "history_hours")
    ]
    return [
        Cell(text(row, "broker"), value(row, "broker")),
        named(text(row, "log_dir")),
        *sizes,
        Cell(figures.UNKNOWN if growth is None else f"{figures.size(growth)}/h", growth),
        *times,
        Cell(figures.number(value(row, "teeth")), value(row, "teeth")),
        Cell(figures.size(error), error),
        named(text(row, "refused")),
    ]
