"""What usage costs each owner, from GOLD_COST.

Example: payments has a row for what it produced on 20 to 22 November, 1,200 GB for 60.00 EUR. A
sentence states that the stored bytes are left out on these days, and why.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from usage_pipeline.report import figures
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.page import paragraph, section
from usage_pipeline.report.rows import Row, text


def cost_section(rows: Sequence[Row]) -> str:
    """Return the section; empty without rows, because costs need files of the user."""
    if not rows:
        return ""
    quantities: dict[tuple[str, ...], Decimal] = {}
    costs: dict[tuple[str, ...], Decimal] = {}
    left_out: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["left_out"] is not None:
            left_out[text(row, "kind"), text(row, "left_out")] += 1
            continue
        key = tuple(text(row, name) for name in ("owner", "kind", "unit", "currency"))
        quantities[key] = quantities.get(key, Decimal(0)) + Decimal(text(row, "quantity") or 0)
        costs[key] = costs.get(key, Decimal(0)) + Decimal(text(row, "cost"))
    body = [
        [
            named(owner),
            named(kind),
            Cell(f"{figures.number(float(quantities[key]))} {unit}", float(quantities[key]))
            if unit
            else Cell(figures.UNKNOWN),
            Cell(f"{cost:,.2f} {currency}", float(cost)),
        ]
        for key, cost in sorted(costs.items(), key=lambda each: -each[1])
        for owner, kind, unit, currency in [key]
    ]
    days = sorted({text(row, "dt") for row in rows})
    notes = [
        paragraph(f"Left out on {count} of {len(days)} days: {kind}, because {why}.")
        for (kind, why), count in left_out.items()
    ]
    caption = f"{days[0]} to {days[-1]}, the highest cost first"
    notes.append(paragraph("Usage is what the logs show. The real request time is longer."))
    return section("Costs", table(caption, ("Owner", "Kind", "Usage", "Cost"), body), *notes)
