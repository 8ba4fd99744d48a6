"""The file with the classes of topics from which records may be deleted (SIDECAR_RELIEF_FILE).

Each class is a table of TOML. The order of the tables is the order of deletion, and a topic is in
the first class that has it. A class needs ``keep_bytes`` (of each partition), ``keep_time``, or
both.

Example::

    [[class]]
    topics = ["logs", "debug.*"]
    keep_bytes = "200MB"
    keep_time = "1h"
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sidecar.errors import SettingsError
from sidecar.formats.quantities import parse_duration, parse_size
from sidecar.throttle.relief import ReliefClass


class _Class(msgspec.Struct, forbid_unknown_fields=True):
    topics: list[str]
    keep_bytes: str | None = None
    keep_time: str | None = None
    ignore_groups: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    classes: list[_Class] = msgspec.field(name="class")


def read_classes(path: Path) -> tuple[ReliefClass, ...]:
    """Read the classes in their order.

    Raises:
        SettingsError: the file can't be used; it lists every problem.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        entries = msgspec.convert(document, _File).classes
    except OSError as error:
        raise SettingsError((f"{path} can't be read: {error.strerror}",)) from error
    except ValueError as error:
        # UnicodeDecodeError, TOMLDecodeError and msgspec's ValidationError are such.
        raise SettingsError((f"{path} can't be used: {error}",)) from error
    classes: list[ReliefClass] = []
    problems = [] if entries else [f"{path}: at least one class is needed: [[class]]"]
    for number, entry in enumerate(entries, 1):
        problems += [f"{path}: class {number}: {text}" for text in _problems(entry)]
        try:
            classes.append(
                ReliefClass(
                    tuple(entry.topics),
                    None if entry.keep_bytes is None else parse_size(entry.keep_bytes),
                    None if entry.keep_time is None else parse_duration(entry.keep_time),
                    entry.ignore_groups,
                )
            )
        except ValueError as error:
            problems.append(f"{path}: class {number}: {error}")
    if problems:
        raise SettingsError(tuple(problems))
    return tuple(classes)


def _problems(entry: _Class) -> Iterator[str]:
    if not entry.topics or not all(entry.topics):
        yield 'topics is empty: list patterns of names, such as ["logs.*"]'
    if entry.keep_bytes is None and entry.keep_time is None:
        yield "keep_bytes, keep_time or both are needed: what is always kept"
