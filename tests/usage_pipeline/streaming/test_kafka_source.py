"""Request logs from messages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from tests.usage_pipeline.logs import line
from tests.usage_pipeline.small_logs import metadata
from usage_pipeline.ingest.paths import Zones
from usage_pipeline.ingest.records import REJECTED, ROWS
from usage_pipeline.streaming.kafka_source import (
    ConnectorError,
    TopicOptions,
    lines_of,
    parsed_messages,
    topic_messages,
)
from usage_pipeline.streaming.positions import Positions, State

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint,"
    " headers array<struct<key:string,value:binary>>, timestamp timestamp"
)
AUTUMN = datetime(2026, 10, 25, 0, tzinfo=UTC)
SENT = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONES = Zones("UTC", {4: "Europe/Berlin"})


def messages(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame([(*row, SENT)[:7] for row in rows], SCHEMA)


def parsed(
    frame: DataFrame, header: str | None = None, positions: Positions | None = None
) -> tuple[pa.Table, pa.Table]:
    """Returns the rows of messages, and the lines that can't be read, as a task parses them."""
    batches = lines_of(frame, header).toArrow().to_batches()
    both = list(parsed_messages(iter(batches), positions or Positions(State()), ZONES))
    return (
        pa.Table.from_batches([one.rows for one in both], ROWS),
        pa.Table.from_batches([one.rejected for one in both], REJECTED),
    )


def values(rows: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in rows.to_pylist())


def test_messages_are_read_by_their_layout() -> None:
    """A pattern finds the times that can't be found by themselves."""
    text = b"1795165200123 " + line(0).partition(b"] ")[2]
    columns = {"broker": [3], "value": [text], "timestamp": [SENT], "place": ["p"], "offset": [7]}
    batch = pa.RecordBatch.from_pydict(columns)
    pattern = "%d{UNIX_MILLIS} %p %m (%c)%n"
    (both,) = parsed_messages(iter([batch]), Positions(State()), ZONES, pattern)
    assert [datetime(2026, 11, 20, 9, 0, 0, 123_000, tzinfo=UTC)] == both.rows["log_ts"].to_pylist()


