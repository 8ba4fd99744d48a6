"""All that a run has written, or none of it: kills at every step, and what Delta lets through."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.usage_pipeline.build import NOW, committed, files_of, rows_in
from usage_pipeline.tables import commits, delta
from usage_pipeline.tables.commits import (
    Change,
    OutdatedError,
    Pinned,
    append,
    begin,
    commit,
    pinned,
    recovered,
    upkeep,
    withdraw,
)
from usage_pipeline.tables.delta import BesideError, OtherFormatError, compact
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import NotWrittenError
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_DISK_FORECAST,
    SILVER_VOLUME,
    Column,
    Table,
)
from usage_pipeline.tables.table_files import Written

Seen = dict[str, Any]


def volumes(*days: int, available: int) -> list[dict[str, Any]]:
    return [{"dt": date(2026, 11, day), "broker": 1, "available_bytes": available} for day in days]


def written(out: Path, run: str, *days: int, available: int) -> list[Change]:
    """Writes two tables, and returns what is to be committed: the days, and all topics."""
    files = [
        one.written
        for one in files_of(out, SILVER_VOLUME, volumes(*days, available=available), run)
    ]
    topics = [one.written for one in files_of(out, DIM_TOPIC, [{"topic": run}], run)]
    return [
        Change("silver_volume", files, [f"2026-11-{day}" for day in days]),
        Change("dim_topic", topics),
    ]


def seen(out: Path) -> Seen:
    """Returns what readers see."""
    return {
        "volumes": sorted(
            (row["dt"], row["available_bytes"]) for row in rows_in(out, SILVER_VOLUME)
        ),
        "topics": [row["topic"] for row in rows_in(out, DIM_TOPIC)],
    }


def folder_of(out: Path) -> Folder:
    return Folder.parse(str(out))


BEFORE = {"volumes": [("2026-11-19", 1), ("2026-11-20", 1)], "topics": ["first"]}
AFTER = {"volumes": [("2026-11-19", 1), ("2026-11-20", 2), ("2026-11-21", 2)], "topics": ["second"]}


class KilledError(Exception):
    """The process was killed."""


@contextmanager
def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Kills it before the step after so many; the list says whether there was one."""
    left = steps
    died: list[bool] = []

    def stepping(function: Any) -> Any:
        def step(*args: Any, **named: Any) -> Any:
            nonlocal left
            if left == 0:
                raise KilledError
            left -= 1
            return function(*args, **named)

        return step

    with monkeypatch.context() as patch:
        for owner, name in (
            (Folder, "create"),
            (Folder, "replace"),
            (Folder, "remove"),
            (delta, "commit_to"),
        ):
            patch.setattr(owner, name, stepping(getattr(owner, name)))
        try:
            yield died
        except KilledError:
            died.append(True)


def first(out: Path) -> Pinned:
    """Makes the tables of BEFORE."""
    return commit(
        Pinned(folder_of(out), 0, {}), written(out, "first", 19, 20, available=1), "a", NOW
    )


def test_days_are_replaced_whole_and_others_are_kept(tmp_path: Path) -> None:
    """Tables without days are replaced whole; the manifest has the versions that readers pin."""
    before = first(tmp_path)
    assert BEFORE == seen(tmp_path)
    after = commit(before, written(tmp_path, "second", 20, 21, available=2), "b", NOW)
    assert AFTER == seen(tmp_path)
    assert after == pinned(folder_of(tmp_path)) == recovered(folder_of(tmp_path))[0]
    assert (2, {"silver_volume": 1, "dim_topic": 1}) == (after.number, after.versions)
    # Who has pinned the versions before still reads them.
    assert {"2026-11-19", "2026-11-20"} == {file.values[1] for file in before.files(SILVER_VOLUME)}
    assert [] == after.files(GOLD_DISK_FORECAST)


