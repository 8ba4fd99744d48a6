"""The file with the classes of topics from which records may be deleted (SIDECAR_RELIEF_FILE).

It is read at the start and after each change. While it can't be read, nothing is deleted.

Each class is a table of TOML. The order of the tables is the order of deletion, and a topic is in
the first class that has it. A class needs ``keep_bytes`` (of each partition), ``keep_time``, or
both.

Example::

    [[class]]
    topics = ["logs", "debug.*"]
    keep_bytes = "200MB"
    keep_time = "1h"
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sidecar.control.followed_file import FollowedFile
from sidecar.errors import SettingsError
from sidecar.formats.quantities import parse_duration, parse_size
from sidecar.throttle.relief import ReliefClass


class _Class(msgspec.Struct, forbid_unknown_fields=True):
    topics: list[str]
    keep_bytes: str | int | None = None
    keep_time: str | None = None
    ignore_groups: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    classes: list[_Class] = msgspec.field(name="class")


class ClassesFile(FollowedFile[tuple[ReliefClass, ...]]):
    """A file that is followed; its contents are the classes in their order."""

    what = "classes of topics"
    meanwhile = "nothing is deleted to make room until it can be used"

    def parse(self, document: dict[str, Any]) -> tuple[ReliefClass, ...]:
        """See ``FollowedFile``; the error lists every problem."""
        try:
            entries = msgspec.convert(document, _File).classes
        except msgspec.ValidationError as error:
            raise SettingsError((f"{self.path} can't be used: {error}",)) from error
        classes: list[ReliefClass] = []
        problems = [] if entries else [f"{self.path}: at least one class is needed: [[class]]"]
        for number, entry in enumerate(entries, 1):
            where = f"{self.path}: class {number}"
            problems += [f"{where}: {text}" for text in _problems(entry)]
            try:
                declared = ReliefClass(
                    tuple(entry.topics),
                    None if entry.keep_bytes is None else parse_size(str(entry.keep_bytes)),
                    None if entry.keep_time is None else parse_duration(entry.keep_time),
                    entry.ignore_groups,
                )
            except ValueError as error:
                problems.append(f"{where}: {error}")
            else:
                floors = (("keep_bytes", declared.keep_bytes), ("keep_time", declared.keep_s))
                zero = [name for name, value in floors if value == 0]
                problems += [f"{where}: {name} must be > 0" for name in zero]
                classes.append(declared)
        if problems:
            raise SettingsError(tuple(problems))
        return tuple(classes)


def _problems(entry: _Class) -> Iterator[str]:
    if not entry.topics or not all(entry.topics):
        yield 'topics is empty: list patterns of names, such as ["logs.*"]'
    if entry.keep_bytes is None and entry.keep_time is None:
        yield "keep_bytes, keep_time or both are needed: what is always kept"
