"""What a dashboard shows, as values."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a panel looks."""

    LINES = "lines"
    NUMBER = "number"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Query:
    """A query in PromQL.

    Attributes:
        expr: with Grafana's variables $cluster and $__rate_interval.
        legend: the name of each of its series.
    """

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A panel.

    Attributes:
        title: what it shows.
        meaning: a sentence for who sees it for the first time.
        queries: what it asks.
        unit: Grafana's name for the unit of the values.
        kind: how it looks.
        width: of 24.
        steps: from which value on which colour; the first from the smallest on.
        if_empty: what is said when there is nothing to show; said of a panel whose queries find no
            series in a cluster without trouble, and of no other.
        decimals: how many; None leaves it to Grafana.
        least: the lower end of the axis; None where values may be negative.
        most: the upper end of the axis; None leaves it to Grafana.
    """

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Kind = Kind.LINES
    width: int = 8
    steps: tuple[tuple[float | None, str], ...] = ()
    if_empty: str = ""
    decimals: int | None = None
    least: float | None = 0.0
    most: float | None = None


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of panels under a title."""

    title: str
    panels: tuple[Shown, ...]
