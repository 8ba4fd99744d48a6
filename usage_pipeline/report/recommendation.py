"""What to set: the sum of quotas against what a broker has to give, and each recommendation.

Example: 40 tenants are recommended 700 % of a thread together on brokers of 1,100 %: the bar is at
64 % of the mark.
"""

from collections.abc import Sequence
from typing import Final

from usage_pipeline.report import figures
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.left_out import LeftOut
from usage_pipeline.report.page import few, figure, said, section
from usage_pipeline.report.plots import Mark, bars
from usage_pipeline.report.rows import Row, count, text, value, values
from usage_pipeline.tables.schemas import QUOTA_TYPES

_MOST_ROWS: Final = 500
"""Of each quota type."""
_FEWEST_TOGETHER: Final = 3
_NAMED: Final = 3


def recommendation_section(rows: Sequence[Row]) -> str:
    """Of rows of GOLD_RECOMMENDATION, the newest day of each tenant."""
    newest = newest_of_tenants(rows)
    if not newest:
        return section("Recommended quotas", said("None was made."))
    plots = [
        figure(f"{figures.kind(kind)}: the sum of all quotas, on a broker", _sums(kind, mine))
        for kind in QUOTA_TYPES
        if (mine := [row for row in newest if row["quota_type"] == kind])
    ]
    intro = said(
        "The smallest that keep throttling under the target. `throttle-sidecar pipeline recommend"
        " --plan plan.json` writes them to a file; `throttle-sidecar quotas diff --plan plan.json`"
        " shows the difference, `quotas apply --plan plan.json` sets them. Where none is"
        " recommended, the sum has what is in force."
    )
    return section("Recommended quotas", intro, few(plots), _table(newest))


def newest_of_tenants(rows: Sequence[Row]) -> list[Row]:
    """The last one of each tenant and quota type, by type, the largest first."""
    found: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda each: text(each, "dt")):
        found[text(row, "quota_type"), text(row, "entity")] = row
    return sorted(
        found.values(),
        key=lambda row: (QUOTA_TYPES.index(text(row, "quota_type")), -(value(row, "quota") or 0.0)),
    )


def _sums(quota_type: str, rows: Sequence[Row]) -> str:
    kept = [row for row in rows if value(row, "quota") is None]
    sums = {
        "in force": count(rows, "in_force"),
        "recommended": count(rows, "quota") + count(kept, "in_force"),
    }
    share_now = next((share for row in rows if (share := value(row, "share_of_capacity"))), None)
    capacity = sums["recommended"] / share_now if share_now else None
    level = (
        None
        if capacity is None
        else Mark(
            f"capacity of the smallest broker: {figures.rate(capacity, quota_type)}", capacity
        )
    )
    lengths = [
        (name, total, figures.rate(total, quota_type) if total else "none")
        for name, total in sums.items()
    ]
    return bars(f"{figures.kind(quota_type)}: sums of quotas", lengths, level)


def _table(rows: Sequence[Row]) -> str:
    headings = (
        *("Tenant", "Quota", "In force", "Recommended", "Throttled at most", "Peak rate"),
        *("Percentile", "Confidence", "Stands on", "Refused because"),
    )
    left_out = recommendations_left_out(rows)
    caption = left_out.extent if left_out.left else "Each tenant"
    return table(caption, headings, [_row(some) for some in _shown(rows)])


def _shown(rows: Sequence[Row]) -> list[list[Row]]:
    """Those of the smallest quota, who are a row together, are among them whatever their place."""
    found = []
    for quota_type in QUOTA_TYPES:
        grouped = by_quota(quota_type, rows)
        first = sorted(range(len(grouped)), key=lambda at: len(grouped[at]) == 1)[:_MOST_ROWS]
        found += [grouped[at] for at in sorted(first)]
    return found


def recommendations_left_out(rows: Sequence[Row]) -> LeftOut:
    """Of rows of GOLD_RECOMMENDATION: the tenants, of each quota type, that have no row."""
    newest = newest_of_tenants(rows)
    shown = sum(map(len, _shown(newest)))
    return LeftOut(
        "Recommended quotas",
        shown,
        len(newest) - shown,
        "tenants",
        "the largest quotas first, and those who share the smallest",
        "gold_recommendation",
    )


def by_quota(quota_type: str, rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of a type, each for itself, but those of the smallest quota of all together."""
    mine = [row for row in rows if row["quota_type"] == quota_type]
    quotas = values(mine, "quota")
    least = min(quotas, default=None)
    if quotas.count(least or 0.0) < _FEWEST_TOGETHER:
        return [[row] for row in mine]
    smallest = [row for row in mine if value(row, "quota") == least]
    others = [[row] for row in mine if value(row, "quota") not in {None, least}]
    refused = [[row] for row in mine if value(row, "quota") is None]
    return [*others, smallest, *refused]


def _row(rows: Sequence[Row]) -> list[Cell]:
    """Of one tenant, or of several with the same recommendation."""
    row = rows[0]
    quota_type = text(row, "quota_type")
    shares = values(rows, "throttled_share")
    highest = [max(values(rows, name), default=None) for name in ("peak_rate", "percentile_rate")]
    events = count(rows, "events")
    confidence = min((text(each, "confidence") for each in rows), key=_order)
    stands_on = (
        f"{figures.number(events)} charges,"
        f" {figures.hours(min(values(rows, 'hours'), default=None))},"
        f" {figures.share(min(values(rows, 'coverage'), default=None))} covered"
    )
    several = len(rows) > 1
    return [
        cell_of_tenants(rows),
        named(figures.kind(quota_type)),
        cell_in_force(rows, figures.UNKNOWN),
        Cell(figures.rate(value(row, "quota"), quota_type), value(row, "quota")),
        Cell(figures.share(max(shares)), max(shares)) if shares else Cell(figures.UNKNOWN),
        *(
            Cell(("up to " if several else "") + figures.rate(found, quota_type), found)
            for found in highest
        ),
        Cell(confidence, _order(confidence)),
        Cell(stands_on, events),
        named(text(row, "refused")),
    ]


def _order(confidence: str) -> float:
    return {"low": 1.0, "medium": 2.0, "high": 3.0}.get(confidence, 0.0)


def cell_in_force(rows: Sequence[Row], none: str) -> Cell:
    """What all of them have now; ``none`` where they have nothing."""
    found = {value(row, "in_force") for row in rows}
    now = found.pop()
    if found:
        return Cell("various")
    return Cell(none if now is None else figures.rate(now, text(rows[0], "quota_type")), now)


def cell_of_tenants(rows: Sequence[Row]) -> Cell:
    """Their names; of several the first ones, and the others to be found by."""
    names = [text(row, "entity") for row in rows]
    if len(names) == 1:
        return named(names[0])
    some = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return Cell(
        f"{len(names):,} with the smallest: {some}{more}", names[0], also=" ".join(names[_NAMED:])
    )
