"""Plots as SVG: lines over time or over a quota, bands and bars.

A plot is a part of the page and uses the page's colours, light or dark. Lines differ by colour and
by dashes. The colours are those of Okabe and Ito, which colour-blind people can distinguish. The
caller aggregates the data if it has far more points than pixel columns.

Example: ``lines("Produce", [Series("alice", points)], x=Axis(0, 60, ticks), y=...)`` is an ``svg``
element of 720 x 240 units, which is as wide as the page allows.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

Point = tuple[float, float]

_WIDTH: Final = 720
_HEIGHT: Final = 240
_LEFT: Final = 92
_RIGHT: Final = 14
_TOP: Final = 12
_BOTTOM: Final = 26
_STYLES: Final = 6
_TICKS: Final = 5
_EDGE: Final = 0.95
"""The share of the axis from which on a centred label would exceed the plot."""
_BAR: Final = 22


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis.

    Attributes:
        low: the first value.
        high: the last value, above the first.
        ticks: the labelled positions between them.
        is_log: whether the axis is logarithmic; then both values are above 0.
    """

    low: float
    high: float
    ticks: tuple[Tick, ...]
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return a value's position, 0 to 1; a value beyond an end is at the end."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Series:
    """A line.

    Attributes:
        name: the name in the legend.
        points: the points, with ascending x.
        labels: tooltips of the points; empty for none.
    """

    name: str
    points: Sequence[Point]
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two lines over the same x."""

    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


@dataclass(frozen=True, slots=True)
class Mark:
    """A named position, drawn as a dashed line across the plot."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Plot:
    """The content of a plot.

    Attributes:
        title: a description for screen readers.
        x: the horizontal axis.
        y: the vertical axis.
        series: the lines.
        bands: the areas below the lines.
        uprights: marks at an x.
        levels: marks at a y.
    """

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series] = ()
    bands: Sequence[Band] = ()
    uprights: Sequence[Mark] = ()
    levels: Sequence[Mark] = ()


def svg(plot: Plot) -> str:
    """Return the element, followed by a legend if there are several lines."""
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{escape(plot.title)}</title>',
        *_grid(plot),
        *(_band(plot, band) for band in plot.bands),
        *_marks(plot),
        *(each for at, series in enumerate(plot.series) for each in _line(plot, series, at)),
        "</svg>",
    ]
    if len(plot.series) > 1:
        parts.append(_legend(plot.series))
    return "".join(parts)


def bars(title: str, rows: Sequence[tuple[str, float, str]], level: Mark | None = None) -> str:
    """Return horizontal bars, one below the other."""
    most = max((*(length for _, length, _ in rows), level.at if level else 0.0), default=0.0) or 1.0
    left, right, top = 170, 150, 20 if level else 4
    height = top + _BAR * len(rows) + 4
    scale = (_WIDTH - left - right) / most
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img"><title>{escape(title)}</title>',
    ]
    for at, (name, length, figure) in enumerate(rows):
        y = top + _BAR * at
        parts += [
            _text(left - 8, y + 15, name, "end"),
            f'<rect class="bar s{at % _STYLES}" x="{left}" y="{y + 3}" height="{_BAR - 6}"'
            f' width="{max(length * scale, 0.5):.1f}"/>',
            _text(left + length * scale + 6, y + 15, figure),
        ]
    if level is not None:
        x = left + level.at * scale
        parts.append(f'<path class="mark" d="M{x:.1f} {top - 4}V{height - 2}"/>')
        # The mark's name is long, so it is on the side with more room.
        parts.append(_text(x, top - 7, level.name, "end" if x > _WIDTH / 2 else ""))
    return "".join([*parts, "</svg>"])


def round_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round figures in a range, 1, 2 or 5 times a power of ten apart."""
    if high <= low:
        return (low,)
    step = _round_step((high - low) / _TICKS)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(count * step for count in range(first, last + 1))


def _round_step(least: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))


def _x(plot: Plot, value: float) -> float:
    return _LEFT + plot.x.share(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(plot: Plot, value: float) -> float:
    bottom = _HEIGHT - _BOTTOM
    return bottom - plot.y.share(value) * (bottom - _TOP)


def _grid(plot: Plot) -> Iterator[str]:
    for tick in plot.y.ticks:
        y = _y(plot, tick.at)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield _text(_LEFT - 6, y + 4, tick.label, "end")
    for tick in plot.x.ticks:
        x = _x(plot, tick.at)
        yield f'<path class="grid" d="M{x:.1f} {_HEIGHT - _BOTTOM}v4"/>'
        yield _text(
            x, _HEIGHT - 6, tick.label, "middle" if plot.x.share(tick.at) < _EDGE else "end"
        )


def _marks(plot: Plot) -> Iterator[str]:
    for mark in plot.levels:
        y = _y(plot, mark.at)
        yield f'<path class="mark" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield _text(_WIDTH - _RIGHT - 4, y - 4, mark.name, "end")
    for at, mark in enumerate(plot.uprights):
        x = _x(plot, mark.at)
        # Near the right edge, the name is on the left. Names of two marks are in two rows.
        end = plot.x.share(mark.at) > 0.75
        yield f'<path class="mark" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>'
        yield _text(x - 4 if end else x + 4, _TOP + 10 + 14 * at, mark.name, "end" if end else "")


def _band(plot: Plot, band: Band) -> str:
    there = [(x, high) for x, high in zip(band.xs, band.highs, strict=True)]
    back = [(x, low) for x, low in zip(band.xs, band.lows, strict=True)][::-1]
    return f'<path class="band" d="{_path(plot, [*there, *back])}Z"/>'


def _line(plot: Plot, series: Series, style: int) -> Iterator[str]:
    if series.points:
        kind = f"line s{style % _STYLES}"
        yield f'<path class="{kind}" d="{_path(plot, series.points)}"/>'
    for (x, y), label in zip(series.points, series.labels, strict=False):
        yield (
            f'<circle class="dot s{style % _STYLES}" cx="{_x(plot, x):.1f}"'
            f' cy="{_y(plot, y):.1f}" r="3.5"><title>{escape(label)}</title></circle>'
        )


def _path(plot: Plot, points: Iterable[Point]) -> str:
    """Join the points; consecutive points at the same position are drawn once."""
    words: list[str] = []
    for x, y in points:
        word = f"{_x(plot, x):.1f} {_y(plot, y):.1f}"
        if not words or words[-1] != word:
            words.append(word)
    # A single point is drawn as a line without length, and round line ends make it a dot.
    return "M" + "L".join(words if len(words) > 1 else words * 2)


def _legend(series: Sequence[Series]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 28 8" aria-hidden="true"><path class="line s{at % _STYLES}"'
        f' d="M1 4H27"/></svg>{escape(each.name)}</li>'
        for at, each in enumerate(series)
    )
    return f'<ul class="legend">{items}</ul>'


def _text(x: float, y: float, text: str, anchor: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{where}>{escape(text)}</text>'
