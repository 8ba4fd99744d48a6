"""Parquet files read by Spark's workers themselves, where those lie on a disk that workers see.

Spark's own scan hands rows to Python at some 5 us each, most of what a replay would cost; a worker
that reads the columns it wants from Parquet itself needs a tenth of it. Where files are in object
storage or HDFS, Spark's scan is what there is.

Example: of 96 files on two cores, with four tasks for each core, eight tasks read twelve each.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.runtime.worker_memory import freeze_retained

Batches = Iterator[pa.RecordBatch]
_Task = TypeVar("_Task")


def by_workers(
    spark: SparkSession,
    tasks: Sequence[_Task],
    made: Callable[[int, _Task], Batches],
    schema: str,
) -> DataFrame:
    """What workers make by ``made``, each task by one of them; both are pickled and sent there."""
    # A worker gets all tasks. To unpickle 80,000 of them would take it 0.7 s, each time.
    pickled = [pickle.dumps(task) for task in tasks]

    def of_tasks(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from made(number, pickle.loads(pickled[number]))  # noqa: S301  our own
        freeze_retained()

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(of_tasks, schema)


def read_by_workers(
    spark: SparkSession,
    files: Sequence[Path],
    made: Callable[[Sequence[Path]], Batches],
    schema: str,
    tasks_per_core: int,
) -> DataFrame:
    """What workers make of files."""
    tasks = shared_out(files, tasks_per_core * spark.sparkContext.defaultParallelism)

    def of_task(_: int, some: Sequence[Path]) -> Batches:
        return made(some)

    return by_workers(spark, tasks, of_task, schema)


def shared_out(files: Iterable[Path], tasks: int) -> list[list[Path]]:
    """Files of each task, of about the same size together."""
    shared: list[list[Path]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for size, file in sorted(((file.stat().st_size, file) for file in files), reverse=True):
        least = sizes.index(min(sizes))
        shared[least].append(file)
        sizes[least] += size
    return [files for files in shared if files]
