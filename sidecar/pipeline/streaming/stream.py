"""The pipeline as a stream: silver_request and gold_usage_1s as the logs grow.

The tables' code is the batch's. A table is a query of its own, with its checkpoint under
``<checkpoint>/<table>``: killed and restarted, it resumes where it was, and a batch that it was
killed in is written again, and is in the table once (``sink``).

gold_usage_1s is written when no more lines of a second are expected: its watermark is the latest
time seen less ``watermark_s``. What comes later still would be dropped by Spark, and the second be
wrong for ever; so that is an error, also at the next start. Files are read in step, so no line of
theirs is late but by its time in the response queue and of sending, which are taken off its time,
and by what the broker's clock and threads mix up.

Example: with a watermark of 60 s, 10:00:00 is written when a line of 10:01:01 has been read. A
consumer that takes 70 s to take an answer in was charged 70 s before its line: that line is late.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from sidecar.errors import SidecarError
from sidecar.pipeline.silver.request_table import silver_request
from sidecar.pipeline.streaming.sink import BatchSink
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.lease import leased
from sidecar.pipeline.tables.schemas import GOLD_USAGE_1S, QUARANTINE, SILVER_REQUEST, Table
from sidecar.pipeline.tables.writers import refuse_stream
from sidecar.pipeline.usage.usage_table import NEEDED, gold_usage_1s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

STREAMED: Final = (SILVER_REQUEST, GOLD_USAGE_1S, QUARANTINE)
"""The tables that can be streamed."""

_LATE: Final = "_late"
_CHECK_S: Final = 0.5
_NO_WATERMARK: Final = "1970-01-01T00:00:00.000Z"

Source = Callable[[Table, Sequence[str] | None], "DataFrame"]
"""The streaming rows of QUARANTINE, or of SILVER_REQUEST without what it is partitioned by; only
these columns, None for all."""


class LateLinesError(SidecarError):
    """Lines came too late for a second that was written already."""


class StreamError(SidecarError):
    """The stream ended by itself."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream runs.

    Attributes:
        out: the folder of the tables.
        checkpoint: the folder of where the stream is; one for each output.
        watermark_s: how late a line may be, seconds, > 0. State is retained for so long.
        trigger_s: from batch to batch, seconds.
        until_read: whether to end when all is read that was there at the start; the seconds
            within ``watermark_s`` of the end are then written by the next run.
    """

    out: str
    checkpoint: str
    watermark_s: float = 60.0
    trigger_s: float = 10.0
    until_read: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a table is.

    Attributes:
        table: its name.
        batch: the number of the last batch.
        rows: read in it.
        rows_per_s: read.
        watermark: seconds before this one are written, in ISO 8601; "" while none are.
    """

    table: str
    batch: int
    rows: int
    rows_per_s: float
    watermark: str


def stream(
    source: Source,
    tables: Sequence[Table],
    settings: StreamSettings,
    report: Callable[[Progress], None] = lambda _progress: None,
) -> None:
    """Streams tables until the end that the settings say, or for ever.

    Raises:
        LateLinesError: lines were dropped by the watermark, now or by an earlier run.
        OtherWriterError: the output has tables of batch runs.
        OtherStreamError: another stream has written to the output.
        LockedError: another stream writes to it now.
        StreamError: a query failed.
    """
    folder = Folder.of(settings.out)
    begun: list[tuple[Table, StreamingQuery]] = []
    with leased(folder, f"a stream (process {os.getpid()} on {socket.gethostname()})"):
        refuse_stream(folder)
        _refuse_late(settings)
        try:
            for table in tables:
                frame = rows_of(table, source, settings.watermark_s)
                begun.append((table, _start(frame, table, folder, settings)))
            _follow(begun, settings, report)
        finally:
            for _, query in begun:
                query.stop()


def rows_of(table: Table, source: Source, watermark_s: float) -> "DataFrame":
    """A table's streaming rows: the batch's code, and a watermark where there are seconds."""
    if table is QUARANTINE:
        return QUARANTINE.select(source(QUARANTINE, None))
    if table is SILVER_REQUEST:
        return silver_request(source(SILVER_REQUEST, None))
    rows = source(SILVER_REQUEST, NEEDED)
    return gold_usage_1s(rows.withWatermark("quota_ts", f"{watermark_s} seconds"))


def _start(
    frame: "DataFrame", table: Table, folder: Folder, settings: StreamSettings
) -> "StreamingQuery":
    checkpoint = f"{settings.checkpoint.rstrip('/')}/{table.name}"
    parts = frame.sparkSession.sparkContext.defaultParallelism
    sink = BatchSink(folder, table, _stream_id(checkpoint), parts)
    sink.check()
    writer = (
        frame.writeStream.queryName(table.name)
        .outputMode("append")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(sink.write)
    )
    if settings.until_read:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_s} seconds").start()


def _follow(
    begun: Sequence[tuple[Table, "StreamingQuery"]],
    settings: StreamSettings,
    report: Callable[[Progress], None],
) -> None:
    reported = {table: -1 for table, _ in begun}
    running = list(begun)
    while running:
        time.sleep(_CHECK_S)
        for table, query in list(running):
            is_active = query.isActive
            for each in query.recentProgress:
                seen: dict[str, Any] = json.loads(each.json)
                if seen["batchId"] > reported[table]:
                    reported[table] = seen["batchId"]
                    _check_late(seen, table, settings)
                    report(_progress(seen, table))
            if not is_active:
                error = query.exception()
                if error is not None:
                    raise StreamError(f"{table.name}: {_first_line(error)}") from error
                running.remove((table, query))


def _progress(seen: dict[str, Any], table: Table) -> Progress:
    watermark = str(seen.get("eventTime", {}).get("watermark", _NO_WATERMARK))
    return Progress(
        table.name,
        seen["batchId"],
        int(seen.get("numInputRows", 0)),
        float(seen.get("processedRowsPerSecond", 0.0)),
        "" if watermark == _NO_WATERMARK else watermark,
    )


def _check_late(seen: dict[str, Any], table: Table, settings: StreamSettings) -> None:
    dropped = sum(int(each["numRowsDroppedByWatermark"]) for each in seen["stateOperators"])
    if dropped:
        text = f"{table.name}: {dropped} rows of batch {seen['batchId']} came too late"
        Folder.of(settings.checkpoint).create(_LATE, text.encode())
        raise LateLinesError(_late(text, settings))


def _refuse_late(settings: StreamSettings) -> None:
    text = Folder.of(settings.checkpoint).read(_LATE)
    if text is not None:
        raise LateLinesError(_late(text.decode(), settings))


def _late(what: str, settings: StreamSettings) -> str:
    return (
        f"{what} for a watermark of {settings.watermark_s:g} s, so seconds in {settings.out} lack"
        " them: begin anew with a longer watermark, a new checkpoint and a new output"
    )


def _stream_id(checkpoint: str) -> str:
    """The id that Spark gives to the checkpoint; the one it will have is written here."""
    folder = Folder.of(checkpoint)
    folder.create("metadata", json.dumps({"id": str(uuid4())}).encode())
    return str(json.loads(folder.read("metadata") or b"")["id"])


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]
