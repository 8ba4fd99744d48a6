"""Request logs from a Kafka topic: a log shipper sends each line as a message.

Spark's connector reads the topic (deploy/spark/kafka-connector/pom.xml). The lines are parsed like
those of files. A line's broker is in the key or in a header of its message, as "3", "broker-3" or
another name that ends like this. A host name is not accepted. A message without its broker goes to
the quarantine. In tables, the file is ``kafka:<topic>/<partition>`` and the offset is the message's
offset, so offsets have the order of the lines. In the hour that a broker's clock repeats, a line
belongs to the second pass if its message was sent in the second pass or later. If a line of the
first pass is sent again then, it is taken for another line.

After a crash, a shipper sends some lines again. These lines are left out (``positions``) if a
message says where its line is. The message then has the form of ``grep -Hb``: the absolute path of
the file, the offset of the line's first byte in the file, and the line. The position is in the
value, because every shipper can write it there. Not every shipper can set different headers for
each line, and the key decides the partition, which should be the same for all lines of a broker.

Example: ``/logs/kafka-request.log:8130:[2026-11-20 10:00:00,000] DEBUG ...`` is the line at offset
8130 of that file. A value that begins with the line itself, ``[2026-11-20 ...``, is always read.

Example: the message at offset 42 of partition 1 of ``request-log`` with the key "3" is a row with
broker 3, src_file "kafka:request-log/1", src_offset 42.

Passwords and keys are options of Spark's reader, because its tasks need them. ``REDACTED`` keeps
them out of plans and of Spark's web page. Checkpoints do not contain them. If a cluster can't be
reached or refuses access, the stream ends within about 90 s (``topic_failures``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.errors import SidecarError
from sidecar.requestlog.layout import Layout
from sidecar.requestlog.rejected import RejectedKind
from usage_pipeline.ingest.log_clock import ahead_ms
from usage_pipeline.ingest.paths import NAMED, Zones
from usage_pipeline.ingest.records import REJECTED, ROWS, Parsed, parse_block
from usage_pipeline.kernels.values import Flags, Longs
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.streaming.positions import NO_TIME, Lines, Positions, log_of

FORMAT: Final = "kafka"
REDACTED: Final[Mapping[str, str]] = {
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore[.]key",
}
"""A setting for sessions that read topics: options with these names are never shown."""
_BROKER: Final = rf"^(?:.*{NAMED})?(\d{{1,9}})$"
_OFFSET_DIGITS: Final = 18
_CLOCKS_DIFFER_MS: Final = 60_000
_ANSWER_MS: Final = 20_000
_TIMEOUTS: Final[Mapping[str, str]] = {
    "request.timeout.ms": str(_ANSWER_MS),
    "default.api.timeout.ms": str(_ANSWER_MS),
}


class ConnectorError(SidecarError):
    """Spark was started without the jars that read topics."""


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """The topics, and the meaning of their messages.

    Attributes:
        bootstrap_servers: host:port, separated by commas.
        topics: the names of the topics, separated by commas.
        header: the header that names a line's broker; None for the message's key.
        zones: the time zones of the brokers' clocks.
        max_messages: the largest number of messages in a batch, above 0.
        from_start: whether the first start reads existing messages, or only new ones.
        client: other settings of the Kafka client, by Kafka's names; the repr omits them, because
            some are secrets.
    """

    bootstrap_servers: str
    topics: str
    header: str | None = None
    zones: Zones = field(default_factory=Zones)
    max_messages: int = 1_000_000
    from_start: bool = True
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def spark_options(self) -> dict[str, str]:
        """Return the options of Spark's reader."""
        client = dict(self.client)
        if not _TIMEOUTS.keys() & client.keys():
            client |= _TIMEOUTS
        return {f"kafka.{name}": value for name, value in client.items()} | {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": self.topics,
            "includeHeaders": str(self.header is not None).lower(),
            "maxOffsetsPerTrigger": str(self.max_messages),
            "startingOffsets": "earliest" if self.from_start else "latest",
        }


def topic_messages(spark: SparkSession, options: TopicOptions) -> DataFrame:
    """Return the messages of topics as a stream.

    Args:
        spark: a session with the connector's jars.
        options: the topics.

    Raises:
        ConnectorError: the session lacks the jars.
    """
    reader = spark.readStream.format(FORMAT).options(**options.spark_options())
    try:
        return lines_of(reader.load(), options.header)
    except Exception as error:
        if "kafka" not in str(error).lower() or "Failed to find" not in str(error):
            raise
        raise ConnectorError(
            "Spark has no Kafka connector: `mvn -f deploy/spark/kafka-connector/pom.xml package`,"
            " then name its folder target/jars with --kafka-jars"
        ) from error


def lines_of(messages: DataFrame, header: str | None) -> DataFrame:
    """Select from messages what the parser needs: broker, value, timestamp, place and offset.

    Args:
        messages: the connector's columns, as a stream or not.
        header: the header that names a line's broker; None for the message's key.
    """
    source = sql.col("key")
    if header is not None:
        named = sql.filter("headers", lambda each: each["key"].eqNullSafe(header))
        source = sql.get(named, 0)["value"]
    broker = sql.regexp_extract(source.cast("string"), _BROKER, 1)
    return messages.select(
        sql.when(broker != "", broker.cast("int")).alias("broker"),
        "value",
        "timestamp",
        sql.format_string("kafka:%s/%d", "topic", "partition").alias("place"),
        "offset",
    )


