"""Which logs a stream follows."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sidecar.pipeline.streaming.source_offsets import (
    Followed,
    Follower,
    LostLinesError,
    Offset,
    advanced,
)
from tests.pipeline.growing_logs import GrowingLog, line, lines, pack


def follower(folder: Path) -> Follower:
    def files() -> list[tuple[Path, int]]:
        found = (path for path in folder.rglob("*") if path.is_file())
        return [(path, int(path.parent.name.removeprefix("broker-"))) for path in found]

    return Follower(files, lambda _broker: ZoneInfo("UTC"), sleep=lambda _seconds: None)


def all_read(offset: Offset, files: list[Followed]) -> Offset:
    return advanced(offset, files, {file.key: file.end for file in files})


def test_a_log_is_the_same_one_however_it_is_rotated(tmp_path: Path) -> None:
    """Renamed, then packed, it retains its key, its name in the tables and its place."""
    log = GrowingLog(tmp_path, 3, lines(5))
    (first,) = follower(tmp_path).look({})
    offset = all_read({}, [first])
    renamed = log.rotate("1")
    log.write(lines(2, first=5))
    pack(renamed)
    files = {file.path.name: file for file in follower(tmp_path).look(offset)}
    assert {"kafka-request.log", "kafka-request.log.1.gz"} == files.keys()
    packed = files["kafka-request.log.1.gz"]
    assert (first.key, first.name) == (packed.key, packed.name)
    assert len(lines(5)) == packed.at == packed.end
    assert 0 == files["kafka-request.log"].at


def test_what_was_written_before_it_was_renamed_is_left_to_read(tmp_path: Path) -> None:
    """The rest is found under the new name."""
    log = GrowingLog(tmp_path, 3, lines(1))
    offset = all_read({}, follower(tmp_path).look({}))
    log.write(lines(9, first=1))
    log.rotate("1")
    (found,) = follower(tmp_path).look(offset)
    assert (len(lines(1)), len(lines(10))) == (found.at, found.end)


def test_a_copy_that_was_made_to_truncate_is_not_read_again(tmp_path: Path) -> None:
    """The copy is the file that was; what comes after it is another."""
    log = GrowingLog(tmp_path, 3, lines(5))
    offset = all_read({}, follower(tmp_path).look({}))
    log.copy_and_truncate("1")
    log.write(lines(1, first=5))
    files = {file.path.name: file for file in follower(tmp_path).look(offset)}
    assert files["kafka-request.log.1"].at == files["kafka-request.log.1"].end
    assert (0, len(lines(1, first=5))) == (
        files["kafka-request.log"].at,
        files["kafka-request.log"].end,
    )


def test_a_file_beside_its_packed_copy_is_one(tmp_path: Path) -> None:
    """The plain one is read while both are there."""
    log = GrowingLog(tmp_path, 3, lines(5))
    path = log.path.with_name("kafka-request.log.1")
    path.write_bytes(lines(5))
    pack(path)
    (found,) = follower(tmp_path).look({})
    assert log.path == found.path


def test_logs_that_begin_alike_are_two_when_they_are_of_two_brokers(tmp_path: Path) -> None:
    """Logs of a test or a sample may begin alike."""
    for broker in (1, 2):
        GrowingLog(tmp_path, broker, lines(3))
    assert {1, 2} == {file.broker for file in follower(tmp_path).look({})}


def test_a_log_without_a_whole_line_is_not_there_yet(tmp_path: Path) -> None:
    """Nothing is known of it."""
    log = GrowingLog(tmp_path, 3)
    assert [] == follower(tmp_path).look({})
    log.write(b"[2026-11-20")
    assert [] == follower(tmp_path).look({})


def test_a_file_that_is_missed_is_searched_for_again(tmp_path: Path) -> None:
    """It may be renamed between being listed and being opened."""
    log = GrowingLog(tmp_path, 3, lines(5))
    offset = advanced({}, follower(tmp_path).look({}), {})
    listings = iter([[], [], [(log.path, 3)]])
    waited: list[float] = []
    patient = Follower(lambda: next(listings), lambda _broker: ZoneInfo("UTC"), sleep=waited.append)
    assert [log.path] == [file.path for file in patient.look(offset)]
    assert 2 == len(waited)


def test_lines_that_are_gone_unread_are_reported(tmp_path: Path) -> None:
    """A file that was read to its end may be deleted."""
    log = GrowingLog(tmp_path, 3, lines(5))
    files = follower(tmp_path).look({})
    half, whole = advanced({}, files, {files[0].key: 100}), all_read({}, files)
    log.path.unlink()
    assert [] == follower(tmp_path).look(whole)
    with pytest.raises(LostLinesError, match=f"{len(lines(5)) - 100} bytes of it were not read"):
        follower(tmp_path).look(half)


def test_files_that_are_gone_are_forgotten_in_time(tmp_path: Path) -> None:
    """The longest gone is forgotten first; a file that is there never is."""
    log = GrowingLog(tmp_path, 3)
    offset: Offset = {}
    for number in range(50):
        log.write(line(number, number))
        offset = all_read(offset, follower(tmp_path).look(offset))
        log.rotate("1")
    # Each poll finds two, the newest and the one before it.
    assert 32 + 2 == len(offset)
    log.path.with_name("kafka-request.log.1").write_bytes(line(20, 20))
    (again,) = follower(tmp_path).look(offset)
    assert again.at == again.end
    log.path.with_name("kafka-request.log.1").write_bytes(line(10, 10))
    (forgotten,) = follower(tmp_path).look(offset)
    assert 0 == forgotten.at


def test_nothing_new_is_the_same_offset(tmp_path: Path) -> None:
    """Spark then makes no batch of it."""
    GrowingLog(tmp_path, 3, lines(5))
    offset = all_read({}, follower(tmp_path).look({}))
    assert list(offset.items()) == list(all_read(offset, follower(tmp_path).look(offset)).items())