@pytest.mark.spark
def test_messages_are_rows_of_their_brokers(spark: SparkSession) -> None:
    """Key or header name the broker, with its own offsets and zone; the rest is quarantined."""
    sent = messages(
        spark,
        (b"broker-3", line(0), "log", 1, 41, None),
        (b"4", line(100).rstrip(b"\n"), "log", 1, 42, [("broker", b"3")]),
        (b"3", b"torn", "log", 0, 7, [("other", b"9")]),
        (None, line(200), "log", 1, 43, [("broker", b"5")]),
        (b"3", None, "log", 0, 8, None),
        (b"eu-kafka-3", line(300), "log", 0, 9, None),
        (b"ip-10-0-0-17", line(400), "log", 0, 10, None),
    )
    found, refused = parsed(sent)
    assert [
        (3, "10:00:00.000", "kafka:log/1", 41),
        (3, "10:00:00.300", "kafka:log/0", 9),
        (4, "09:00:00.100", "kafka:log/1", 42),
    ] == [
        (broker, f"{time:%H:%M:%S}.{time.microsecond // 1000:03}", file, offset)
        for broker, time, file, offset in values(
            found, "broker", "log_ts", "src_file", "src_offset"
        )
    ]
    assert [
        ("kafka:log/0", 7, "other", 4),
        ("kafka:log/0", 8, "other", 0),
        ("kafka:log/0", 10, "unexpected", len(line(400))),
        ("kafka:log/1", 43, "unexpected", len(line(200))),
    ] == values(refused, "src_file", "src_offset", "kind", "bytes")

    # Berlin's clock is put back at 01:00 UTC; one message of each pass, and one by a clock that
    # is slow.
    autumn = metadata("2026-10-25 02:30:00,000").encode()
    minutes = {41: 31, 42: 91, 43: 89.5, 44: 88}
    passed = messages(
        spark,
        *(
            (b"4", autumn, "log", 1, offset, None, AUTUMN + timedelta(minutes=after))
            for offset, after in minutes.items()
        ),
    )
    rows, _ = parsed(passed)
    assert [(41, 0), (42, 1), (43, 1), (44, 0)] == [
        (offset, time.hour) for offset, time in values(rows, "src_offset", "log_ts")
    ]

    assert [(3, 42), (5, 43)] == values(parsed(sent, "broker")[0], "broker", "src_offset")
    with pytest.raises(ConnectorError, match="mvn -f"):
        topic_messages(spark, TopicOptions("b1:9092", "request-log"))


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 30)), max_size=8), st.integers(1, 40))
@example([(0, 20), (1, 5), (10, 15)], 60)
def test_a_shipper_that_goes_back_loses_no_line(steps: list[tuple[int, int]], most: int) -> None:
    """Each line is read once, also if it comes twice in a batch, or has the time of its neighbour.

    A step goes back by some lines and then sends some.
    """
    logged = [line(10_000 * (number // 2), number) for number in range(300)]
    begins = np.cumsum([0, *map(len, logged)]).tolist()
    sent: list[int] = []
    for back, count in steps:
        at = max(sent, default=-1) + 1
        first = max(0, at - back)
        sent += range(first, max(at, first + count))
    positions, read = Positions(State()), []
    for first in range(0, len(sent), most):
        numbers = sent[first : first + most]
        columns = {
            "broker": [3] * len(numbers),
            "value": [
                f"/logs/kafka-request.log:{begins[number]}:".encode() + logged[number].rstrip()
                for number in numbers
            ],
            "timestamp": [SENT] * len(numbers),
            "place": ["kafka:log/0"] * len(numbers),
            "offset": numbers,
        }
        batch = pa.RecordBatch.from_pydict(columns)
        (both,) = parsed_messages(iter([batch]), positions, ZONES)
        assert not both.rejected.num_rows
        read += both.rows["src_offset"].to_pylist()
    assert list(range(max(sent, default=-1) + 1)) == read


def test_the_connectors_options() -> None:
    """The options are Kafka's settings by their own names, and the start offsets."""
    options = TopicOptions(
        "b1:9092", "a,b", from_start=False, client={"security.protocol": "SSL"}, max_messages=5
    )
    assert {
        "kafka.bootstrap.servers": "b1:9092",
        "kafka.security.protocol": "SSL",
        "kafka.request.timeout.ms": "20000",
        "kafka.default.api.timeout.ms": "20000",
        "subscribe": "a,b",
        "includeHeaders": "false",
        "maxOffsetsPerTrigger": "5",
        "startingOffsets": "latest",
    } == options.spark_options()


def test_a_timeout_that_the_user_sets_is_left_alone() -> None:
    """The default of the other timeout might not fit the user's value."""
    options = TopicOptions("b1:9092", "a", client={"request.timeout.ms": "60000"}).spark_options()
    assert "60000" == options["kafka.request.timeout.ms"]
    assert "kafka.default.api.timeout.ms" not in options


def test_settings_of_the_client_are_in_no_repr() -> None:
    """The settings may be secrets."""
    assert "hidden" not in repr(TopicOptions("b1:9092", "a", client={"x": "hidden"}))


@pytest.mark.spark
def test_lines_that_are_sent_again_are_left_out(spark: SparkSession) -> None:
    """Messages state their lines' positions; tables have the messages' own positions."""
    logged = [line(0), line(100), b"torn: 1:\n", line(200, send_ms=1.5), line(300)]
    begins = [sum(map(len, logged[:number])) for number in range(len(logged))]

    def sent(offset: int, number: int, file: str, end: bytes = b"\n") -> tuple[Any, ...]:
        text = logged[number].rstrip(b"\n") + end
        return (b"3", f"{file}:{begins[number]}:".encode() + text, "log", 0, offset, None)

    growing, rotated = "/logs/kafka-request.log", "/logs/kafka-request.log.2026-11-20-10"
    sent_all = [sent(number, number, growing, b"") for number in range(4)]
    sent_all += [sent(4 + number, number, rotated) for number in range(5)]
    # As they come: no word of their file, or of another broker. A request is read once.
    sent_all += [(b"3", line(100), "log", 0, offset, None) for offset in (9, 10)]
    sent_all += [(b"5", sent_all[1][1], "log", 0, 11, None)]
    sent_all += [(b"3", sent_all[1][1], "log", 1, 0, None)]
    sent_all += [(b"3", b"/logs/kafka-request.log:1x:torn", "log", 0, 12, None)]
    positions = Positions(State())
    found, refused = parsed(messages(spark, *sent_all), positions=positions)
    assert [
        ("kafka:log/0", 0),
        ("kafka:log/0", 1),
        ("kafka:log/0", 3),
        ("kafka:log/0", 8),
        ("kafka:log/0", 9),
        ("kafka:log/0", 11),
    ] == values(found, "src_file", "src_offset")
    again = len(logged[1]) - 1
    assert [(0, again), (2, len(logged[2]) - 1), (10, again), (12, 31)] == values(
        refused, "src_offset", "bytes"
    )
    assert 4 == positions.resent
