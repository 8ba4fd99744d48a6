"""Identifies a log by its first bytes instead of its name or inode.

The first line has the time in milliseconds, the connection and its correlation id, so two files
never begin with the same bytes. A file that is renamed or copied keeps its beginning. The number of
these bytes, up to 1,024, is part of the identity, because the file may still be shorter when it is
first read.

Example: ``kafka-request.log`` has 700 bytes when it is first read, so its head is ``700:52a1...``.
After a rename to ``kafka-request.log.1``, its first 700 bytes show that it is the same file.

Source: log4j's RollingFileAppender and DailyRollingFileAppender rename; logrotate may copy.
"""

import hashlib
from dataclasses import dataclass
from typing import Final, Self

HEAD: Final = 1024
"""The largest number of bytes that identify a file."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file: the number of bytes and their digest."""

    length: int
    digest: str

    @classmethod
    def cut(cls, first: bytes) -> Self:
        """Make the head of a file's first bytes."""
        return cls(len(first), hashlib.blake2b(first, digest_size=8).hexdigest())
