"""Folders are freed by their owner's death and by nothing else."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from kafka_lab.folders import PREFIX, OwnedFolder, sweep


def _lock(path: Path) -> int:
    """Takes the folder's lock as another process would: by a descriptor of its own."""
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def test_a_folder_is_removed_with_its_contents_at_the_end(tmp_path: Path) -> None:
    """Closing removes it, and closing again is harmless."""
    with OwnedFolder(tmp_path) as folder:
        (folder.path / "inside").write_text("x")
        assert [folder.path] == list(tmp_path.iterdir())
    assert [] == list(tmp_path.iterdir())
    folder.close()


def test_a_dead_owners_folder_is_swept(tmp_path: Path) -> None:
    """The next start removes a folder that nobody has locked."""
    stale = tmp_path / f"{PREFIX}dead"
    (stale / "broker-0").mkdir(parents=True)
    with OwnedFolder(tmp_path) as folder:
        assert [folder.path] == list(tmp_path.iterdir())


def test_a_living_owners_folder_stays(tmp_path: Path) -> None:
    """Two owners side by side do not remove each other's."""
    with OwnedFolder(tmp_path) as one, OwnedFolder(tmp_path) as two:
        assert () == sweep(tmp_path)
        assert {one.path, two.path} == set(tmp_path.iterdir())


def test_only_our_folders_are_swept(tmp_path: Path) -> None:
    """Other names, files and links of our name are left alone."""
    (tmp_path / "someone-elses").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "someone-elses")
    assert () == sweep(tmp_path)
    assert 3 == len(list(tmp_path.iterdir()))


def test_another_users_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of our name that another user made is not ours to remove."""
    (tmp_path / f"{PREFIX}dead").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert () == sweep(tmp_path)


@pytest.mark.parametrize("is_over", [True, False])
def test_a_folder_that_a_sweep_takes_before_its_lock_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_over: bool
) -> None:
    """Between making and locking another start's sweep may come, or have the lock: a second try."""
    made: list[Path] = []
    locks: list[int] = []
    real = tempfile.mkdtemp

    def taken_at_first(**arguments: object) -> str:
        path = Path(real(prefix=PREFIX, dir=tmp_path))
        made.append(path)
        if len(made) == 1 and is_over:
            assert (path,) == sweep(tmp_path)
        elif len(made) == 1:
            locks.append(_lock(path))
        return str(path)

    monkeypatch.setattr(tempfile, "mkdtemp", taken_at_first)
    try:
        with OwnedFolder(tmp_path) as folder:
            assert 2 == len(made)
            assert made[1] == folder.path
            assert () == sweep(tmp_path)
    finally:
        for each in locks:
            os.close(each)


def test_a_folder_that_is_removed_while_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a folder that no longer has the name does not count."""
    real = fcntl.flock
    locked: list[int] = []

    def gone_at_first(fd: int, operation: int) -> None:
        locked.append(fd)
        if len(locked) == 1:
            next(tmp_path.iterdir()).rmdir()
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", gone_at_first)
    with OwnedFolder(tmp_path) as folder:
        assert 2 == len(locked)
        assert folder.path.is_dir()