@pytest.mark.slow
def test_a_run_killed_at_any_step_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see the old tables or the new ones at once, and after recovery no mix of them."""
    outcomes = []
    for steps in range(20):
        out = tmp_path / str(steps)
        before = first(out)
        changes = written(out, "second", 20, 21, available=2)
        with killed_after(steps, monkeypatch) as died:
            commit(before, changes, "b", NOW)
        assert seen(out) in (BEFORE, AFTER), steps
        recovered(folder_of(out))
        assert seen(out) in (BEFORE, AFTER), steps
        outcomes.append(seen(out) == AFTER)
        if not died:
            break
    else:
        pytest.fail("it never ended by itself")
    assert sorted(outcomes) == outcomes
    assert [False, True] == sorted(set(outcomes))


@pytest.mark.slow
def test_a_recovery_that_is_killed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step can be done twice, and a third time."""
    kills = 0
    for steps in range(1, 5):
        for again in range(5):
            out = tmp_path / f"{steps}-{again}"
            before = first(out)
            changes = written(out, "second", 20, 21, available=2)
            with killed_after(steps, monkeypatch):
                commit(before, changes, "b", NOW)
            with killed_after(again, monkeypatch) as died:
                recovered(folder_of(out))
            recovered(folder_of(out))
            assert AFTER == seen(out), (steps, again)
            kills += bool(died)
    assert kills >= 5


def test_of_two_runs_that_began_with_the_same_tables_one_commits(tmp_path: Path) -> None:
    """The other changes nothing: a new day that both have written would be doubled."""
    before = first(tmp_path)
    slow = written(tmp_path, "slow", 21, available=9)
    commit(before, written(tmp_path, "second", 20, 21, available=2), "b", NOW)
    with pytest.raises(OutdatedError, match="run the command again"):
        commit(before, slow, "slow", NOW)
    assert AFTER == seen(tmp_path)


def test_a_record_whose_answer_was_lost_is_the_runs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks once more, and the store says that the file is there: it is this run's."""
    before = first(tmp_path)
    create = Folder.create

    def lost(self: Folder, path: str, content: bytes) -> bool:
        create(self, path, content)
        return create(self, path, content)

    monkeypatch.setattr(Folder, "create", lost)
    after = commit(before, written(tmp_path, "second", 20, 21, available=2), "b", NOW)
    assert 2 == after.number
    assert AFTER == seen(tmp_path)


def test_a_run_that_slept_for_days_changes_nothing(tmp_path: Path) -> None:
    """The records that would refuse it have been removed by then."""
    before = first(tmp_path)
    now = before
    for run in ("second", "third"):
        now = commit(now, written(tmp_path, run, 20, 21, available=2), run, NOW)
    upkeep(now, now.versions, timedelta(days=7))
    assert ["00000000000000000003.json"] == folder_of(tmp_path).names("_commits")
    with pytest.raises(OutdatedError):
        commit(before, written(tmp_path, "slow", 21, available=9), "slow", NOW)
    recovered(folder_of(tmp_path))
    assert {**AFTER, "topics": ["third"]} == seen(tmp_path)
    again = commit(now, written(tmp_path, "fourth", 20, available=2), "d", NOW)
    assert 4 == again.number


def test_a_commit_that_is_repeated_is_passed_over(tmp_path: Path) -> None:
    """Delta itself takes a transaction that was there already once more."""
    before = first(tmp_path)
    commit(before, written(tmp_path, "second", 20, 21, available=2), "b", NOW)
    folder = folder_of(tmp_path)
    manifest = folder.read("_manifest.json") or b""
    folder.replace("_manifest.json", manifest.replace(b'"number": 2', b'"number": 1'))
    now, was_finished = recovered(folder)
    assert was_finished
    assert {"silver_volume": 1, "dim_topic": 1} == now.versions
    assert AFTER == seen(tmp_path)


@pytest.mark.parametrize("torn", [False, True])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, torn: bool) -> None:
    """Delta commits it, and every reader fails; another machine's disk has it, or half of it."""
    before = first(tmp_path)
    changes = written(tmp_path, "second", 20, 21, available=2)
    path = tmp_path / "silver_volume" / changes[0].files[0].path
    content = path.read_bytes()
    path.unlink()
    if torn:
        path.write_bytes(content[:-1])
    with pytest.raises(NotWrittenError, match="a folder that all of Spark's machines share"):
        commit(before, changes, "b", NOW)
    assert BEFORE == seen(tmp_path)
    assert ["00000000000000000001.json"] == folder_of(tmp_path).names("_commits")


