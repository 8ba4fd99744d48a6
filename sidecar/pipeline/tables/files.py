"""Files where the tables are: on a disk, in HDFS or in object storage, through Spark's own JVM.

Example: ``HadoopFiles(spark).exists("hdfs://name-node/tables/gold_replay")``. A path without a
scheme is of Spark's default file system: this machine's disk where Spark is embedded. ``s3://`` is
``s3a://``, unless Spark has another file system for it.

In object storage a move is a copy and a removal, of file after file; on a disk and in HDFS it is
one step. A file that must not be there yet is made in one step everywhere: S3 refuses the second
one (``If-None-Match``). A store that doesn't answer times out after some two minutes, where
Hadoop's own deadlines add up to an hour and more: 15 s for each answer, the least that S3A takes,
twice, and all that three times.

Source: org.apache.hadoop.fs.FileSystem; org.apache.hadoop.fs.s3a.Constants for the deadlines.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from sidecar.errors import SidecarError
from sidecar.pipeline.runtime.addresses import address_of
from sidecar.pipeline.runtime.object_storage import storage_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_UNLESS_SET: Final[Mapping[str, str]] = {
    "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "fs.s3a.connection.establish.timeout": "15s",
    "fs.s3a.connection.timeout": "15s",
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "2",
}
_ONLY_NEW: Final = "fs.option.create.conditional.overwrite"
_THERE_ALREADY: Final = ("FileAlreadyExistsException", "RemoteFileChangedException")
_HADOOPS: Final = "core-default.xml"


class FilesError(SidecarError):
    """A file of the tables can't be moved, written or removed."""


class Files(Protocol):
    """What publishing needs of a file system."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        ...

    def names(self, path: str) -> list[str]:
        """Of what is in a folder, sorted; empty for a file, or when there is none."""
        ...

    def move(self, source: str, target: str) -> None:
        """Moves a file or folder to where nothing is; folders on the way are made."""
        ...

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing when there is none."""
        ...

    def read(self, path: str) -> str:
        """The text of a small file."""
        ...

    def create(self, path: str, text: str) -> bool:
        """Writes a small file; False, and nothing is written, when there is one already."""
        ...

    def local(self, path: str) -> Path | None:
        """Where it is on this machine's disk; None when it isn't."""
        ...


class HadoopFiles:
    """Those of Hadoop's file systems."""

    __slots__ = ("_conf", "_jvm")

    def __init__(self, spark: "SparkSession") -> None:
        # Spark has no public way to its JVM.
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001  see above
        self._conf = context._jsc.hadoopConfiguration()  # noqa: SLF001  see above
        for name, value in _UNLESS_SET.items():
            if set(self._conf.getPropertySources(name) or ()) <= {_HADOOPS}:
                self._conf.set(name, value)

    def __repr__(self) -> str:
        return "HadoopFiles()"

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        with storage_failures(path):
            system, at = self._at(path)
            return bool(system.exists(at))

    def names(self, path: str) -> list[str]:
        """Of what is in a folder, sorted; empty for a file, or when there is none."""
        with storage_failures(path):
            system, at = self._at(path)
            if not system.exists(at) or not system.getFileStatus(at).isDirectory():
                return []
            return sorted(str(status.getPath().getName()) for status in system.listStatus(at))

    def move(self, source: str, target: str) -> None:
        """Moves a file or folder to where nothing is; folders on the way are made.

        Raises:
            FilesError: the file system did not.
        """
        with storage_failures(target):
            system, there = self._at(target)
            system.mkdirs(there.getParent())
            if not system.rename(self._at(source)[1], there):
                raise FilesError(f"{source} can't be moved to {target}: may this user write there?")

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing when there is none."""
        with storage_failures(path):
            system, at = self._at(path)
            system.delete(at, True)

    def read(self, path: str) -> str:
        """The text of a small file."""
        with storage_failures(path):
            system, at = self._at(path)
            stream = system.open(at)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create(self, path: str, text: str) -> bool:
        """Writes a small file; False, and nothing is written, when there is one already."""
        with storage_failures(path):
            system, at = self._at(path)
            if system.exists(at):
                return False
            system.mkdirs(at.getParent())
            return self._written(system, at, text)

    def local(self, path: str) -> Path | None:
        """Where it is on this machine's disk; None when it isn't."""
        with storage_failures(path):
            system, at = self._at(path)
            if system.getUri().getScheme() != "file":
                return None
            return Path(str(system.makeQualified(at).toUri().getPath()))

    def _written(self, system: Any, at: Any, text: str) -> bool:  # noqa: ANN401  objects of Java's
        """Whether a file that was not there a moment ago is ours now."""
        from py4j.protocol import (  # type: ignore[import-untyped]  # noqa: PLC0415  of the extra
            Py4JJavaError,
        )

        builder = system.createFile(at).overwrite(False).opt(_ONLY_NEW, "true")
        try:
            stream = builder.build()
            stream.write(text.encode())
            stream.close()
        except Py4JJavaError as error:
            if str(error.java_exception.getClass().getSimpleName()) in _THERE_ALREADY:
                return False
            raise
        return True

    def _at(self, path: str) -> tuple[Any, Any]:
        address_of(path)  # Refuses credentials; Hadoop's error would show them.
        at = self._jvm.org.apache.hadoop.fs.Path(path)
        return at.getFileSystem(self._conf), at
