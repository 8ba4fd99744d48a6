"""Following a log file that another process writes and rotates."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.requestlog.tail import Tail, follow
from sidecar.requestlog.tail_read import TailRead, TailSettings

_SMALL = TailSettings(read_bytes=8, longest_line=20, most_files=2, most_behind=100)


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "kafka-request.log"


def test_only_whole_lines_are_returned(path: Path) -> None:
    """The docstring's example."""
    path.write_bytes(b"a\nb")
    tail = Tail(path, from_start=True)
    assert (b"a",) == tail.read().lines
    _append(path, b"c\n")
    assert (b"bc",) == tail.read().lines
    assert (5, 2) == (tail.counts.bytes, tail.counts.lines)


def test_a_file_that_is_there_is_followed_from_its_end(path: Path) -> None:
    """What was logged before the start is not returned, nor the end of a line that was begun."""
    path.write_bytes(b"a\nb")
    tail = Tail(path)
    assert () == tail.read().lines
    _append(path, b"c\nd\n")
    assert (b"d",) == tail.read().lines


def test_the_line_after_the_end_is_whole(path: Path) -> None:
    """After a line's end nothing is skipped."""
    tail = _following(path, text=b"a\n")
    _append(path, b"b\n")
    assert (b"b",) == tail.read().lines
    assert 0 == tail.counts.dropped_bytes


def test_a_file_that_appears_is_read_from_its_beginning(path: Path) -> None:
    """The log is turned on later than the sidecar starts."""
    tail = Tail(path)
    missing = tail.read()
    assert (False, None, False) == (missing.there, missing.failure, missing.more)
    path.write_bytes(b"a\n")
    found = tail.read()
    assert ((b"a",), True) == (found.lines, found.there)
    assert found.failure is None


def test_rotation_by_rename_loses_nothing(path: Path) -> None:
    """The old file is read to its end, with a last line that has none, then the new one."""
    tail = _following(path)
    _append(path, b"a\n" * 20)
    _rotate(path, 1)
    _append(path.with_name("1"), b"b\nc")
    path.write_bytes(b"d\n")
    assert [b"a"] * 20 + [b"b", b"c", b"d"] == _all(tail)
    assert 0 == tail.counts.dropped_bytes


def test_a_rotation_while_behind_loses_nothing(path: Path) -> None:
    """Files that are rotated faster than they are read stay open, even deleted."""
    tail = _following(path, TailSettings(read_bytes=2))
    returned: list[bytes] = []
    for name in (b"a\n", b"b\n", b"c\n"):
        _append(path, name * 3)
        returned += tail.read().lines
        _rotate(path, 1)
        path.write_bytes(b"")
        returned += tail.read().lines
    path.with_name("1").unlink()
    assert [b"a"] * 3 + [b"b"] * 3 + [b"c"] * 3 == returned + _all(tail)
    assert 0 == tail.counts.dropped_files


def test_too_many_files_are_dropped_and_counted(path: Path) -> None:
    """Beyond the most files the oldest is closed; its bytes and its begun line count."""
    before = _descriptors()
    tail = _following(path, _SMALL)
    returned: list[bytes] = []
    for name in (b"aa\n", b"bb\n", b"cc\n"):
        _append(path, name * 10)
        returned += tail.read().lines
        _rotate(path, 1)
        path.write_bytes(b"")
    assert [b"aa"] * 5 + [b"bb"] * 2 + [b"cc"] * 10 == returned + _all(tail)
    assert (54, 39, 2) == (
        tail.counts.bytes,
        tail.counts.dropped_bytes,
        tail.counts.dropped_files,
    )
    assert before + 2 == _descriptors(), "the last one with lines, and the empty one"
    tail.close()


def test_the_writer_may_be_slow_to_make_the_next_file(path: Path) -> None:
    """Between rename and creation there is no file, and the old one is still read."""
    tail = _following(path)
    _rotate(path, 1)
    assert tail.read().there
    _append(path.with_name("1"), b"a\n")
    assert (b"a",) == tail.read().lines
    path.write_bytes(b"b\n")
    assert [b"b"] == _all(tail)


