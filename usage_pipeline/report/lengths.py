"""Bars of the first screen, as lists with names that wrap, so that they fit on a phone.

Example: alice's 62 % of all bytes are a bar of 62 % of the track's width, below "alice / etl" and
"12 MB/s, 62 %".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar.

    Attributes:
        name: the label.
        figure: the bar's value as text; screen readers ignore the bar itself.
        end: where the bar ends, as a share of the track.
        group: a heading for consecutive bars.
        start: where the bar begins, as a share of the track.
        mark: another position, as a share of the track; None for none.
    """

    name: str
    figure: str
    end: float
    group: str
    start: float = 0.0
    mark: float | None = None


def lengths(bars: Sequence[Bar]) -> str:
    """Return the bars as HTML."""
    return "".join(
        f'<h3>{escape(group)}</h3><ul class="bars">{"".join(map(_item, some))}</ul>'
        for group, some in groupby(bars, key=lambda bar: bar.group)
    )


def _item(bar: Bar) -> str:
    start, end = _percent(bar.start), _percent(bar.end)
    mark = (
        ""
        if bar.mark is None
        else f'<b style="left:min({_percent(bar.mark):.1f}%,100% - 3px)"></b>'
    )
    return (
        f"<li><span>{escape(bar.name)}</span> <span>{escape(bar.figure)}</span>"
        f'<div class="track"><i style="left:{start:.1f}%;width:{max(end - start, 0.5):.1f}%"></i>'
        f"{mark}</div></li>"
    )


def _percent(share: float) -> float:
    return min(max(share, 0.0), 1.0) * 100
