"""Distributes tasks to Spark's workers, which run them in Python with Arrow.

Example: 96 parts of logs in 20 tasks. Each worker runs one task after the other. If a worker dies,
Spark gives its task to another worker.
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
    """Run each task in a worker by ``made``; tasks and function are pickled and sent there."""
    # A broadcast is sent to each worker once, about 200 bytes for a file. As a part of the
    # function, the list would be sent with each task. A worker unpickles only its own tasks.
    pickled = spark.sparkContext.broadcast([pickle.dumps(task) for task in tasks])

    def of_tasks(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from made(number, pickle.loads(pickled.value[number]))  # noqa: S301  our own
        freeze_retained()
        pa.default_memory_pool().release_unused()

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(of_tasks, schema)
