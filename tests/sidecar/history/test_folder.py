"""A history's folder: whole lines, packed hours, a bound, and failures that last no longer."""

import errno
import gzip
import os
from pathlib import Path

import pytest

from sidecar.history.folder import Folder

HOUR_S = 3600.0
EIGHT_S = 1_767_600_000.0
"""2026-01-05T08:00:00Z."""
EIGHT = "volumes-k-20260105T08.jsonl"
NINE = "volumes-k-20260105T09.jsonl"


def folder(path: Path, max_bytes: int = 1 << 20, origin: str = "k") -> Folder:
    return Folder(path, origin, max_bytes)


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


class TestAppend:
    def test_after_a_torn_line_the_next_one_begins_anew(self, tmp_path: Path) -> None:
        """What a crash has torn costs itself alone."""
        (tmp_path / EIGHT).write_bytes(b'a\n{"time":"2026')
        folder(tmp_path).append(b"b\n", EIGHT_S)
        assert b'a\n{"time":"2026\nb\n' == (tmp_path / EIGHT).read_bytes()

    def test_half_a_write_is_an_error_and_the_next_line_is_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A disk fills in the middle of a line, and is freed."""
        real = os.write

        def full(file: int, data: bytes) -> int:
            if data == b"ef\n":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(file, data[:3])

        monkeypatch.setattr(os, "write", full)
        own = folder(tmp_path)
        with pytest.raises(OSError, match="No space"):
            own.append(b"bcdef\n", EIGHT_S)
        monkeypatch.setattr(os, "write", real)
        own.append(b"g\n", EIGHT_S)
        assert b"bcd\ng\n" == (tmp_path / EIGHT).read_bytes()

    def test_a_folder_that_is_gone_is_an_error_until_it_is_back(self, tmp_path: Path) -> None:
        """It is not made: where a mount is missing, its disk would be another."""
        gone = tmp_path / "gone"
        own = folder(gone)
        with pytest.raises(FileNotFoundError):
            own.append(b"a\n", EIGHT_S)
        gone.mkdir()
        own.append(b"b\n", EIGHT_S)
        assert b"b\n" == (gone / EIGHT).read_bytes()

    def test_a_name_is_one_that_every_file_system_takes(self, tmp_path: Path) -> None:
        """An origin with slashes and colons does not leave the folder."""
        folder(tmp_path, origin="../ka:f/k").append(b"a\n", EIGHT_S)
        assert ["volumes-.._ka_f_k-20260105T08.jsonl"] == names(tmp_path)


class TestPack:
    def test_an_hour_is_a_file_and_is_packed_when_it_is_over(self, tmp_path: Path) -> None:
        """The hour lasts to its last millisecond. The file of the next hour is not packed yet."""
        own = folder(tmp_path)
        for line, at_s in ((b"a\n", EIGHT_S), (b"b\n", EIGHT_S + 3599.999)):
            own.append(line, at_s)
            own.tidy(at_s)
            assert [EIGHT] == names(tmp_path)
        own.append(b"c\n", EIGHT_S + HOUR_S)
        own.tidy(EIGHT_S + HOUR_S)
        assert [f"{EIGHT}.gz", NINE] == names(tmp_path)
        assert b"a\nb\n" == unpacked(tmp_path / f"{EIGHT}.gz")
        assert b"c\n" == (tmp_path / NINE).read_bytes()

    def test_what_an_earlier_run_left_is_packed_at_the_start(self, tmp_path: Path) -> None:
        """Its half-packed file goes; other origins' and other files stay."""
        (tmp_path / EIGHT).write_bytes(b"a\n")
        (tmp_path / "volumes-k-20260105T07.jsonl.gz.tmp").write_bytes(b"half")
        others = ["volumes-k2-20260105T08.jsonl", "volumes-x-k-20260105T07.jsonl", "notes.txt"]
        for name in others:
            (tmp_path / name).write_bytes(b"other\n")
        folder(tmp_path).tidy(EIGHT_S + HOUR_S)
        assert sorted([f"{EIGHT}.gz", *others]) == names(tmp_path)

    def test_an_hour_that_comes_twice_is_stored_twice(self, tmp_path: Path) -> None:
        """The clock went back by an hour after that hour was packed."""
        own = folder(tmp_path)
        for line, at_s in ((b"a\n", EIGHT_S), (b"b\n", EIGHT_S + HOUR_S), (b"c\n", EIGHT_S)):
            own.append(line, at_s)
            own.tidy(at_s)
        own.append(b"d\n", EIGHT_S + HOUR_S)
        own.tidy(EIGHT_S + HOUR_S)
        assert b"a\nc\n" == unpacked(tmp_path / f"{EIGHT}.gz")
        assert b"d\n" == (tmp_path / NINE).read_bytes()
        assert b"b\n" == unpacked(tmp_path / f"{NINE}.gz")

    def test_a_stop_ends_packing(self, tmp_path: Path) -> None:
        """The hour is still there, and nothing half-made beside it."""
        (tmp_path / EIGHT).write_bytes(b"a\n")
        own = folder(tmp_path)
        own.stop()
        own.tidy(EIGHT_S + HOUR_S)
        assert [EIGHT] == names(tmp_path)

    def test_a_stop_removes_a_file_that_is_half_packed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It comes after the first of three chunks: half an hour must not take its place."""
        lines = b"abc\n" * 150_000
        (tmp_path / EIGHT).write_bytes(lines)
        own = folder(tmp_path)
        real = gzip.GzipFile.write

        def write(file: gzip.GzipFile, data: bytes) -> int:
            own.stop()
            return real(file, data)

        monkeypatch.setattr(gzip.GzipFile, "write", write)
        own.tidy(EIGHT_S + HOUR_S)
        assert [EIGHT] == names(tmp_path)
        assert lines == (tmp_path / EIGHT).read_bytes()

    def test_a_full_disk_loses_no_hour(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is packed at the next try."""
        (tmp_path / EIGHT).write_bytes(b"a\n")

        def full(file: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        own = folder(tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                own.tidy(EIGHT_S + HOUR_S)
        assert [EIGHT] == names(tmp_path)
        own.tidy(EIGHT_S + HOUR_S)
        assert [f"{EIGHT}.gz"] == names(tmp_path)


class TestBound:
    def test_the_oldest_hours_go_whoever_wrote_them(self, tmp_path: Path) -> None:
        """Three of 100 bytes with a bound of 250: the oldest goes, and is counted."""
        retained = ["volumes-k-20260105T07.jsonl.gz", "volumes-z-20260105T06.jsonl"]
        for name in ("volumes-z-20260105T05.jsonl.gz", *retained):
            (tmp_path / name).write_bytes(b"x" * 100)
        (tmp_path / "notes.txt").write_bytes(b"x" * 1000)
        own = folder(tmp_path, max_bytes=250)
        own.tidy(EIGHT_S)
        assert sorted(["notes.txt", *retained]) == names(tmp_path)
        assert (200, 1) == (own.bytes, own.removed)

    def test_it_applies_within_an_hour(self, tmp_path: Path) -> None:
        """Each line is checked, not the next hour alone; even an hour that is the only one goes."""
        own = folder(tmp_path, max_bytes=10)
        for _ in range(6):
            own.append(b"abc\n", EIGHT_S)
            own.tidy(EIGHT_S)
            assert 10 >= sum(each.stat().st_size for each in tmp_path.iterdir())
        assert 2 == own.removed

    def test_a_folder_within_its_bound_is_read_once_an_hour(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At a line a second a listing of thousands of files would be the most of the work."""
        listed: list[str] = []
        real = os.scandir

        def scandir(path: Path) -> "os._ScandirIterator[str]":
            listed.append(str(path))
            return real(str(path))

        own = folder(tmp_path)
        own.tidy(EIGHT_S)
        monkeypatch.setattr(os, "scandir", scandir)
        for second in range(100):
            own.append(b"abc\n", EIGHT_S + second)
            own.tidy(EIGHT_S + second)
        assert [] == listed
        assert 400 == own.bytes
