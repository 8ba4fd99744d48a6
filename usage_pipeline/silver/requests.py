"""The requests that a stage reads.

Example: requests that were charged on 21 November are in files of the 21st and of the 22nd.
``days_and_brokers`` then pairs the 21st with each broker of these files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.silver.request_reader import (
    OF_BROKERS,
    OF_LINES,
    admins_rows,
    brokers_clients,
    charged_days,
    read_lines,
    rows,
)
from usage_pipeline.tables.schemas import SILVER_CHANGE
from usage_pipeline.tables.table_files import TableFile, read_by_workers

_TASKS_PER_CORE: Final = 4
_SHARDS: Final = 64
"""Enough to spread the work, and few enough that each shard is worth a call."""
_IN_SHARD: Final = 2_000_000
"""Requests in a shard, so that a worker's memory stays bounded with many tenants."""


@dataclass(frozen=True)
class Requests:
    """Rows of SILVER_REQUEST that were charged on some days.

    Attributes:
        spark: the session whose workers read the rows.
        files: the files with these rows; they may have other rows too.
        days: the days of the charges; None for all days.
    """

    spark: SparkSession
    files: tuple[TableFile, ...]
    days: frozenset[date] | None = None

    def mapped(
        self, columns: Sequence[str], function: Callable[[Batches], Batches], schema: str
    ) -> DataFrame:
        """Apply a function to the rows, in the workers.

        Args:
            columns: the columns that the function needs, including ``quota_ts``.
            function: maps batches to batches.
            schema: the schema of the function's result.
        """
        days = self.days
        return read_by_workers(
            self.spark,
            self.files,
            lambda files: function(rows(files, columns, days)),
            schema,
            _TASKS_PER_CORE,
        )

    def shards(self, least: int = _SHARDS, in_shard: int = _IN_SHARD) -> int:
        """Return the number of shards for the results of workers.

        Args:
            least: the lowest number of shards.
            in_shard: about how many requests a shard has, if they need more shards than that.
        """
        return max(least, self.count // in_shard)

    @property
    def count(self) -> int:
        """The number of rows of the files, some of which may be of other days."""
        return sum(file.written.rows for file in self.files)

    def days_and_brokers(self) -> set[tuple[date, int]]:
        """Return the days on which requests may have been charged, with the brokers' ids."""
        pairs = set()
        for file in self.files:
            values = dict(zip(file.table.folders, file.written.values, strict=True))
            answered, broker = date.fromisoformat(values["dt"]), int(values["broker"])
            pairs |= {(answered, broker), (answered - timedelta(days=1), broker)}
        return {pair for pair in pairs if self.days is None or pair[0] in self.days}

    def cluster_clients(self) -> frozenset[tuple[str, str]]:
        """Return the users and client-ids of brokers, from what only they send."""
        found = self.mapped(OF_BROKERS, brokers_clients, "user string, client_id string")
        return frozenset((row["user"], row["client_id"]) for row in found.distinct().collect())

    def read_lines(self) -> DataFrame:
        """Return how many requests of each log file were read.

        Returns:
            Rows of broker, src_file, read and is_whole: whether all have times in whole seconds.
        """
        parts = self.mapped(
            OF_LINES, read_lines, "broker int, src_file string, read long, is_whole boolean"
        )
        return parts.groupBy("broker", "src_file").agg(
            sql.sum("read").alias("read"), sql.every("is_whole").alias("is_whole")
        )

    def of_admins(self) -> DataFrame:
        """Return the controllers' lines about topics and quotas, with all columns; they are few.

        Returns:
            Rows of SILVER_CHANGE.
        """
        return read_by_workers(
            self.spark, self.files, admins_rows, SILVER_CHANGE.schema, _TASKS_PER_CORE
        )

    def charged_days(self) -> set[date]:
        """Return the days on which the requests were charged."""
        days = self.mapped(("quota_ts",), charged_days, "day date")
        return {row["day"] for row in days.distinct().collect()}
