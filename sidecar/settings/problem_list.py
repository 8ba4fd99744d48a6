"""The problems found in the settings, gathered so that all are shown at once.

Example: two wrong values and an unknown key are three lines, the unknown key first, then the
settings in the documented order.
"""

from sidecar.settings import keys
from sidecar.settings.raw_values import Entry
from sidecar.settings.values import Place


def one_line(text: str) -> str:
    """The text with whatever would break a line, or can't be printed, written as an escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


class Problems:
    """Gathers problems, and knows by which key each setting was set.

    Attributes:
        settings_source: where settings would be set that are not yet.
    """

    def __init__(self, entries: dict[str, Entry], settings_source: Place = "environment") -> None:
        self.settings_source = settings_source
        self._entries = entries
        self._found: list[tuple[int, str]] = []

    def add(self, field: str, sentence: str) -> None:
        """A problem with one setting; the sentence continues the setting's name."""
        self._found.append((keys.FIELDS.index(field), f"{self.name(field)}: {sentence}"))

    def add_general(self, line: str) -> None:
        """A problem that isn't one known setting's: shown first."""
        self._found.append((-1, line))

    def name(self, field: str) -> str:
        """The key by which a setting was set; else the one by which it can be."""
        entry = self._entries.get(field)
        return str(entry) if entry else keys.name_in(self.settings_source, field)

    def is_set(self, field: str) -> bool:
        """Whether a setting was set at all, right or wrong."""
        return field in self._entries

    def of(self, field: str) -> tuple[str, ...]:
        """The problems of one setting, one line each, none twice."""
        index = keys.FIELDS.index(field)
        return tuple(dict.fromkeys(one_line(line) for place, line in self._found if place == index))

    def lines(self) -> tuple[str, ...]:
        """All problems, one line each, in the documented order, none twice."""
        ordered = sorted(self._found, key=lambda found: found[0])
        return tuple(dict.fromkeys(one_line(line) for _, line in ordered))
