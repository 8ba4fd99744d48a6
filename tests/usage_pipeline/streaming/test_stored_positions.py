"""Where positions are between batches."""

from pathlib import Path

import pytest

from usage_pipeline.streaming.positions import State, Stretch
from usage_pipeline.streaming.stored_positions import StoredPositions
from usage_pipeline.tables.folder import Folder

STREAM = "3f2a9c01-0000-0000-0000-000000000000"


def at(offset: int) -> list[Stretch]:
    """Returns the state after a log was read up to an offset."""
    return [Stretch("/a.log", [(0, 1)], (offset, 2), offset + 10)]


def before(root: Path, batch: int, stream: str = STREAM) -> StoredPositions:
    return StoredPositions.before(Folder.parse(str(root)), stream, batch)


def test_a_batch_begins_where_the_one_before_it_has_ended(tmp_path: Path) -> None:
    """A repeated batch does so too. Unchanged positions stay, and older files are removed."""
    one = State({"log/0 3": at(10), "log/1 4": at(20)}, ["3 a", "4 b"])
    assert State() == before(tmp_path, 0).state
    tasks = [State({"log/0 3": at(10)}, ["3 a"]), State({"log/1 4": at(20)}, ["4 b"])]
    before(tmp_path, 0).store(tasks)
    for attempt in range(2):
        assert one == before(tmp_path, 1).state, attempt
        before(tmp_path, 1).store([State({"log/0 3": at(30)})])
    # In these batches no shipper said where its lines are.
    before(tmp_path, 2).store([State()])
    before(tmp_path, 3).store([])
    assert State({"log/0 3": at(30), "log/1 4": at(20)}, one.files) == before(tmp_path, 4).state
    before(tmp_path, 4).store([State({"log/1 4": at(40)})])
    assert (
        State({"log/0 3": at(30), "log/1 4": at(40)}, one.files)
        == before(tmp_path, 12_345_678_901).state
    )
    names = Folder.parse(str(tmp_path)).names("_streams")
    assert [f"{STREAM}-positions-{batch:010}.json" for batch in (1, 4)] == names


def test_a_file_that_was_never_finished_is_not_read(tmp_path: Path) -> None:
    """Batch 1 was killed while it wrote its positions; the stream starts again, and batch 2 too."""
    before(tmp_path, 0).store([State({"log/0 3": at(10)})])
    torn = tmp_path / "_streams" / f"{STREAM}-positions-{1:010}.json#1"
    torn.write_bytes(b'{"lines":{},"fi')
    before(tmp_path, 1).store([State({"log/0 3": at(20)})])
    assert State({"log/0 3": at(20)}) == before(tmp_path, 2).state


def test_the_last_files_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remembered files that a batch reads and writes are bounded."""
    monkeypatch.setattr("usage_pipeline.streaming.positions._FILES", 3)
    before(tmp_path, 0).store([State({}, ["a", "b"])])
    before(tmp_path, 1).store([State({}, ["c"]), State({}, ["d"])])
    assert ["b", "c", "d"] == before(tmp_path, 2).state.files


def test_another_streams_positions_are_none_of_its_own(tmp_path: Path) -> None:
    """Streams with other tables may share a folder."""
    before(tmp_path, 0).store([State({"log/0 3": at(10)})])
    assert State() == before(tmp_path, 1, stream="ffffcafe").state
