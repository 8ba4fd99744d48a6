"""Reads rows of gold_usage_1s in workers, and groups them by the clients that share a quota.

Each worker packs the rows that it has read (``kernels.packed``). Workers exchange one row for each
name and broker. All rows of a name on a broker are in one shard. Their seconds are in the memory of
one worker: 32 bytes for a second, once for each worker that had some of it.

Example: 2 million rows of usage by 40 tenants on 4 brokers, read in 4 parts, are about 1,000 rows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf

from usage_pipeline.kernels.packed import PACKED, READ, NamesOf, packed
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.tables.table_files import TableFile, read_by_workers

_SHARDS: Final = 64
"""Enough to spread the work, and few enough that each shard is worth a call."""
_IN_SHARD: Final = 1_000_000
"""Rows of usage in a shard, at most on average, so that a worker's memory stays bounded."""
_ROWS: Final = 1 << 17
_TASKS_PER_CORE: Final = 2
"""Few tasks, so that a worker packs a name into few rows."""
_NAMES: Final = ("quota_type", "user", "client_id")
"""Columns with few different values, which are read as dictionaries."""
_TYPES: Final = dict.fromkeys(_NAMES, pa.dictionary(pa.int32(), pa.string()))


@dataclass(frozen=True, slots=True)
class UsageRows:
    """Rows of GOLD_USAGE_1S.

    Attributes:
        spark: the session whose workers read the rows.
        files: the files with these rows.
    """

    spark: SparkSession
    files: tuple[TableFile, ...]

    def mapped(
        self, columns: Sequence[str], function: Callable[[Batches], Batches], schema: str
    ) -> DataFrame:
        """Apply a function to the rows, in the workers.

        Args:
            columns: the columns that the function needs.
            function: maps batches to batches.
            schema: the schema of the function's result.
        """
        return read_by_workers(
            self.spark,
            self.files,
            lambda files: function(_read(files, columns)),
            schema,
            _TASKS_PER_CORE,
        )


def packed_by_name(usage: UsageRows, names_of: NamesOf) -> DataFrame:
    """Pack the usage by the clients that share a quota.

    Args:
        usage: rows of GOLD_USAGE_1S.
        names_of: names the clients that share a client's quota; it is sent to workers.

    Returns:
        Rows of ``packed.PACKED``; the same name and broker may be in several rows.
    """
    return usage.mapped(READ, lambda batches: packed(batches, names_of), PACKED)


def in_shards(rows: DataFrame, usage: UsageRows) -> GroupedData:
    """Group rows for ``applyInArrow`` by quota type, name and broker.

    Args:
        rows: rows of ``packed.PACKED``, possibly with more columns.
        usage: the usage from which they were made.
    """
    shards = max(_SHARDS, sum(file.written.rows for file in usage.files) // _IN_SHARD)
    shard = sf.pmod(sf.xxhash64("quota_type", "name", "broker"), sf.lit(shards)).cast("int")
    return by_shard(rows.withColumn("shard", shard), shards).groupBy("shard")


def _read(files: Iterable[TableFile], columns: Sequence[str]) -> Batches:
    for file in files:
        for group in file.groups(_NAMES):
            for batch in group.batches(_ROWS, columns):
                # Parquet stores a column with many different values without a dictionary.
                yield pa.record_batch(
                    [batch[name].cast(_TYPES.get(name, batch[name].type)) for name in columns],
                    names=list(columns),
                )
