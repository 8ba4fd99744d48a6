"""gold_usage_1s written by the workers that sum it up.

Example: two days of four brokers' requests, in 64 shards, are 128 files, which a run brings
together before it commits them.
"""

import pyarrow as pa

from sidecar.pipeline.silver.requests import Requests
from sidecar.pipeline.tables.parquet_files import (
    REPORTS,
    Report,
    Target,
    Written,
    collected,
    files_of,
)
from sidecar.pipeline.usage.usage_table import summed


def write_usage(requests: Requests, target: Target) -> list[Written]:
    """Writes what clients used of brokers in each second, but mutations.

    Raises:
        NotWrittenError: a file can't be written.
    """

    def write(shard: int, used: pa.Table) -> pa.Table:
        return written_shard(target, shard, used)

    return files_of(collected(summed(requests, write, REPORTS)), target.table)


def written_shard(target: Target, shard: int, used: pa.Table) -> pa.Table:
    """Writes the rows of a shard; a disk that fails is reported, not raised.

    Returns:
        Of REPORTS.
    """
    writer = target.writer(shard)
    writer.write(used)
    files = writer.close()
    return pa.Table.from_batches([Report(files, writer.problem).as_batch()])
