"""Settings from a Java properties file, such as the broker's own server.properties.

Only keys under ``client.quota.callback.static.`` are ours, by the names of the Strimzi plugin and
of proposal 047; all others are the broker's. Of a key that is set twice the last counts, and values
are trimmed, both as in Kafka. A value that a config provider of Kafka's would fill in (``${...}``)
is refused: it would be used as the password itself.

Example: ``client.quota.callback.static.storage.check-interval=30`` (the plugin's spelling) is the
same as ``client.quota.callback.static.storage.check.interval=PT30S``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sidecar.settings import keys
from sidecar.settings.durations import parse_duration
from sidecar.settings.foreign import ADMIN_KEYS, PLUGIN_NOTICES, REMOVED_KEYS, admin_verdict
from sidecar.settings.raw_values import Entry, Reading

_INTERVAL = "storage_check_interval"
_PLUGIN_INTERVAL = "storage.check-interval"
PLACEHOLDER = re.compile(r"\$\{[^}:]+:[^}]*\}")


def read_properties(path: Path) -> Reading:
    """Read and sort a properties file; one that can't be read is a problem, not an exception."""
    entries: dict[str, Entry] = {}
    unreadable: tuple[str, ...] = ()
    try:
        for entry in parse_properties(path):
            if entry.key.startswith(keys.PROPERTY_PREFIX):
                entries[entry.key.removeprefix(keys.PROPERTY_PREFIX)] = entry
    except OSError as error:
        unreadable = (f"the properties file {path} can't be read: {error.strerror}",)
    except ValueError as error:
        unreadable = (f"the properties file {path} can't be read: {error}",)
    sorter = _Sorter()
    for key, entry in entries.items():
        sorter.sort(key, entry)
    return Reading(
        sorter.fields, (*unreadable, *sorter.problems), tuple(sorter.notices), not unreadable
    )


def parse_properties(path: Path) -> Iterator[Entry]:
    """The file's keys and values in order.

    Raises:
        OSError: the file can't be read.
        ValueError: it isn't a properties file; the message quotes nothing of it.
    """
    # Here and not above, since few runs have a properties file.
    import javaproperties  # noqa: PLC0415

    line = 1
    # Bytes are read as ISO 8859-1, as Kafka does.
    elements = javaproperties.parse(path.read_bytes())
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError:
            raise ValueError(f"line {line}: \\u without four hexadecimal digits") from None
        if element is None:
            return
        if isinstance(element, javaproperties.KeyValue):
            origin = f"properties {path}:{line}"
            yield Entry(element.value.strip(" \t\f"), element.key, origin)
        line += len(re.findall(r"\r\n|\r|\n", element.source))


class _Sorter:
    """Puts each key of our namespace where it belongs."""

    def __init__(self) -> None:
        self.fields: dict[str, Entry] = {}
        self.problems: list[str] = []
        self.notices: list[str] = []
        self._known = {
            keys.dotted(field): field for field in keys.FIELDS if keys.about(field).in_properties
        }

    def sort(self, key: str, entry: Entry) -> None:
        """Take one key, without its prefix."""
        admin_key = key.removeprefix(keys.ADMIN_PREFIX)
        if admin_key != key and PLACEHOLDER.search(str(entry.value)):
            self.problems.append(
                f"{entry}: config providers aren't supported; set the value itself, in"
                f" {keys.environment_key(key.replace('.', '_'))} for instance"
            )
        elif key in self._known:
            self._add(self._known[key], entry)
        elif key == _PLUGIN_INTERVAL:
            self._add_plugin_interval(entry)
        elif key in PLUGIN_NOTICES:
            self.notices.append(f"{entry} {PLUGIN_NOTICES[key]}")
        elif key in REMOVED_KEYS:
            self.problems.append(f"{entry} {REMOVED_KEYS[key]}")
        elif admin_key != key and admin_key in ADMIN_KEYS:
            verdict = admin_verdict(admin_key, entry.value)
            (self.problems if verdict.refused else self.notices).append(
                f"{entry} {verdict.sentence}"
            )
        else:
            self.problems.append(self._unknown(key, entry))

    def _add_plugin_interval(self, entry: Entry) -> None:
        seconds = str(entry.value)
        if re.fullmatch("[0-9]{1,10}", seconds):
            self._add(_INTERVAL, Entry(f"PT{int(seconds)}S", entry.key, entry.origin))
        else:
            self.problems.append(f"{entry}: {seconds[:40]!r} is not a whole number of seconds")

    def _add(self, field: str, entry: Entry) -> None:
        other = self.fields.get(field)
        if other is not None and not _same_interval(other, entry):
            self.problems.append(f"{other} and {entry} are two spellings of one setting and differ")
        self.fields[field] = entry

    def _unknown(self, key: str, entry: Entry) -> str:
        field = key.replace(".", "_")
        if field in keys.FIELDS:
            return (
                f"{entry} is not a property: set {keys.environment_key(field)}, or"
                f" {keys.toml_key(field)} in TOML"
            )
        known = [*self._known, _PLUGIN_INTERVAL, *PLUGIN_NOTICES]
        known += [keys.ADMIN_PREFIX + foreign for foreign in ADMIN_KEYS]
        nearest = keys.PROPERTY_PREFIX + keys.nearest(key, known)
        return f"{entry} is not a setting; the nearest is {nearest}"


def _same_interval(one: Entry, other: Entry) -> bool:
    """Whether two spellings of the interval are the same; a malformed one is not."""
    try:
        return parse_duration(str(one.value)) == parse_duration(str(other.value))
    except ValueError:
        return False
