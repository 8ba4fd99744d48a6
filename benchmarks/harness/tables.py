"""Markdown tables of figures, and how figures are written.

Example: rounds with 0.1, 0.3 and 0.2 s, and one that was not over after 90 s, are
``0.20 s (0.10 to 0.30), > 90.0 s``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


def number(value: float) -> str:
    """Three significant digits without an exponent: 0.26, 12.3, 2,062,146."""
    if abs(value) >= 99.95:
        return whole(value)
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"


def whole(value: float) -> str:
    """Without a fraction: 1,234."""
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """A duration with its unit: 49 ms, 2.31 s, 23.1 s."""
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"


@dataclass(frozen=True, slots=True)
class Value:
    """A figure of one run.

    Attributes:
        value: None: it is not known.
        unit: written once, after the value.
        text: how the value is written.
        is_least: whether it was not over when the watching ended.
    """

    value: float | None
    unit: str = ""
    text: Callable[[float], str] = number
    is_least: bool = False

    def written(self, value: float) -> str:
        """Another value of this figure, with the unit."""
        return f"{self.text(value)} {self.unit}".rstrip()


Figures = Mapping[str, Value]
"""What a figure is called -> its value."""


def spread(rounds: Sequence[Value]) -> str:
    """The median of the known values, and their range; "" where none is known."""
    parts = []
    known = [each.value for each in rounds if each.value is not None and not each.is_least]
    if known:
        text, low, high = rounds[0].text, min(known), max(known)
        parts = [rounds[0].written(median(known))]
        parts[0] += f" ({text(low)} to {text(high)})" if len(known) > 1 else ""
    least = [each.value for each in rounds if each.value is not None and each.is_least]
    return ", ".join([*parts, *(f"> {rounds[0].written(max(each))}" for each in [least] if each)])


def values(rounds: Sequence[Figures], name: str) -> list[float]:
    """The known values of one figure."""
    return [value for each in rounds if (value := each[name].value) is not None]


def by_arm(head: str, arms: Mapping[str, Sequence[Figures]]) -> str:
    """A table with a row for each figure and a column for each arm, by its name."""
    names = next(iter(arms.values()))[0]
    rows = (
        (name, *(spread([each[name] for each in of]) for of in arms.values())) for name in names
    )
    return table([head, *arms], rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def notes(arms: Mapping[str, Sequence[Any]]) -> str:
    """A list of the ``notes`` of all runs."""
    lines = [f"- {name}: {note}\n" for name, of in arms.items() for run in of for note in run.notes]
    return "".join(["\n", *lines]) if lines else ""
