"""The prices of usage, and the bills to split by them.

Without bills, a day costs its usage times the prices. With ``[bills]``, the prices are weights: the
bill of a month is spread evenly over the month's days, and a day's part is split by the usage times
the prices.

Example::

    currency = "EUR"
    produced_gb = 0.05
    stored_gb_month = 0.10
    [bills]
    2026-11 = 12000.00
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final

from usage_pipeline.costs.inputs import CostsError, read_toml

_MONTH: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_MOST: Final = 10**9
"""Prices and bills must be lower, so that costs fit into gold_cost."""
CENT: Final = Decimal("0.01")


class Kind(StrEnum):
    """The kinds of usage that have a price."""

    PRODUCED = "produced"
    FETCHED = "fetched"
    REQUEST_TIME = "request time"
    STORED = "stored"
    PARTITIONS = "partitions"


KEYS: Final[Mapping[str, Kind]] = {
    "produced_gb": Kind.PRODUCED,
    "fetched_gb": Kind.FETCHED,
    "thread_hour": Kind.REQUEST_TIME,
    "stored_gb_month": Kind.STORED,
    "partition_month": Kind.PARTITIONS,
}
"""The names of the prices in the file."""
UNITS: Final[Mapping[Kind, str]] = {
    Kind.PRODUCED: "GB",
    Kind.FETCHED: "GB",
    Kind.REQUEST_TIME: "Thread-Hours",
    Kind.STORED: "GB-Months",
    Kind.PARTITIONS: "Partition-Months",
}


@dataclass(frozen=True, slots=True)
class Rates:
    """A file of rates.

    Attributes:
        currency: its three letters (ISO 4217).
        prices: the price of a unit, of the kinds that are in the bill.
        bills: the bills of months, such as "2026-11"; empty if the prices make the bill.
    """

    currency: str
    prices: Mapping[Kind, Decimal]
    bills: Mapping[str, Decimal]


def read_rates(path: Path) -> Rates:
    """Read a file of rates.

    Raises:
        CostsError: the file can't be used; the message names the key.
    """
    document = read_toml(path)
    for key in document:
        if key not in {"currency", "bills", *KEYS}:
            known = ", ".join(("currency", *KEYS))
            raise CostsError(f"{path}: {key} is not a key here; use {known} and [bills]")
    currency = document.get("currency")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise CostsError(f'{path}: currency must be three letters, such as "EUR"')
    prices = {
        kind: _number(document[key], f"{path}: {key}")
        for key, kind in KEYS.items()
        if key in document
    }
    if not any(prices.values()):
        raise CostsError(f"{path}: there is no price above 0; add one of {', '.join(KEYS)}")
    bills = document.get("bills", {})
    if not isinstance(bills, dict):
        raise CostsError(f"{path}: bills must be a table, [bills], with lines as 2026-11 = 12000")
    return Rates(currency, prices, {month: _bill(path, month, bills[month]) for month in bills})


def _bill(path: Path, month: str, value: object) -> Decimal:
    if not _MONTH.fullmatch(month):
        raise CostsError(f"{path}: bills.{month} is not a month; write it as 2026-11")
    bill = _number(value, f"{path}: bills.{month}")
    if bill != bill.quantize(CENT):
        raise CostsError(f"{path}: bills.{month} must have two decimals at most")
    return bill


def _number(value: object, where: str) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        number = Decimal(value)
        if number.is_finite() and 0 <= number < _MOST:
            return number
    raise CostsError(f"{where} must be a number of at least 0, below {_MOST:,}")
