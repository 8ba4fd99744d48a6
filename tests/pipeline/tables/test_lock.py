"""The lock on this machine's disk."""

import fcntl
from pathlib import Path
from unittest.mock import Mock

import pytest

from sidecar.pipeline.tables.files import Files
from sidecar.pipeline.tables.lock import LockedError, UnwritableError, locked, refuse_locked


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """One line names it, and says what is wrong."""
    there = tmp_path / "tables"
    there.write_text("")
    taken = locked(str(there), Mock(spec=Files), there, "me")
    with pytest.raises(UnwritableError, match=r"/tables: File exists; give --out another folder"):
        taken.__enter__()


def test_a_folder_in_which_nothing_was_left_is_removed(tmp_path: Path) -> None:
    """The run had made it; a folder that was there before, or has files, stays."""
    made, there, written = tmp_path / "made" / "in", tmp_path / "there", tmp_path / "written"
    there.mkdir()
    for folder in (made, there, written):
        with locked(str(folder), Mock(spec=Files), folder, "me"):
            assert "me" == (folder / "_lock").read_text()
            if folder is written:
                (folder / "dim_topic").mkdir()
    assert (False, True, True) == (made.exists(), there.exists(), written.exists())


def test_a_run_is_seen_without_taking_its_place(tmp_path: Path) -> None:
    """Nothing is written, and afterwards the lock can be taken."""
    refuse_locked("tables", tmp_path / "none")
    assert [] == list(tmp_path.iterdir())
    with (
        locked("tables", Mock(spec=Files), tmp_path, "process 7"),
        pytest.raises(LockedError, match="process 7 writes to tables: wait until it has ended"),
    ):
        refuse_locked("tables", tmp_path)
    refuse_locked("tables", tmp_path)
    with locked("tables", Mock(spec=Files), tmp_path, "process 8"):
        pass


def test_a_lock_that_was_removed_this_moment_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third run would have another: two would write."""
    flock = fcntl.flock

    def removed_first(handle: int, operation: int) -> None:
        (tmp_path / "_lock").unlink()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    taken = locked("tables", Mock(spec=Files), tmp_path, "me")
    with pytest.raises(LockedError, match="has ended this moment: run it again"):
        taken.__enter__()
