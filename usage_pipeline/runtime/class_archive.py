"""The classes that Spark's JVM loads, archived by one run for all later ones (JEP 350).

To find, check and lay out some 20,000 classes takes a short run longer than its work. The JVM
writes them to a file when it ends, and the next one maps it. A file of another JDK or Spark isn't
used, by its name; one that the JVM can't use it leaves aside by itself.

Example, JDK 17 and two cores: a file of 190 MB, written in some 15 s once; a later run has its
first answer of Spark after 5 s, not 10.
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
_SAYS_NOTHING: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Without these options the JVM writes of left-out classes to standard output."""


class NotKeptError(SidecarError):
    """The archive wasn't written; the next run tries again."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """A file of classes.

    Attributes:
        file: that is read, if it is there.
        partial: that is written first; None: this run writes none.
    """

    file: Path
    partial: Path | None

    @classmethod
    def of(cls, folder: Path, java: Path, spark: Path, *, whole: bool) -> "ClassArchive":
        """The one of this JDK and this Spark; a ``whole`` run loads all and may write it."""
        paths = (java.resolve(), spark.resolve())
        key = "|".join(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in paths)
        file = folder / f"classes-{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsa"
        writes = whole and not file.exists() and _is_writable(folder)
        return cls(file, file.with_suffix(f".{os.getpid()}.partial") if writes else None)

    @property
    def options(self) -> tuple[str, ...]:
        """Of the JVM."""
        if self.partial is not None:
            return (f"-XX:ArchiveClassesAtExit={self.partial}", *_SAYS_NOTHING)
        if self.file.exists():
            return (f"-XX:SharedArchiveFile={self.file}", *_SAYS_NOTHING)
        return ()

    def keep(self, jvm: "Popen[bytes]") -> None:
        """Waits for a JVM that is ending, and retains what it has written.

        Raises:
            NotKeptError: it wasn't written.
        """
        if self.partial is None:
            return
        try:
            code = jvm.wait(_DEADLINE_S)
            if code:
                raise NotKeptError(f"Java ended with {code}")
            self.partial.replace(self.file)
        except (OSError, TimeoutExpired) as error:
            raise NotKeptError(str(error)) from error
        finally:
            if jvm.poll() is None:
                jvm.kill()
            with suppress(OSError):
                self.partial.unlink(missing_ok=True)


def java_binary() -> Path | None:
    """The one that Spark starts; None: there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return None if found is None else Path(found)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
