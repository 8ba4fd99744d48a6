"""The files of a path: found, and opened."""

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tests.usage_pipeline.logs import lines, write
from tests.usage_pipeline.parsed_logs import parsed
from usage_pipeline.ingest import request_logs
from usage_pipeline.ingest.paths import LogFile, RequestLogsError, Zones
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.ingest.stored_logs import identified, log_files, open_log
from usage_pipeline.runtime.filesystems import open_input

UTC = Zones()


def put(folder: Path, *names: str) -> None:
    """Writes files with their names in them."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_files_of_a_folder(tmp_path: Path) -> None:
    """All below it are in order, packed ones too, but hidden ones are left out."""
    put(tmp_path, "2/b.log", "2/b.log.1.gz", "1/a.log", "1/.a.log.swp", "_temporary/3/x.log")
    assert [
        LogFile(f"{tmp_path}/1/a.log", 1, "Europe/Berlin", 7),
        LogFile(f"{tmp_path}/2/b.log", 2, "UTC", 7),
        LogFile(f"{tmp_path}/2/b.log.1.gz", 2, "UTC", 12),
    ] == [
        replace(file, changed_at=None)
        for file in log_files(str(tmp_path), Zones.parse(["2=UTC", "Europe/Berlin"]))
    ]
    packed = [file.packed for file in log_files(str(tmp_path), UTC)]
    assert [False, False, True] == packed


def test_a_log_beside_its_own_gzip_is_read_once(tmp_path: Path) -> None:
    """As gzip leaves it until the whole is packed, and with --keep for good."""
    put(tmp_path, "2/b.log", "2/b.log.1", "2/b.log.1.gz", "2/b.log.2.gz")
    expected = [f"{tmp_path}/2/b.log", f"{tmp_path}/2/b.log.1", f"{tmp_path}/2/b.log.2.gz"]
    assert expected == [file.path for file in log_files(str(tmp_path), UTC)]
    (packed,) = log_files(f"{tmp_path}/2/*.1.gz", UTC)
    assert f"{tmp_path}/2/b.log.1.gz" == packed.path


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*/a.log", ["1/a.log", "2/a.log"]),
        ("**/a.log", ["1/a.log", "2/a.log", "2/deep/a.log"]),
        ("[!1]/**", ["2/a.log", "2/b.log", "2/deep/a.log"]),
        ("?/[ab].log", ["1/a.log", "2/a.log", "2/b.log"]),
        ("2/b.log", ["2/b.log"]),
        ("2", ["2/a.log", "2/b.log", "2/deep/a.log"]),
        ("2/", ["2/a.log", "2/b.log", "2/deep/a.log"]),
    ],
)
def test_globs(tmp_path: Path, glob: str, expected: list[str]) -> None:
    """They are as shells have them, in a file's own address with its scheme, too."""
    put(tmp_path, "1/a.log", "2/a.log", "2/b.log", "2/deep/a.log")
    pattern = r"/(?P<broker>[12])/"
    for at, root in ((str(tmp_path), tmp_path), (tmp_path.as_uri(), tmp_path.as_uri())):
        if "?" in glob and "://" in at:
            continue  # There, a question mark begins options.
        found = log_files(f"{at}/{glob}", UTC, pattern)
        assert [f"{root}/{name}" for name in expected] == [file.path for file in found]
        with open_input(found[0].path) as opened:
            assert expected[0].encode() == opened.read()


def texts(files: Iterable[LogFile]) -> list[str]:
    """What is read of them."""
    found = []
    for file in files:
        with open_log(file) as opened:
            found.append(opened.read().decode())
    return found


