"""The folder of a volume history: a file for each hour, compression of closed files, and a bound.

Each line is one write to a newly opened file, so that a failed write does not affect later ones. If
a crash or a full disk left half a line, the next line begins on a new line. A closed hour is
compressed into a temporary file that is then renamed, so a reader finds either file complete. After
a crash in between it finds both, which is harmless because readers count each reading once.

The bound applies to all histories in the folder, whichever sidecar writes them. The oldest hours
are removed first.

Example: with a bound of 1 MB, 900 kB of compressed hours and a new hour of 200 kB, the oldest hours
are removed until 1 MB is left.
"""

import gzip
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_NAME: Final = re.compile(r"volumes-(?P<origin>.+)-(?P<hour>\d{8}T\d{2})\.jsonl(?:\.gz(?:\.tmp)?)?")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]")
_CHUNK_BYTES: Final = 256 * 1024
"""How much is compressed at once; a stop waits for that, which takes some milliseconds."""


@dataclass(frozen=True, slots=True)
class _File:
    hour: str
    path: Path
    size: int


class Folder:
    """The folder to which one sidecar appends.

    Attributes:
        path: the folder, which must exist.
        origin: the sidecar's name in the names of files.
        bytes: the size of all histories when the folder was last listed, plus later lines.
        removed: how many files were removed because of the bound.
    """

    def __init__(self, path: Path, origin: str, max_bytes: int) -> None:
        """Write nothing yet. No other sidecar may use the same origin."""
        self.path = path
        self.origin = _FOREIGN.sub("_", origin)
        self.bytes = 0
        self.removed = 0
        self._max_bytes = max_bytes
        self._tidied_hour: str | None = None
        self._stopping = threading.Event()

    def append(self, line: bytes, at_s: float) -> None:
        """Append a line to the file of its hour.

        Args:
            line: the line with its newline.
            at_s: the time of the observation, in epoch seconds.

        Raises:
            OSError: the line can't be written completely.
        """
        file = os.open(
            self.path / file_name(self.origin, at_s),
            os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o644,
        )
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line
            written = os.write(file, line)
            self.bytes += written
            if written < len(line):
                # Writing the rest fails too, and raises the reason.
                os.write(file, line[written:])
        finally:
            os.close(file)

    def tidy(self, at_s: float) -> None:
        """Compress closed hours and apply the bound; cheap if there is nothing to do.

        Raises:
            OSError: the folder can't be read, or a file can't be compressed or removed.
        """
        hour = _hour(at_s)
        is_new = hour != self._tidied_hour
        if not is_new and self.bytes <= self._max_bytes:
            return
        # Remove files first, because compressing needs space.
        self._keep_bound()
        if is_new:
            self._pack_closed(hour)
            self._keep_bound()
            self._tidied_hour = hour

    def stop(self) -> None:
        """Stop compressing; the next start continues."""
        self._stopping.set()

    def _keep_bound(self) -> None:
        files = sorted(self._files(), key=lambda file: (file.hour, file.path.name))
        self.bytes = sum(file.size for file in files)
        for file in files:
            if self.bytes <= self._max_bytes:
                return
            file.path.unlink(missing_ok=True)
            self.bytes -= file.size
            self.removed += 1

    def _pack_closed(self, hour: str) -> None:
        own = re.compile(rf"volumes-{re.escape(self.origin)}-\d{{8}}T\d{{2}}\.jsonl(?P<end>.*)")
        for file in list(self._files()):
            match = own.fullmatch(file.path.name)
            if match is None:
                continue
            if match["end"] == ".gz.tmp":
                file.path.unlink(missing_ok=True)
            elif match["end"] == "" and file.hour != hour:
                self._pack(file.path)

    def _pack(self, path: Path) -> None:
        packed = path.with_name(f"{path.name}.gz")
        beside = path.with_name(f"{path.name}.gz.tmp")
        try:
            with beside.open("wb") as target:
                # If the clock went back, an hour has two files: both become members of one archive.
                with suppress(FileNotFoundError), packed.open("rb") as before:
                    self._copy(before, target)
                with (
                    path.open("rb") as source,
                    gzip.GzipFile("", "wb", compresslevel=6, fileobj=target) as packing,
                ):
                    self._copy(source, packing)
                target.flush()
                os.fsync(target.fileno())
            if not self._stopping.is_set():
                beside.replace(packed)
                path.unlink()
        finally:
            beside.unlink(missing_ok=True)

    def _copy(self, source: BinaryIO, target: "SupportsWrite[bytes]") -> None:
        while not self._stopping.is_set() and (chunk := source.read(_CHUNK_BYTES)):
            target.write(chunk)

    def _files(self) -> Iterator[_File]:
        with os.scandir(self.path) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                # Another sidecar may have removed or compressed the file in the meantime.
                with suppress(FileNotFoundError):
                    if match is not None and entry.is_file(follow_symlinks=False):
                        yield _File(match["hour"], Path(entry.path), entry.stat().st_size)


def hours(folder: Path, since_s: float = 0.0) -> Iterator[list[Path]]:
    """Return the files of each hour, the oldest first, without those being compressed now.

    Args:
        folder: the folder of the histories.
        since_s: earlier hours are left out, in epoch seconds.

    Raises:
        OSError: the folder can't be read.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match is not None and path.suffix != ".tmp":
            found.setdefault(match["hour"], []).append(path)
    for hour in sorted(found):
        if hour >= _hour(since_s):
            yield found[hour]


def file_name(origin: str, at_s: float) -> str:
    """Return the name of the file with the lines of a time, in epoch seconds."""
    return f"volumes-{origin}-{_hour(at_s)}.jsonl"


def _hour(at_s: float) -> str:
    return time.strftime("%Y%m%dT%H", time.gmtime(at_s))
