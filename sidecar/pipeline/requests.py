"""Requests as workers read them, and what is looked for in them once for several stages.

Example: who the clients are is asked by usage and by the replay, of the same two million requests.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.pipeline.by_workers import Batches, read_by_workers
from sidecar.pipeline.events import TOPIC_APIS
from sidecar.pipeline.kernels.charging import flags, micros
from sidecar.pipeline.kernels.numbered import coded
from sidecar.pipeline.known import COUNTED, KEYS, Known, counted
from sidecar.pipeline.quota_config import QUOTA_APIS
from sidecar.pipeline.tables import SILVER_REQUEST

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
_ADMINS_APIS: Final = frozenset({*TOPIC_APIS, *QUOTA_APIS})
_US_PER_DAY: Final = 86_400_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).date()


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
        days = self._numbers

        def made(files: Iterable[Path]) -> Batches:
            groups = _groups(files)
            return function(batch for group in groups for batch in group.read(columns, days))

        if self.files is None:
            return self.frame.select(*columns).mapInArrow(function, schema)
        return read_by_workers(self.frame.sparkSession, self.files, made, schema, _TASKS_PER_CORE)

    @cached_property
    def known(self) -> Known:
        """Who the clients are, and which files there are."""
        return Known.of(self.mapped((*KEYS, "quota_ts"), counted, COUNTED))

    def of_admins(self) -> DataFrame:
        """The controllers' lines about topics and quotas, whole; they are few.

        Returns:
            Of SILVER_REQUEST's columns but dt and hour.
        """
        days = self._numbers

        def made(files: Iterable[Path]) -> Batches:
            for group in _groups(files):
                yield from group.of_admins(days)

        if self.files is None:
            is_asked = sf.col("is_forwarded") & sf.col("api").isin(*_ADMINS_APIS)
            return self.frame.where(is_asked).select(*_WHOLE)
        return read_by_workers(self.frame.sparkSession, self.files, made, _SCHEMA, _TASKS_PER_CORE)

    @property
    def _numbers(self) -> np.ndarray | None:
        """The days, since 1970."""
        if self.days is None:
            return None
        return np.array([(day - _EPOCH) // timedelta(days=1) for day in self.days], np.int64)


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group of a file."""

    file: parquet.ParquetFile
    number: int

    def read(self, columns: Sequence[str], days: np.ndarray | None) -> Batches:
        for batch in self._batches(columns):
            if days is None:
                yield batch
                continue
            asked = _charged_on(batch, days)
            yield batch if asked.all() else batch.filter(pa.array(asked))

    def of_admins(self, days: np.ndarray | None) -> Batches:
        # Most groups have none, which two columns tell; a line has thirty.
        told_by = ("api", "is_forwarded", "quota_ts")
        of_batches = [_is_of_admins(batch, days) for batch in self._batches(told_by)]
        asked = np.concatenate([np.zeros(0, np.bool_), *of_batches])
        if not asked.any():
            return
        begin = 0
        for batch in self._batches(_WHOLE):
            end = begin + batch.num_rows
            found = batch.filter(pa.array(asked[begin:end]))
            columns = [found[name].cast(_PLAIN.get(name, found[name].type)) for name in _WHOLE]
            yield pa.RecordBatch.from_arrays(columns, list(_WHOLE))
            begin = end

    def _batches(self, columns: Sequence[str]) -> Batches:
        yield from self.file.iter_batches(
            _ROWS, row_groups=[self.number], columns=list(columns), use_threads=False
        )


def _groups(files: Iterable[Path]) -> Iterator[_Group]:
    for file in files:
        with parquet.ParquetFile(file, read_dictionary=list(_NAMES)) as opened:
            for number in range(opened.num_row_groups):
                yield _Group(opened, number)


def _is_of_admins(batch: pa.RecordBatch, days: np.ndarray | None) -> np.ndarray:
    names, api = coded(batch["api"])
    asked = np.array([name in _ADMINS_APIS for name in names], np.bool_)[api]
    asked &= flags(batch, "is_forwarded", missing=False)
    return asked if days is None else asked & _charged_on(batch, days)


def _charged_on(batch: pa.RecordBatch, days: np.ndarray) -> np.ndarray:
    return np.isin(micros(batch, "quota_ts") // _US_PER_DAY, days)
