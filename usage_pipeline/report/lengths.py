"""Bars of the first screen: lists whose names wrap, so that they can be read on a phone too.

Example: alice's 62 % of all bytes is a bar of 62 % of its track's width, under "alice / etl" and
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
        name: what it is of.
        figure: what it says, in words: the bar itself is for the eye alone.
        start: where it begins, 0 to 1 of the track.
        end: where it ends, likewise.
        group: a heading, of bars that follow each other; "" for none.
        mark: another place on the track, likewise; None for none.
    """

    name: str
    figure: str
    start: float
    end: float
    group: str = ""
    mark: float | None = None


def lengths(bars: Sequence[Bar]) -> str:
    """The element."""
    return "".join(
        (f"<h3>{escape(group)}</h3>" if group else "")
        + f'<ul class="bars">{"".join(map(_item, some))}</ul>'
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
