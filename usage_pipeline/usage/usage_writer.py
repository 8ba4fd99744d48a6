"""Writes gold_usage_1s from silver_request, except mutations, in the workers that sum it.

``kernels.charging`` defines the charges, and ``kernels.seconds`` sums them. Mutations also need the
sizes of topics (``mutations``). A request belongs to the second of its ``quota_ts``.

Windows of a second are right for sums. A replay reads each event instead, because Kafka's samples
are not aligned to the clock's seconds.

Example: two days of requests from four brokers, on 8 cores with 16 shards, are 32 files, which a
run compacts before it commits them. A PRODUCE of 10,035 bytes that took 0.258 ms, charged at
10:00:00.122, is two rows of 10:00:00: produce with the amount 10035.0, and request with 0.0258.
Both have ``events`` 1.

Source: KIP-124, KIP-219, KIP-936; KafkaApis.
"""

from typing import Final

import pyarrow as pa

from usage_pipeline.kernels.charging import NEEDED
from usage_pipeline.kernels.seconds import PACKED, packed, usage_rows
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.parquet_files import REPORTS, Report, Target, collected, files_of
from usage_pipeline.tables.table_files import Written

SHARDS_OF_A_CORE: Final = 2
"""A shard is a file: enough to spread the work, and few enough that each is worth it."""
IN_SHARD: Final = 1_000_000
"""Requests in a shard: a worker needs half a gigabyte to write their usage."""


def write_usage(requests: Requests, target: Target) -> list[Written]:
    """Write what clients used of brokers in each second, except mutations.

    Raises:
        NotWrittenError: a file can't be written.
    """
    least = SHARDS_OF_A_CORE * requests.spark.sparkContext.defaultParallelism
    shards = requests.shards(least, IN_SHARD)

    def written(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return written_shard(target, key[0].as_py(), usage_rows(table))

    sums = requests.mapped(NEEDED, lambda batches: packed(batches, shards), PACKED)
    reports = by_shard(sums, shards).groupBy("shard").applyInArrow(written, REPORTS)
    return files_of(collected(reports), target.table)


def written_shard(target: Target, shard: int, rows: pa.Table) -> pa.Table:
    """Write the rows of a shard; a failing disk is reported, not raised.

    Returns:
        Rows of REPORTS.
    """
    writer = target.writer(shard)
    writer.write(rows)
    files = writer.close()
    return pa.Table.from_batches([Report(files, writer.problem).as_batch()])
