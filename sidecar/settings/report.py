"""What is said of the settings: their problems, all at once, and a row for each.

Example: two wrong values and an unknown key are three lines, the unknown key first, then the
settings in the documented order. A password in the environment is a row with the value ``********``
and the origin "environment".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sidecar.errors import SettingsError
from sidecar.formats.quantities import format_duration
from sidecar.settings import keys
from sidecar.settings.forms import Entry
from sidecar.settings.keys import SettingRow
from sidecar.settings.model import Settings
from sidecar.settings.values import Place

MASK: Final = "********"
"""What is shown of a secret: the same for every one, so not even its length."""

_ORDER: Final = list(keys.FIELDS)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings as they were set, whether or not the daemon starts with them.

    Attributes:
        found: the values in force; None when there are problems.
        rows: every setting there is, in the documented order, with its problems.
        problems: all of them, one line each, no secret in any; keys that nobody knows come first.
        notices: one line each: keys that were accepted and have no effect here.
    """

    found: Settings | None
    rows: tuple[SettingRow, ...]
    problems: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def settings(self) -> Settings:
        """The values in force; raises SettingsError with every problem."""
        if self.found is None:
            raise SettingsError(self.problems)
        return self.found


def one_line(text: str) -> str:
    """The text with whatever would break a line, or can't be printed, written as an escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


class Problems:
    """Gathers problems, and knows by which key each setting was set.

    Attributes:
        entries: by the setting's name, the entries that win, right or wrong.
        place: where settings would be set that are not yet.
        wrong: the settings whose values are wrong by themselves.
    """

    def __init__(self, entries: Mapping[str, Entry], place: Place) -> None:
        self.entries = entries
        self.place = place
        self.wrong: set[str] = set()
        self._found: list[tuple[int, str]] = []

    def add(self, field: str, sentence: str) -> None:
        """A problem with one setting; the sentence continues the setting's name."""
        self._found.append((_ORDER.index(field), f"{self.name(field)}: {sentence}"))

    def add_general(self, lines: Iterable[str]) -> None:
        """Problems that aren't one known setting's: shown first."""
        self._found += ((-1, line) for line in lines)

    def name(self, field: str) -> str:
        """The key by which a setting was set; else the one by which it can be."""
        entry = self.entries.get(field)
        return str(entry) if entry else keys.name_in(self.place, field)

    def are_set(self, *fields: str) -> int:
        """How many of these settings were set, right or wrong."""
        return sum(field in self.entries for field in fields)

    def lines(self, *fields: str) -> tuple[str, ...]:
        """The problems of these settings, or all, one line each, in order, none twice."""
        places = [_ORDER.index(field) for field in fields] or range(-1, len(_ORDER))
        found = sorted(self._found, key=lambda each: each[0])
        return tuple(dict.fromkeys(one_line(line) for at, line in found if at in places))


def describe() -> tuple[SettingRow, ...]:
    """Every setting with its default as its value, without loading anything."""
    return tuple(about.unset for about in keys.FIELDS.values())


def rows(settings: Settings | None, problems: Problems) -> tuple[SettingRow, ...]:
    """Every setting in the documented order.

    Args:
        settings: for the defaults that follow from other settings; None when they can't be used.
        problems: what was found. No value that is wrong by itself is shown: what is no address may
            be a secret that was put in the wrong place.
    """
    values, origins = {}, {}
    if settings is not None:
        minimum = format_duration(settings.check_interval_minimum_s)
        values["storage_check_interval_minimum"] = minimum
        values["metrics_listen"] = str(settings.http_listen)
    for field, entry in problems.entries.items():
        values[field] = MASK if keys.FIELDS[field].form.is_secret else _shown(entry.value)
        origins[field] = one_line(entry.origin)
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
    return one_line(text)
