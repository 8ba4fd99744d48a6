"""The files of silver_request and of quarantine, as the tasks that read the logs write them."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.sidecar.requestlog.lines import BY_HAND, REAL
from tests.sidecar.requestlog.lines import line as request_line
from tests.usage_pipeline.build import table_of
from tests.usage_pipeline.parsed_logs import quarantine_of, requests_of, silver_request
from tests.usage_pipeline.small_logs import metadata
from usage_pipeline.batch.run import Inputs, Options, Run
from usage_pipeline.batch.stages import STAGES, Stage
from usage_pipeline.ingest.log_parts import Part, in_tasks, parse_part, parts_of
from usage_pipeline.ingest.paths import ALL_UTC, Zones
from usage_pipeline.ingest.records import ROWS
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.ingest.stored_logs import log_files
from usage_pipeline.silver.request_writer import Span, write_parts
from usage_pipeline.tables.commits import recovered
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import Report, Target, files_of
from usage_pipeline.tables.schemas import QUARANTINE, SILVER_REQUEST, Table
from usage_pipeline.tables.store import Store
from usage_pipeline.tables.table_files import TableFile

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
def out(tmp_path: Path) -> Path:
    """The folder of the tables, which isn't there yet."""
    return tmp_path / "tables"


def made(parts: Sequence[Part], out: Path, span: Span = ALL) -> Report:
    """Returns what a task has written."""
    folder = Folder.parse(str(out))
    requests, rejected = (
        Target(folder, one, "run", "eu").writer(7) for one in (SILVER_REQUEST, QUARANTINE)
    )
    return write_parts(parts, requests, rejected, span)


def read(out: Path, report: Report, table: Table = SILVER_REQUEST) -> pa.Table:
    """Returns the rows of a table's files."""
    files = (TableFile(Folder.parse(str(out)), table, one) for one in files_of([report], table))
    columns = [name for name in table.names if name != "dt"]
    return pa.concat_tables(table_of(file, columns) for file in files)