def test_a_log_that_is_where_it_was_is_read_without_a_look_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else 100,000 logs of a folder would list it 100,000 times."""
    put(tmp_path, "1/a.log", "1/b.log")
    files = [identified(file) for file in log_files(str(tmp_path), UTC)]
    listed: list[Path] = []
    iterdir = Path.iterdir

    def counting(folder: Path) -> Iterator[Path]:
        listed.append(folder)
        return iterdir(folder)

    monkeypatch.setattr(Path, "iterdir", counting)
    assert ["1/a.log", "1/b.log"] == texts(files)
    assert [] == listed


def test_a_log_that_is_rotated_while_files_are_listed_is_refused(tmp_path: Path) -> None:
    """What has its name now is shorter than what was listed."""
    path = tmp_path / "broker-1" / "kafka-request.log"
    path.parent.mkdir()
    path.write_bytes(b"one line and another\n")
    (file,) = log_files(str(tmp_path), UTC)
    path.write_bytes(b"a new one\n")
    with pytest.raises(RequestLogsError, match="rotated while files were listed: run it again"):
        identified(file)


def test_a_log_that_is_rotated_before_it_is_read(tmp_path: Path) -> None:
    """It is read where it is now, and more of it may have come; the new one is not."""
    put(tmp_path, "1/a.log", "1/a.log.1", "1/a.log.2")
    found = [
        identified(file)
        for name in ("a.log", "a.log.1")
        for file in log_files(f"{tmp_path}/1/{name}", UTC)
    ]
    folder = tmp_path / "1"
    for number in (2, 1):
        (folder / f"a.log.{number}").rename(folder / f"a.log.{number + 1}")
    (folder / "a.log").rename(folder / "a.log.1")
    put(tmp_path, "1/a.log")
    (folder / "a.log").write_text("another")
    with (folder / "a.log.1").open("a") as grown:
        grown.write(" and more")
    assert ["1/a.log and more", "1/a.log.1"] == texts(found)


def test_a_log_under_two_names_is_read_once(tmp_path: Path) -> None:
    """A link to the newest file, and a copy; another broker's log is another one."""
    log = write(tmp_path, 1, "2026-11-20-10", lines(20))
    (log.parent / "latest").symlink_to(log.name)
    shutil.copy(log, log.parent / "saved.log")
    other = write(tmp_path, 2, "2026-11-20-10", lines(20))
    logs = RequestLogs(str(tmp_path))
    assert [str(log), str(other)] == [file.path for file in logs.files()]
    assert {1: 20, 2: 20} == Counter(parsed(logs)[0]["broker"].to_pylist())


def test_a_log_that_grows_is_read_once_and_another_with_its_beginning_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its link is read later and is longer. Strimzi begins its logs with the same long text."""
    log = write(tmp_path, 1, "2026-11-20-10", banner := b"# a setting\n" * 100)
    (log.parent / "latest").symlink_to(log.name)
    other = write(tmp_path, 1, "2026-11-20-11", banner + lines(20))

    def growing(file: LogFile) -> LogFile:
        listed = identified(file)
        with log.open("ab") as opened:
            opened.write(lines(1))
        return listed

    monkeypatch.setattr(request_logs, "identified", growing)
    assert [str(log), str(other)] == [file.path for file in RequestLogs(str(tmp_path)).files()]


@pytest.mark.parametrize("container", ["CRI", "Docker"])
def test_a_long_line_in_pieces_is_in_one_part(tmp_path: Path, container: str) -> None:
    """A container's runtime cuts it after 16 KiB, and no part may begin between its pieces."""
    text = b""
    for whole in lines(20).splitlines(keepends=True):
        for begin in range(0, len(whole), 100):
            piece = whole[begin : begin + 100]
            if container == "CRI":
                tag = b"F" if piece.endswith(b"\n") else b"P"
                stamp = b"2026-11-20T10:00:00.000000000Z stdout %b " % tag
                text += stamp + piece.rstrip(b"\n") + b"\n"
            else:
                entry = {"log": piece.decode(), "stream": "stdout", "time": "2026-11-20T10:00:00Z"}
                text += json.dumps(entry, separators=(",", ":")).encode() + b"\n"
    write(tmp_path, 1, "0", text)
    rows, rejected = parsed(RequestLogs(str(tmp_path), split_bytes=500))
    assert 20 == rows.num_rows
    assert {"a piece of a long line, read with its last piece"} == set(
        rejected["reason"].to_pylist()
    )


