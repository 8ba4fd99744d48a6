"""Splits the bill of a day among the owners of its usage, to the cent.

Each part is rounded down to a cent. The remaining cents go to the parts with the largest
remainders; the first of equal ones gets the cent. So the parts always add up to the bill.

Example: 1.00 in three equal parts is 0.34, 0.33 and 0.33.
"""

from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sidecar.formats.owners import NOBODY, Owners
from usage_pipeline.costs.inputs import CostsError
from usage_pipeline.costs.log_dirs import Snapshot
from usage_pipeline.costs.rates import UNITS, Kind, Rates

UNSEEN: Final = "unseen"
"""The kind of a day's bill if no usage with a price was seen."""
_STEP: Final = Decimal("1e-9")
_GB: Final = 10**9
_NOTHING: Final = Decimal("0.00")


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a day by an owner, in the unit of its kind."""

    owner: str
    kind: Kind
    quantity: Decimal
    lower_bound: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """A row of GOLD_COST, whose columns are described there."""

    dt: date
    owner: str | None
    kind: str
    quantity: Decimal | None
    unit: str | None
    cost: Decimal | None
    currency: str
    lower_bound: bool | None = None
    left_out: str | None = None


def split(total: Decimal, weights: Sequence[Fraction]) -> list[Decimal]:
    """Split an amount of whole cents by weights, of which one is above 0."""
    cents, sum_of_weights = int(total * 100), sum(weights)
    exact = [cents * weight / sum_of_weights for weight in weights]
    parts = [int(each) for each in exact]
    by_remainder = sorted(range(len(parts)), key=lambda at: parts[at] - exact[at])
    for at in by_remainder[: cents - sum(parts)]:
        parts[at] += 1
    return [Decimal(part).scaleb(-2) for part in parts]


def quantity_of(kind: Kind, amount: Fraction, day: date) -> Decimal:
    """Convert an amount of a day to the unit of its kind, with nine decimals.

    Args:
        kind: the kind.
        amount: bytes, partitions, or percent of a thread times seconds.
        day: the day, whose month has 28 to 31 days.
    """
    days = monthrange(day.year, day.month)[1]
    per_unit = {
        Kind.REQUEST_TIME: 100 * 3600,
        Kind.STORED: _GB * days,
        Kind.PARTITIONS: days,
    }.get(kind, _GB)
    return Decimal(round(amount / per_unit / Fraction(_STEP))).scaleb(-9)


def stored_usage(day: date, snapshot: Snapshot, owners: Owners) -> list[Usage]:
    """Return what each owner's topics store; the snapshot counts for the whole day."""
    sums: dict[tuple[str, Kind], int] = {}
    for name, topic in snapshot.topics.items():
        owner = owners.of_topic(name)
        for kind, amount in ((Kind.STORED, topic.bytes), (Kind.PARTITIONS, topic.partitions)):
            sums[owner, kind] = sums.get((owner, kind), 0) + amount
    return [
        Usage(owner, kind, quantity_of(kind, Fraction(amount), day), not snapshot.is_whole)
        for (owner, kind), amount in sums.items()
    ]


def costs_of_day(
    day: date, usages: Iterable[Usage], unknown: Mapping[Kind, str], rates: Rates
) -> list[Cost]:
    """Return the costs of a day, and a row for each kind with a price that is not known.

    Args:
        day: the day.
        usages: at most one for each owner and kind.
        unknown: why kinds are not known; there is no usage of these.
        rates: the prices, and the bill of the month if there are bills.

    Raises:
        CostsError: there are bills, but none of this month.
    """
    priced = sorted(
        (usage for usage in usages if usage.kind in rates.prices),
        key=lambda usage: (usage.owner, usage.kind),
    )
    weights = [Fraction(usage.quantity) * Fraction(rates.prices[usage.kind]) for usage in priced]
    bill = _bill(day, rates) if rates.bills else Decimal(round(sum(weights) * 100)).scaleb(-2)
    parts = split(bill, weights) if any(weights) else [_NOTHING] * len(weights)
    costs = [
        Cost(
            *(day, usage.owner, usage.kind, usage.quantity, UNITS[usage.kind]),
            *(part, rates.currency, usage.lower_bound),
        )
        for usage, part in zip(priced, parts, strict=True)
    ]
    if bill and not any(weights):
        costs.append(Cost(day, NOBODY, UNSEEN, None, None, bill, rates.currency))
    for kind, why in sorted(unknown.items()):
        if kind in rates.prices:
            costs.append(Cost(day, None, kind, None, UNITS[kind], None, rates.currency, None, why))
    return costs


def _bill(day: date, rates: Rates) -> Decimal:
    month = f"{day:%Y-%m}"
    if month not in rates.bills:
        raise CostsError(
            f"the rates have bills, but none of {month}: add it to [bills], or leave out its days"
            " with --since or --until"
        )
    days = monthrange(day.year, day.month)[1]
    return split(rates.bills[month], [Fraction(1)] * days)[day.day - 1]
