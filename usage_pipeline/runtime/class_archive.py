"""Archives the classes that Spark's JVM loads, so that later runs start faster (JEP 350).

A short run spends more time on loading and checking about 20,000 classes than on its work. The JVM
writes the classes to a file when it ends, and the next JVM maps the file. The file's name depends
on the JDK and on Spark, so a file of another version isn't used. If the JVM can't use a file, it
ignores the file.

Example with JDK 17 and two cores: a file of 190 MB is written once, in about 15 s. A later run gets
Spark's first answer after 5 s instead of 10 s.
"""

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Final

from sidecar.errors import SidecarError

_DEADLINE_S: Final = 120.0
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Without these options, the JVM writes messages about omitted classes to standard output."""


class NotKeptError(SidecarError):
    """The archive was not written; the next run tries again."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """An archive of classes.

    Attributes:
        file: the archive to read, if it exists.
        partial: the file to write first; None if this run does not write the archive.
    """

    file: Path
    partial: Path | None

    @classmethod
    def of_jdk(cls, folder: Path, java: Path, spark: Path, *, whole: bool) -> "ClassArchive":
        """Name the archive of this JDK and Spark; a ``whole`` run loads all and may write it."""
        paths = (java.resolve(), spark.resolve())
        key = "|".join(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in paths)
        file = folder / f"classes-{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsa"
        writes = whole and not file.exists() and _is_writable(folder)
        return cls(file, file.with_suffix(f".{os.getpid()}.partial") if writes else None)

    @property
    def options(self) -> tuple[str, ...]:
        """Return the JVM's options."""
        if self.partial is not None:
            return (f"-XX:ArchiveClassesAtExit={self.partial}", *_QUIET)
        if self.file.exists():
            return (f"-XX:SharedArchiveFile={self.file}", *_QUIET)
        return ()

    def keep(self, jvm: "Popen[bytes]") -> None:
        """Wait until the JVM has ended, and keep the archive that it has written.

        Raises:
            NotKeptError: the JVM did not write the archive.
        """
        if self.partial is None:
            return
        try:
            code = jvm.wait(_DEADLINE_S)
            if code:
                raise NotKeptError(f"Java ended with exit code {code}")
            self.partial.replace(self.file)
        except (OSError, TimeoutExpired) as error:
            raise NotKeptError(str(error)) from error
        finally:
            if jvm.poll() is None:
                jvm.kill()
            with suppress(OSError):
                self.partial.unlink(missing_ok=True)


def java_binary() -> Path | None:
    """Return the binary that Spark starts, or None without Java."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return Path(home) / "bin" / "java"
    path = shutil.which("java")
    return None if path is None else Path(path)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
