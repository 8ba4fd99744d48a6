"""The folder with the tables, on a disk."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from usage_pipeline.runtime.addresses import SecretInPathError
from usage_pipeline.tables.folder import Folder, FolderError


def test_of_several_who_make_a_file_at_once_one_succeeds(tmp_path: Path) -> None:
    """It has the text of that one, and is never seen in part."""
    folder = Folder.parse(str(tmp_path / "tables"))
    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            path = f"a/{number}"
            made = list(
                threads.map(
                    lambda each, path=path: folder.create(path, b"%d" % each * 999), range(8)
                )
            )
            assert 1 == made.count(True)
            assert b"%d" % made.index(True) * 999 == folder.read(path)


def test_small_files_are_replaced_and_removed(tmp_path: Path) -> None:
    """Nothing is there before, nothing after, and a reader makes no folder."""
    folder = Folder.parse(f"file:{tmp_path}/tables")
    assert (None, [], {}) == (folder.read("a"), folder.names(), folder.sizes("a"))
    folder.remove("a")
    assert not folder.here.exists()  # type: ignore[union-attr]  # it is on a disk
    folder.replace("b/a", b"one")
    folder.replace("b/a", b"longer")
    assert (b"longer", ["b"], ["a"]) == (folder.read("b/a"), folder.names(), folder.names("b"))
    assert {"b/a": 6} == folder.sizes("b")
    folder.remove("b/a")
    assert folder.read("b/a") is None


def test_what_a_killed_process_left_of_a_file_is_no_name(tmp_path: Path) -> None:
    """It was killed before it gave the file its name; the file is then written all the same."""
    folder = Folder.parse(str(tmp_path))
    (tmp_path / "a#1").write_bytes(b"tor")
    assert [] == folder.names()
    folder.replace("a", b"torn")
    assert (b"torn", ["a"]) == (folder.read("a"), folder.names())


def test_workers_get_it_with_their_task(tmp_path: Path) -> None:
    """It goes through a pickle after it was used, and files are written and read there."""
    folder = Folder.parse(str(tmp_path))
    folder.replace("used", b"")
    there = pickle.loads(pickle.dumps(folder))
    assert there == folder
    # A connection may hold credentials.
    assert {"address"} == set(vars(there)) < set(vars(folder))
    with there.open_output("x/dt=1/a.parquet") as output:
        output.write(b"rows")
    assert b"rows" == there.read("x/dt=1/a.parquet")


def test_what_can_have_no_tables_is_refused(tmp_path: Path) -> None:
    """The message says what to do, and has no secret."""
    with pytest.raises(FolderError, match="can't be in HDFS; use --out"):
        Folder.parse("hdfs://name-node/tables")
    with pytest.raises(SecretInPathError) as refused:
        Folder.parse("s3://key:hidden@tables/x")
    assert "hidden" not in str(refused.value)
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"is not writable .*use another folder for --out"):
        Folder.parse(str(tmp_path / "file")).create("a", b"")


def test_s3a_is_s3() -> None:
    """Arrow, deltalake and people see one name."""
    assert "s3://tables/x/silver_request" == Folder.parse("s3a://tables/x/").uri("silver_request")
