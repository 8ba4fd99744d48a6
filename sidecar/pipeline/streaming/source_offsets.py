"""Which logs a stream follows: what is on the disk now, matched with what was read before.

Where a stream is, its offset, says for each file that it has seen, by its beginning: whose log it
is, the path at which it was first seen, how much of it was read and how much there was. Files that
are gone and were read to their end are forgotten, the longest gone first, when a broker has more
than 32 of them: a file that is being renamed may be missed by a look.

Example of an offset: ``{"3:1024:52a1f00dd00f1234": {"broker": 3, "path": "/logs/kafka-3.log",
"at": 1048613, "end": 1048613}}``. The file's name in the tables is ``/logs/kafka-3.log#52a1f00d``,
also after it was renamed, so that (file, offset) is a line's alone.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from sidecar.errors import SidecarError
from sidecar.pipeline.ingest.growing_logs import Head, Packed, Plain, first_bytes, lines_of

Offset = dict[str, dict[str, int | str]]
"""By the file's key: "broker", "path", "at", "end"."""

_MOST_GONE: Final = 32
_LOOKS: Final = 4
_BETWEEN_LOOKS_S: Final = 0.25


class LostLinesError(SidecarError):
    """Lines that were not read yet are gone."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A file that is followed.

    Attributes:
        key: of its entry in the offset: broker, length and digest of its beginning.
        broker: whose log it is.
        zone: of that broker's clock.
        path: where it is now.
        first_path: where it was first seen.
        at: how much of it was read, bytes.
        end: how much of it can be read, bytes.
        lines: its lines.
    """

    key: str
    broker: int
    zone: ZoneInfo
    path: Path
    first_path: str
    at: int
    end: int
    lines: Plain | Packed

    @property
    def name(self) -> str:
        """In the tables."""
        return f"{self.first_path}#{head_of(self.key).digest[:8]}"


def head_of(key: str) -> Head:
    """What the file of an entry is known by."""
    _, length, digest = key.split(":")
    return Head(int(length), digest)


def advanced(offset: Offset, files: Iterable[Followed], ends: Mapping[str, int]) -> Offset:
    """The offset after a batch; the same one when there is nothing to read."""
    there: Offset = {
        file.key: {
            "broker": file.broker,
            "path": file.first_path,
            "at": ends.get(file.key, file.at),
            "end": file.end,
        }
        for file in files
        if file.end > 0
    }
    gone: dict[int, list[str]] = {}
    for key, known in offset.items():
        if key not in there:
            gone.setdefault(int(known["broker"]), []).append(key)
    forgotten = {key for keys in gone.values() for key in keys[:-_MOST_GONE]}
    kept = {key: known for key, known in offset.items() if key not in forgotten}
    return kept | there


class Follower:
    """Looks at the disk.

    It keeps what it knows of packed files, which costs unpacking them.
    """

    __slots__ = ("_list", "_packed", "_sleep", "_zone_of")

    def __init__(
        self,
        list_files: Callable[[], Iterable[tuple[Path, int]]],
        zone_of: Callable[[int], ZoneInfo],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is read yet.

        Args:
            list_files: the files that are there, each with its broker.
            zone_of: a broker's clock.
            sleep: waits for so many seconds.
        """
        self._list = list_files
        self._zone_of = zone_of
        self._sleep = sleep
        self._packed: dict[tuple[str, int, int, int], Packed] = {}

    def look(self, offset: Offset) -> list[Followed]:
        """The files that are there, with what was read of them before.

        Raises:
            LostLinesError: a file is gone that was not read to its end.
        """
        unread = {key for key, known in offset.items() if int(known["at"]) < int(known["end"])}
        found = self._look(offset)
        for _ in range(_LOOKS):
            if unread <= found.keys():
                return list(found.values())
            # It may just be renamed.
            self._sleep(_BETWEEN_LOOKS_S)
            found = self._look(offset)
        known = offset[min(unread - found.keys())]
        raise LostLinesError(
            f"what was the log {known['path']} is gone, and"
            f" {int(known['end']) - int(known['at'])} bytes of it were not read: put it back under"
            " any name that is followed, or begin anew with a new checkpoint and output"
        )

    def _look(self, offset: Offset) -> dict[str, Followed]:
        keys = _Keys(offset)
        found: dict[str, Followed] = {}
        # A file and its packed copy may be there both, while it is being packed: it is one.
        for path, broker in sorted(self._list(), key=_plain_first):
            try:
                key = keys.of(broker, first_bytes(path))
                if key is None or key in found:
                    continue
                found[key] = self._followed(key, path, broker, offset.get(key, {}))
            except (OSError, EOFError):
                # Renamed since it was listed, or not packed to its end yet.
                continue
        return found

    def _followed(
        self, key: str, path: Path, broker: int, known: Mapping[str, int | str]
    ) -> Followed:
        zone = self._zone_of(broker)
        lines = self._lines(path, zone)
        at = int(known.get("at", 0))
        first_path = str(known.get("path", path))
        return Followed(key, broker, zone, path, first_path, at, max(at, lines.end()), lines)

    def _lines(self, path: Path, zone: ZoneInfo) -> Plain | Packed:
        status = path.stat()
        state = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
        if state in self._packed:
            return self._packed[state]
        lines = lines_of(path, zone)
        if isinstance(lines, Packed):
            self._packed[state] = lines
        return lines


def _plain_first(file: tuple[Path, int]) -> tuple[bool, str]:
    path, _ = file
    return path.suffix == ".gz", str(path)


class _Keys:
    """Which entry a file has, by its beginning."""

    __slots__ = ("_known", "_lengths")

    def __init__(self, offset: Offset) -> None:
        self._known = frozenset(offset)
        # The longest first: a file that was seen when it was short may begin as another does.
        self._lengths = sorted({head_of(key).length for key in offset}, reverse=True)

    def of(self, broker: int, first: bytes) -> str | None:
        """Its key, known or new; None while it is too short to be known by anything."""
        for length in self._lengths:
            if len(first) >= length:
                key = _key(broker, Head.cut(first, length))
                if key in self._known:
                    return key
        made = Head.of(first)
        return None if made is None else _key(broker, made)


def _key(broker: int, head: Head) -> str:
    return f"{broker}:{head.length}:{head.digest}"