def parsed_messages(
    batches: Batches, positions: Positions, zones: Zones, layout: str | None = None
) -> Iterator[Parsed]:
    """Parse the messages in the task that receives them, without lines that were read before."""
    for batch in batches:
        for broker in pc.unique(batch["broker"]).to_pylist():
            yield _parsed(batch, broker, positions, zones, layout)


def _parsed(
    batch: pa.RecordBatch,
    broker: int | None,
    positions: Positions,
    zones: Zones,
    layout: str | None,
) -> Parsed:
    if broker is None:
        nobodys = _nobodys(batch.filter(pc.is_null(batch["broker"])))
        return Parsed(pa.RecordBatch.from_pylist([], schema=ROWS), nobodys)
    if batch["broker"].null_count or pc.count_distinct(batch["broker"]).as_py() > 1:
        batch = batch.filter(pc.equal(batch["broker"], broker))
    messages = [_message(value or b"") for value in batch["value"].to_pylist()]
    lines = [message.line for message in messages]
    begins = np.concatenate(([0], np.cumsum([len(line) + 1 for line in lines])[:-1]))
    zone = ZoneInfo(zones.name_of(broker))

    def is_second(offsets: Longs, seconds: Longs) -> Flags:
        sent = batch["timestamp"].take(pa.array(_messages(begins, offsets)))
        sent_ms = sent.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
        logged_ms = seconds * 1000 - ahead_ms(seconds, zone, 1)
        return np.asarray(sent_ms >= logged_ms - _CLOCKS_DIFFER_MS)

    parsed = parse_block(
        b"\n".join(lines) + b"\n",
        broker=broker,
        zone=zone,
        src_file="",
        offset=0,
        is_second=is_second,
        layout=Layout(layout),
    )
    at = _messages(begins, parsed.rows["src_offset"].to_numpy())
    rejected_at = _messages(begins, parsed.rejected["src_offset"].to_numpy())
    times = np.full(len(messages), NO_TIME)
    times[at] = parsed.rows["log_ts"].cast(pa.int64()).to_numpy()
    if len(rejected_at):
        # A line that comes twice in a block is read once, and both have its time.
        time_of = {lines[number]: times[number] for number in at.tolist()}
        times[rejected_at] = [time_of.get(lines[number], NO_TIME) for number in rejected_at]
    new = _new(positions, broker, batch["place"].to_pylist(), messages, times)
    return Parsed(
        _placed(parsed.rows, batch, at).filter(pa.array(new[at])),
        _placed(parsed.rejected, batch, rejected_at).filter(pa.array(new[rejected_at])),
    )


class _Message(NamedTuple):
    """A line and its position; the file is empty if the message does not state it."""

    line: bytes
    file: bytes = b""
    offset: int = 0


def _message(value: bytes) -> _Message:
    if value.startswith(b"/"):
        file, _, rest = value.partition(b":")
        digits, has_line, line = rest.partition(b":")
        if has_line and digits.isdigit() and len(digits) <= _OFFSET_DIGITS:
            return _Message(line.rstrip(b"\r\n"), file, int(digits))
    return _Message(value.rstrip(b"\r\n"))


@lru_cache(maxsize=64)
def _log_of(file: bytes) -> str:
    return log_of(file.decode(errors="replace"))


def _new(
    positions: Positions,
    broker: int,
    places: Sequence[str],
    messages: Sequence[_Message],
    times: Longs,
) -> Flags:
    """Return which messages of a broker were not read before."""
    new = np.ones(len(messages), np.bool_)
    logs: dict[tuple[str, str], list[int]] = {}
    for number, message in enumerate(messages):
        if message.file:
            logs.setdefault((places[number], _log_of(message.file)), []).append(number)
    for (place, log), numbers in logs.items():
        at = np.array(numbers)
        offsets = np.array([messages[number].offset for number in numbers])
        # A line's length plus its newline, which the message lacks.
        ends = offsets + [len(messages[number].line) + 1 for number in numbers]
        new[at] = positions.are_new(f"{place} {broker}", log, Lines(offsets, ends, times[at]))
    return new


def _messages(begins: Longs, offsets: Longs) -> Longs:
    """Return the numbers of the messages that contain these offsets of the block."""
    return np.asarray(np.searchsorted(begins, offsets, side="right") - 1)


def _placed(rows: pa.RecordBatch, batch: pa.RecordBatch, at: Longs) -> pa.RecordBatch:
    """Replace the rows' positions in the block by the positions of their messages."""
    message = pa.array(at)
    columns = {
        "src_file": batch["place"].take(message),
        "src_offset": batch["offset"].take(message),
    }
    return pa.RecordBatch.from_arrays(
        [columns.get(name, rows[name]) for name in rows.schema.names], schema=rows.schema
    )


def _nobodys(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.num_rows
    columns = {
        "broker": pa.nulls(rows, pa.int32()),
        "src_file": batch["place"],
        "src_offset": batch["offset"],
        "kind": pa.array([str(RejectedKind.UNEXPECTED)] * rows, pa.string()),
        "reason": pa.array(["the message does not name its broker"] * rows, pa.string()),
        "bytes": pc.binary_length(batch["value"]).cast(pa.int64()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in REJECTED.names], schema=REJECTED)