def test_a_table_without_rows_is_there(tmp_path: Path) -> None:
    """It is new, or had some before."""
    before = first(tmp_path)
    changes = [Change("dim_topic", []), Change("gold_disk_forecast", [], ["2026-11-20"])]
    after = commit(before, changes, "b", NOW)
    assert {**BEFORE, "topics": []} == seen(tmp_path)
    assert {"silver_volume", "dim_topic", "gold_disk_forecast"} == set(after.versions)
    assert [] == after.files(GOLD_DISK_FORECAST)


def batch(out: Path, number: int, day: int) -> list[Written]:
    files = files_of(out, SILVER_VOLUME, volumes(day, available=number), f"batch-{number}")
    return [file.written for file in files]


def stream_folder(out: Path) -> Folder:
    """Returns a folder that is a stream's."""
    folder = folder_of(out)
    folder.create("_streams/silver_volume", b"stream")
    return folder


def test_a_streams_batch_is_added_once(tmp_path: Path) -> None:
    """It is written again after a kill; other streams' numbers are their own."""
    folder = stream_folder(tmp_path)
    assert append(folder, SILVER_VOLUME, batch(tmp_path, 0, 20), ("stream", 0), NOW)
    assert append(folder, SILVER_VOLUME, batch(tmp_path, 1, 20), ("stream", 1), NOW)
    assert not append(folder, SILVER_VOLUME, batch(tmp_path, 7, 20), ("stream", 1), NOW)
    assert not append(folder, SILVER_VOLUME, batch(tmp_path, 7, 20), ("stream", 0), NOW)
    assert [0, 1] == sorted(row["available_bytes"] for row in rows_in(tmp_path, SILVER_VOLUME))
    assert {"silver_volume": 1} == pinned(folder).versions
    compact(folder, SILVER_VOLUME)
    (file,) = pinned(folder).files(SILVER_VOLUME)
    assert (("default", "2026-11-20"), 2) == (file.values, file.rows)
    assert not append(folder, SILVER_VOLUME, batch(tmp_path, 7, 20), ("stream", 1), NOW)


def test_of_two_who_add_the_same_batch_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked before either has committed."""
    folder = stream_folder(tmp_path)
    append(folder, SILVER_VOLUME, batch(tmp_path, 0, 20), ("stream", 0), NOW)
    inner = delta.commit_to

    def beaten(*args: Any) -> DeltaTable:
        monkeypatch.undo()
        assert append(folder, SILVER_VOLUME, batch(tmp_path, 1, 20), ("stream", 1), NOW)
        return inner(*args)

    monkeypatch.setattr(delta, "commit_to", beaten)
    with pytest.raises(BesideError):
        append(folder, SILVER_VOLUME, batch(tmp_path, 1, 20), ("stream", 1), NOW)
    assert [0, 1] == sorted(row["available_bytes"] for row in rows_in(tmp_path, SILVER_VOLUME))


def test_an_overwrite_beside_an_append_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else adds to the day after the run has looked; the run's next attempt sees it."""
    before = first(tmp_path)
    changes = written(tmp_path, "second", 20, 21, available=2)
    inner, folder = delta.commit_to, folder_of(tmp_path)

    def beaten(*args: Any) -> DeltaTable:
        monkeypatch.undo()
        assert append(folder, SILVER_VOLUME, batch(tmp_path, 7, 20), ("somebody", 0), NOW)
        return inner(*args)

    monkeypatch.setattr(delta, "commit_to", beaten)
    with pytest.raises(BesideError, match="run the command again"):
        commit(before, changes, "b", NOW)
    assert BEFORE == seen(tmp_path)
    recovered(folder)
    assert AFTER == seen(tmp_path)


def parquet_files(out: Path, table: Table) -> set[str]:
    return {
        str(path.relative_to(out / table.name))
        for path in (out / table.name).rglob("*.parquet")
        if "_delta_log" not in path.parts
    }


@pytest.mark.slow
def test_a_table_of_many_commits_is_opened_by_a_checkpoint(tmp_path: Path) -> None:
    """Else each reader would read a commit of every day of a year; the rows are the same."""
    tables = first(tmp_path)
    for number in range(25):
        changes = written(tmp_path, f"run-{number}", 20, 21, available=number)
        tables = commit(tables, changes, "a", NOW)
    last = json.loads((tmp_path / "silver_volume/_delta_log/_last_checkpoint").read_text())
    assert 19 <= last["version"]
    assert [("2026-11-19", 1), ("2026-11-20", 24), ("2026-11-21", 24)] == seen(tmp_path)["volumes"]


