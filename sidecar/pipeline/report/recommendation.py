"""What to set: the sum of quotas against what a broker has to give, and each recommendation.

Example: 40 tenants are recommended 700 % of a thread together on brokers of 1,100 %: the bar is at
64 % of the mark.
"""

from collections.abc import Sequence
from typing import Final

from sidecar.pipeline.report import figures
from sidecar.pipeline.report.grid import Cell, named, table
from sidecar.pipeline.report.page import few, figure, said, section
from sidecar.pipeline.report.plots import Mark, bars
from sidecar.pipeline.report.rows import QUOTA_TYPES, Row, count, text, value

_MOST_ROWS: Final = 1000


def recommendation_section(rows: Sequence[Row]) -> str:
    """Of rows of GOLD_RECOMMENDATION, the newest day of each tenant."""
    newest = _newest(rows)
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


def _newest(rows: Sequence[Row]) -> list[Row]:
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
        *("Tenant", "Quota", "In force", "Recommended", "Throttled then", "Percentile"),
        *("Peak rate", "Charges", "Hours", "Coverage", "Confidence", "Refused because"),
    )
    body = [_row(row) for row in rows[:_MOST_ROWS]]
    left = len(rows) - len(body)
    more = f"; {left:,} more are in gold_recommendation" if left else ""
    return table(f"Each tenant{more}", headings, body)


def _row(row: Row) -> list[Cell]:
    quota_type = text(row, "quota_type")
    rates = [
        Cell(figures.rate(value(row, name), quota_type), value(row, name))
        for name in ("in_force", "quota", "percentile_rate", "peak_rate")
    ]
    share, coverage = value(row, "throttled_share"), value(row, "coverage")
    events, hours = value(row, "events"), value(row, "hours")
    order = {"low": 1.0, "medium": 2.0, "high": 3.0}
    confidence = text(row, "confidence")
    return [
        named(text(row, "entity")),
        named(figures.kind(quota_type)),
        *rates[:2],
        Cell("at most " + figures.share(share) if share is not None else figures.UNKNOWN, share),
        *rates[2:],
        Cell(figures.number(events), events),
        Cell(figures.hours(hours), hours),
        Cell(figures.share(coverage), coverage),
        Cell(confidence, order.get(confidence)),
        named(text(row, "refused")),
    ]
