"""Work that Spark hands out to its workers."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from usage_pipeline.runtime.by_workers import Batches, by_workers


def doubled(number: int, task: list[int]) -> Batches:
    yield pa.record_batch([pa.array([number] * len(task)), pa.array(task)], ["number", "value"])


def sent_bytes(frame: DataFrame) -> int:
    """Returns the size of the function that a worker receives with each task."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    return int(plan.functionExpr().func().command().length())


@pytest.mark.spark
def test_each_task_is_done_once_by_one_worker(spark: SparkSession) -> None:
    """A task's number says which it is."""
    found = by_workers(spark, [[7, 8], [], [9]], doubled, "number long, value long").collect()
    assert [(0, 7), (0, 8), (2, 9)] == sorted((row["number"], row["value"]) for row in found)
    assert [] == by_workers(spark, [], doubled, "number long, value long").collect()


@pytest.mark.spark
def test_tasks_are_no_part_of_what_each_task_is_sent(spark: SparkSession) -> None:
    """A year's logs are 100,000 files, 200 bytes each: 20 MB would go with each task."""
    few, many = (
        sent_bytes(by_workers(spark, [[0]] * count, doubled, "number long, value long"))
        for count in (10, 1000)
    )
    assert few == pytest.approx(many, abs=50)
