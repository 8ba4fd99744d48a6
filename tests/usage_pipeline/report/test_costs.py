"""The section of costs."""

import re
from datetime import date
from decimal import Decimal

from usage_pipeline.report import Row
from usage_pipeline.report.costs import cost_section


def row(day: int, owner: str | None, kind: str, quantity: str | None, cost: str | None) -> Row:
    return {
        "dt": date(2026, 11, day),
        "owner": owner,
        "kind": kind,
        "quantity": quantity and Decimal(quantity),
        "unit": None if kind == "unseen" else "GB",
        "cost": cost and Decimal(cost),
        "currency": "EUR",
        "left_out": None if cost else "no file",
    }


def test_costs_of_days_are_summed_up_and_what_is_left_out_is_said() -> None:
    """The first is who pays most."""
    page = cost_section(
        [
            row(20, "shop", "produced", "1.5", "0.10"),
            row(21, "shop", "produced", "1", "0.20"),
            row(21, "(nobody)", "unseen", None, "1000"),
            row(21, None, "stored", None, None),
        ]
    )
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert ["(nobody)", "unseen", "-", "1,000.00 EUR"] == cells[:4]
    assert ["shop", "produced", "2.5 GB", "0.30 EUR"] == cells[4:]
    assert "2026-11-20 to 2026-11-21, the highest cost first" in page
    assert "Left out on 1 of 2 days: stored, because no file." in page


def test_without_costs_there_is_no_section() -> None:
    """Who has no rates is not told to make some."""
    assert "" == cost_section([])
