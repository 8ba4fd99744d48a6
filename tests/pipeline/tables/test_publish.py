"""New tables in place of the last good ones."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from sidecar.pipeline.tables.publish import Output, discard, publish, recover
from sidecar.pipeline.tables.schemas import DIM_TOPIC, GOLD_USAGE_1S, SILVER_REQUEST, Table
from tests.pipeline.local_files import LocalFiles

BEFORE = {
    "silver_request/dt=2026-11-19/hour=1/a": "kept",
    "silver_request/dt=2026-11-20/hour=1/a": "old",
    "silver_request/dt=2026-11-20/hour=2/a": "old",
    "dim_topic/a": "old",
    "gold_usage_1s/dt=2026-11-20/a": "old",
}
STAGED = {
    "silver_request/dt=2026-11-20/hour=1/b": "new",
    "silver_request/dt=2026-11-20/hour=1/c": "new",
    "dim_topic/b": "new",
    "gold_usage_1s/dt=2026-11-20/b": "new",
    "gold_usage_1s/dt=2026-11-21/b": "new",
}
AFTER = {"silver_request/dt=2026-11-19/hour=1/a": "kept", **STAGED}
DAYS = (date(2026, 11, 20), date(2026, 11, 21))
WRITTEN: list[tuple[Table, Sequence[date]]] = [
    (SILVER_REQUEST, DAYS),
    (DIM_TOPIC, ()),
    (GOLD_USAGE_1S, DAYS),
]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def found(root: Path) -> dict[str, str]:
    return {
        each.relative_to(root).as_posix(): each.read_text()
        for each in root.rglob("*")
        if each.is_file()
    }


def run(root: Path, files: LocalFiles) -> Output:
    """Makes a folder with last tables, and new ones beside them."""
    write(root, BEFORE)
    write(root / "_staging", STAGED)
    return Output(files, str(root))


def test_days_are_replaced_whole_and_others_are_kept(tmp_path: Path) -> None:
    """Hours that the new day hasn't are removed; nothing of the run is left beside the tables."""
    output = run(tmp_path, LocalFiles())
    publish(output, WRITTEN)
    assert AFTER == found(tmp_path)


@pytest.mark.parametrize("by_copy", [False, True])
def test_a_run_killed_at_any_step_leaves_all_or_nothing(tmp_path: Path, by_copy: bool) -> None:
    """After the next run's recovery the tables are the old ones or the new ones, never a mix."""
    outcomes = []
    for steps in range(200):
        root = tmp_path / str(steps)
        files = LocalFiles(by_copy)
        output = run(root, files)
        with files.killed_after(steps) as died:
            publish(output, WRITTEN)
        recover(output)
        assert found(root) in (BEFORE, AFTER), steps
        outcomes.append(found(root) == AFTER)
        if not died:
            break
    else:
        pytest.fail("it never ended by itself")
    assert [False, True] == sorted(set(outcomes))
    assert sorted(outcomes) == outcomes


@pytest.mark.parametrize("by_copy", [False, True])
@pytest.mark.slow
def test_a_recovery_that_is_killed_is_done_again(tmp_path: Path, by_copy: bool) -> None:
    """Each step can be done twice, and a third time."""
    kills = 0
    for first in range(4, 40, 3):
        for second in range(30):
            root = tmp_path / f"{first}-{second}"
            files = LocalFiles(by_copy)
            output = run(root, files)
            with files.killed_after(first):
                publish(output, WRITTEN)
            with files.killed_after(second) as died:
                recover(output)
            recover(output)
            assert AFTER == found(root), (first, second)
            kills += bool(died)
            if not died:
                break
    assert kills > 50


def test_a_run_that_was_killed_while_it_wrote_leaves_the_last_tables(tmp_path: Path) -> None:
    """What it had written is removed."""
    output = run(tmp_path, LocalFiles())
    assert not recover(output)
    assert BEFORE == found(tmp_path)


def test_the_days_of_a_table_are_its_folders(tmp_path: Path) -> None:
    """Those beside it count with its own; a table that isn't there has none."""
    output = run(tmp_path, LocalFiles())
    assert DAYS == output.days(GOLD_USAGE_1S, staged=True)
    assert (date(2026, 11, 19), DAYS[0]) == output.days(SILVER_REQUEST, staged=False)
    assert () == Output(LocalFiles(), str(tmp_path / "none")).days(DIM_TOPIC, staged=False)


def test_what_is_refused_is_removed(tmp_path: Path) -> None:
    """Once tables are being replaced, the next run continues instead, and loses nothing."""
    output = run(tmp_path / "refused", LocalFiles())
    discard(output)
    assert BEFORE == found(tmp_path / "refused")
    files = LocalFiles()
    output = run(tmp_path / "begun", files)
    with files.killed_after(4):
        publish(output, WRITTEN)
    discard(output)
    recover(output)
    assert AFTER == found(tmp_path / "begun")
