"""The archive of the JVM's classes: which file, who writes it, and what becomes of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from usage_pipeline.runtime import class_archive
from usage_pipeline.runtime.class_archive import ClassArchive, NotKeptError


@pytest.fixture(autouse=True)
def java_and_spark(tmp_path: Path) -> None:
    """Makes a file in a JVM's place, and a folder in that of Spark's jars."""
    (tmp_path / "java").write_bytes(b"17")
    (tmp_path / "jars").mkdir()


def archive_of(folder: Path, *, cache: str = "cache", whole: bool = True) -> ClassArchive:
    return ClassArchive.of_jdk(folder / cache, folder / "java", folder / "jars", whole=whole)


def ended(code: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])


def test_the_first_whole_run_writes_and_later_ones_read(tmp_path: Path) -> None:
    """A run of one stage never writes; the folder is made."""
    assert () == archive_of(tmp_path, cache="cache/here", whole=False).options
    first = archive_of(tmp_path, cache="cache/here")
    assert first.partial is not None
    assert f"-XX:ArchiveClassesAtExit={first.partial}" == first.options[0]
    first.partial.write_bytes(b"classes")
    with ended(0) as jvm:
        first.keep(jvm)
    files = list((tmp_path / "cache" / "here").iterdir())
    assert ([first.file], b"classes") == (files, first.file.read_bytes())
    for whole in (False, True):
        later = archive_of(tmp_path, cache="cache/here", whole=whole)
        assert (None, f"-XX:SharedArchiveFile={first.file}") == (later.partial, later.options[0])


def test_another_jdk_or_spark_has_a_file_of_its_own(tmp_path: Path) -> None:
    """A JVM uses no archive that another JVM wrote."""
    files = {archive_of(tmp_path).file}
    (tmp_path / "java").write_bytes(b"21 of a longer name")
    files.add(archive_of(tmp_path).file)
    other = tmp_path / "others"
    other.mkdir()
    files.add(ClassArchive.of_jdk(tmp_path / "cache", tmp_path / "java", other, whole=False).file)
    assert 3 == len(files)


def test_what_a_jvm_that_fails_has_written_is_removed(tmp_path: Path) -> None:
    """A full disk is one reason."""
    archive = archive_of(tmp_path)
    assert archive.partial is not None
    archive.partial.write_bytes(b"half")
    with ended(1) as jvm, pytest.raises(NotKeptError, match="Java ended with exit code 1"):
        archive.keep(jvm)
    assert [] == list((tmp_path / "cache").iterdir())


def test_a_jvm_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That happens after the deadline."""
    monkeypatch.setattr(class_archive, "_DEADLINE_S", 0.1)
    archive = archive_of(tmp_path)
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeping) as jvm:
        with pytest.raises(NotKeptError, match="timed out"):
            archive.keep(jvm)
        assert 0 != jvm.wait(30.0)


def test_where_nothing_can_be_written_nothing_is_asked_for(tmp_path: Path) -> None:
    """A file is where the folder would be; the run continues without an archive."""
    (tmp_path / "file").write_bytes(b"")
    archive = archive_of(tmp_path, cache="file/cache")
    assert (None, ()) == (archive.partial, archive.options)
