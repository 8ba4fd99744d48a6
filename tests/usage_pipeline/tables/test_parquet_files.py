"""Parquet files of tables, as tasks write them."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tests.usage_pipeline.build import files_of, frame_of, table_of
from usage_pipeline.tables import parquet_files
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import (
    NotWrittenError,
    Target,
    Writer,
    collected,
    merged,
    written_by_tasks,
)
from usage_pipeline.tables.schemas import DIM_TOPIC, SILVER_VOLUME, UNNAMED, Table
from usage_pipeline.tables.table_files import TableFile, Written


def target(folder: Path, table: Table = SILVER_VOLUME, cluster: str = UNNAMED) -> Target:
    return Target(Folder.parse(str(folder)), table, "run", cluster)


def volumes(*days: int) -> pa.Table:
    """Returns a reading of each of some days of November, in any order."""
    return pa.Table.from_pylist(
        [
            {"dt": date(2026, 11, day), "broker": number, "log_dir": "/d", "offline": False}
            for number, day in enumerate(days)
        ],
        arrow_schema(SILVER_VOLUME.columns),
    )


def brokers(folder: Path, written: list[Written], table: Table = SILVER_VOLUME) -> list[list[int]]:
    """Returns the brokers of each file's rows."""
    files = (TableFile(Folder.parse(str(folder)), table, file) for file in written)
    return [table_of(file, ["broker"])["broker"].to_pylist() for file in files]


def test_each_partition_has_a_file(tmp_path: Path) -> None:
    """Rows are in the order in which they came, without what the table is partitioned by."""
    writer = target(tmp_path).writer(3)
    writer.write(volumes(20, 19, 20))
    writer.write(volumes(21).to_batches()[0])
    writer.write(volumes())
    written = writer.close()["silver_volume"]
    assert writer.problem is None
    assert [
        ("default", "2026-11-20"),
        ("default", "2026-11-19"),
        ("default", "2026-11-21"),
    ] == [one.values for one in written]
    assert [2, 1, 1] == [one.rows for one in written]
    assert [[0, 2], [1], [0]] == brokers(tmp_path, written)
    path = tmp_path / "silver_volume" / written[0].path
    assert "cluster_id=default/dt=2026-11-20/part-00003-0-run.parquet" == written[0].path
    assert path.stat().st_size == written[0].bytes
    assert arrow_schema(SILVER_VOLUME.in_files).equals(parquet.read_schema(path))


def test_what_is_gathered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of it is more groups of the same file, and each row is there once."""
    monkeypatch.setattr(parquet_files, "_GROUP_BYTES", 1)
    writer = target(tmp_path).writer(0)
    for _ in range(3):
        writer.write(volumes(20, 20))
    (written,) = writer.close()["silver_volume"]
    assert 3 == parquet.read_metadata(tmp_path / "silver_volume" / written.path).num_row_groups
    assert [[0, 1] * 3] == brokers(tmp_path, [written])


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Lets no file have more bytes than that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_at_the_end(tmp_path: Path) -> None:
    """Spark would try a task that raises three times more; what follows is not written either."""
    writer = target(tmp_path).writer(0)
    with full_disk(300):
        writer.write(volumes(20))
        written = writer.close()
    assert {"silver_volume": []} == written
    assert "File too large" in (writer.problem or "")


def test_a_folder_that_cant_be_made_is_told(tmp_path: Path) -> None:
    """The message is not a worker's traceback."""
    (tmp_path / "silver_volume").write_text("a file")
    writer = target(tmp_path).writer(0)
    writer.write(volumes(20))
    assert {"silver_volume": []} == writer.close()
    assert "silver_volume" in (writer.problem or "")


@pytest.mark.spark
def test_a_frame_is_written_by_its_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Few rows are one file, however many tasks make them: what makes them is another stage.

    A problem of a task is raised with what to do.
    """
    rows = [{"topic": str(number), "partitions": number} for number in range(4)]
    frame = frame_of(spark, DIM_TOPIC, *rows).repartition(2)
    (written,) = written_by_tasks(frame, target(tmp_path, DIM_TOPIC))
    assert 4 == written.rows
    (tmp_path / "x").write_text("a file")
    with pytest.raises(NotWrittenError, match="Check the free space and the permissions"):
        written_by_tasks(frame, target(tmp_path / "x", DIM_TOPIC))


@pytest.mark.spark
def test_small_files_of_a_partition_become_one(spark: SparkSession, tmp_path: Path) -> None:
    """Those of other partitions, clusters and tables stay; what was brought together goes."""
    targets = [target(tmp_path, cluster=cluster) for cluster in ("eu", "us")]
    files: dict[str, list[Written]] = {"eu": [], "us": []}
    for number in range(7):
        for one in targets:
            writer = one.writer(number)
            writer.write(volumes(20, 21) if number else volumes(20, 22))
            files[one.cluster] += writer.close()["silver_volume"]
    topics = [one.written for one in files_of(tmp_path, DIM_TOPIC, [{"topic": "a"}])]
    tables = [
        *((one, files[one.cluster]) for one in targets),
        (target(tmp_path, DIM_TOPIC), topics),
    ]
    *of_clusters, of_topics = merged(spark, tables)
    assert topics == of_topics
    by_day = {one.values: one for one in (*of_clusters[0], *of_clusters[1])}
    rows = {"2026-11-20": 7, "2026-11-21": 6, "2026-11-22": 1}
    assert {(cluster, day): count for cluster in files for day, count in rows.items()} == {
        values: one.rows for values, one in by_day.items()
    }
    assert [{"eu"}, {"us"}] == [{one.cluster for one in some} for some in of_clusters]
    there = {
        str(path.relative_to(tmp_path / "silver_volume"))
        for path in (tmp_path / "silver_volume").rglob("*.parquet")
    }
    assert there == {one.path for one in by_day.values()}
    assert [0] * 7 == brokers(tmp_path, [by_day["us", "2026-11-20"]])[0]


def test_files_are_brought_together_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one begins where there is no room; a large one is left alone."""
    monkeypatch.setattr(parquet_files, "_SMALL_BYTES", 64)
    monkeypatch.setattr(parquet_files, "_MERGED_BYTES", 100)
    files = [
        Written(str(number), ("a",), 1, size) for number, size in enumerate((40, 60, 1, 64, 63))
    ]
    assert [[40, 60], [1, 63]] == [
        [one.bytes for one in some] for some in parquet_files._bins(files)
    ]


def test_a_writer_without_rows_writes_nothing(tmp_path: Path) -> None:
    """No file, and no folder."""
    writer = Writer(target(tmp_path), "part.parquet")
    assert {"silver_volume": []} == writer.close()
    assert [] == list(tmp_path.iterdir())


def test_nothing_is_collected_of_a_task_that_failed() -> None:
    """The first problem is raised."""

    class Frame:
        def collect(self) -> list[dict[str, bytes]]:
            return [{"report": b'{"files":{},"problem":"No space left"}'}]

    with pytest.raises(NotWrittenError, match="No space left"):
        collected(Frame())  # type: ignore[arg-type]  # as much of a frame as is needed
