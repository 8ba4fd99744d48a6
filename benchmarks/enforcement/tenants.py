"""Whom a throttle leaves alone, worked out of two tenants' traffic; nothing here measures.

Example: web has 3.0 MB/s until etl fills a volume at 100.0 s, and 2.9 MB/s until space is freed at
162.0 s: it has 97 % of its earlier rate while etl is throttled.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.enforcement.comparison import Comparison, number
from benchmarks.enforcement.figures import BEFORE_S
from kafka_lab.series import Series
from sidecar.cli.chart import Line, Mark, Panel, svg

FILLS: Final = "etl"
"""The tenant whose topics have a replica on the volume that fills."""

OTHER: Final = "web"
"""The one whose topics have none there."""

CLIENTS: Final = ("librdkafka", "Java")
LEAST: Final = 0.95
"""The share of its earlier rate that the other tenant is to have."""

AFTER_S: Final = 30.0
_WINDOW_S: Final = 5.0
_STEP_S: Final = 0.1
_EARLIER_S: Final = 10.0


@dataclass(slots=True)
class Tenants:
    """What happened.

    Attributes:
        crossed_at: when the volume that fills reached the limit, seconds of one monotonic clock.
        freed_at: when its space was freed.
        acknowledged: (tenant, client) -> bytes that its producer had acknowledged so far.
    """

    crossed_at: float
    freed_at: float
    acknowledged: dict[tuple[str, str], Series] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        """Write it."""
        acknowledged = {
            "/".join(who): [[round(at, 3), value] for at, value in series]
            for who, series in self.acknowledged.items()
        }
        document = {"crossed_at": self.crossed_at, "freed_at": self.freed_at}
        file.write_text(json.dumps({**document, "acknowledged": acknowledged}), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> "Tenants":
        """Read it."""
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        acknowledged = {}
        for name, samples in document["acknowledged"].items():
            tenant, _, client = name.partition("/")
            acknowledged[tenant, client] = Series((at, value) for at, value in samples)
        return cls(document["crossed_at"], document["freed_at"], acknowledged)


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """One producer's.

    Attributes:
        before: acknowledged bytes/s in the 8 s before the crossing.
        during: the share of that from the crossing until space was freed.
        least: likewise, in the 5 s of that time that have the least.
        after: likewise, in the 30 s after space was freed.
    """

    before: float
    during: float
    least: float
    after: float


def tenant_figures(acknowledged: Series, crossed_at: float, freed_at: float) -> TenantFigures:
    """All of them, of a producer that had a rate before the crossing.

    Raises:
        ValueError: it had none.
    """
    before = acknowledged.rate(crossed_at - BEFORE_S, crossed_at)
    if before <= 0:
        raise ValueError("a producer had nothing acknowledged before the crossing")
    steps = int((freed_at - crossed_at - _WINDOW_S) / _STEP_S + 1e-9)
    begins = [crossed_at + step * _STEP_S for step in range(steps + 1)]
    return TenantFigures(
        before=before,
        during=acknowledged.rate(crossed_at, freed_at) / before,
        least=min(acknowledged.rate(at, at + _WINDOW_S) for at in begins) / before,
        after=acknowledged.rate(freed_at, freed_at + AFTER_S) / before,
    )


def compare_tenants(peer: Tenants | None, ours: Tenants | None) -> Iterator[Comparison]:
    """The rows: the other tenant's first, for whose sake a throttle has a scope."""
    for tenant in (OTHER, FILLS):
        for client in CLIENTS:
            yield from _rows(tenant, client, _of(peer, tenant, client), _of(ours, tenant, client))


def _of(course: Tenants | None, tenant: str, client: str) -> TenantFigures | None:
    if course is None:
        return None
    acknowledged = course.acknowledged[tenant, client]
    return tenant_figures(acknowledged, course.crossed_at, course.freed_at)


def _rows(
    tenant: str, client: str, peer: TenantFigures | None, ours: TenantFigures | None
) -> Iterator[Comparison]:
    def row(figure: str, text: Callable[[TenantFigures], str]) -> Comparison:
        theirs, own = ("" if each is None else text(each) for each in (peer, ours))
        return Comparison(figure, theirs, own)

    yield row(f"{tenant}, {client}: before", lambda each: f"{number(each.before / 1e6)} MB/s")
    during = row(f"while {FILLS} is throttled", lambda each: f"{each.during:.1%}")
    if tenant == OTHER:
        met = None if ours is None else ours.during >= LEAST
        during = replace(during, target=f"≥ {LEAST:.0%}", met=met)
    yield during
    yield row(f"the least in {_WINDOW_S:.0f} s of that", lambda each: f"{each.least:.1%}")
    yield row(f"in the {AFTER_S:.0f} s after space was freed", lambda each: f"{each.after:.1%}")


def tenants_picture(title: str, found: Mapping[str, Tenants]) -> str:
    """Throughput over time as SVG: a panel for each tenant, a line for each contender.

    Args:
        title: above it.
        found: contender's name -> what happened to it; not empty.
    """
    panels = []
    for tenant in (OTHER, FILLS):
        lines = [
            Line(f"{name}, {client}", _points(course, tenant, client), style)
            for style, (name, course, client) in enumerate(
                (name, course, client) for name, course in found.items() for client in CLIENTS
            )
        ]
        freed = max(course.freed_at - course.crossed_at for course in found.values())
        moments = [Mark("limit crossed", 0.0), Mark("space freed", freed)]
        top = 2.5 * max(_before(course, tenant) for course in found.values())
        panels.append(Panel(f"{tenant}, MB/s", lines, moments, top=top))
    return svg(title, "seconds from the crossing of the limit", panels)


def _points(course: Tenants, tenant: str, client: str) -> list[tuple[float, float]]:
    rates = course.acknowledged[tenant, client].rates(0.25, 1.0)
    begin = course.crossed_at - _EARLIER_S
    return [(at - course.crossed_at, rate / 1e6) for at, rate in rates if at >= begin]


def _before(course: Tenants, tenant: str) -> float:
    """The most of a client, MB/s."""
    begin, end = course.crossed_at - BEFORE_S, course.crossed_at
    return max(course.acknowledged[tenant, client].rate(begin, end) / 1e6 for client in CLIENTS)
