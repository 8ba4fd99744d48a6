"""Rows of gold_usage_1s as workers read them, and brought together by who shares a quota.

Each worker packs what it has read (``kernels.packed``); what is sent between workers is a row for a
name and a broker. All rows of a name on a broker are in one shard, and its seconds, 32 bytes each
and once for each worker that had some, in the memory of one worker.

Example: 2 million rows of usage of 40 tenants on 4 brokers, read in 4 parts, are some 1,000 rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf

from usage_pipeline.kernels.packed import PACKED, READ, NamesOf, packed
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.tables.table_files import TableFile, read_by_workers

_SHARDS: Final = 64
"""Groups of groups: enough to spread, few enough that each is worth a call."""
_IN_SHARD: Final = 1_000_000
"""Rows of usage, at the most on average: what a worker holds stays bounded while they are many."""
_ROWS: Final = 1 << 17
_TASKS_PER_CORE: Final = 2
"""What a worker packs of one name is in few rows then."""
_NAMES: Final = ("quota_type", "user", "client_id")
"""Columns of few values, that are read as numbers of them."""
_TYPES: Final = dict.fromkeys(_NAMES, pa.dictionary(pa.int32(), pa.string()))


@dataclass(frozen=True, slots=True)
class UsageRows:
    """Rows of GOLD_USAGE_1S.

    Attributes:
        spark: whose workers read them.
        files: that have them, and those of other times.
        since: from when on, with a time zone; None: from the first row on.
        until: before when; None: up to the last row.
    """

    spark: SparkSession
    files: tuple[TableFile, ...]
    since: datetime | None = None
    until: datetime | None = None

    def mapped(
        self, columns: Sequence[str], function: Callable[[Batches], Batches], schema: str
    ) -> DataFrame:
        """What workers make of them.

        Args:
            columns: that the function needs; ``window_start`` among them.
            function: from batches to batches.
            schema: of what it gives.
        """
        since, until = self.since, self.until

        def made(files: Iterable[TableFile]) -> Batches:
            return function(_read(files, columns, since, until))

        return read_by_workers(self.spark, self.files, made, schema, _TASKS_PER_CORE)


def packed_by_name(usage: UsageRows, names_of: NamesOf) -> DataFrame:
    """What was used by those who share a quota.

    Args:
        usage: of GOLD_USAGE_1S.
        names_of: who shares a client's quota; it is sent to workers.

    Returns:
        Of ``packed.PACKED``; the same name and broker may be in several rows.
    """

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return packed(batches, names_of)

    return usage.mapped(READ, of_batches, PACKED)


def in_shards(used: DataFrame, usage: UsageRows) -> GroupedData:
    """For ``applyInArrow``: all rows of a quota type, a name and a broker are together.

    Args:
        used: of ``packed.PACKED``, maybe with more columns.
        usage: that it was made of.
    """
    shards = max(_SHARDS, sum(file.written.rows for file in usage.files) // _IN_SHARD)
    shard = sf.pmod(sf.xxhash64("quota_type", "name", "broker"), sf.lit(shards)).cast("int")
    return by_shard(used.withColumn("shard", shard), shards).groupBy("shard")


def _read(
    files: Iterable[TableFile],
    columns: Sequence[str],
    since: datetime | None,
    until: datetime | None,
) -> Batches:
    for file in files:
        for group in file.groups(_NAMES):
            for batch in group.batches(_ROWS, columns):
                # A part whose values are many is read as they are, not as numbers of them.
                kept = pa.record_batch(
                    [batch[name].cast(_TYPES.get(name, batch[name].type)) for name in columns],
                    names=list(columns),
                )
                if since is not None:
                    kept = kept.filter(pc.field("window_start") >= pa.scalar(since))
                if until is not None:
                    kept = kept.filter(pc.field("window_start") < pa.scalar(until))
                yield kept
