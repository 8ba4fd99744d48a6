"""Work that Spark hands out to its workers, which do it in Python and Arrow.

Example: 96 parts of logs in 20 tasks: each worker does one after the other, and Spark gives the
task of a worker that has died to another one.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from usage_pipeline.runtime.worker_memory import freeze_retained

Batches = Iterator[pa.RecordBatch]
_Task = TypeVar("_Task")


def by_workers(
    spark: SparkSession,
    tasks: Sequence[_Task],
    made: Callable[[int, _Task], Batches],
    schema: str,
) -> DataFrame:
    """What workers make by ``made``, each task by one of them; both are pickled and sent there."""
    # Each worker gets them once, 200 bytes or so a file; as a part of the function it would with
    # each task. It unpickles those alone that are its own.
    pickled = spark.sparkContext.broadcast([pickle.dumps(task) for task in tasks])

    def of_tasks(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from made(number, pickle.loads(pickled.value[number]))  # noqa: S301  our own
        freeze_retained()
        pa.default_memory_pool().release_unused()

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(of_tasks, schema)
