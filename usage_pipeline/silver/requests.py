"""Requests that stages read.

Example: of those that were charged on 21 November, files of the 21st and of the 22nd have some;
``days_and_brokers`` are the 21st and each broker whose files they are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.silver.request_reader import (
    OF_BROKERS,
    admins_rows,
    brokers_users,
    charged_days,
    rows,
)
from usage_pipeline.tables.schemas import SILVER_CHANGE
from usage_pipeline.tables.table_files import TableFile, read_by_workers

_TASKS_PER_CORE: Final = 4
_SHARDS: Final = 64
"""Enough to spread, few enough that each is worth a call."""
_IN_SHARD: Final = 2_000_000
"""Requests, so that what a worker holds stays bounded while tenants are many."""


@dataclass(frozen=True)
class Requests:
    """Rows of SILVER_REQUEST that were charged on some days.

    Attributes:
        spark: whose workers read them.
        files: that have them, and others too.
        days: when they were charged; None: at any time.
    """

    spark: SparkSession
    files: tuple[TableFile, ...]
    days: frozenset[date] | None = None

    def mapped(
        self, columns: Sequence[str], function: Callable[[Batches], Batches], schema: str
    ) -> DataFrame:
        """What workers make of them.

        Args:
            columns: that the function needs; ``quota_ts`` among them.
            function: from batches to batches.
            schema: of what it gives.
        """
        days = self.days

        def made(files: Iterable[TableFile]) -> Batches:
            return function(rows(files, columns, days))

        return read_by_workers(self.spark, self.files, made, schema, _TASKS_PER_CORE)

    def shards(self, least: int = _SHARDS, in_shard: int = _IN_SHARD) -> int:
        """In how many shards workers hand on what they make of them.

        Args:
            least: so many at least.
            in_shard: requests of each, about, where they are more.
        """
        return max(least, sum(file.written.rows for file in self.files) // in_shard)

    def days_and_brokers(self) -> set[tuple[date, int]]:
        """The days on which they may have been charged, and the brokers that did."""
        found = set()
        for file in self.files:
            values = dict(zip(file.table.folders, file.written.values, strict=True))
            answered, broker = date.fromisoformat(values["dt"]), int(values["broker"])
            found |= {(answered, broker), (answered - timedelta(days=1), broker)}
        return {one for one in found if self.days is None or one[0] in self.days}

    def cluster_users(self) -> frozenset[str]:
        """Brokers' own principals, as far as requests name them: of followers, of heartbeats."""
        found = self.mapped(OF_BROKERS, brokers_users, "user string").distinct().collect()
        return frozenset(row["user"] for row in found)

    def of_admins(self) -> DataFrame:
        """The controllers' lines about topics and quotas in the files, whole; they are few.

        Returns:
            Of SILVER_CHANGE.
        """
        return read_by_workers(
            self.spark, self.files, admins_rows, SILVER_CHANGE.schema, _TASKS_PER_CORE
        )

    def charged_days(self) -> set[date]:
        """The days on which they were charged."""
        found = self.mapped(("quota_ts",), charged_days, "day date")
        return {row["day"] for row in found.distinct().collect()}
