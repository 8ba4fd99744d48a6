"""The costs of each owner, day and kind, from usage and from outputs of ``kafka-log-dirs.sh``.

Example: usage of 20 November by 40 clients of 5 owners is 16 rows: produced, fetched and request
time of 5 owners, and a row that says why the stored bytes are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from sidecar.formats.owners import NOBODY, TOPIC, Owners
from usage_pipeline.costs.allocation import Cost, Usage, costs_of_day, quantity_of, stored_usage
from usage_pipeline.costs.log_dirs import Snapshot
from usage_pipeline.costs.rates import Kind, Rates
from usage_pipeline.usage.quota_types import FETCH, PRODUCE, REQUEST

_OF_LOGS: Final = {PRODUCE: Kind.PRODUCED, FETCH: Kind.FETCHED, REQUEST: Kind.REQUEST_TIME}
_OF_SNAPSHOTS: Final = (Kind.STORED, Kind.PARTITIONS)
_NO_LOGS: Final = "gold_usage_1s has no usage of this day"
_NO_SNAPSHOT: Final = "--log-dirs has no file of this day"
_EXACT: Final = "decimal(28,6)"
"""A sum of doubles would depend on the order of the rows."""


@dataclass(frozen=True, slots=True)
class Billing:
    """The files of the user; ``snapshots`` has the log dirs by day."""

    rates: Rates
    owners: Owners
    snapshots: Mapping[date, Snapshot]


def costs(usage: DataFrame, days: Iterable[date], billing: Billing) -> list[Cost]:
    """Return the costs of days.

    Args:
        usage: rows of GOLD_USAGE_1S.
        days: the days of the bill; a day may have no usage.
        billing: the rates, the owners and the stored bytes.

    Raises:
        CostsError: there are bills, but none of the month of a day.
    """
    of_logs = _usage_of(usage, billing.owners)
    rows = []
    for day in days:
        seen = list(of_logs.get(day, ()))
        unknown = {} if seen else dict.fromkeys(_OF_LOGS.values(), _NO_LOGS)
        if (snapshot := billing.snapshots.get(day)) is not None:
            seen += stored_usage(day, snapshot, billing.owners)
        else:
            unknown |= dict.fromkeys(_OF_SNAPSHOTS, _NO_SNAPSHOT)
        rows += costs_of_day(day, seen, unknown, billing.rates)
    return rows


def owner_of_client(owners: Owners) -> Column:
    """Return the owner of a row's user and client-id."""
    return sql.coalesce(
        *(
            sql.when(
                sql.col(rule.column).startswith(rule.text)
                if rule.is_prefix
                else sql.col(rule.column) == rule.text,
                sql.lit(rule.owner),
            )
            for rule in owners.rules
            if rule.column != TOPIC
        ),
        sql.lit(NOBODY),
    )


def _usage_of(usage: DataFrame, owners: Owners) -> dict[date, list[Usage]]:
    sums = (
        usage.where(sql.col("quota_type").isin(*_OF_LOGS))
        .groupBy("dt", owner_of_client(owners).alias("owner"), "quota_type")
        .agg(sql.sum(sql.col("amount").cast(_EXACT)), sql.max("lower_bound"))
        .collect()
    )
    of_days: dict[date, list[Usage]] = {}
    for day, owner, quota_type, amount, lower_bound in sums:
        kind = _OF_LOGS[quota_type]
        quantity = quantity_of(kind, Fraction(amount), day)
        of_days.setdefault(day, []).append(Usage(owner, kind, quantity, lower_bound))
    return of_days
