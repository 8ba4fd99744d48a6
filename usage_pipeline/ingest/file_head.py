"""What a log is known by: its first bytes, not its name or inode.

The first line has the time in milliseconds, the connection and its correlation id, so no two files
begin alike, and a file that is renamed or copied keeps its beginning. How many bytes that is, up to
1,024, is part of the name, since a file may be seen when it is still shorter.

Example: ``kafka-request.log`` is first seen with 700 bytes, the head ``700:52a1...``. Renamed to
``kafka-request.log.1`` its first 700 bytes say that it is the same one.

Source: log4j's RollingFileAppender and DailyRollingFileAppender rename; logrotate may copy.
"""

import hashlib
from dataclasses import dataclass
from typing import Final, Self

HEAD: Final = 1024
"""Bytes that a file is known by, at most."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file: its length in bytes, and digest."""

    length: int
    digest: str

    @classmethod
    def cut(cls, first: bytes, length: int) -> Self:
        """Of so many of a file's first bytes."""
        return cls(length, hashlib.blake2b(first[:length], digest_size=8).hexdigest())
