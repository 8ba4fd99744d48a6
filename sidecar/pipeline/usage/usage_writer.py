"""gold_usage_1s written by the workers that sum it up (``task_files``).

Example: two days of four brokers' requests, in 64 shards, are 128 files.
"""

from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sidecar.pipeline.silver.requests import Requests
from sidecar.pipeline.tables.task_files import (
    WRITTEN,
    Written,
    as_batch,
    attempt,
    attempts_of,
    committed,
    write,
)
from sidecar.pipeline.usage.usage_table import summed

_FEW_VALUES: Final = ["broker", "user", "client_id", "quota_type"]


def write_usage(requests: Requests, target: Path) -> tuple[Written, ...]:
    """Writes what clients used of brokers in each second, but mutations.

    Returns:
        The files, that are in their places.

    Raises:
        NotWrittenError: one can't be written, or isn't there.
    """
    attempts = attempts_of(target)

    def write_shard(shard: int, used: pa.Table) -> pa.Table:
        return written_by_day(shard, used, attempts)

    return committed(summed(requests, write_shard, WRITTEN), target)


def written_by_day(shard: int, used: pa.Table, attempts: Path) -> pa.Table:
    """Writes the rows of a shard; a disk that fails is reported, not raised.

    Returns:
        Of WRITTEN, a file for each day.
    """
    days = used.column("dt")
    written = [
        _written(
            used.filter(pc.equal(days, day)).drop_columns(["dt"]),
            attempts / f"{attempt(shard)}-{day}.parquet",
            day.as_py(),
        )
        for day in days.unique()
    ]
    return pa.Table.from_batches([as_batch(written)])


def _written(rows: pa.Table, file: Path, day: date) -> Written:
    problem = write(rows, file, _FEW_VALUES)
    return Written(file.name, day, None, rows.num_rows, problem=problem)
