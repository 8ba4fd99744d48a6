"""Which files, and which row groups of them, a task reads."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import table_of
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.tables import table_files
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import DIM_TOPIC
from usage_pipeline.tables.table_files import TableFile, Written, read_by_workers, shared_out

MB = 1 << 20


def files_of(*sizes: int) -> list[TableFile]:
    folder = Folder.parse("/tables")
    return [
        TableFile(folder, DIM_TOPIC, Written(str(number), (), 1, size))
        for number, size in enumerate(sizes)
    ]


def stored(folder: Path, rows: int, size: int) -> TableFile:
    """A file of topics in row groups of two, which says that it has so many bytes."""
    (folder / DIM_TOPIC.name).mkdir()
    names = [f"t{number}" for number in range(rows)]
    parquet.write_table(
        pa.table({"topic": names}), folder / DIM_TOPIC.name / "a.parquet", row_group_size=2
    )
    return TableFile(
        Folder.parse(str(folder)), DIM_TOPIC, Written("a.parquet", ("eu",), rows, size)
    )


def test_files_are_shared_out_evenly() -> None:
    """Each is read once; large ones come first, so that no task is left with two of them."""
    files = files_of(*(size * MB for size in (90, 10, 80, 20, 50, 50)))
    tasks = shared_out(files, 3)
    sizes = [sum(file.written.bytes for file in task) for task in tasks]
    assert [100 * MB] * 3 == sizes
    assert {*files} == {file for task in tasks for file in task}
    assert [] == shared_out([], 8)


def test_a_large_file_is_read_by_several_tasks() -> None:
    """Its parts are of the same size; a file of less than a part is whole."""
    large, small = files_of(90 * MB, 6 * MB)
    tasks = shared_out([large, small], 4)
    parts = [file for task in tasks for file in task if file.written == large.written]
    assert [(0, 4), (1, 4), (2, 4), (3, 4)] == sorted((file.part, file.parts) for file in parts)
    assert [1, 1, 1, 2] == sorted(map(len, tasks))
    assert [[small]] == shared_out([small], 4)


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 9])
def test_parts_of_a_file_are_all_of_it(tmp_path: Path, parts: int) -> None:
    """Each row group is in one of them; of more parts than groups some have none."""
    whole = stored(tmp_path, 10, 1)
    of_parts = [
        [group.number for group in replace(whole, part=part, parts=parts).groups()]
        for part in range(parts)
    ]
    assert [0, 1, 2, 3, 4] == [number for some in of_parts for number in some]
    assert max(map(len, of_parts)) - min(map(len, of_parts)) <= 1
    assert 10 == table_of(whole, ["topic"]).num_rows


@pytest.mark.spark
def test_workers_read_each_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one file, in as many tasks as it has parts."""
    monkeypatch.setattr(table_files, "_PART_BYTES", 10)
    file = stored(tmp_path, 10, 40)

    def names(files: Sequence[TableFile]) -> Batches:
        for one in files:
            for group in one.groups():
                yield from group.batches(8, ["topic", "cluster_id"])

    rows = read_by_workers(spark, [file], names, "topic string, cluster_id string", 2)
    assert 1 < rows.rdd.getNumPartitions() <= 4
    assert [(f"t{number}", "eu") for number in range(10)] == sorted(map(tuple, rows.collect()))
