"""Requests that stages read, and what is extracted once for several stages.

Example: usage and the replay both read who the clients are, of the same two million requests.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.runtime.by_workers import Batches, read_by_workers
from sidecar.pipeline.silver.dimensions import COUNTED, NEEDED, Dimensions, counted
from sidecar.pipeline.silver.request_reader import ADMINS_APIS, admins_rows, rows
from sidecar.pipeline.tables.schemas import SILVER_CHANGE

_TASKS_PER_CORE: Final = 4


@dataclass(frozen=True)
class Requests:
    """Rows of SILVER_REQUEST that were charged on some days.

    Attributes:
        frame: of them.
        files: Parquet files that have them, and others too; None: workers can't read them.
        days: when they were charged; None: at any time.
    """

    frame: DataFrame
    files: tuple[Path, ...] | None = None
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

        def made(files: Iterable[Path]) -> Batches:
            return function(rows(files, columns, days))

        if self.files is None:
            return self.frame.select(*columns).mapInArrow(function, schema)
        return read_by_workers(self.frame.sparkSession, self.files, made, schema, _TASKS_PER_CORE)

    @cached_property
    def dimensions(self) -> Dimensions:
        """Who the clients are, who of them are brokers, and which files there are."""
        return Dimensions.of(self.mapped(NEEDED, counted, COUNTED))

    def of_admins(self) -> DataFrame:
        """The controllers' lines about topics and quotas in the files, whole; they are few.

        Returns:
            Of SILVER_CHANGE.
        """
        if self.files is None:
            is_asked = sf.col("is_forwarded") & sf.col("api").isin(*ADMINS_APIS)
            return self.frame.where(is_asked).select(*SILVER_CHANGE.names)
        spark = self.frame.sparkSession
        return read_by_workers(
            spark, self.files, admins_rows, SILVER_CHANGE.schema, _TASKS_PER_CORE
        )