def zipped(text: bytes) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr("kafka-request.log", text)
    return file.getvalue()


@pytest.mark.parametrize(
    "compress",
    [gzip.compress, bz2.compress, lzma.compress, zipped]
    + [partial(pa.compress, codec=codec, asbytes=True) for codec in ("zstd", "lz4")],
)
def test_a_compressed_log_without_the_name_of_one_is_refused(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    """Read as text, it would have no request, and nobody would notice."""
    write(tmp_path, 1, "2026-11-20-10.z", compress(lines(99)))
    with pytest.raises(RequestLogsError, match=r"-10\.z is compressed, and not named \.gz"):
        parsed(RequestLogs(str(tmp_path)))


def test_a_log_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the failure would look as if the tables could not be written."""
    put(tmp_path, "1/a.log")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    with pytest.raises(RequestLogsError, match=r"1/a\.log: this user may not read it"):
        RequestLogs(str(tmp_path)).files()


@pytest.mark.parametrize("now", ["cut", "packed", "gone", "renamed", "written anew"])
@pytest.mark.parametrize("name", ["a.log", "a.log.gz"])
def test_a_log_that_is_lost_before_it_is_read(tmp_path: Path, name: str, now: str) -> None:
    """That is an error with what to do, wherever it was: never a part of it, and no other file."""
    put(tmp_path, f"1/{name}", "1/other.log")
    path = tmp_path / "1" / name
    for at in (str(path), path.as_uri()):
        path.write_text("a long one" * 200)
        found = [identified(file) for file in log_files(at, UTC)]
        assert ["a long one" * 200] == texts(found)
        if now == "renamed" and at == str(path):
            continue
        if now in ("cut", "written anew"):
            path.write_text("a long one" * 150 if now == "cut" else "another one" * 300)
        elif now == "renamed":
            path.rename(path.with_name("b.log"))
        else:
            path.unlink()
            path.with_name("b.gz").write_bytes(gzip.compress(b"a long one" * 200))
        with pytest.raises(OSError, match=r"run again|No such file|does not exist"):
            texts(found)


def test_a_files_name_is_what_it_is(tmp_path: Path) -> None:
    """In a store too a blank, a percent sign and a question mark are no more than that."""
    for name in ("a b.log", "a%20b.log", "a?b.log", "a#b@c:d.log"):
        folder = tmp_path / "broker-7"
        put(folder, name)
        (found,) = log_files(tmp_path.as_uri(), UTC)
        assert f"{folder.as_uri()}/{name}" == found.path
        with open_input(found.path, found.options) as opened:
            assert name.encode() == opened.read()
        (folder / name).unlink()


def test_a_pattern_of_the_callers(tmp_path: Path) -> None:
    """It finds the broker where the usual ones don't."""
    put(tmp_path, "host-a17.log")
    found = log_files(str(tmp_path), UTC, r"host-a(?P<broker>\d+)")
    assert [17] == [file.broker for file in found]


@pytest.mark.parametrize("path", ["", "nothing", "*.txt", "nothing/*.log"])
def test_no_files(tmp_path: Path, path: str) -> None:
    """That there are none is said, with the path."""
    put(tmp_path, ".hidden-broker-1")
    with pytest.raises(RequestLogsError, match="there are no files"):
        log_files(f"{tmp_path}/{path}", UTC)


@pytest.mark.parametrize(
    ("pattern", "message"), [("(", "the broker pattern '\\('"), ("(.*)", "has no group")]
)
def test_a_pattern_that_is_none(tmp_path: Path, pattern: str, message: str) -> None:
    """It is refused before anything is read."""
    put(tmp_path, "broker-1")
    with pytest.raises(RequestLogsError, match=message):
        log_files(str(tmp_path), UTC, pattern)


@pytest.mark.parametrize("path", ["s4://bucket/x", "s4://bucket/*.log"])
def test_an_unknown_store(path: str) -> None:
    """It is refused, with the path."""
    with pytest.raises(RequestLogsError, match="s4://bucket"):
        log_files(path, UTC)
