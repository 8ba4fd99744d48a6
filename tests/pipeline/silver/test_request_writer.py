"""The files of silver_request, as tasks write them and the driver puts them in their places."""

import gzip
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import Row, SparkSession

from sidecar.pipeline.batch.run import Inputs, Options, Run
from sidecar.pipeline.batch.stages import STAGES, Stage
from sidecar.pipeline.ingest.log_parts import Part, in_tasks, parse_part, parts_of
from sidecar.pipeline.ingest.paths import ALL_UTC, Zones
from sidecar.pipeline.ingest.records import ROWS
from sidecar.pipeline.ingest.stored_logs import log_files
from sidecar.pipeline.silver import request_writer as silver_files
from sidecar.pipeline.silver.request_table import RequestLogs
from sidecar.pipeline.silver.request_writer import Span, write_parts
from sidecar.pipeline.tables.files import HadoopFiles
from sidecar.pipeline.tables.publish import Output
from sidecar.pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST
from sidecar.pipeline.tables.store import Store
from sidecar.pipeline.tables.task_files import NotWrittenError, Written, attempts_of, place
from tests.pipeline.small_logs import metadata
from tests.requestlog.lines import BY_HAND, REAL
from tests.requestlog.lines import line as request_line

HOUR_9 = 498_537
"""Of 2026-11-15, hours since 1970."""


ALL = Span()


def line(time: str) -> bytes:
    return metadata(f"2026-11-15 {time}").encode()


def part_of(path: Path, text: bytes) -> Part:
    """Returns a whole file."""
    path.write_bytes(text)
    (part,) = parts_of(log_files(str(path), ALL_UTC), 1 << 26)
    return part


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "broker-3.log"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The table's folder, which isn't there yet."""
    return tmp_path / "tables" / "silver_request"


def table(target: Path) -> pa.Table:
    """Returns the content of a table's folder, as other tools see it."""
    return parquet.read_table(target, partitioning="hive")