def test_upkeep_removes_what_is_nobodys(tmp_path: Path) -> None:
    """Replaced files and a killed run's go once they are old; those of the manifest never do."""
    before = first(tmp_path)
    after = commit(before, written(tmp_path, "second", 20, 21, available=2), "b", NOW)
    batch(tmp_path, 9, 22)
    everything = parquet_files(tmp_path, SILVER_VOLUME)
    upkeep(after, ["silver_volume"], timedelta(days=7))
    assert everything == parquet_files(tmp_path, SILVER_VOLUME)
    upkeep(after, ["silver_volume"], timedelta(0))
    assert {file.path for file in after.files(SILVER_VOLUME)} == parquet_files(
        tmp_path, SILVER_VOLUME
    )
    assert AFTER == seen(tmp_path)
    committed(tmp_path, SILVER_VOLUME, *volumes(20, available=5), run="third")
    assert [1, 2, 5] == sorted(row["available_bytes"] for row in rows_in(tmp_path, SILVER_VOLUME))
    # What is pinned stays, also where it is not the newest any more.
    upkeep(after, ["silver_volume"], timedelta(0))
    assert {file.path for file in after.files(SILVER_VOLUME)} < parquet_files(
        tmp_path, SILVER_VOLUME
    )


def test_tables_of_another_version_are_refused(tmp_path: Path) -> None:
    """The message says how to make them again: from before Delta, and of a later format."""
    old = tmp_path / "old"
    (old / "silver_request" / "dt=2026-11-20").mkdir(parents=True)
    begun = tmp_path / "begun"
    batch(begun, 1, 20)
    assert begin(Pinned(folder_of(begun), 0, {}))
    assert not begin(Pinned(folder_of(begun), 0, {}))
    # The files of a first run that was killed are no tables.
    assert Pinned(folder_of(begun), 0, {}) == recovered(folder_of(begun))[0]
    withdraw(Pinned(folder_of(begun), 0, {}))
    for look in (pinned, recovered):
        with pytest.raises(
            OtherFormatError, match=r"earlier version .*pipeline run --request-logs"
        ):
            look(folder_of(old))
    later = tmp_path / "later"
    first(later)
    folder = folder_of(later)
    manifest = folder.read("_manifest.json") or b""
    folder.replace("_manifest.json", manifest.replace(b'"format": 3', b'"format": 99'))
    with pytest.raises(OtherFormatError, match=r"format 99, .* up to 3"):
        pinned(folder)
    for damaged in (manifest[:-20], manifest.replace(b"format", b"\xff")):
        folder.replace("_manifest.json", damaged)
        with pytest.raises(OtherFormatError, match="can't be read"):
            pinned(folder)


def test_nothing_is_made_by_a_look(tmp_path: Path) -> None:
    """A folder that isn't there has no tables."""
    folder = folder_of(tmp_path / "none")
    assert (Pinned(folder, 0, {}), False) == recovered(folder)
    assert Pinned(folder, 0, {}) == pinned(folder)
    assert not (tmp_path / "none").exists()


def test_clusters_rows_are_their_own(tmp_path: Path) -> None:
    """A day, and a table without days, are replaced of one cluster; each has its transactions."""
    for cluster, available in (("eu", 1), ("us", 2)):
        committed(tmp_path, SILVER_VOLUME, *volumes(20, 21, available=available), cluster=cluster)
        committed(tmp_path, DIM_TOPIC, {"topic": cluster}, cluster=cluster)
    after = committed(tmp_path, SILVER_VOLUME, *volumes(21, available=3), run="b", cluster="eu")
    committed(tmp_path, DIM_TOPIC, {"topic": "new"}, run="b", cluster="us")
    assert [("eu", 20, 1), ("eu", 21, 3), ("us", 20, 2), ("us", 21, 2)] == sorted(
        (row["cluster_id"], int(row["dt"][-2:]), row["available_bytes"])
        for row in rows_in(tmp_path, SILVER_VOLUME)
    )
    assert ["eu", "new"] == sorted(row["topic"] for row in rows_in(tmp_path, DIM_TOPIC))
    assert ["eu", "us"] == after.clusters()
    assert after.has_written(SILVER_VOLUME, "us")
    assert not after.has_written(SILVER_VOLUME, "asia")
    assert not after.has_written(GOLD_DISK_FORECAST, "us")


