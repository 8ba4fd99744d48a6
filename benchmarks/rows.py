"""One measured figure, and the table that they make.

Example: ``Row("p99 of GET /v1/throttle-factor", 1.9, "ms", 5.0)`` is a figure of 1.9 ms that is to
be 5 ms at most.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """A figure.

    Attributes:
        name: what was measured.
        value: the figure.
        unit: what it is counted in.
        target: what it is to be at most, in the same unit; None when it is only reported.
        spread: the lowest and the highest of what the figure is the median of.
        remark: on what it was measured.
        at_least: whether the target is what it is to be at least.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    spread: tuple[float, float] | None = None
    remark: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it is what it is to be."""
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target


def median_row(name: str, samples: Sequence[float], unit: str, target: float | None = None) -> Row:
    """The median of several measurements, and their spread."""
    spread = (min(samples), max(samples))
    return Row(f"{name}, median of {len(samples)}", median(samples), unit, target, spread)


def as_table(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table, which reads well as it is."""
    cells = [("figure", "measured", "lowest to highest", "target", "met?", "remark")]
    cells += [
        (
            row.name,
            f"{_number(row.value)} {row.unit}".rstrip(),
            "" if row.spread is None else " to ".join(map(_number, row.spread)),
            ""
            if row.target is None
            else f"{'≥' if row.at_least else '≤'} {_number(row.target)} {row.unit}",
            "" if row.target is None else ("yes" if row.met else "MISSED"),
            row.remark,
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share (0 to 1) of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