def test_a_renamed_file_is_read_while_the_next_one_is_empty(path: Path) -> None:
    """Logrotate's "create": the broker writes to the renamed file until it opens the next one."""
    before = _descriptors()
    tail = _following(path)
    for number in range(6):
        path.rename(path.with_name("renamed" if number == 0 else str(number)))
        path.write_bytes(b"")
        for name in (b"a\n", b"b\n"):
            _append(path.with_name("renamed"), name)
            assert [name.strip()] == _all(tail)
    _append(path, b"c\n")
    assert [b"c"] == _all(tail)
    assert before + 1 == _descriptors()
    assert 0 == tail.counts.dropped_files


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_line_that_comes_at_the_end_of_a_read_ends_no_file(
    path: Path, *, is_renamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is longer than a moment before, but it is not the next one that has bytes."""
    tail = _following(path)
    written = path
    if is_renamed:
        written = path.rename(path.with_name("1"))
        path.write_bytes(b"")
    pread = os.pread

    def append_then(*args: int) -> bytes:
        piece = pread(*args)
        _append(written, b"a\n")
        return piece

    with monkeypatch.context() as racing:
        racing.setattr(os, "pread", append_then)
        assert () == tail.read().lines
    assert [b"a"] == _all(tail)
    assert 0 == tail.counts.dropped_bytes


def test_truncation_is_read_from_the_beginning(path: Path) -> None:
    """The line that was begun has no end any more: it is dropped and counted."""
    tail = _following(path)
    _append(path, b"aaaa\nbb")
    tail.read()
    path.write_bytes(b"c\n")
    assert [b"c"] == _all(tail)
    assert 2 == tail.counts.dropped_bytes


def test_lines_of_a_megabyte_are_returned(path: Path) -> None:
    """A request of 10,000 partitions is as long; longer than the longest is dropped and counted."""
    tail = _following(path)
    big, huge = b"x" * 1_000_000, b"y" * ((1 << 22) + 1)
    _append(path, big + b"\n" + huge + b"\n" + b"z\n")
    assert [big, b"z"] == _all(tail)
    assert (1, len(huge) + 1) == (tail.counts.dropped_lines, tail.counts.dropped_bytes)


def test_one_read_takes_a_bounded_piece(path: Path) -> None:
    """The result says that there is more, and how much."""
    path.write_bytes(b"a\n" * 10)
    result = Tail(path, _SMALL, from_start=True).read()
    assert ((b"a",) * 4, True, 12) == (result.lines, result.more, result.behind)


def test_what_is_too_far_behind_is_skipped_and_counted(path: Path) -> None:
    """Of 300 bytes behind, where 100 may be, the last 50 are read, from a line's start on."""
    path.write_bytes(b"".join(b"%02d\n" % number for number in range(100)))
    tail = Tail(path, _SMALL, from_start=True)
    lines = _all(tail)
    assert [b"%02d" % number for number in range(84, 100)] == lines
    assert 300 - 3 * len(lines) == tail.counts.dropped_bytes


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_a_failure(path: Path, make: Callable[[Path], None]) -> None:
    """A directory or a named pipe is reported, never waited for, and what replaces it is read."""
    make(path)
    before = _descriptors()
    tail = Tail(path)
    result = tail.read()
    assert ("not a regular file", False) == (result.failure, result.more)
    assert before == _descriptors()
    path.rename(path.with_name("other"))
    path.write_bytes(b"a\n")
    tail.read()
    _append(path, b"b\n")
    assert (b"b",) == tail.read().lines


def test_the_old_file_is_read_while_the_new_one_can_not_be(path: Path) -> None:
    """A failure of the new file takes nothing from the old one, and does not slow it down."""
    tail = _following(path, _SMALL)
    _append(path, b"a\n" * 5)
    _rotate(path, 1)
    path.mkdir()
    results = [tail.read(), tail.read()]
    assert [((b"a",) * 4, True), ((b"a",), False)] == [(each.lines, each.more) for each in results]
    assert {"not a regular file"} == {each.failure for each in results}


def test_a_file_that_can_not_be_read_is_not_read_again_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails is reported, and read again after a while; then nothing is missing."""
    path.write_bytes(b"a\n")
    tail = Tail(path, from_start=True)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as failing:
        failing.setattr(os, "pread", fail)
        result = tail.read()
    assert ((), os.strerror(errno.EIO), False) == (result.lines, result.failure, result.more)
    assert (b"a",) == tail.read().lines


@pytest.mark.parametrize("is_open", [True, False])
def test_a_file_without_a_size_is_a_failure_and_takes_no_descriptor(
    path: Path, *, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS answers ESTALE for a while; the lines that were appended are read after it."""
    path.write_bytes(b"a\n")
    tail = Tail(path)
    if is_open:
        tail.read()
    before = _descriptors()

    def fail(*_: object) -> os.stat_result:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as failing:
        failing.setattr(os, "fstat", fail)
        results = [tail.read() for _ in range(3)]
    assert [(os.strerror(errno.ESTALE), False, 0)] * 3 == [
        (each.failure, each.more, each.behind) for each in results
    ]
    assert before == _descriptors()
    tail.read()
    _append(path, b"b\n")
    assert (b"b",) == tail.read().lines


def test_a_finished_file_is_left_when_the_next_one_has_a_line(path: Path) -> None:
    """Its last line has no end: it is returned then, and there is more at once."""
    tail = _following(path)
    _append(path, b"a\nb")
    _rotate(path, 1)
    path.write_bytes(b"")
    results = [tail.read(), tail.read()]
    assert [((b"a",), False), ((), False)] == [(each.lines, each.more) for each in results]
    _append(path, b"c\n")
    results = [tail.read(), tail.read()]
    assert [((b"b",), True), ((b"c",), False)] == [(each.lines, each.more) for each in results]


def test_descriptors_are_closed(path: Path) -> None:
    """After rotations one is open, after closing none, and reading returns nothing."""
    before = _descriptors()
    path.write_bytes(b"")
    tail = Tail(path)
    for number in range(5):
        tail.read()
        _rotate(path, number)
        path.write_bytes(b"a\n")
        _all(tail)
    assert before + 1 == _descriptors()
    tail.close()
    assert before == _descriptors()
    assert TailRead(there=False) == tail.read()


def test_closing_waits_for_no_read(path: Path) -> None:
    """A read that still runs in a thread closes its descriptor when it ends."""
    path.write_bytes(b"a\n")
    before = _descriptors()
    tail = Tail(path, from_start=True)
    reading, may_end = threading.Event(), threading.Event()
    take = tail._splitter.split_piece

    def slow(piece: bytes) -> list[bytes]:
        reading.set()
        may_end.wait(10)
        return take(piece)

    tail._splitter = type("Slow", (), {"split_piece": staticmethod(slow)})()
    thread = threading.Thread(target=tail.read)
    thread.start()
    assert reading.wait(10)
    tail.close()
    assert before + 1 == _descriptors()
    may_end.set()
    thread.join(10)
    assert before == _descriptors()


_DONE = st.one_of(
    st.sampled_from(["read", "rename", "create", "rotate"]),
    st.binary(max_size=30).map(lambda data: data.replace(b"\0", b"\n")),
)


@given(st.lists(_DONE, max_size=40))
def test_nothing_is_lost_or_doubled(done: list[str | bytes]) -> None:
    """In any order of appends, rotations and reads each file's lines are returned in order."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        tail = _following(path, TailSettings(read_bytes=7, most_files=50))
        contents, files = [b""], [path]
        returned: list[bytes] = []
        for what in done:
            if isinstance(what, bytes):
                _append(files[-1], what)
                contents[-1] += what
            elif what == "read":
                returned += tail.read().lines
            elif what in ("rename", "rotate") and files[-1] == path:
                files[-1] = path.with_name(str(len(files)))
                path.rename(files[-1])
            if what in ("create", "rotate") and files[-1] != path:
                # A file that is gone before the next read was never there.
                returned += tail.read().lines
                path.write_bytes(b"")
                files.append(path)
                contents.append(b"")
                returned += tail.read().lines
        # Only the first byte of a file shows that its writer is done with the one before.
        _append(files[-1], b"\n")
        contents[-1] += b"\n"
        returned += _all(tail)
        tail.close()
    lines = [line for content in contents[:-1] for line in _lines(content)]
    assert [*lines, *contents[-1].split(b"\n")[:-1]] == returned
    assert (0, 0) == (tail.counts.dropped_bytes, tail.counts.dropped_files)


@pytest.mark.looptime
async def test_following_waits_only_when_there_is_nothing(path: Path) -> None:
    """Reads follow each other while there is more, and come 250 ms apart when there is not."""
    _append(path, b"a\n" * 10)
    tail = Tail(path, TailSettings(read_bytes=8), from_start=True)
    loop = asyncio.get_running_loop()
    began = loop.time()
    seen = []
    async with aclosing(follow(tail, _inline)) as results:
        async for result in results:
            seen.append((loop.time() - began, len(result.lines)))
            if len(seen) == 4:
                _append(path, b"b\n")
            if len(seen) == 5:
                break
    assert [(0.0, 4), (0.0, 4), (0.0, 2), (0.25, 0), (0.5, 1)] == seen
    assert TailRead(there=False) == tail.read()


async def test_following_reads_in_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that waits does not block the loop, and a cancelled follower closes the file."""
    before = _descriptors()
    _append(path, b"a\n")
    tail = Tail(path, from_start=True)
    threads: set[int] = set()
    read = Tail.read

    def reported(self: Tail) -> TailRead:
        threads.add(threading.get_ident())
        return read(self)

    monkeypatch.setattr(Tail, "read", reported)

    async def first() -> TailRead:
        async with aclosing(follow(tail)) as results:
            return await anext(results)

    assert (b"a",) == (await first()).lines
    assert threads
    assert threading.get_ident() not in threads
    assert before == _descriptors()


async def _inline(read: Callable[[], TailRead]) -> TailRead:
    return read()


def _following(path: Path, settings: TailSettings | None = None, *, text: bytes = b"") -> Tail:
    """A tail that has reached the end of a file with this text."""
    path.write_bytes(text)
    tail = Tail(path, settings)
    assert () == tail.read().lines
    return tail


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _rotate(path: Path, number: int) -> None:
    path.rename(path.with_name(str(number)))


def _all(tail: Tail) -> list[bytes]:
    """All lines until there are no more."""
    lines: list[bytes] = []
    for _ in range(1000):
        result = tail.read()
        lines += result.lines
        if not result.more and not result.lines:
            return lines
    raise AssertionError("there is always more")


def _lines(content: bytes) -> list[bytes]:
    """The lines of a finished file, whose last line may have no end."""
    *ended, rest = content.split(b"\n")
    return [*ended, rest] if rest else ended


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
