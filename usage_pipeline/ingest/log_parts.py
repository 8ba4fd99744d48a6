"""Divides request logs into parts and tasks, and reads a part.

Example: a file of 150 MB has 3 parts of at most 64 MiB. With two cores, 96 files of 26 MB are read
by 8 tasks of 12 files each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from sidecar.requestlog.examined import COMPRESSED
from sidecar.requestlog.layout import Layout
from sidecar.requestlog.pieces import is_of_container
from usage_pipeline.ingest.lines import Unread, blocks, parts, unpacked_blocks
from usage_pipeline.ingest.log_clock import Doubled, ahead_ms, doubled
from usage_pipeline.ingest.paths import LogFile, RequestLogsError
from usage_pipeline.ingest.records import ROWS, Parsed, parse_block, rejected_rows
from usage_pipeline.ingest.second_pass import SecondPass, second_pass, times_of, times_of_packed
from usage_pipeline.ingest.stored_logs import open_log
from usage_pipeline.kernels.values import Flags, Longs

SPLIT_BYTES: Final = 1 << 26
TASK_BYTES: Final = 1 << 30
"""The most bytes that a task reads, plus half a part. Lines of one hour become files of 80 MB."""
_TASKS_OF_A_CORE: Final = 4
_LINE_START: Final = 128
"""Bytes that show what a file is."""
_UNPACKED_TIMES: Final = 16
"""How much larger a gzip file is when uncompressed."""


@dataclass(frozen=True, slots=True)
class Part:
    """The lines of a file that begin at byte ``start`` or later, and before byte ``end``."""

    file: LogFile
    start: int
    end: int

    @property
    def text_bytes(self) -> int:
        """The size of its lines; an estimate for a compressed file."""
        return (self.end - self.start) * (_UNPACKED_TIMES if self.file.packed else 1)


def parts_of(files: Iterable[LogFile], split_bytes: int) -> list[Part]:
    """Return all parts of some files. A gzip file is one part, and so is a container's log."""
    return [
        Part(file, start, end)
        for file in files
        for start, end in (
            [(0, file.size)]
            if file.packed or _has_pieces(file, split_bytes)
            else parts(file.size, split_bytes)
        )
    ]


def _has_pieces(file: LogFile, split_bytes: int) -> bool:
    """Whether a file has several parts, and long lines in pieces, which a part must not separate.

    Kubernetes rotates a container's log at 10 MiB, so hardly any is longer than a part.
    """
    if file.size <= split_bytes:
        return False
    try:
        with open_log(file) as opened:
            return is_of_container(opened.read(_LINE_START))
    except OSError:
        return False  # The worker that reads the file reports it.


def parse_part(part: Part, schema: pa.Schema = ROWS) -> Iterator[Parsed]:
    """Yield the rows and the unreadable lines of a part, block by block.

    Raises:
        OSError: the file can't be read.
        RequestLogsError: it is compressed, although its name says that it is not.
    """
    file = part.file
    zone = ZoneInfo(file.zone)

    def is_second(offsets: Longs, seconds: Longs) -> Flags:
        is_later = np.zeros(len(seconds), np.bool_)
        left = np.ones(len(seconds), np.bool_)
        while left.any():
            # A file covers about a day, so it has repeated times of at most one autumn.
            hour = doubled(int(seconds[left][0]), zone)
            of_hour = (seconds >= hour.start) & (seconds < hour.end)
            is_later[of_hour] = _second_pass(file, hour).has(offsets[of_hour], seconds[of_hour])
            left &= ~of_hour
        return is_later

    layout = Layout(file.layout)
    with open_log(file) as opened:
        if not file.packed and COMPRESSED.match(opened.read(_LINE_START)):
            raise RequestLogsError(
                f"{file.path} is compressed, and not named .gz: rename a gzip file, uncompress"
                " another one, or leave it out of --request-logs"
            )
        opened.seek(0)
        pieces = unpacked_blocks(opened) if file.packed else blocks(opened, part.start, part.end)
        for piece in pieces:
            if isinstance(piece, Unread):
                empty = pa.RecordBatch.from_pylist([], schema=schema)
                unread = (piece.offset, piece.bytes, piece.kind, piece.reason)
                yield Parsed(empty, rejected_rows([unread], file.broker, file.path))
                continue
            yield parse_block(
                piece.data,
                broker=file.broker,
                zone=zone,
                src_file=file.path,
                offset=piece.offset,
                schema=schema,
                is_second=is_second,
                layout=layout,
            )


@lru_cache(maxsize=16)
def _second_pass(file: LogFile, hour: Doubled) -> SecondPass:
    """Return which lines of a file belong to the second pass; the parts ask one after the other."""
    ahead_s = int(ahead_ms(np.array([hour.start]), ZoneInfo(file.zone), 1)[0]) / 1000
    changed = None if file.changed_at is None else file.changed_at + ahead_s
    with open_log(file) as opened:
        if not file.packed:
            time_at = times_of(opened, file.size, file.layout)
            return second_pass(time_at, file.size, hour, changed)
        time_at, size = times_of_packed(opened, file.layout)
        return second_pass(time_at, size, hour, changed)


def in_tasks(parts: Sequence[Part], cores: int) -> list[list[Part]]:
    """Group consecutive parts into tasks.

    A task costs Spark tens of milliseconds, and so does each small file that a task writes to those
    who read it. There are therefore only as many tasks as the cores need to finish at the same
    time. One more task would keep one core busy while the others wait, so a part goes to a task
    that has room for at least half of it.
    """
    left = sum(part.text_bytes for part in parts)
    number = max(_TASKS_OF_A_CORE * cores, left // TASK_BYTES)
    tasks: list[list[Part]] = []
    room = 0
    for part in parts:
        size = part.text_bytes
        if not tasks or size > 2 * room:
            room = min(TASK_BYTES, left // max(1, number - len(tasks)))
            tasks.append([])
        tasks[-1].append(part)
        room -= size
        left -= size
    return tasks
