"""Figures that are to be at least something, and the table that they make.

Example: ``Figure("parse", 260.0, "MB/s", 250.0, "0.26 S")`` is met.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure.

    Attributes:
        name: what was measured.
        value: the figure; the median where there are several.
        unit: what it is counted in.
        target: what it is to be at least, or at most, in the same unit; None: it is only reported.
        remark: as a share of S, the lowest and the highest, on what it was measured.
        most: whether the target is what it may be at most.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    remark: str = ""
    most: bool = False

    @property
    def met(self) -> bool:
        """Whether it is what it is to be."""
        if self.target is None:
            return True
        return self.value <= self.target if self.most else self.value >= self.target


def as_table(figures: Iterable[Figure]) -> str:
    """As a Markdown table."""
    lines = ["| figure | measured | target | met? | remark |", "|---|---|---|---|---|"]
    for each in figures:
        target = ""
        if each.target is not None:
            target = f"{'≤' if each.most else '≥'} {_number(each.target)} {each.unit}"
        met = "" if each.target is None else ("yes" if each.met else "MISSED")
        cells = (each.name, f"{_number(each.value)} {each.unit}", target, met, each.remark)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