def test_a_run_of_two_clusters_that_is_killed_between_them_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same record's number, in one table; readers see neither before."""
    before = first(tmp_path)
    changes = [
        Change(
            "silver_volume",
            [
                one.written
                for one in files_of(
                    tmp_path, SILVER_VOLUME, volumes(22, available=7), "two", cluster
                )
            ],
            ["2026-11-22"],
            cluster,
        )
        for cluster in ("eu", "us")
    ]
    made = delta.commit_to
    done: list[str] = []

    def killed(folder: Folder, opened: DeltaTable | None, one: Any) -> DeltaTable:
        if done:
            raise KeyboardInterrupt
        done.append(one.transaction[0])
        return made(folder, opened, one)

    with monkeypatch.context() as patch:
        patch.setattr(delta, "commit_to", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(before, changes, "two", NOW)
    assert ["throttle-sidecar/eu"] == done
    assert BEFORE == seen(tmp_path)
    assert recovered(folder_of(tmp_path))[1]
    found = sorted(
        row["cluster_id"] for row in rows_in(tmp_path, SILVER_VOLUME) if row["available_bytes"] == 7
    )
    assert ["eu", "us"] == found


def test_columns_of_a_later_version_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and streams of this version ignore them, and leave them in the rows of others."""
    later = replace(SILVER_VOLUME, columns=(*SILVER_VOLUME.columns, Column("new", "int", "New")))
    with monkeypatch.context() as patch:
        patch.setattr(commits, "tables_of", lambda _: {later.name: later})
        committed(tmp_path, later, *(row | {"new": 7} for row in volumes(19, 20, available=1)))
    committed(tmp_path, SILVER_VOLUME, *volumes(20, available=2))
    files = [one.written for one in files_of(tmp_path, SILVER_VOLUME, volumes(21, available=3))]
    assert append(folder_of(tmp_path), SILVER_VOLUME, files, ("stream", 0), NOW)
    table = DeltaTable(f"{tmp_path}/silver_volume").to_pyarrow_table().sort_by("dt").to_pylist()
    assert [(1, 7), (2, None), (3, None)] == [(row["available_bytes"], row["new"]) for row in table]
    assert [1, 2] == sorted(row["available_bytes"] for row in rows_in(tmp_path, SILVER_VOLUME))


ADDED = "total_bytes"


def earlier(table: Table) -> Table:
    """The table before one of its columns was added."""
    return replace(table, columns=tuple(each for each in table.columns if each.name != ADDED))


def test_an_added_column_is_null_in_earlier_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read, and the next commit leaves them as they are and adds the column."""
    with monkeypatch.context() as before:
        before.setattr(commits, "tables_of", lambda _: {SILVER_VOLUME.name: earlier(SILVER_VOLUME)})
        committed(tmp_path, earlier(SILVER_VOLUME), *volumes(19, 20, available=1))
    assert {None} == {row[ADDED] for row in rows_in(tmp_path, SILVER_VOLUME)}
    committed(tmp_path, SILVER_VOLUME, volumes(20, available=2)[0] | {ADDED: 9})
    found = sorted((row["dt"], row[ADDED]) for row in rows_in(tmp_path, SILVER_VOLUME))
    assert [("2026-11-19", None), ("2026-11-20", 9)] == found
    # Delta's own readers see the same.
    table = DeltaTable(f"{tmp_path}/silver_volume").to_pyarrow_table()
    assert [None, 9] == [row[ADDED] for row in table.sort_by("dt").to_pylist()]


def test_a_stream_adds_the_column_too(tmp_path: Path) -> None:
    """It appends, and merges files with and without the column."""
    folder = stream_folder(tmp_path)
    for number, table in enumerate((earlier(SILVER_VOLUME), SILVER_VOLUME)):
        rows = [row | {ADDED: 9} for row in volumes(20, available=number)]
        files = [one.written for one in files_of(tmp_path, table, rows, f"run-{number}")]
        assert append(folder, table, files, ("stream", number), NOW)
    compact(folder, SILVER_VOLUME)
    found = sorted((row["available_bytes"], row[ADDED]) for row in rows_in(tmp_path, SILVER_VOLUME))
    assert [(0, None), (1, 9)] == found
