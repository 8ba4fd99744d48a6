"""Settings from a TOML file.

Every key is ours, so every unknown one is a mistake. Words may be grouped in tables in any way: the
words of the path, in order, are the setting's name.

Example: ``[storage]`` with ``check_interval = "PT30S"``, or ``storage.check.interval = "PT30S"``.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sidecar.settings import keys
from sidecar.settings.foreign import ADMIN_KEYS, admin_verdict
from sidecar.settings.raw_values import Entry, Reading


def read_toml(path: Path) -> Reading:
    """Read and sort a TOML file; one that can't be read is a problem, not an exception."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        return _unreadable(f"the TOML file {path} can't be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return _unreadable(f"the TOML file {path} is not UTF-8 at byte {error.start}")
    except tomllib.TOMLDecodeError as error:
        return _unreadable(f"the TOML file {path} can't be read: {error}")
    return _sort(document, f"toml {path}")


def _unreadable(problem: str) -> Reading:
    return Reading({}, (problem,), readable=False)


def _sort(document: Mapping[str, Any], origin: str) -> Reading:
    foreign = {_words(keys.ADMIN_PREFIX + key): key for key in ADMIN_KEYS}
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    notices: list[str] = []
    for key, value in _leaves(document, ""):
        entry = Entry(value, key, origin)
        field = _words(key)
        if value == {} and any(known.startswith(f"{field}_") for known in keys.FIELDS):
            continue  # a table in which nothing is set
        if field in entries:
            problems.append(f"{entries[field]} and {entry} are one setting, set twice")
        elif field in keys.FIELDS:
            entries[field] = entry
        elif field in foreign:
            verdict = admin_verdict(foreign[field], value)
            (problems if verdict.refused else notices).append(f"{entry} {verdict.sentence}")
        else:
            nearest = keys.nearest(key, map(keys.toml_key, keys.FIELDS))
            problems.append(f"{entry} is not a setting; the nearest is {nearest}")
    return Reading(entries, tuple(problems), tuple(notices))


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every value and every empty table with its dotted path."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _words(key: str) -> str:
    return key.replace(".", "_")
