"""The work of ``request-log check``: which lines of a file are read, and why the others are not.

Example: of a log from syslog with 97 whole requests and 3 that were cut at 8 KiB, it reports the
layout, the time, "97 of 100 are read", and the reason for the other 3.
"""

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import click

from sidecar.errors import SidecarError
from sidecar.requestlog.examined import COMPRESSED, MOST_UNREAD, Examined, examine

_LONGEST_LINE: Final = 1 << 26
_STDIN: Final = "-"


def check(file: str, pattern: str | None = None) -> int:
    """Print what can be read of a file; return the exit code.

    Args:
        file: a path, of a gzip file too; ``-`` for standard input.
        pattern: the pattern of the log's layout; None if it is not known.

    Raises:
        SidecarError: the file can't be read.
    """
    try:
        found = examine(_lines(file), pattern)
    except (OSError, EOFError, zlib.error) as error:
        raise SidecarError(f"{file} can't be read: {error}") from error
    for name, text in _report(found):
        click.echo(f"{name:<14}{text}")
    return 0 if found.is_readable else 1


def _lines(file: str) -> Iterator[bytes]:
    if file == _STDIN:
        yield from _lines_of(sys.stdin.buffer, "standard input")
        return
    with gzip.open(file) if file.endswith(".gz") else Path(file).open("rb") as opened:
        yield from _lines_of(opened, file)


def _lines_of(opened: BinaryIO | gzip.GzipFile, name: str) -> Iterator[bytes]:
    for number, line in enumerate(iter(lambda: opened.readline(_LONGEST_LINE), b"")):
        if number == 0 and COMPRESSED.match(line):
            raise SidecarError(
                f"{name} is compressed: uncompress it, or let a gzip file end in .gz"
            )
        yield line


def _report(found: Examined) -> Iterator[tuple[str, str]]:
    requests = found.read + found.unread
    yield "Requests", f"{found.read:,} of {requests:,} are read"
    for form, _ in found.forms.most_common(3):
        yield "Layout", form
    if found.first is not None and found.last is not None:
        zone = "with" if found.with_offset else "without"
        first, last = (time.isoformat(" ", "milliseconds") for time in (found.first, found.last))
        yield "Time", f"{first} to {last}, {zone} an offset from UTC"
        if found.in_whole_seconds:
            yield "", "in whole seconds: the order within a second is all that is known"
    if found.without_time:
        yield "Without time", f"{found.without_time:,} requests; the pipeline can't read them"
    for (kind, reason), count in found.rejected.most_common(10):
        yield "Not read", f"{count:,} {kind}: {reason}"
    if not requests:
        yield "", 'no requests: is the log on? "throttle-sidecar request-log status" shows it'
    elif not found.is_readable:
        yield "", f"more than {MOST_UNREAD:.0%} can't be read; docs/request-log.md has the layouts"
