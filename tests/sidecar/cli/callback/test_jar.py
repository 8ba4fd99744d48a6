"""The quota callback's jar is found, reports its version and is copied whole."""

import errno
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli import group
from sidecar.cli.callback.jar import NAME, callback_jar, copy_jar, jar_version
from sidecar.errors import CallbackError

POM = "META-INF/maven/throttlesidecar/throttle-sidecar-quota-callback/pom.properties"


def jar(path: Path, properties: str = "artifactId=a\nversion=1.2.3\n") -> Path:
    """A jar as Maven writes it, with nothing but its version."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(POM, properties)
    return path


def test_the_jar_in_the_package_is_found_before_the_checkouts(tmp_path: Path) -> None:
    """An installed wheel has it beside its modules, a checkout where Maven built it."""
    packed, built = tmp_path / "packed.jar", tmp_path / "built.jar"
    built.touch()
    assert built == callback_jar(places=(packed, built))
    packed.touch()
    assert packed == callback_jar(places=(packed, built))


def test_a_jar_that_was_named_is_taken(tmp_path: Path) -> None:
    """If it isn't there, no other jar is taken instead."""
    there = tmp_path / "there.jar"
    there.touch()
    assert there == callback_jar(there)
    with pytest.raises(CallbackError, match=r"jar is not there: .*/other\.jar"):
        callback_jar(tmp_path / "other.jar", (there,))


def test_without_a_jar_it_says_where_there_is_one(tmp_path: Path) -> None:
    """An install from a checkout in which nobody has built it has none."""
    reported = r"without the quota callback's jar.*run make jar and install again"
    with pytest.raises(CallbackError, match=reported):
        callback_jar(places=(tmp_path / NAME,))


def test_the_command_is_refused_in_a_line(tmp_path: Path) -> None:
    """A missing folder and a jar that was not built exit with code 2 and no traceback."""
    result = CliRunner().invoke(group, ["callback", "copy", str(tmp_path / "nowhere")])
    assert (2, "") == (result.exit_code, result.stdout)
    assert 1 == len(result.stderr.splitlines())


def test_the_version_is_mavens(tmp_path: Path) -> None:
    """The jar states its version, not whoever copies it."""
    assert "1.2.3" == jar_version(jar(tmp_path / NAME))


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive"])
def test_what_is_no_jar_is_refused(tmp_path: Path, content: bytes) -> None:
    """The message names its path."""
    path = tmp_path / NAME
    path.write_bytes(content)
    with pytest.raises(CallbackError, match=r"callback\.jar is not the quota callback's jar"):
        jar_version(path)


def test_another_jar_is_refused(tmp_path: Path) -> None:
    """It lacks our pom, or its pom has no version."""
    with zipfile.ZipFile(tmp_path / "other.jar", "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    with pytest.raises(CallbackError, match="is not the quota callback's jar"):
        jar_version(tmp_path / "other.jar")
    with pytest.raises(CallbackError, match="does not state its version"):
        jar_version(jar(tmp_path / NAME, "artifactId=a\n"))


@pytest.fixture
def careful() -> Iterator[None]:
    """A umask under which files can be read by their owner alone."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careful")
def test_a_copy_replaces_an_older_one_and_others_can_read_it(tmp_path: Path) -> None:
    """The broker is another user. A reader of the old file goes on; no other file is left."""
    source = jar(tmp_path / "source.jar")
    libs = tmp_path / "libs"
    libs.mkdir()
    (libs / NAME).write_bytes(b"old")
    with (libs / NAME).open("rb") as opened:
        assert libs / NAME == copy_jar(source, libs)
        assert b"old" == opened.read()
    assert source.read_bytes() == (libs / NAME).read_bytes()
    assert 0o644 == stat.S_IMODE((libs / NAME).stat().st_mode)
    assert [NAME] == [file.name for file in libs.iterdir()]


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Most likely its name is wrong."""
    with pytest.raises(CallbackError, match=r"libs/throttle.*\.jar: No such file or directory"):
        copy_jar(jar(tmp_path / NAME), tmp_path / "libs")


def test_a_full_disk_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of a jar is left either."""

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    libs = tmp_path / "libs"
    libs.mkdir()
    (libs / NAME).write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CallbackError, match="No space left on device"):
        copy_jar(jar(tmp_path / NAME), libs)
    assert b"old" == (libs / NAME).read_bytes()
    assert [NAME] == [file.name for file in libs.iterdir()]
