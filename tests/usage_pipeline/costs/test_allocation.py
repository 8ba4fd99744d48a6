"""The parts of a bill: they add up to the cent, whatever the rates and the usage are."""

from calendar import monthrange
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.formats.owners import NOBODY, TOPIC, Rule, in_order
from usage_pipeline.costs.allocation import (
    UNSEEN,
    Usage,
    costs_of_day,
    quantity_of,
    split,
    stored_usage,
)
from usage_pipeline.costs.inputs import CostsError
from usage_pipeline.costs.log_dirs import Snapshot, Topic
from usage_pipeline.costs.rates import Kind, Rates

DAY = date(2026, 11, 20)
MONEY = st.decimals(0, 10**9, places=2)
USAGES = st.dictionaries(
    st.tuples(st.sampled_from(["payments", "shop", NOBODY]), st.sampled_from(list(Kind))),
    st.decimals(0, 10**12, places=9),
).map(lambda found: [Usage(owner, kind, amount) for (owner, kind), amount in found.items()])
PRICES = st.dictionaries(st.sampled_from(list(Kind)), st.decimals(0, 10**6, places=6))


def test_the_largest_remainders_get_the_cents() -> None:
    """The first of equal ones gets the cent."""
    parts = split(Decimal("1.00"), [Fraction(1)] * 3)
    assert ["0.34", "0.33", "0.33"] == [str(part) for part in parts]
    parts = split(Decimal("0.01"), [Fraction(1), Fraction(2)])
    assert ["0.00", "0.01"] == [str(part) for part in parts]


@pytest.mark.slow
@given(bill=MONEY, weights=st.lists(st.fractions(0, 10**9), min_size=1).filter(any))
def test_parts_add_up_and_are_within_a_cent(bill: Decimal, weights: list[Fraction]) -> None:
    """No part differs from its exact share by a cent or more."""
    parts = split(bill, weights)
    assert bill == sum(parts)
    for part, weight in zip(parts, weights, strict=True):
        assert abs(Fraction(part) - Fraction(bill) * weight / sum(weights)) < Fraction(1, 100)


@pytest.mark.slow
@given(bill=MONEY, usages=USAGES, prices=PRICES, month=st.integers(1, 12))
def test_the_rows_of_a_month_add_up_to_its_bill(
    bill: Decimal, usages: list[Usage], prices: dict[Kind, Decimal], month: int
) -> None:
    """The bill is complete also if nothing was seen; then it belongs to nobody."""
    rates = Rates("EUR", prices, {f"2026-{month:02}": bill})
    days = [date(2026, month, day + 1) for day in range(monthrange(2026, month)[1])]
    rows = [row for day in days for row in costs_of_day(day, usages, {}, rates)]
    assert bill == sum(row.cost for row in rows if row.cost is not None)
    assert {NOBODY} >= {row.owner for row in rows if row.kind == UNSEEN}


@given(usages=USAGES, prices=PRICES)
def test_without_a_bill_the_prices_make_it(
    usages: list[Usage], prices: dict[Kind, Decimal]
) -> None:
    """The rows add up to the exact costs, rounded once, in whatever order the usage comes."""
    rates = Rates("EUR", prices, {})
    rows = costs_of_day(DAY, usages, {}, rates)
    exact = sum(Fraction(each.quantity) * Fraction(prices.get(each.kind, 0)) for each in usages)
    assert round(exact * 100) == sum(row.cost * 100 for row in rows if row.cost is not None)
    assert rows == costs_of_day(DAY, usages[::-1], {}, rates)


def test_what_is_nobodys_is_a_row_of_its_own() -> None:
    """A kind without a price has no row; an unknown kind has one with the reason."""
    usages = [
        Usage("shop", Kind.PRODUCED, Decimal(30)),
        Usage(NOBODY, Kind.PRODUCED, Decimal(10), lower_bound=True),
        Usage("shop", Kind.FETCHED, Decimal(5)),
    ]
    rates = Rates("EUR", {Kind.PRODUCED: Decimal("0.1"), Kind.STORED: Decimal(1)}, {})
    rows = costs_of_day(DAY, usages, {Kind.STORED: "why", Kind.PARTITIONS: "why"}, rates)
    assert [
        (NOBODY, "produced", Decimal("1.00"), True, None),
        ("shop", "produced", Decimal("3.00"), False, None),
        (None, "stored", None, None, "why"),
    ] == [(row.owner, row.kind, row.cost, row.lower_bound, row.left_out) for row in rows]


def test_a_month_without_a_bill_is_refused() -> None:
    """Its prices are weights, and no prices."""
    rates = Rates("EUR", {Kind.PRODUCED: Decimal(1)}, {"2026-10": Decimal(1)})
    with pytest.raises(CostsError, match=r"none of 2026-11: add it to \[bills\]"):
        costs_of_day(DAY, [], {}, rates)


@pytest.mark.parametrize(
    ("kind", "amount", "quantity"),
    [
        (Kind.PRODUCED, 1, "0.000000001"),
        (Kind.FETCHED, 2 * 10**9, "2.000000000"),
        (Kind.REQUEST_TIME, 50 * 3600, "0.500000000"),
        (Kind.STORED, 60 * 10**9, "2.000000000"),
        (Kind.PARTITIONS, 15, "0.500000000"),
    ],
)
def test_amounts_have_the_units_of_prices(kind: Kind, amount: int, quantity: str) -> None:
    """November has 30 days; request time is in percent of a thread, times seconds."""
    assert quantity == f"{quantity_of(kind, Fraction(amount), DAY):f}"


def test_a_topic_without_an_owner_is_stored_for_nobody() -> None:
    """An offline log dir makes all of the day a lower bound."""
    snapshot = Snapshot({"shop.a": Topic(30 * 10**9, 3), "b": Topic(0, 30)}, is_whole=False)
    owners = in_order([Rule(TOPIC, "shop.", is_prefix=True, owner="shop")])
    assert [
        Usage("shop", Kind.STORED, Decimal(1), lower_bound=True),
        Usage("shop", Kind.PARTITIONS, Decimal("0.1"), lower_bound=True),
        Usage(NOBODY, Kind.STORED, Decimal(0), lower_bound=True),
        Usage(NOBODY, Kind.PARTITIONS, Decimal(1), lower_bound=True),
    ] == stored_usage(DAY, snapshot, owners)
