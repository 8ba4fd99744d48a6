"""Recommended quotas: their sum compared with a broker's capacity, and each recommendation.

Example: 40 tenants have recommended quotas of 700 % of a thread in total, and brokers have 1,100 %.
The bar ends at 64 % of the mark.
"""

from collections.abc import Sequence
from typing import Final

from usage_pipeline.report import figures
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.left_out import LeftOut
from usage_pipeline.report.page import few, figure, paragraph, section
from usage_pipeline.report.plots import Mark, bars
from usage_pipeline.report.rows import Row, count, text, value, values
from usage_pipeline.tables.schemas import QUOTA_TYPES

_MOST_ROWS: Final = 500
"""The limit for each quota type."""
_FEWEST_TOGETHER: Final = 3
_NAMED: Final = 3
_MS: Final = 1000
_DECIDED_BY: Final = {
    "percentile": "the percentile of its rates and the margin",
    "replay": "a smaller quota throttles too much",
    "delay": "under a smaller quota, its data waits too long",
    # Earlier versions judged by the busiest minute.
    "minute": "a smaller quota stretches its busiest minute",
    "floor": "the smallest quota of this kind",
}


def recommendation_section(rows: Sequence[Row]) -> str:
    """Return the section from rows of GOLD_RECOMMENDATION, with each tenant's newest day."""
    newest = newest_of_tenants(rows)
    if not newest:
        return section("Recommended quotas", paragraph("There are none."))
    plots = [
        figure(f"{figures.kind(kind)}: the sum of all quotas, on a broker", _sums(kind, mine))
        for kind in QUOTA_TYPES
        if (mine := [row for row in newest if row["quota_type"] == kind])
    ]
    intro = paragraph(
        "Each is the smallest quota that would have throttled few charges, and none for long."
        " `throttle-sidecar"
        " pipeline recommend --plan plan.json` writes the quotas with at least medium confidence to"
        " a file; `throttle-sidecar"
        " quotas diff --plan plan.json` shows the difference, and `quotas apply --plan plan.json`"
        " sets them. If a tenant has no recommended quota, the sum includes its configured quota."
    )
    return section("Recommended quotas", intro, few(plots), _table(newest))


def newest_of_tenants(rows: Sequence[Row]) -> list[Row]:
    """Return each tenant's last row of each quota type, by type, the largest quotas first."""
    newest: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda each: text(each, "dt")):
        newest[text(row, "quota_type"), text(row, "entity")] = row
    return sorted(
        newest.values(),
        key=lambda row: (QUOTA_TYPES.index(text(row, "quota_type")), -(value(row, "quota") or 0.0)),
    )


def _sums(quota_type: str, rows: Sequence[Row]) -> str:
    kept = [row for row in rows if value(row, "quota") is None]
    sums = {
        "configured": count(rows, "in_force"),
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
        *("Tenant", "Quota", "Configured", "Recommended", "Throttled at most", "Longest wait"),
        *("Peak rate", "Confidence", "Evidence", "Because"),
    )
    left_out = recommendations_left_out(rows)
    caption = left_out.extent if left_out.left else "Each tenant"
    return table(caption, headings, [_row(some) for some in _shown(rows)])


def _shown(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows to show; the group with the smallest quota is always among them."""
    shown = []
    for quota_type in QUOTA_TYPES:
        grouped = by_quota(quota_type, rows)
        first = sorted(range(len(grouped)), key=lambda at: len(grouped[at]) == 1)[:_MOST_ROWS]
        shown += [grouped[at] for at in sorted(first)]
    return shown


def recommendations_left_out(rows: Sequence[Row]) -> LeftOut:
    """Count the tenants of each quota type without a row, from rows of GOLD_RECOMMENDATION."""
    newest = newest_of_tenants(rows)
    shown = sum(map(len, _shown(newest)))
    return LeftOut(
        "Recommended quotas",
        shown,
        len(newest) - shown,
        "tenants",
        "the largest quotas first, and tenants that share the smallest",
        "gold_recommendation",
    )


def by_quota(quota_type: str, rows: Sequence[Row]) -> list[list[Row]]:
    """Return a type's rows one by one, except for those with the smallest quota, as a group."""
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
    """Return the row of one tenant, or of several tenants with the same recommendation."""
    row = rows[0]
    quota_type = text(row, "quota_type")
    shares = values(rows, "throttled_share") + values(rows, "throttled_amount_share")
    longest = max(values(rows, "throttle_ms_max"), default=None)
    peak = max(values(rows, "peak_rate"), default=None)
    events = count(rows, "events")
    confidence = min((text(each, "confidence") for each in rows), key=_order)
    evidence = (
        f"{figures.number(events)} charges,"
        f" {figures.hours(min(values(rows, 'hours'), default=None))},"
        f" {figures.share(min(values(rows, 'coverage'), default=None))} covered"
        + (", whole seconds" if any(each.get("whole_seconds") for each in rows) else "")
    )
    return [
        cell_of_tenants(rows),
        named(figures.kind(quota_type)),
        cell_in_force(rows, figures.UNKNOWN),
        Cell(figures.rate(value(row, "quota"), quota_type), value(row, "quota")),
        Cell(figures.share(max(shares)), max(shares)) if shares else Cell(figures.UNKNOWN),
        Cell(_waits(longest, rows), longest),
        Cell(("up to " if len(rows) > 1 else "") + figures.rate(peak, quota_type), peak),
        Cell(confidence, _order(confidence)),
        Cell(evidence, events),
        named(_because(row, alone=len(rows) == 1)),
    ]


def _because(row: Row, *, alone: bool) -> str:
    """Return why the quota is this one, or why there is none.

    Args:
        row: the row, or the first of several with the same quota.
        alone: whether it is the only one; then what lowers the confidence is included.
    """
    said = [_DECIDED_BY.get(str(row.get("decided_by")), ""), row.get("caveats") if alone else ""]
    return text(row, "refused") or "; ".join(str(each) for each in said if each)


def _waits(longest_ms: float | None, rows: Sequence[Row]) -> str:
    """Return the longest wait, of a single tenant the worst moments, and the wait in the queue."""
    worst = rows[0].get("worst") if len(rows) == 1 else None
    moments = worst if isinstance(worst, list) else []
    said = [
        f"{figures.duration(each['throttle_ms'])} on {each['at']:%d %b %H:%M} on broker"
        f" {each['broker']}"
        for each in moments
    ]
    said = said or [figures.duration(longest_ms)]
    if delay_s := max(values(rows, "longest_delay_s"), default=0.0):
        said.append(f"queued usage for up to {figures.duration(delay_s * _MS)}")
    return "; ".join(said)


def _order(confidence: str) -> float:
    return {"low": 1.0, "medium": 2.0, "high": 3.0}.get(confidence, 0.0)


def cell_in_force(rows: Sequence[Row], none: str) -> Cell:
    """Return the tenants' configured quota; ``none`` if they have no quota."""
    quotas = {value(row, "in_force") for row in rows}
    configured = quotas.pop()
    if quotas:
        return Cell("various")
    quota_type = text(rows[0], "quota_type")
    return Cell(none if configured is None else figures.rate(configured, quota_type), configured)


def cell_of_tenants(rows: Sequence[Row]) -> Cell:
    """Return the tenants' names; of several, the first are shown and the search finds all."""
    names = [text(row, "entity") for row in rows]
    if len(names) == 1:
        return named(names[0])
    some = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return Cell(
        f"{len(names):,} with the smallest: {some}{more}",
        names[0],
        also=" ".join(names[_NAMED:]),
    )
