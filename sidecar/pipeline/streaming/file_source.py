"""Request logs that are closed, as a stream: files that were rotated, each read once.

Spark's own source of files lists them and remembers which it has given; the tasks parse them as a
batch run does, in parts of no file. A file that still grows is not to be among them: ``path`` names
the rotated ones, and each of them once, so packed or plain.

Example: ``/logs/*/kafka-request.log.*`` takes ``/logs/broker-3/kafka-request.log.2026-11-20-10`` an
hour after it was begun, once log4j has renamed it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.ingest.log_parts import Part, parse_part
from sidecar.pipeline.ingest.paths import (
    ALL_UTC,
    DEFAULT_PATTERNS,
    LogFile,
    Zones,
    broker_of,
    pattern_of,
)
from sidecar.pipeline.ingest.records import Parsed
from sidecar.pipeline.runtime.by_workers import Batches

FORMAT: Final = "binaryFile"
_SCHEMA: Final = "path string, modificationTime timestamp, length bigint, content binary"
"""Of Spark's source; contents are not read where nobody asks for them."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Which files.

    Attributes:
        path: a folder or a glob, of rotated files.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``; None: the usual ones.
        max_bytes: of a batch, > 0; a larger file is a batch by itself.
    """

    path: str
    zones: Zones = ALL_UTC
    broker_pattern: str | None = None
    max_bytes: int = 1 << 30

    def broker_of(self, path: str) -> int:
        """Whose log it is.

        Raises:
            RequestLogsError: its path does not say so.
        """
        pattern = self.broker_pattern
        return broker_of(path, DEFAULT_PATTERNS if pattern is None else (pattern_of(pattern),))


def closed_files(spark: SparkSession, options: FileOptions) -> DataFrame:
    """The files as they come: path, length, modificationTime."""
    reader = spark.readStream.format(FORMAT).schema(_SCHEMA)
    files = reader.option("maxBytesPerTrigger", str(options.max_bytes)).load(options.path)
    return files.select("path", "length", "modificationTime")


def parsed_files(batches: Batches, options: FileOptions) -> Iterator[Parsed]:
    """Their lines, in the task that gets the files.

    Raises:
        RequestLogsError: a path does not say whose log it is.
        OSError: a file can't be read.
    """
    for batch in batches:
        for row in batch.to_pylist():
            path = _plain(row["path"])
            broker = options.broker_of(path)
            changed_at = row["modificationTime"].timestamp()
            file = LogFile(
                path, broker, options.zones.name_of(broker), row["length"], changed_at=changed_at
            )
            yield from parse_part(Part(file, 0, file.size))


def _plain(uri: str) -> str:
    """A path as the tables have it: of this machine without a scheme."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    return uri
