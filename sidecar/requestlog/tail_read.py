"""The settings, counts and results of a ``Tail``.

Example: with the default settings, 64 unread MiB take 256 reads. Of 300 unread MiB, 172 MiB are
dropped and counted, and 128 MiB are read.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TailSettings:
    """How much is read and kept, and how often.

    Attributes:
        read_bytes: the most bytes of one read, > 0. Parsing 256 KiB takes a millisecond.
        longest_line: the most bytes of a line, > 0; longer lines are dropped.
        most_files: the most files open at once, > 0. A rotated and deleted file uses disk space
            until it is closed.
        most_behind: the most unread bytes, > 0; older ones beyond that are dropped.
        idle_s: seconds until the next read if there is nothing new, > 0.
    """

    read_bytes: int = 1 << 18
    longest_line: int = 1 << 22
    most_files: int = 4
    most_behind: int = 1 << 28
    idle_s: float = 0.25


@dataclass(slots=True)
class TailCounts:
    """Counts since the start; all begin at zero.

    Attributes:
        bytes: bytes read.
        lines: whole lines read.
        dropped_lines: lines that were too long.
        dropped_bytes: bytes of these lines, of skipped parts, and of lines without an end.
        dropped_files: files closed before their end, because too many bytes were unread.
    """

    bytes: int = 0
    lines: int = 0
    dropped_lines: int = 0
    dropped_bytes: int = 0
    dropped_files: int = 0


@dataclass(frozen=True, slots=True)
class TailRead:
    """The result of one read.

    Attributes:
        lines: the lines without their ends, in the file's order.
        more: whether to read again at once.
        behind: how many bytes are not read yet.
        failure: why the file can't be read; None if it can be read or does not exist.
        there: whether the file exists.
    """

    lines: tuple[bytes, ...] = ()
    more: bool = False
    behind: int = 0
    failure: str | None = None
    there: bool = True
