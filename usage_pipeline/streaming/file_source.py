"""Request logs in closed files as a stream: each rotated file is read once.

Spark's file source lists the files and remembers which it has returned. The tasks parse each file
as a whole, as a batch run does. The path must match only rotated files, which do not grow any more.
If a file appears again with the same length under another name, compressed or not, it is left out.
If it has grown, it counts as another file, because reading a line twice is better than losing it.

Example: ``/logs/*/kafka-request.log.*`` reads ``/logs/broker-3/kafka-request.log.2026-11-20-10``
after an hour, when log4j has renamed the file.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from usage_pipeline.ingest.clusters import ClusterError, cluster_of
from usage_pipeline.ingest.log_parts import Part, parse_part
from usage_pipeline.ingest.paths import (
    WILDCARDS,
    LogFile,
    RequestLogsError,
    broker_and_place,
    patterns_of,
)
from usage_pipeline.ingest.records import Parsed
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.ingest.stored_logs import text_of
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.streaming.positions import Positions

FORMAT: Final = "binaryFile"
_TASKS_PER_CORE: Final = 4
_OLDEST: Final = "366d"
"""The largest difference in age to the newest file. Spark ignores older files, and keeps a list of
the others in memory."""
_NUMBERED: Final = re.compile(r"[./_-]\d{1,4}(\.log)?(\.[a-z]\w*)?$")
_DATED: Final = re.compile(r"(?<!\d)(19|20)\d\d[-_./]?(0[1-9]|1[0-2])")
_SCHEMA: Final = "path string, modificationTime timestamp, length bigint, content binary"
"""The schema of Spark's source; the content is not read if no query uses it."""


def closed_files(spark: SparkSession, path: str, max_bytes: int) -> DataFrame:
    """Return a stream of files, with path, length and modificationTime.

    Args:
        spark: the session; it must have access to the files.
        path: a folder or a glob of rotated files.
        max_bytes: the size of a batch, above 0; a larger file is a batch of its own.
    """
    reader = spark.readStream.format(FORMAT).schema(_SCHEMA)
    reader = reader.option("maxBytesPerTrigger", str(max_bytes)).option("maxFileAge", _OLDEST)
    is_folder = not WILDCARDS.search(path)  # Files in subfolders are included, as in a batch run.
    files = reader.option("recursiveFileLookup", is_folder).load(path)
    # A log and its gzip must be in the same task, which reads only one of them.
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    together = files.repartition(tasks, sql.regexp_replace("path", r"\.gz$", ""))
    return together.select("path", "length", "modificationTime")


def parsed_files(
    batches: Batches, positions: Positions, logs: RequestLogs, cluster: str | None = None
) -> Iterator[Parsed]:
    """Parse the files in the task that receives them, except for files that were read before.

    Args:
        batches: rows of ``closed_files``.
        positions: the files that were read before.
        logs: says which broker a file belongs to, its time zone and its layout.
        cluster: the stream's cluster, whose files are read; None for a stream without a name.

    Raises:
        RequestLogsError: a path does not name its broker, or another file will get the same path.
        ClusterError: a path names a cluster, and the stream has no name.
        OSError: a file can't be read.
    """
    patterns = patterns_of(logs.broker_pattern)
    for batch in batches:
        for row in batch.to_pylist():
            path = _plain(row["path"])
            broker = broker_in_stream(path, patterns, cluster)
            if broker is None:
                continue
            changed_at = row["modificationTime"].timestamp()
            zone = logs.zones.name_of(broker)
            file = LogFile(
                path, broker, zone, row["length"], changed_at=changed_at, layout=logs.layout
            )
            text = text_of(file)
            if text is None or positions.is_new(broker, *text):
                yield from parse_part(Part(file, 0, file.size))


def broker_in_stream(
    path: str, patterns: Iterable[re.Pattern[str]], cluster: str | None
) -> int | None:
    """Return the broker of a stream's file; None if its path names another cluster.

    Raises:
        ClusterError: the path names a cluster, and the stream has no name.
        RequestLogsError: the next file will get the same name, so Spark would not read it, or the
            path does not name its broker.
    """
    of_path = cluster_of(path, patterns)
    if of_path is not None and cluster is None:
        raise ClusterError(
            f"{path} belongs to the cluster {of_path}, and a stream reads one cluster: name it with"
            " --cluster-id"
        )
    if of_path not in {None, cluster}:
        return None
    broker, place = broker_and_place(path, patterns)
    around = path[: place - len(str(broker))], path[place:]  # The id itself is no date.
    if _NUMBERED.search(path, place) and not any(map(_DATED.search, around)):
        raise RequestLogsError(
            f"{path} has a name that rotation gives to each file in turn, but a stream reads each"
            " name only once: let log4j name files by their date, as Kafka's own configuration"
            " does, or send the lines to a topic"
        )
    return broker


def _plain(uri: str) -> str:
    """Return a path as tables have it: a local path without a scheme."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    return uri
