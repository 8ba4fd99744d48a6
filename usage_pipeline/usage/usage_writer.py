"""gold_usage_1s, but mutations, from silver_request: written by the workers that sum it up.

What is charged is ``kernels.charging``'s to say, and ``kernels.seconds`` sums it; mutations need
the sizes of topics too (``mutations``). A request belongs to the second of its ``quota_ts``.

Windows of a second are right for sums. A replay goes event by event instead: Kafka's samples are
not aligned to the clock's seconds.

Example: two days of four brokers' requests, on 8 cores in 16 shards, are 32 files, which a run
brings together before it commits them. A PRODUCE of 10,035 bytes that took 0.258 ms, charged at
10:00:00.122, is two rows of 10:00:00: produce with the amount 10035.0, request with 0.0258; both
have ``events`` 1.

Source: KIP-124, KIP-219, KIP-936; KafkaApis.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from usage_pipeline.kernels.seconds import NEEDED, PACKED, packed, used
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.parquet_files import REPORTS, Report, Target, collected, files_of
from usage_pipeline.tables.table_files import Written

SHARDS_OF_A_CORE: Final = 2
"""Groups of groups, each of which is a file: enough to spread, few enough that each is worth it."""
IN_SHARD: Final = 1_000_000
"""Requests: their usage takes half a gigabyte while a worker writes it."""


def write_usage(requests: Requests, target: Target) -> list[Written]:
    """Writes what clients used of brokers in each second, but mutations.

    Raises:
        NotWrittenError: a file can't be written.
    """
    least = SHARDS_OF_A_CORE * requests.spark.sparkContext.defaultParallelism
    shards = requests.shards(least, IN_SHARD)

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return packed(batches, shards)

    def written(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return written_shard(target, key[0].as_py(), used(table))

    sums = by_shard(requests.mapped(NEEDED, of_batches, PACKED), shards).groupBy("shard")
    return files_of(collected(sums.applyInArrow(written, REPORTS)), target.table)


def written_shard(target: Target, shard: int, used: pa.Table) -> pa.Table:
    """Writes the rows of a shard; a disk that fails is reported, not raised.

    Returns:
        Of REPORTS.
    """
    writer = target.writer(shard)
    writer.write(used)
    files = writer.close()
    return pa.Table.from_batches([Report(files, writer.problem).as_batch()])
