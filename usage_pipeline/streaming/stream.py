"""The pipeline as a stream: silver_request, quarantine and gold_usage_1s as logs come.

One query reads each line once and writes all tables (``sink``), with the batch's own parser and
charging rules. Killed and restarted, it resumes at its checkpoint: a batch that it was killed in is
written again, and is in the tables once.

Example: a topic to which shippers send 20,000 lines a second, in batches of 10 s: each second's
usage is there 10 s after its lines, in a row for each task that had some of them, and more rows
follow if lines of it come later.
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
from usage_pipeline.tables.lease import leased
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
"""The tables that can be streamed; lines that can't be read are in QUARANTINE besides."""

_CHECK_S: Final = 0.5


class StreamError(SidecarError):
    """The stream ended by itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where lines come from.

    Attributes:
        frame: of messages or of files, as a stream.
        parse: what a task makes of its rows.
    """

    frame: "DataFrame"
    parse: Parse


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream runs.

    Attributes:
        out: the folder of the tables.
        checkpoint: the folder of where the stream is; one for each output.
        trigger_s: from batch to batch, seconds.
        until_read: whether to end when all is read that was there at the start.
        cluster: whose rows they are.
        retained: for how long files are that were brought together.
    """

    out: str
    checkpoint: str
    trigger_s: float = 10.0
    until_read: bool = False
    cluster: str = UNNAMED
    retained: timedelta = RETAINED


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stream is.

    Attributes:
        batch: the number of the last batch.
        rows: messages or files that were read in it.
        rows_per_s: read.
        resent: lines or files of them that were left out, since they were taken before.
        unread: lines of them that can't be read.
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
    """Streams tables until the end that the settings say, or for ever.

    Raises:
        OtherWriterError: the output has tables of batch runs.
        OtherStreamError: another stream has written to the output.
        LockedError: another stream writes to it now.
        StreamError: the query failed.
    """
    folder = Folder.of(settings.out)
    with leased(folder, f"a stream (process {os.getpid()} on {socket.gethostname()})"):
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
    """The id that Spark gives to the checkpoint; the one it will have is written here."""
    folder = Folder.of(checkpoint)
    folder.create("metadata", json.dumps({"id": str(uuid4())}).encode())
    return str(json.loads(folder.read("metadata") or b"")["id"])
