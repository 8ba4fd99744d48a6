"""Writes costs in the columns of FOCUS, the FinOps Open Cost and Usage Specification.

The owner is the sub-account, and the cluster is the billing account. Unit prices are null, because
costs are rounded so that they add up to the bill. Kinds that are left out have no cost, so they
have no row. The bill of a day without seen usage has no quantity, so it is an adjustment.

Example: 0.34 EUR for what payments produced on 20 November is a row with ``BilledCost`` 0.34,
``SubAccountId`` payments, and the charge period of that day.

Source: FOCUS 1.0. ``focus-validator`` 1.0 expects the columns InvoiceIssuer, Provider, Publisher
and ResourceID, which the specification calls InvoiceIssuerName, ProviderName, PublisherName and
ResourceId, and ChargeType, which an earlier one had. Rows have both names, except of ResourceID,
because engines that ignore case would find it twice.
"""

import csv
import io
import json
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final

from usage_pipeline.costs.allocation import Cost

_NULL: Final = dict.fromkeys(
    (
        *("BillingAccountName", "ChargeClass", "CommitmentDiscountCategory"),
        *("CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus"),
        *("CommitmentDiscountType", "ContractedUnitPrice", "ListUnitPrice", "RegionId"),
        *("RegionName", "ResourceID", "ResourceName", "ResourceType"),
    ),
    "",
)
_NAMES: Final = ("InvoiceIssuer", "Provider", "Publisher")
_KAFKA: Final = "Apache Kafka"
_NONE: Final = Cost(date(2000, 1, 1), None, "", None, None, None, "")
"""A row that has all columns."""


def focus(costs: Iterable[Cost], cluster: str) -> str:
    """Return the costs of a cluster as CSV."""
    file = io.StringIO()
    writer = csv.DictWriter(file, sorted(_record(_NONE, cluster)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_record(each, cluster) for each in costs if each.cost is not None)
    return file.getvalue()


def _record(row: Cost, cluster: str) -> dict[str, object]:
    month = row.dt.replace(day=1)
    quantity = "" if row.quantity is None else f"{row.quantity:f}"
    return {
        **_NULL,
        **{f"{name}{suffix}": _KAFKA for name in _NAMES for suffix in ("", "Name")},
        **dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), row.cost),
        "BillingAccountId": cluster,
        "BillingCurrency": row.currency,
        "BillingPeriodStart": _midnight(month),
        "BillingPeriodEnd": _midnight((month + timedelta(days=31)).replace(day=1)),
        **dict.fromkeys(("ChargeCategory", "ChargeType"), "Usage" if quantity else "Adjustment"),
        "ChargeDescription": f"{row.kind}, {row.owner}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": _midnight(row.dt),
        "ChargePeriodEnd": _midnight(row.dt + timedelta(days=1)),
        **dict.fromkeys(("ConsumedQuantity", "PricingQuantity"), quantity),
        **dict.fromkeys(("ConsumedUnit", "PricingUnit"), row.unit or ""),
        "PricingCategory": "Standard",
        "ServiceCategory": "Integration",
        "ServiceName": _KAFKA,
        **dict.fromkeys(("SkuId", "SkuPriceId"), row.kind),
        **dict.fromkeys(("SubAccountId", "SubAccountName"), row.owner),
        "Tags": json.dumps({"owner": row.owner}),
    }


def _midnight(day: date) -> str:
    return f"{day}T00:00:00Z"
