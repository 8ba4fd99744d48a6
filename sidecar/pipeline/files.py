"""Files where the tables are: on a disk, in HDFS or in object storage, through Spark's own JVM.

Example: ``HadoopFiles(spark).exists("hdfs://name-node/tables/gold_replay")``. A path without a
scheme is of Spark's default file system: this machine's disk where Spark is embedded.

Source: org.apache.hadoop.fs.FileSystem. In object storage a move is a copy and a removal, of file
after file; on a disk and in HDFS it is one step.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sidecar.errors import SidecarError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

    def __repr__(self) -> str:
        return "HadoopFiles()"

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        system, at = self._at(path)
        return bool(system.exists(at))

    def names(self, path: str) -> list[str]:
        """Of what is in a folder, sorted; empty for a file, or when there is none."""
        system, at = self._at(path)
        if not system.exists(at) or not system.getFileStatus(at).isDirectory():
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(at))

    def move(self, source: str, target: str) -> None:
        """Moves a file or folder to where nothing is; folders on the way are made.

        Raises:
            FilesError: the file system did not.
        """
        system, there = self._at(target)
        system.mkdirs(there.getParent())
        if not system.rename(self._at(source)[1], there):
            raise FilesError(f"{source} can't be moved to {target}: may this user write there?")

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing when there is none."""
        system, at = self._at(path)
        system.delete(at, True)

    def read(self, path: str) -> str:
        """The text of a small file."""
        system, at = self._at(path)
        stream = system.open(at)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def create(self, path: str, text: str) -> bool:
        """Writes a small file; False, and nothing is written, when there is one already."""
        system, at = self._at(path)
        if system.exists(at):
            return False
        system.mkdirs(at.getParent())
        stream = system.create(at, False)
        stream.write(text.encode())
        stream.close()
        return True

    def local(self, path: str) -> Path | None:
        """Where it is on this machine's disk; None when it isn't."""
        system, at = self._at(path)
        if system.getUri().getScheme() != "file":
            return None
        return Path(str(system.makeQualified(at).toUri().getPath()))

    def _at(self, path: str) -> tuple[Any, Any]:
        at = self._jvm.org.apache.hadoop.fs.Path(path)
        return at.getFileSystem(self._conf), at
