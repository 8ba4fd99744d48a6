"""The pipeline as a stream: silver_request, quarantine and gold_usage_1s, as logs arrive.

One query reads each line once and writes all tables (``sink``), with the parser and the charging
rules of the batch job. After a crash and restart, the stream resumes at its checkpoint. The batch
during which it was killed is written again, and is in the tables once.

Example: shippers send 20,000 lines a second to a topic, and batches take 10 s. The usage of each
second is in the table 10 s after its lines. There is one row for each task that had some of the
lines, and more rows follow if lines arrive later.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from sidecar.errors import SidecarError
from usage_pipeline.streaming.sink import RETAINED, BatchSink, Parse
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import STREAM, leased
from usage_pipeline.tables.schemas import (
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    UNNAMED,
    Table,
)
from usage_pipeline.tables.writers import refuse_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

STREAMED: Final = (SILVER_REQUEST, GOLD_USAGE_1S)
"""The tables that can be streamed; QUARANTINE is written too, for lines that can't be read."""

_CHECK_S: Final = 0.5


class StreamError(SidecarError):
    """The stream ended by itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of lines: a stream of messages or files, and the function that parses them."""

    frame: "DataFrame"
    parse: Parse


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream runs.

    Attributes:
        out: the folder of the tables.
        checkpoint: the folder with the stream's progress, one for each output.
        trigger_s: the interval between batches, in seconds.
        until_read: whether to end after everything is read that exists at the start.
        cluster: the cluster of the rows.
        retained: how long files are kept after compaction has replaced them.
    """

    out: str
    checkpoint: str
    trigger_s: float = 10.0
    until_read: bool = False
    cluster: str = UNNAMED
    retained: timedelta = RETAINED


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stream.

    Attributes:
        batch: the number of the last batch.
        rows: the messages or files in the batch.
        rows_per_s: the rate of reading.
        resent: lines or files that were left out because they were read before.
        unread: lines that can't be read.
    """

    batch: int
    rows: int
    rows_per_s: float
    resent: int = 0
    unread: int = 0


def stream(
    source: Source,
    tables: Sequence[Table],
    settings: StreamSettings,
    report: Callable[[Progress], None] = lambda _progress: None,
) -> None:
    """Stream tables until the end that the settings define, or forever.

    Raises:
        OtherWriterError: the output has tables of batch runs.
        OtherStreamError: another stream has written to the output.
        LockedError: another stream is writing to the output now.
        StreamError: the query failed.
    """
    folder = Folder.parse(settings.out)
    holder = f"a stream (process {os.getpid()} on {socket.gethostname()})"
    with leased(folder, holder, name=STREAM):
        refuse_stream(folder)
        stream_id = _stream_id(settings.checkpoint)
        written = [*tables, QUARANTINE]
        sink = BatchSink(
            folder, written, stream_id, source.parse, settings.cluster, settings.retained
        )
        sink.check()
        sink.tidy()
        writer = (
            source.frame.writeStream.outputMode("append")
            .option("checkpointLocation", settings.checkpoint)
            .foreachBatch(sink.write)
        )
        if settings.until_read:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=f"{settings.trigger_s} seconds").start()
        try:
            _follow(query, sink, report)
        finally:
            query.stop()


def _follow(query: "StreamingQuery", sink: BatchSink, report: Callable[[Progress], None]) -> None:
    reported, is_active = -1, True
    while is_active:
        time.sleep(_CHECK_S)
        is_active = query.isActive
        for each in query.recentProgress:
            seen: dict[str, Any] = json.loads(each.json)
            if seen["batchId"] > reported:
                reported = seen["batchId"]
                rows_per_s = float(seen.get("processedRowsPerSecond", 0.0))
                rows = int(seen.get("numInputRows", 0))
                resent, unread = sink.resent.pop(reported, 0), sink.unread.pop(reported, 0)
                report(Progress(reported, rows, rows_per_s, resent, unread))
    error = query.exception()
    if error is not None:
        raise StreamError(str(error).strip().splitlines()[0]) from error


def _stream_id(checkpoint: str) -> str:
    """Return the checkpoint's id; if Spark has not created one, create it here."""
    folder = Folder.parse(checkpoint)
    folder.create("metadata", json.dumps({"id": str(uuid4())}).encode())
    return str(json.loads(folder.read("metadata") or b"")["id"])
