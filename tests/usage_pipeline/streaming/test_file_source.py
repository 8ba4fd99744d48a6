"""Files of a stream."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.usage_pipeline.logs import pack, write
from tests.usage_pipeline.parsed_logs import parsed
from tests.usage_pipeline.small_logs import metadata
from usage_pipeline.ingest.paths import DEFAULT_PATTERNS, RequestLogsError, Zones
from usage_pipeline.ingest.records import ROWS
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.streaming.file_source import broker_in_stream, parsed_files
from usage_pipeline.streaming.positions import Positions, State

PUT_BACK = datetime(2026, 10, 25, 1, tzinfo=UTC)
"""When Berlin's clock is, from 03:00 to 02:00."""


@pytest.mark.parametrize(
    "path",
    [
        "/logs/broker-3/kafka-request.log.1",
        "/logs/broker-3/kafka-request.log.12.gz",
        "/logs/broker-3/kafka-request.log-1.log",
        "/logs/broker-3/kafka-request.log.1.log",
        "/logs/broker-3/kafka-request.log.log.1.zst",
        "/logs/broker-3/kafka-request.log-2.log.gz",
        "/logs/broker-3/kafka-request.log.1.lz4",
        "/logs/broker-3/kafka-request_1.log",
        "/logs/broker-3/kafka-request.log.10.xz",
        "/logs/broker-3/kafka-request.log.1.zip",
        "/logs/broker-3/10.log",
        "/logs/broker-202011/kafka-request.log.1",
        "/logs/broker-192168010/kafka-request.log.1",
    ],
)
def test_a_name_that_is_used_again_is_refused(path: str) -> None:
    """Spark reads a name only once, so it would leave out every later file with that name."""
    with pytest.raises(RequestLogsError, match="name files by their date"):
        broker_in_stream(path, DEFAULT_PATTERNS, None)


@pytest.mark.parametrize(
    "path",
    [
        "/logs/broker-3/kafka-request.log.2026-11-20-10",
        "/logs/broker-3/kafka-request.log.2026-11-20-10.gz",
        "/logs/broker-3/kafka-request.log.20261120",
        "/logs/broker-3/kafka-request.log",
        "/logs/broker-3/kafka-request.log-2026-11-20-1.log.gz",
        "/logs/2026/11/20/broker-3/10.log",
        "/logs/dt=2026-11-20/broker=3/part-0001.log.gz",
    ],
)
def test_a_path_with_a_date_is_not(path: str) -> None:
    """Kafka's log4j configurations append the hour to the name; others have folders for days."""
    assert 3 == broker_in_stream(path, DEFAULT_PATTERNS, None)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("is_second", [False, True])
def test_a_file_within_the_doubled_hour_is_of_the_pass_that_its_change_says(
    tmp_path: Path, is_second: bool, is_packed: bool
) -> None:
    """The lines only say 02:10 and 02:50. A stream reads them like a batch run."""
    text = metadata("2026-10-25 02:10:00,000") + metadata("2026-10-25 02:50:00,000")
    file = write(tmp_path, 1, "2026-10-25-02", text.encode())
    file = pack(file) if is_packed else file
    hour = PUT_BACK if is_second else PUT_BACK - timedelta(hours=1)
    changed = hour + timedelta(minutes=51)
    os.utime(file, (changed.timestamp(),) * 2)
    logs = RequestLogs(f"{tmp_path}/*/*", Zones("UTC", {1: "Europe/Berlin"}))
    # As Spark's source lists it.
    row = {"path": f"file:{file}", "length": file.stat().st_size, "modificationTime": changed}
    listed = pa.RecordBatch.from_pylist([row])
    found = [one.rows for one in parsed_files(iter([listed]), Positions(State()), logs)]
    times = pa.Table.from_batches(found, ROWS)["log_ts"].to_pylist()
    assert [hour + timedelta(minutes=each) for each in (10, 50)] == times
    assert parsed(logs)[0]["log_ts"].to_pylist() == times


def test_a_file_in_a_layout_of_its_own(tmp_path: Path) -> None:
    """A stream reads it by its pattern, like a batch run."""
    text = metadata("2026-11-20 10:00:00,000").replace("[2026-11-20 10:00:00,000]", "1795168800000")
    file = write(tmp_path, 1, "2026-11-20-10", text.encode())
    logs = RequestLogs(f"{tmp_path}/*/*", layout="%d{UNIX_MILLIS} %p %m (%c)%n")
    row = {"path": f"file:{file}", "length": file.stat().st_size, "modificationTime": PUT_BACK}
    listed = pa.RecordBatch.from_pylist([row])
    found = [one.rows for one in parsed_files(iter([listed]), Positions(State()), logs)]
    times = pa.Table.from_batches(found, ROWS)["log_ts"].to_pylist()
    assert [datetime(2026, 11, 20, 10, tzinfo=UTC)] == times
    assert parsed(logs)[0]["log_ts"].to_pylist() == times
