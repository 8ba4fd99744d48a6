"""The folder of a volume history: a file for each hour, compressed once closed, and one bound.

A line is one write to a file that is opened for it alone, so that no failure outlasts itself. Where
a crash or a full disk left half a line, the next one begins on a line of its own. An hour that is
over is compressed beside its file and renamed, so a reader finds the one or the other whole; both
after a crash in between, which is no harm since readers count a reading once.

The bound is for all histories in the folder, whoever writes them: the oldest hours are removed
first.

Example: with a bound of 1 MB, 900 kB of packed hours and an hour of 200 kB, the oldest hours are
removed until 1 MB is left.
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
"""A stop waits for one of these to be packed: some milliseconds."""


@dataclass(frozen=True, slots=True)
class _File:
    hour: str
    path: Path
    size: int


class Folder:
    """A folder that one origin appends to.

    Attributes:
        path: the folder; it is not made.
        origin: who writes, as in the names of files.
        bytes: of all histories in the folder, when last listed, and what was appended since.
        removed: how many files were removed for the bound.
    """

    def __init__(self, path: Path, origin: str, max_bytes: int) -> None:
        """Nothing is written yet; no other sidecar may have the same origin."""
        self.path = path
        self.origin = _FOREIGN.sub("_", origin)
        self.bytes = 0
        self.removed = 0
        self._max_bytes = max_bytes
        self._tidied_hour: str | None = None
        self._stopping = threading.Event()

    def append(self, line: bytes, at_s: float) -> None:
        """Appends a line to the file of its hour.

        Args:
            line: with its newline.
            at_s: epoch seconds.

        Raises:
            OSError: it can't be written whole.
        """
        file = os.open(
            self.path / f"volumes-{self.origin}-{_hour(at_s)}.jsonl",
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
                # The rest would fail as well, and raise why.
                os.write(file, line[written:])
        finally:
            os.close(file)

    def tidy(self, at_s: float) -> None:
        """Compresses hours closed at epoch seconds, applies the bound; cheap when nothing is due.

        Raises:
            OSError: the folder can't be read, or a file not be packed or removed.
        """
        hour = _hour(at_s)
        is_new = hour != self._tidied_hour
        if not is_new and self.bytes <= self._max_bytes:
            return
        # First what frees space for sure: packing needs some.
        self._keep_bound()
        if is_new:
            self._pack_closed(hour)
            self._keep_bound()
            self._tidied_hour = hour

    def stop(self) -> None:
        """Stops compressing; the next start does it."""
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
                # A clock that went back has an hour twice: both are retained, as members.
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
                # Another sidecar may have removed or packed it meanwhile.
                with suppress(FileNotFoundError):
                    if match is not None and entry.is_file(follow_symlinks=False):
                        yield _File(match["hour"], Path(entry.path), entry.stat().st_size)


def hours(folder: Path) -> Iterator[list[Path]]:
    """The files of each hour, in the order of hours; what is just being packed is left out.

    Raises:
        OSError: the folder can't be read.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match is not None and path.suffix != ".tmp":
            found.setdefault(match["hour"], []).append(path)
    for hour in sorted(found):
        yield found[hour]


def _hour(at_s: float) -> str:
    return time.strftime("%Y%m%dT%H", time.gmtime(at_s))
