"""Reports on the settings: all their problems at once, and a row for each setting.

Example: two wrong values and an unknown key are three lines, the unknown key first, then the
settings in the documented order. A password in the environment is a row with the value ``********``
and the origin "environment".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sidecar.errors import SettingsError
from sidecar.formats.quantities import format_duration
from sidecar.logs import printable
from sidecar.settings import keys
from sidecar.settings.forms import Entry
from sidecar.settings.keys import SettingRow
from sidecar.settings.model import Settings
from sidecar.settings.values import Place

MASK: Final = "********"
"""Shown in place of every secret, so that not even its length is known."""

_ORDER: Final = list(keys.FIELDS)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings as they were set, whether or not the daemon starts with them.

    Attributes:
        found: the settings; None when there are problems.
        rows: every setting in the documented order, with its problems.
        problems: one line for each problem, none with a secret; unknown keys come first.
        notices: one line for each key that was accepted and has no effect here.
    """

    found: Settings | None
    rows: tuple[SettingRow, ...]
    problems: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def settings(self) -> Settings:
        """Return the settings, or raise SettingsError with every problem."""
        if self.found is None:
            raise SettingsError(self.problems)
        return self.found


class Problems:
    """Collects problems, and names each setting by the key that set it.

    Attributes:
        entries: setting name -> the entry that takes precedence, valid or not.
        place: where an operator would add a setting.
        wrong: the settings with a value that is invalid by itself.
    """

    def __init__(self, entries: Mapping[str, Entry], place: Place) -> None:
        self.entries = entries
        self.place = place
        self.wrong: set[str] = set()
        self._found: list[tuple[int, str]] = []

    def add(self, field: str, sentence: str) -> None:
        """Add a problem with one setting; the sentence continues the setting's name."""
        self._found.append((_ORDER.index(field), f"{self.name(field)}: {sentence}"))

    def add_general(self, lines: Iterable[str]) -> None:
        """Add problems that no known setting has; they are shown first."""
        self._found += ((-1, line) for line in lines)

    def name(self, field: str) -> str:
        """Return the key that set a setting, or else the key that would set it."""
        entry = self.entries.get(field)
        return str(entry) if entry else keys.name_in(self.place, field)

    def are_set(self, *fields: str) -> int:
        """Return how many of these settings were set, valid or not."""
        return sum(field in self.entries for field in fields)

    def lines(self, *fields: str) -> tuple[str, ...]:
        """Return the problems of these settings, or of all, in order and without duplicates."""
        places = [_ORDER.index(field) for field in fields] or range(-1, len(_ORDER))
        problems = sorted(self._found, key=lambda problem: problem[0])
        return tuple(dict.fromkeys(printable(line) for at, line in problems if at in places))


def describe() -> tuple[SettingRow, ...]:
    """Return every setting with its default as its value, without loading anything."""
    return tuple(about.unset for about in keys.FIELDS.values())


def rows(settings: Settings | None, problems: Problems) -> tuple[SettingRow, ...]:
    """Return every setting in the documented order.

    Args:
        settings: for the defaults that follow from other settings; None when they can't be used.
        problems: the problems. A value that is invalid by itself is not shown, because it may be a
            secret in the wrong place.
    """
    values, origins = {}, {}
    if settings is not None:
        minimum = format_duration(settings.check_interval_minimum_s)
        values["storage_check_interval_minimum"] = minimum
        values["metrics_listen"] = str(settings.http_listen)
    for field, entry in problems.entries.items():
        values[field] = MASK if keys.FIELDS[field].form.is_secret else _shown(entry.value)
        origins[field] = printable(entry.origin)
    values |= dict.fromkeys(problems.wrong, "")
    return tuple(
        replace(
            about.unset,
            value=values.get(field, about.unset.value),
            origin=origins.get(field, "default"),
            problems=problems.lines(field),
        )
        for field, about in keys.FIELDS.items()
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    text = str(value)
    if "-----BEGIN" in text:
        return f"PEM text of {len(text)} characters"
    return printable(text)
