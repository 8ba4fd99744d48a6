"""Cached folders appear complete or not at all."""

import asyncio
from pathlib import Path

import pytest

from kafka_lab.cache import filling
from sidecar.errors import ClusterError


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_a_filled_folder_is_there_for_the_next(tmp_path: Path) -> None:
    """The second time there is nothing to do."""
    target = tmp_path / "deep" / "target"
    async with filling(target) as folder:
        assert folder is not None
        assert not target.exists()
        (folder / "file").write_text("x")
    assert "x" == (target / "file").read_text()
    async with filling(target) as folder:
        assert folder is None
    assert "x" == (target / "file").read_text()


async def test_a_failed_fill_leaves_nothing(tmp_path: Path) -> None:
    """The next one starts afresh."""

    async def fail_half_way() -> None:
        async with filling(tmp_path / "target") as folder:
            assert folder is not None
            (folder / "half").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_half_way()
    assert {"lock"} == _names(tmp_path)


async def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """A half-filled folder without its process is swept by the next that fills."""
    (tmp_path / "partial-dead").mkdir()
    async with filling(tmp_path / "target"):
        pass
    assert {"lock", "target"} == _names(tmp_path)


async def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    """One of two simultaneous callers fills the folder, and the other finds it filled."""
    seen: list[bool] = []
    inside = 0

    async def fill() -> None:
        nonlocal inside
        async with filling(tmp_path / "target") as folder:
            inside += 1
            assert 1 == inside
            await asyncio.sleep(0)
            seen.append(folder is not None)
            inside -= 1

    await asyncio.gather(fill(), fill())
    assert [True, False] == seen


async def test_a_cache_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    """The error is one line, not a traceback."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ClusterError, match="can't be written"):
        async with filling(tmp_path / "file" / "target"):
            pass
