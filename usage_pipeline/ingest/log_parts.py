"""Parts of request logs: which there are, which of them one task reads, and what is in one.

Example: a file of 150 MB is 3 parts of at most 64 MiB; 96 files of 26 MB are read on two cores by
8 tasks of 12 files.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from usage_pipeline.ingest.lines import Unread, blocks, parts, unpacked_blocks
from usage_pipeline.ingest.log_clock import Doubled, ahead_ms, doubled
from usage_pipeline.ingest.paths import LogFile
from usage_pipeline.ingest.records import REJECTED, ROWS, Parsed, parse_block
from usage_pipeline.ingest.second_pass import SecondPass, second_pass, times_of, times_of_packed
from usage_pipeline.ingest.stored_logs import open_log
from usage_pipeline.kernels.values import Flags, Longs

SPLIT_BYTES: Final = 1 << 26
TASK_BYTES: Final = 1 << 30
"""Of lines, that one task reads at most, and half a part: they become files of some 80 MB where
they are of one hour."""
_TASKS_OF_A_CORE: Final = 4
_UNPACKED_TIMES: Final = 16
"""How much longer a gzip file is unpacked."""


@dataclass(frozen=True, slots=True)
class Part:
    """The lines that begin in a part of a file.

    Attributes:
        file: whose they are.
        start: bytes.
        end: bytes; its first byte is not in it.
    """

    file: LogFile
    start: int
    end: int

    @property
    def text_bytes(self) -> int:
        """Of its lines; about, where they are packed."""
        return (self.end - self.start) * (_UNPACKED_TIMES if self.file.packed else 1)


def parts_of(files: Iterable[LogFile], split_bytes: int) -> list[Part]:
    """All of some files; a gzip file is one."""
    return [
        Part(file, start, end)
        for file in files
        for start, end in ([(0, file.size)] if file.packed else parts(file.size, split_bytes))
    ]


def parse_part(part: Part, schema: pa.Schema = ROWS) -> Iterator[Parsed]:
    """Its rows, and its lines that can't be read, block after block.

    Raises:
        OSError: the file can't be read.
    """
    file = part.file
    zone = ZoneInfo(file.zone)

    def is_second(offsets: Longs, seconds: Longs) -> Flags:
        found = np.zeros(len(seconds), np.bool_)
        left = np.ones(len(seconds), np.bool_)
        while left.any():
            # Of one autumn nearly always: a file has lines of a day or so.
            hour = doubled(int(seconds[left][0]), zone)
            of_hour = (seconds >= hour.start) & (seconds < hour.end)
            found[of_hour] = _second_pass(file, hour).has(offsets[of_hour], seconds[of_hour])
            left &= ~of_hour
        return found

    with open_log(file) as opened:
        pieces = unpacked_blocks(opened) if file.packed else blocks(opened, part.start, part.end)
        for piece in pieces:
            if isinstance(piece, Unread):
                empty = pa.RecordBatch.from_pylist([], schema=schema)
                yield Parsed(empty, _unread(piece, file))
                continue
            yield parse_block(
                piece.data,
                broker=file.broker,
                zone=zone,
                src_file=file.path,
                offset=piece.offset,
                schema=schema,
                is_second=is_second,
            )


@lru_cache(maxsize=16)
def _second_pass(file: LogFile, hour: Doubled) -> SecondPass:
    """Which lines of a file are of the second pass; parts of it ask one after the other."""
    ahead_s = int(ahead_ms(np.array([hour.start]), ZoneInfo(file.zone), 1)[0]) / 1000
    changed = None if file.changed_at is None else file.changed_at + ahead_s
    with open_log(file) as opened:
        if not file.packed:
            return second_pass(times_of(opened, file.size), file.size, hour, changed)
        time_at, size = times_of_packed(opened)
        return second_pass(time_at, size, hour, changed)


def in_tasks(parts: Sequence[Part], cores: int) -> list[list[Part]]:
    """Parts that follow each other, as many as are read by one task.

    A task costs Spark tens of milliseconds, and a file of an hour that has a few rows costs whoever
    reads it as much; so there are only as many tasks as the cores need to end at the same time. One
    task more would be read by one core while the others wait, so a part goes to the task that has
    room for half of it.
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


def _unread(piece: Unread, file: LogFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "broker": file.broker,
                "src_file": file.path,
                "src_offset": piece.offset,
                "kind": piece.kind,
                "reason": piece.reason,
                "bytes": piece.bytes,
            }
        ],
        schema=REJECTED,
    )
