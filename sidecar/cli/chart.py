"""Line charts over time as SVG: panels one above the other, on one time axis.

Example: ``svg("Traffic", "seconds", [Panel("throughput, MB/s", [Line("ours", points)])])`` is a
complete SVG document. Lines differ in colour and in dashes, and each panel has a legend above it.

The colours are those of Okabe and Ito, which colour-blind people can distinguish. Text and grid
follow the light or dark scheme of the reader's browser.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

Point = tuple[float, float]

WIDTH: Final = 860
PANEL_HEIGHT: Final = 240
_HEAD: Final = 34
_FOOT: Final = 40
LEFT: Final = 64
RIGHT: Final = 18
_TOP: Final = 30
_BOTTOM: Final = 12
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2")
_TICKS: Final = 6
_ROW: Final = 18
_CHARACTER: Final = 6.6
"""Approximate width of a character in the legend's font, in pixels."""
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}"
    ".grid{stroke:#d0d7de;stroke-width:1}.mark{stroke:#6e7781;stroke-dasharray:3 3}"
    ".paper{fill:#fff}.line{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}"
    ".mark{stroke:#8b949e}.paper{fill:#0d1117}}"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, with rising x. Lines with the same ``style`` (0 and up) look the same.

    A line without a name goes on after a gap of the line before, and is not in the legend.
    """

    name: str
    points: Sequence[Point]
    style: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment or a height with a name, drawn as a thin dashed line across a panel."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes. The y axis begins at 0, or at the lowest value if that is negative.

    Attributes:
        title: the quantity on the y axis, with its unit.
        lines: the lines to draw.
        moments: vertical marks across the panel, each at an x.
        heights: horizontal marks across the panel, each at a y.
        height: in pixels, with title and legend.
        top: lines are cut off above this y, so that one peak does not flatten the rest; None
            draws everything.
    """

    title: str
    lines: Sequence[Line]
    moments: Sequence[Mark] = field(default=())
    heights: Sequence[Mark] = field(default=())
    height: int = PANEL_HEIGHT
    top: float | None = None


def svg(
    title: str, x_title: str, panels: Sequence[Panel], rows: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the complete document.

    Args:
        title: printed above the panels.
        x_title: the quantity on the x axis, with its unit; printed below the panels.
        panels: from top to bottom; they share the x axis.
        rows: a table below the panels; each row has a label and a figure.

    Raises:
        ValueError: there is nothing to draw, or a figure is not finite.
    """
    xs = [x for panel in panels for line in panel.lines for x, _ in line.points]
    ys = [y for panel in panels for line in panel.lines for _, y in line.points]
    if not xs:
        raise ValueError("there is nothing to draw")
    if not all(map(math.isfinite, (*xs, *ys))):
        raise ValueError("a figure is not finite")
    x_axis = _Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    bottom = _HEAD + sum(panel.height for panel in panels)
    foot = bottom + _FOOT
    height = foot + (_ROW * len(rows) + _BOTTOM if rows else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        _text(LEFT, 22, title, kind="title"),
    ]
    top = _HEAD
    for panel in panels:
        parts.extend(_panel(panel, x_axis, top))
        top += panel.height
    parts += [_text(x_axis(x), bottom + 6, label, anchor="middle") for x, label in x_axis.ticks()]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 28, x_title, anchor="middle"))
    for index, (what, figure) in enumerate(rows):
        y = foot + _ROW * (index + 1)
        parts.append(_text(LEFT, y, what))
        parts.append(_text(WIDTH - RIGHT, y, figure, anchor="end"))
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Converts figures to pixels."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low = low
        # If all data have one value, they are drawn at the start of the axis.
        self.high = high if high > low else low + 1.0
        self.begin = begin
        self.end = end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Return round figures within the range, each with its text."""
        step = round_step((self.high - self.low) / _TICKS)
        for count in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1):
            yield count * step, f"{count * step:,.10g}"


def round_step(least: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is not below ``least``."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least)


def _panel(panel: Panel, x_axis: _Axis, y: float) -> Iterator[str]:
    top, bottom = y + _TOP, y + panel.height - _BOTTOM
    ys = [value for line in panel.lines for _, value in line.points]
    ys += [mark.at for mark in panel.heights]
    high = max(ys) if panel.top is None else min(max(ys), panel.top)
    # Headroom keeps the highest line off the frame.
    axis = _Axis(min(0.0, *ys), (high * 1.05) if high > 0 else 1.0, bottom, top)
    yield from _legend(panel, y)
    for value, label in axis.ticks():
        at = axis(value)
        yield f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>'
        yield _text(LEFT - 6, at + 4, label, anchor="end")
    for mark in panel.heights:
        at = axis(mark.at)
        yield f'<path class="mark" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>'
        yield _text(WIDTH - RIGHT - 4, at - 4, mark.name, anchor="end")
    for mark in panel.moments:
        at = x_axis(mark.at)
        yield f'<path class="mark" d="M{at:.1f} {top:.1f}V{bottom:.1f}"/>'
        # Near the right edge there is no room to the right of the mark.
        fits = at + 4 + _CHARACTER * len(mark.name) <= WIDTH - RIGHT
        yield _text(
            at + 4 if fits else at - 4, top + 10, mark.name, anchor="start" if fits else "end"
        )
    for line in panel.lines:
        points = [(x_axis(x), axis(min(value, axis.high))) for x, value in line.points]
        if points:
            yield f'<path class="line" {_stroke(line)} d="{_path(points)}"/>'


def _legend(panel: Panel, y: float) -> Iterator[str]:
    yield _text(LEFT, y + 20, panel.title)
    at = LEFT + _CHARACTER * len(panel.title) + 24
    for line in panel.lines:
        if not line.name:
            continue
        yield f'<path class="line" {_stroke(line)} d="M{at:.1f} {y + 16:.1f}h26"/>'
        yield _text(at + 32, y + 20, line.name)
        at += 32 + _CHARACTER * len(line.name) + 20


def _path(points: Iterable[Point]) -> str:
    """Return the path through the points; points on the same pixel are written once."""
    parts_of_path: list[str] = []
    for x, y in points:
        point = f"{x:.1f} {y:.1f}"
        if not parts_of_path or parts_of_path[-1] != point:
            parts_of_path.append(point)
    return "M" + "L".join(parts_of_path)


def _stroke(line: Line) -> str:
    colour = _COLOURS[line.style % len(_COLOURS)]
    dashes = _DASHES[line.style % len(_DASHES)]
    return f'stroke="{colour}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> str:
    css_class = f' class="{kind}"' if kind else ""
    return f'<text{css_class} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