def test_each_day_has_a_file(log: Path, out: Path) -> None:
    """The example's rows are the parser's, with their types, below their day and broker."""
    times = ("2026-11-15 23:59:59,999", "2026-11-16 00:00:00,000", "2026-11-16 00:03:00,000")
    part = part_of(log, "".join(map(metadata, times)).encode())
    report = made([part], out)
    assert [
        (
            f"cluster_id=eu/dt=2026-11-{day}/broker=3/part-00007-0-run.parquet",
            ("eu", f"2026-11-{day}", "3"),
            rows,
        )
        for day, rows in ((15, 1), (16, 2))
    ] == [(one.path, one.values, one.rows) for one in files_of([report], SILVER_REQUEST)]
    expected = pa.Table.from_batches(parsed.rows for parsed in parse_part(part))
    found = read(out, report).sort_by("src_offset")
    assert ROWS.equals(found.schema)
    assert expected.equals(found.combine_chunks())
    bounds = tuple(
        int(time.timestamp())
        for time in (expected["log_ts"][0].as_py(), expected["log_ts"][2].as_py())
    )
    assert bounds == tuple(time // 1_000_000 for time in report.times or ())


def test_parts_are_read_by_as_few_tasks_as_keep_all_cores_busy(log: Path) -> None:
    """Each part is read once, in order: 4 tasks a core, none far above 1 GiB, a large one alone."""
    file = part_of(log, b"a line").file

    def sizes(each: Sequence[int], cores: int) -> list[list[int]]:
        tasks = in_tasks([Part(file, 0, size) for size in each], cores)
        return [[part.end for part in task] for task in tasks]

    assert [[10, 10], [10, 10], [10, 10], [10, 10]] == sizes([10] * 8, 1)
    assert [[10]] * 8 == sizes([10] * 8, 2)
    assert [[10, 10], [90], [10], [10]] == sizes([10, 10, 90, 10, 10], 1)
    assert [3, 2, 3, 2] == [len(task) for task in sizes([10] * 10, 1)]
    large = 1 << 26
    assert [[large] * 4] * 4 == sizes([large] * 16, 1)
    assert [[large] * 16] * 8 == sizes([large] * 128, 1)
    assert [[large] * 16] * 4 + [[large] * 15] == sizes([large] * 79, 1)
    assert [] == sizes([], 1)
    packed = Part(replace(file, path="a.log.gz"), 0, large)
    assert 16 * large == packed.text_bytes
    assert [[packed]] * 8 == in_tasks([packed] * 8, 1)


def test_tasks_of_parts_that_follow_have_one_file_of_a_day(log: Path, out: Path) -> None:
    """The end of one part's and the start of the next's are read by later stages at once."""
    text = b"".join(line(f"10:00:0{second},000") for second in range(6))
    part = part_of(log, text)
    middle = len(text) // 2 - 10
    parts = [Part(part.file, 0, middle), Part(part.file, middle, len(text))]
    assert [6] == [one.rows for one in files_of([made(parts, out)], SILVER_REQUEST)]


def test_days_may_come_in_any_order(log: Path, out: Path) -> None:
    """Each row is in its own day, once, in the lines' order."""
    times = ("16 10:00:00,000", "15 09:00:00,000", "16 10:00:01,000", "15 09:00:02,000")
    text = "".join(metadata(f"2026-11-{time}") for time in times)
    report = made([part_of(log, text.encode())], out)
    assert [0, 1, 0, 2] == [time.second for time in read(out, report)["log_ts"].to_pylist()]
    days = [one.values[1] for one in files_of([report], SILVER_REQUEST)]
    assert ["2026-11-16", "2026-11-15"] == days


def test_lines_that_cant_be_read_are_in_a_table_of_their_own(log: Path, out: Path) -> None:
    """They are there for any requested time, and the first one is reported."""
    bad = [line("09:00:00,000")[:90] + b"\n", line("10:00:00,000")[:-30]]
    part = part_of(log, bad[0] + line("09:00:00,000") + bad[1])
    report = made([part], out, Span(since=datetime(2026, 11, 16, tzinfo=UTC)))
    assert [] == files_of([report], SILVER_REQUEST)
    expected = [row for parsed in parse_part(part) for row in parsed.rejected.to_pylist()]
    assert 2 == len(expected)
    assert expected == read(out, report, QUARANTINE).to_pylist()
    assert f"{log}: {expected[0]['reason']}" == report.example
    assert report.times is not None


def test_only_the_asked_times_are_written(log: Path, out: Path) -> None:
    """``since`` is inclusive, and ``until`` is exclusive."""
    text = b"".join(line(f"10:00:0{second},000") for second in range(6))
    span = Span(
        datetime(2026, 11, 15, 10, 0, 2, tzinfo=UTC), datetime(2026, 11, 15, 10, 0, 5, tzinfo=UTC)
    )
    report = made([part_of(log, text)], out, span)
    assert [2, 3, 4] == [time.second for time in read(out, report)["log_ts"].to_pylist()]


def test_unknown_requests_are_counted(log: Path, out: Path) -> None:
    """These are requests whose bytes or partitions no line has; a METADATA needs none."""
    text = b"\n".join((*REAL, *BY_HAND, request_line(0, version=12)))
    report = made([part_of(log, text)], out)
    rows = read(out, report).to_pylist()
    unknown = [row for row in rows if False in (row["bytes_known"], row["mutations_known"])]
    assert 1 <= len(unknown) < len(rows)
    assert len(unknown) == report.unknown


def test_a_part_without_rows_writes_nothing(log: Path, out: Path) -> None:
    """It lies within another part's line, in an empty log, or in times that aren't asked for."""
    part = part_of(log, line("10:00:00,000"))
    until = Span(until=datetime(2026, 11, 15, tzinfo=UTC))
    for parts, span in (
        ([Part(part.file, 20, 40)], ALL),
        ([Part(part.file, 0, 0)], ALL),
        ([part], until),
    ):
        assert {"silver_request": [], "quarantine": []} == made(parts, out, span).files
    assert not out.exists()


def test_a_packed_file_is_as_a_plain_one(tmp_path: Path, out: Path) -> None:
    """Each row is in the files once."""
    text = b"".join(line(f"10:{minute:02}:00,000") for minute in range(60))
    plain, packed = tmp_path / "broker-3.log", tmp_path / "broker-3.log.gz"
    expected = read(out, made([part_of(plain, text)], out)).drop(["src_file"])
    again = tmp_path / "again"
    found = read(again, made([part_of(packed, gzip.compress(text))], again)).drop(["src_file"])
    assert expected.equals(found)


def test_a_folder_that_cant_be_made_is_told(log: Path, out: Path) -> None:
    """The task ends at the first block, and raises nothing."""
    out.write_text("a file")
    report = made([part_of(log, line("10:00:00,000"))], out)
    assert {"silver_request": [], "quarantine": []} == report.files
    assert report.problem


@pytest.mark.spark
def test_the_tables_have_what_the_parser_gives(spark: SparkSession, tmp_path: Path) -> None:
    """Rows, lines that can't be read, and the counts agree, of a plain and a packed file."""
    logs = tmp_path / "logs"
    logs.mkdir()
    text = b"\n".join((*REAL, *BY_HAND, b"torn", *BY_HAND)) + b"\n"
    (logs / "broker-3.log").write_bytes(text)
    (logs / "broker-4.log.gz").write_bytes(gzip.compress(text))
    (logs / "broker-5.log").write_bytes(b"")
    asked = RequestLogs(str(logs), Zones.parse(["4=Europe/Berlin"]), split_bytes=3_000)
    since = datetime(2026, 11, 20, 10, 0, 0, 124_000, tzinfo=UTC)
    store = Store(spark, recovered(Folder.parse(str(tmp_path / "tables")))[0])
    options = Options(datetime(2026, 11, 22, tzinfo=UTC), since=since)
    run = Run(spark, store, Inputs(asked), options, asked.files())
    STAGES[Stage.SILVER](run)
    expected = silver_request(requests_of(spark, asked)).where(
        "log_ts >= '2026-11-20 10:00:00.124'"
    )
    assert sorted(map(str, expected.collect())) == sorted(
        map(str, store.read(SILVER_REQUEST).collect())
    )
    rejected = sorted(map(str, quarantine_of(spark, asked).collect()))
    assert rejected == sorted(map(str, store.read(QUARANTINE).collect()))
    assert (expected.count(), len(rejected)) == (store.rows(SILVER_REQUEST), run.quarantined)
    assert 0 < run.unknown < expected.count()
