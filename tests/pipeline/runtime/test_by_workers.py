"""Files are shared out among tasks by their sizes."""

from pathlib import Path

from sidecar.pipeline.runtime.by_workers import shared_out


def test_files_are_shared_out_evenly(tmp_path: Path) -> None:
    """Each is read once; large ones come first, so that no task is left with two of them."""
    sizes = [90, 10, 80, 20, 50, 50]
    files = [tmp_path / f"{number}.parquet" for number in range(len(sizes))]
    for file, size in zip(files, sizes, strict=True):
        file.write_bytes(bytes(size))
    tasks = shared_out(files, 3)
    assert sorted(files) == sorted(file for task in tasks for file in task)
    assert [100, 100, 100] == [sum(file.stat().st_size for file in task) for task in tasks]


def test_there_are_no_tasks_of_nothing(tmp_path: Path) -> None:
    """There are fewer files than tasks, and none at all."""
    file = tmp_path / "one.parquet"
    file.write_bytes(b"1")
    assert [[file]] == shared_out([file], 8)
    assert [] == shared_out([], 8)