def files_of(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def made(part: Part, target: Path, span: Span = ALL) -> tuple[Written, ...]:
    """Returns what a task has written, put in its place."""
    written = write_parts([part], attempts_of(target), "part-00007-5", span)
    place(written, target)
    return written


def test_each_hour_has_a_file(log: Path, target: Path) -> None:
    """The example's rows are the parser's, with their types, in the folders that Spark makes."""
    text = b"".join(line(time) for time in ("09:59:59,999", "10:00:00,000", "10:03:00,000"))
    part = part_of(log, text)
    written = made(part, target)
    assert [(9, 1), (10, 2)] == [(file.hour, file.rows) for file in written]
    assert [date(2026, 11, 15)] * 2 == [file.day for file in written]
    day = Path("dt=2026-11-15")
    assert [
        day / "hour=10" / f"part-00007-5-0-{HOUR_9 + 1}.parquet",
        day / "hour=9" / f"part-00007-5-0-{HOUR_9}.parquet",
    ] == files_of(target)
    expected = pa.Table.from_batches(parsed.rows for parsed in parse_part(part))
    found = table(target).sort_by("src_offset")
    assert expected.equals(found.select(ROWS.names).cast(ROWS))
    (one,) = {parquet.read_schema(target / file).field("log_ts").type for file in files_of(target)}
    assert pa.timestamp("us", "UTC") == one
    assert not attempts_of(target).exists()


def test_parts_are_read_by_as_few_tasks_as_keep_all_cores_busy(log: Path) -> None:
    """Each part is read once, in order: 4 tasks a core, none above 128 MiB, a large part alone."""
    file = part_of(log, b"a line").file

    def sizes(each: Sequence[int], cores: int) -> list[list[int]]:
        tasks = in_tasks([Part(file, 0, size) for size in each], cores)
        return [[part.end for part in task] for task in tasks]

    assert [[10, 10], [10, 10], [10, 10], [10, 10]] == sizes([10] * 8, 1)
    assert [[10]] * 8 == sizes([10] * 8, 2)
    assert [[10, 10], [90], [10, 10]] == sizes([10, 10, 90, 10, 10], 1)
    large = 1 << 26
    assert [[large, large]] * 8 == sizes([large] * 16, 1)
    assert [] == sizes([], 1)


def test_tasks_of_parts_that_follow_have_one_file_of_an_hour(log: Path, target: Path) -> None:
    """The end of one part's and the start of the next's are read by later stages at once."""
    text = b"".join(line(f"10:00:0{second},000") for second in range(6))
    part = part_of(log, text)
    middle = len(text) // 2 - 10
    parts = [Part(part.file, 0, middle), Part(part.file, middle, len(text))]
    written = write_parts(parts, attempts_of(target), "a", ALL)
    assert [6] == [file.rows for file in written]


def test_hours_may_come_in_any_order(log: Path, target: Path) -> None:
    """Each row is in its own hour, once, in the lines' order."""
    times = ("10:00:00,000", "09:00:00,000", "10:00:01,000", "09:00:02,000")
    made(part_of(log, b"".join(map(line, times))), target)
    found = [
        [row["log_ts"].second for row in parquet.read_table(target / file).to_pylist()]
        for file in files_of(target)
    ]
    assert [[0, 1], [0, 2]] == found


def test_lines_that_cant_be_read_have_no_day(log: Path, target: Path) -> None:
    """They are stored beside the days, with outcome and place, for any time that is asked for."""
    bad = [line("09:00:00,000")[:90] + b"\n", line("10:00:00,000")[:-30]]
    part = part_of(log, bad[0] + line("09:00:00,000") + bad[1])
    span = Span(since=datetime(2026, 11, 16, tzinfo=UTC))
    assert [(None, None, 2)] == [
        (file.hour, file.day, file.rows) for file in made(part, target, span)
    ]
    folder = target / "dt=__HIVE_DEFAULT_PARTITION__" / "hour=__HIVE_DEFAULT_PARTITION__"
    rejected = pa.concat_tables(parquet.read_table(folder / file) for file in files_of(folder))
    expected = [row for parsed in parse_part(part) for row in parsed.rejected.to_pylist()]
    assert expected == [
        {
            **{name: row[name] for name in ("broker", "src_file", "src_offset")},
            "kind": row["api"],
            "reason": row["user"],
            "bytes": row["quota_bytes"],
        }
        for row in rejected.to_pylist()
    ]


def test_only_the_asked_times_are_written(log: Path, target: Path) -> None:
    """They are from since on, and before until."""
    text = b"".join(line(f"10:00:0{second},000") for second in range(6))
    span = Span(
        datetime(2026, 11, 15, 10, 0, 2, tzinfo=UTC), datetime(2026, 11, 15, 10, 0, 5, tzinfo=UTC)
    )
    assert [3] == [file.rows for file in made(part_of(log, text), target, span)]
    assert [2, 3, 4] == [time.as_py().second for time in table(target)["log_ts"].sort()]


def test_unknown_requests_are_counted(log: Path, target: Path) -> None:
    """These are requests whose bytes or partitions no line has; a METADATA needs none."""
    text = b"\n".join((*REAL, *BY_HAND, request_line(0, version=12)))
    written = made(part_of(log, text), target)
    rows = table(target).to_pylist()
    unknown = [row for row in rows if False in (row["bytes_known"], row["mutations_known"])]
    assert 1 <= len(unknown) < len(rows)
    assert len(unknown) == sum(file.unknown for file in written)


def test_a_part_without_rows_writes_nothing(log: Path, target: Path) -> None:
    """It lies within another part's line, in an empty log, or in times that aren't asked for."""
    part = part_of(log, line("10:00:00,000"))
    until = Span(until=datetime(2026, 11, 15, tzinfo=UTC))
    assert () == made(Part(part.file, 20, 40), target)
    assert () == made(Part(part.file, 0, 0), target)
    assert () == made(part, target, until)
    assert not target.exists()


def test_a_packed_file_is_as_a_plain_one(tmp_path: Path, target: Path) -> None:
    """Each row is in the files once, however much is gathered."""
    text = b"".join(line(f"10:{minute:02}:00,000") for minute in range(60))
    plain, packed = tmp_path / "broker-3.log", tmp_path / "broker-3.log.gz"
    made(part_of(plain, text), target)
    expected = table(target).drop(["src_file"])
    again = target.with_name("again")
    made(part_of(packed, gzip.compress(text)), again)
    assert expected.equals(table(again).drop(["src_file"]))


def test_what_is_gathered_is_bounded(
    log: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of more than that has several files of an hour, and each row once."""
    monkeypatch.setattr(silver_files, "FILE_BYTES", 1)
    text = b"".join(line(f"10:{at // 60:02}:{at % 60:02},000") for at in range(3_600)) * 11
    part = part_of(log, text)
    assert 2 <= sum(1 for _ in parse_part(part))
    written = made(part, target)
    assert 2 <= len(written) == len(files_of(target))
    assert 39_600 == sum(file.rows for file in written) == len(set(table(target)["src_offset"]))


def test_what_was_not_reported_is_never_in_the_table(log: Path, target: Path) -> None:
    """An attempt was killed and left a torn file; another was done twice and left a whole one."""
    part = part_of(log, line("10:00:00,000"))
    attempts = attempts_of(target)
    write_parts([part], attempts, "part-00000-0", Span())
    (attempts / f"part-00000-1-0-{HOUR_9}.parquet").write_bytes(b"PAR1 torn")
    written = write_parts([part], attempts, "part-00000-2", Span())
    place(written, target)
    assert [f"part-00000-2-0-{HOUR_9 + 1}.parquet"] == [
        path.name for path in files_of(target.parent)
    ]
    assert 1 == len(table(target))


def test_a_file_that_isnt_there_is_refused(log: Path, target: Path) -> None:
    """A worker may have another disk: the table isn't taken for whole."""
    written = write_parts(
        [part_of(log, line("10:00:00,000"))], target.parent / "elsewhere", "a", Span()
    )
    with pytest.raises(NotWrittenError, match=r"Do all of Spark's machines see the same folder"):
        place(written, target)


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Lets no file have more bytes than that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_reported(log: Path, target: Path) -> None:
    """The message has the folder and what to do; the torn file is not left."""
    part = part_of(log, line("10:00:00,000"))
    with full_disk(1_000):
        written = write_parts([part], attempts_of(target), "a", Span())
    with pytest.raises(NotWrittenError, match=rf"{target}: .*File too large.*room on the disk"):
        place(written, target)
    assert [] == files_of(target.parent)


def test_a_folder_that_cant_be_made_is_reported(log: Path, target: Path) -> None:
    """The message is not a worker's traceback."""
    target.parent.write_text("a file")
    written = write_parts([part_of(log, line("10:00:00,000"))], attempts_of(target), "a", Span())
    with pytest.raises(NotWrittenError, match="may this user write there"):
        place(written, target)


class OtherFiles(HadoopFiles):
    """A file system that workers can't write to as a disk."""

    def local(self, path: str) -> Path | None:
        return None


@pytest.mark.spark
def test_spark_and_tasks_write_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Rows, lines that can't be read, and the counts agree, of a plain and a packed file."""
    logs = tmp_path / "logs"
    logs.mkdir()
    text = b"\n".join((*REAL, *BY_HAND, b"torn", *BY_HAND)) + b"\n"
    (logs / "broker-3.log").write_bytes(text)
    (logs / "broker-4.log.gz").write_bytes(gzip.compress(text))
    (logs / "broker-5.log").write_bytes(b"")
    asked = RequestLogs(str(logs), Zones.of(["4=Europe/Berlin"]), split_bytes=3_000)
    since = datetime(2026, 11, 20, 10, 0, 0, 124_000, tzinfo=UTC)
    now = datetime(2026, 11, 22, tzinfo=UTC)
    found: list[tuple[list[Row], list[Row], tuple[int, int, int]]] = []
    for files in (HadoopFiles(spark), OtherFiles(spark)):
        output = Output(files, str(tmp_path / type(files).__name__))
        run = Run(spark, Store(spark, output), Inputs(asked), Options(now, since=since))
        STAGES[Stage.SILVER](run)
        rows, quarantine = (
            sorted(
                run.store.read(one).collect(), key=lambda row: (row["broker"], row["src_offset"])
            )
            for one in (SILVER_REQUEST, QUARANTINE)
        )
        counts = (run.store.rows_of(SILVER_REQUEST), run.quarantined, run.unknown)
        assert (len(rows), len(quarantine)) == counts[:2]
        found.append((rows, quarantine, counts))
    by_tasks, by_spark = found
    assert by_spark == by_tasks
    assert min(by_tasks[2]) > 0
