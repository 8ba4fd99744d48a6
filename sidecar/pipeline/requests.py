"""Requests as workers read them: from their files, where those lie on a disk that workers see.

Spark's own scan hands rows to Python at some 5 us each, most of what a replay would cost; a worker
that reads the columns it wants from Parquet itself needs a tenth of it. Where files are in object
storage or HDFS, Spark's scan is what there is.

Example: of 96 files on two cores, eight tasks read twelve each.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame

from sidecar.pipeline.events import TOPIC_APIS, is_mutation_line
from sidecar.pipeline.kernels.charging import flags, micros
from sidecar.pipeline.kernels.numbered import coded
from sidecar.pipeline.tables import SILVER_REQUEST

Batches = Iterator[pa.RecordBatch]

_ROWS: Final = 1 << 17
"""Of a batch: some 15 MB."""
_TASKS_PER_CORE: Final = 4
_NAMES: Final = ("user", "client_id", "api", "src_file")
"""Columns of few values, that are read as numbers of them."""
_PLAIN: Final = dict.fromkeys(_NAMES, pa.string())
_COLUMNS: Final = [
    column for column in SILVER_REQUEST.columns if column.name not in SILVER_REQUEST.partitions
]
_WHOLE: Final = tuple(column.name for column in _COLUMNS)
_SCHEMA: Final = ", ".join(f"`{column.name}` {column.type}" for column in _COLUMNS)
_US_PER_DAY: Final = 86_400_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).date()


@dataclass(frozen=True, slots=True)
class Requests:
    """Rows of SILVER_REQUEST that were charged on some days.

    Attributes:
        frame: of them.
        files: Parquet files that have them, and others too; None: workers can't read them.
        days: when they were charged.
    """

    frame: DataFrame
    files: tuple[Path, ...] | None = None
    days: frozenset[date] = frozenset()

    def mapped(
        self, columns: Sequence[str], function: Callable[[Batches], Batches], schema: str
    ) -> DataFrame:
        """What workers make of them.

        Args:
            columns: that the function needs; ``quota_ts`` among them.
            function: from batches to batches.
            schema: of what it gives.
        """
        if self.files is None:
            return self.frame.select(*columns).mapInArrow(function, schema)
        spark = self.frame.sparkSession
        tasks = shared_out(self.files, _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
        days = np.array([(day - _EPOCH) // timedelta(days=1) for day in self.days], np.int64)

        def made(batches: Batches) -> Batches:
            for batch in batches:
                for task in batch["id"].to_pylist():
                    yield from function(_read(tasks[task], columns, days))

        return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(made, schema)

    def changes(self) -> DataFrame:
        """The controllers' lines of requests about topics, whole; they are few.

        Returns:
            Of SILVER_REQUEST's columns but dt and hour.
        """
        if self.files is None:
            return self.frame.where(is_mutation_line()).select(*_WHOLE)
        return self.mapped(_WHOLE, _changes, _SCHEMA)


def _changes(batches: Batches) -> Batches:
    for batch in batches:
        names, api = coded(batch["api"])
        asked = np.array([name in TOPIC_APIS for name in names], np.bool_)[api]
        asked &= flags(batch, "is_forwarded", missing=False)
        if asked.any():
            found = batch.filter(pa.array(asked))
            columns = [found[name].cast(_PLAIN.get(name, found[name].type)) for name in _WHOLE]
            yield pa.RecordBatch.from_arrays(columns, list(_WHOLE))


def _read(files: Iterable[Path], columns: Sequence[str], days: np.ndarray) -> Batches:
    for file in files:
        with parquet.ParquetFile(file, read_dictionary=list(_NAMES)) as opened:
            for batch in opened.iter_batches(_ROWS, columns=list(columns), use_threads=False):
                asked = np.isin(micros(batch, "quota_ts") // _US_PER_DAY, days)
                yield batch if asked.all() else batch.filter(pa.array(asked))


def shared_out(files: Iterable[Path], tasks: int) -> list[list[Path]]:
    """Files of each task, of about the same size together."""
    shared: list[list[Path]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for size, file in sorted(((file.stat().st_size, file) for file in files), reverse=True):
        least = sizes.index(min(sizes))
        shared[least].append(file)
        sizes[least] += size
    return [files for files in shared if files]
