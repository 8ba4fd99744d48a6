"""Request logs that are closed, as a stream: files that were rotated, each read once.

Spark's own source of files lists them and remembers which it has given; the tasks parse them as a
batch run does, each whole. A file that still grows is not to be among them: the path names the
rotated ones. One that comes again as long under another name, packed or not, is left out; one that
has grown is another one: of the two faults, a line twice is the lesser.

Example: ``/logs/*/kafka-request.log.*`` takes ``/logs/broker-3/kafka-request.log.2026-11-20-10`` an
hour after it was begun, once log4j has renamed it.
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
    broker_of,
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
"""How much older than the newest file one may be, or Spark leaves it out; it lists the others in
memory."""
_NUMBERED: Final = re.compile(r"\.log\.\d{1,4}(\.gz)?$")
_SCHEMA: Final = "path string, modificationTime timestamp, length bigint, content binary"
"""Of Spark's source; contents are not read where nobody asks for them."""


def closed_files(spark: SparkSession, path: str, max_bytes: int) -> DataFrame:
    """The files as they come: path, length, modificationTime.

    Args:
        spark: which sees them.
        path: a folder or a glob, of rotated files.
        max_bytes: of a batch, > 0; a larger file is a batch by itself.
    """
    reader = spark.readStream.format(FORMAT).schema(_SCHEMA)
    reader = reader.option("maxBytesPerTrigger", str(max_bytes)).option("maxFileAge", _OLDEST)
    is_folder = not WILDCARDS.search(path)  # All below it is meant, as in a batch run.
    files = reader.option("recursiveFileLookup", is_folder).load(path)
    # A log and its own gzip are in one task, which takes one of them.
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    together = files.repartition(tasks, sql.regexp_replace("path", r"\.gz$", ""))
    return together.select("path", "length", "modificationTime")


def parsed_files(
    batches: Batches, positions: Positions, logs: RequestLogs, cluster: str | None = None
) -> Iterator[Parsed]:
    """Their lines, in the task that gets the files, without those of files taken before.

    Args:
        batches: of ``closed_files``.
        positions: what was taken before.
        logs: of which brokers they are, and in which zones.
        cluster: the stream's, files of others are left out; None: it has no name.

    Raises:
        RequestLogsError: a path does not say whose log it is, or will be another one's.
        ClusterError: a path names a cluster, and the stream none.
        OSError: a file can't be read.
    """
    patterns = patterns_of(logs.broker_pattern)
    for batch in batches:
        for row in batch.to_pylist():
            path = _plain(row["path"])
            if not is_of_stream(path, patterns, cluster):
                continue
            broker = broker_of(path, patterns)
            changed_at = row["modificationTime"].timestamp()
            zone = logs.zones.name_of(broker)
            file = LogFile(path, broker, zone, row["length"], changed_at=changed_at)
            text = text_of(file)
            if text is None or positions.is_new(broker, *text):
                yield from parse_part(Part(file, 0, file.size))


def is_of_stream(path: str, patterns: Iterable[re.Pattern[str]], cluster: str | None) -> bool:
    """Whether a file is of a stream's cluster: its path names that one, or none.

    Raises:
        ClusterError: it names one, and the stream has no name.
        RequestLogsError: its name is one that the next file will have, which Spark would not read.
    """
    if _NUMBERED.search(path):
        raise RequestLogsError(
            f"{path} has a name that rotation gives to each file in turn, and a stream reads a name"
            " once: let log4j name files by their date, as Kafka's own configuration does, or send"
            " the lines to a topic"
        )
    of_path = cluster_of(path, patterns)
    if of_path is not None and cluster is None:
        raise ClusterError(
            f"{path} is of the cluster {of_path}, and a stream is of one: name it with --cluster-id"
        )
    return of_path in {None, cluster}


def _plain(uri: str) -> str:
    """A path as the tables have it: of this machine without a scheme."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    return uri
