"""The problems found in the settings, gathered so that all are shown at once.

Example: two wrong values and an unknown key are three lines, the unknown key first, then the
settings in the documented order.
"""

from collections.abc import Iterable, Mapping

from sidecar.settings import keys
from sidecar.settings.forms import Entry
from sidecar.settings.values import Place


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

    def __init__(self, entries: Mapping[str, Entry], place: Place = "environment") -> None:
        self.entries = entries
        self.place = place
        self.wrong: set[str] = set()
        self._found: list[tuple[int, str]] = []
        self._order = list(keys.FIELDS)

    def add(self, field: str, sentence: str) -> None:
        """A problem with one setting; the sentence continues the setting's name."""
        self._found.append((self._order.index(field), f"{self.name(field)}: {sentence}"))

    def add_general(self, lines: Iterable[str]) -> None:
        """Problems that aren't one known setting's: shown first."""
        self._found += ((-1, line) for line in lines)

    def name(self, field: str) -> str:
        """The key by which a setting was set; else the one by which it can be."""
        entry = self.entries.get(field)
        return str(entry) if entry else keys.name_in(self.place, field)

    def is_set(self, field: str) -> bool:
        """Whether a setting was set at all, right or wrong."""
        return field in self.entries

    def of(self, field: str) -> tuple[str, ...]:
        """The problems of one setting, one line each, none twice."""
        return self._lines(self._order.index(field))

    def lines(self) -> tuple[str, ...]:
        """All problems, one line each, in the documented order, none twice."""
        return self._lines(*range(-1, len(self._order)))

    def _lines(self, *places: int) -> tuple[str, ...]:
        found = sorted(self._found, key=lambda each: each[0])
        return tuple(dict.fromkeys(one_line(line) for at, line in found if at in places))
