"""Costs in FOCUS's columns."""

import csv
from datetime import date
from decimal import Decimal

from sidecar.formats.owners import NOBODY
from usage_pipeline.costs.allocation import UNSEEN, Cost
from usage_pipeline.costs.focus import focus

LAST = date(2026, 12, 31)
REQUIRED = """
BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart
ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart
CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName CommitmentDiscountStatus
CommitmentDiscountType ConsumedQuantity ConsumedUnit ContractedCost ContractedUnitPrice
EffectiveCost InvoiceIssuer ListCost ListUnitPrice PricingCategory PricingQuantity PricingUnit
Provider Publisher RegionId RegionName ResourceID ResourceName ResourceType ServiceCategory
ServiceName SkuId SkuPriceId SubAccountId SubAccountName Tags
"""
"""The columns that focus-validator 1.0.0 requires of FOCUS 1.0."""


def test_a_cost_is_a_row_of_its_day_and_month() -> None:
    """A kind that is left out has no cost, and so no row. Usage has a quantity in FOCUS."""
    costs = [
        Cost(LAST, "shop", "produced", Decimal("1E-9"), "GB", Decimal("0.10"), "EUR"),
        Cost(LAST, None, "stored", None, "GB-Months", None, "EUR", left_out="why"),
        Cost(LAST, NOBODY, UNSEEN, None, None, Decimal("7.00"), "EUR"),
    ]
    shop, nobody = csv.DictReader(focus(costs, "eu").splitlines())
    assert {
        "BilledCost": "0.10",
        "BillingAccountId": "eu",
        "BillingPeriodStart": "2026-12-01T00:00:00Z",
        "BillingPeriodEnd": "2027-01-01T00:00:00Z",
        "ChargeCategory": "Usage",
        "ChargePeriodStart": "2026-12-31T00:00:00Z",
        "ChargePeriodEnd": "2027-01-01T00:00:00Z",
        "ConsumedQuantity": "0.000000001",
        "ConsumedUnit": "GB",
        "SubAccountId": "shop",
        "Tags": '{"owner": "shop"}',
    }.items() <= shop.items()
    assert ("Adjustment", "(nobody)", "", "") == (
        nobody["ChargeCategory"],
        nobody["SubAccountId"],
        nobody["ConsumedQuantity"],
        nobody["ConsumedUnit"],
    )


def test_all_required_columns_are_there() -> None:
    """They are there even without a cost."""
    assert set(REQUIRED.split()) <= set(focus([], "eu").strip().split(","))
