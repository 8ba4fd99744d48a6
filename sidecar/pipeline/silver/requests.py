"""Requests that stages read, and what is extracted once for several stages.

Example: usage and the replay both read who the clients are, of the same two million requests.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.runtime.by_workers import Batches
from sidecar.pipeline.silver.dimensions import COUNTED, NEEDED, Dimensions, counted
from sidecar.pipeline.silver.request_reader import admins_rows, charged_days, rows
from sidecar.pipeline.tables.parquet_files import TableFile, read_by_workers
from sidecar.pipeline.tables.schemas import SILVER_CHANGE

_TASKS_PER_CORE: Final = 4


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

    @cached_property
    def dimensions(self) -> Dimensions:
        """Who the clients are, who of them are brokers, and which files there are."""
        return Dimensions.of(self.mapped(NEEDED, counted, COUNTED))

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
