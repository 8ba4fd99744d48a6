"""A tail's settings and its result.

Example: 64 MiB behind with the default settings are read in 256 steps; 300 MiB behind are cut to
128 MiB, and 172 MiB are counted as dropped.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TailSettings:
    """How much is read and retained, and how often.

    Attributes:
        read_bytes: at most in one read, > 0; a quarter of a MiB takes a millisecond to parse.
        longest_line: bytes, > 0; longer ones are dropped.
        most_files: that are open at once, > 0; a file that was rotated away and deleted takes its
            space on the disk until it is closed.
        most_behind: bytes, > 0; of what is not read yet, the older is dropped beyond this.
        idle_s: seconds until the next read when there is nothing new, > 0.

    Raises:
        ValueError: one is not positive.
    """

    read_bytes: int = 1 << 18
    longest_line: int = 1 << 22
    most_files: int = 4
    most_behind: int = 1 << 28
    idle_s: float = 0.25

    def __post_init__(self) -> None:
        numbers = (self.read_bytes, self.longest_line, self.most_files, self.most_behind)
        if min(*numbers, self.idle_s) <= 0:
            raise ValueError("what a tail reads and retains must be positive")


@dataclass(slots=True)
class TailCounts:
    """What happened since the start; all begin at zero.

    Attributes:
        bytes: read.
        lines: whole ones.
        rotations: another file had taken the path.
        truncations: the file had become shorter.
        dropped_lines: longer than the longest.
        dropped_bytes: of those lines, and of what was skipped or had no end.
        dropped_files: closed before they were read to their end, to catch up.
        failures: reads that failed.
    """

    bytes: int = 0
    lines: int = 0
    rotations: int = 0
    truncations: int = 0
    dropped_lines: int = 0
    dropped_bytes: int = 0
    dropped_files: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class TailRead:
    """The result of one read.

    Attributes:
        lines: without their ends, in the file's order.
        more: whether to read again at once.
        behind: bytes that are not read yet.
        failure: why the file can't be read; None when it can, or isn't there.
        there: whether there is a file.
    """

    lines: tuple[bytes, ...] = ()
    more: bool = False
    behind: int = 0
    failure: str | None = None
    there: bool = True
