"""Settings from Java properties files: the broker's own, and those that Kafka's tools take.

Of a broker's server.properties only keys under ``client.quota.callback.static.`` are ours, by the
names of the Strimzi plugin and of proposal 047; all others are the broker's. A file for Kafka's
tools has the admin client's keys and no prefix. Of a key that is set twice the last counts, and
values are trimmed, both as in Kafka. A value that a config provider of Kafka's would fill in
(``${...}``) is refused: it would be used as the password itself.

Example: ``client.quota.callback.static.storage.check-interval=30`` (the plugin's spelling) is the
same as ``client.quota.callback.static.storage.check.interval=PT30S``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sidecar.settings import convert, keys
from sidecar.settings.foreign import (
    ADMIN_KEYS,
    PLUGIN_NOTICES,
    REMOVED_KEYS,
    admin_verdict,
)
from sidecar.settings.forms import Entry
from sidecar.settings.sources import Source

_INTERVAL = "storage_check_interval"
_PLUGIN_INTERVAL = "storage.check-interval"
_PLACEHOLDER = re.compile(r"\$\{[^}:]+:[^}]*\}")
_NO_PROVIDERS = "config providers aren't supported; set the value itself"
_OURS = {keys.dotted(field): field for field in keys.FIELDS if keys.property_key(field)}
_ADMIN = {
    name.removeprefix(keys.ADMIN_PREFIX): field
    for name, field in _OURS.items()
    if name.startswith(keys.ADMIN_PREFIX)
}


class _PropertiesFile(Source):
    """A properties file; what is before a mistake in it is read."""

    def __init__(self, kind: str, path: Path, prefix: str) -> None:
        super().__init__()
        written: dict[str, Entry] = {}
        try:
            for entry in _parse(path):
                if entry.key.startswith(prefix):
                    written[entry.key.removeprefix(prefix)] = entry
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.unreadable(f"the {kind} {path} can't be read: {why}")
        for key, entry in written.items():
            self._sort(key, entry)

    def _sort(self, key: str, entry: Entry) -> None:
        raise NotImplementedError


class BrokerProperties(_PropertiesFile):
    """The plugin's settings in a broker's properties."""

    def __init__(self, path: Path) -> None:
        super().__init__("properties file", path, keys.PROPERTY_PREFIX)

    def _sort(self, key: str, entry: Entry) -> None:
        admin_key, field = key.removeprefix(keys.ADMIN_PREFIX), key.replace(".", "_")
        if admin_key != key and _PLACEHOLDER.search(str(entry.value)):
            variable = keys.environment_key(field)
            self.problems.append(f"{entry}: {_NO_PROVIDERS}, in {variable} for instance")
        elif key in _OURS:
            self._add(_OURS[key], entry)
        elif key == _PLUGIN_INTERVAL:
            self._add_plugin_interval(entry)
        elif key in PLUGIN_NOTICES:
            self.notices.append(f"{entry} {PLUGIN_NOTICES[key]}")
        elif key in REMOVED_KEYS:
            self.problems.append(f"{entry} {REMOVED_KEYS[key]}")
        elif admin_key != key and admin_key in ADMIN_KEYS:
            self.take_admin_key(admin_key, entry)
        elif field in keys.FIELDS:
            variable, toml = keys.environment_key(field), keys.toml_key(field)
            self.problems.append(f"{entry} is not a property: set {variable}, or {toml} in TOML")
        else:
            known = [*_OURS, _PLUGIN_INTERVAL, *PLUGIN_NOTICES]
            known += [keys.ADMIN_PREFIX + foreign for foreign in ADMIN_KEYS]
            self.refuse_unknown(entry, known, keys.PROPERTY_PREFIX)

    def _add_plugin_interval(self, entry: Entry) -> None:
        seconds = str(entry.value)
        if re.fullmatch("[0-9]{1,10}", seconds):
            self._add(_INTERVAL, Entry(f"PT{int(seconds)}S", entry.key, entry.origin))
        else:
            self.problems.append(f"{entry}: {seconds[:40]!r} is not a whole number of seconds")

    def _add(self, field: str, entry: Entry) -> None:
        other = self.entries.get(field)
        if other is not None and not _same_interval(other, entry):
            self.problems.append(f"{other} and {entry} are two spellings of one setting and differ")
        self.entries[field] = entry


class ClientProperties(_PropertiesFile):
    """What Kafka's tools take as ``--command-config``: the admin client's keys, and others'."""

    def __init__(self, path: Path) -> None:
        self._unused: list[str] = []
        super().__init__("command config", path, "")
        if self._unused:
            self.notices.append(f"{path}: no effect here: {', '.join(self._unused)}")

    def _sort(self, key: str, entry: Entry) -> None:
        if key in _ADMIN and _PLACEHOLDER.search(str(entry.value)):
            self.problems.append(f"{entry}: {_NO_PROVIDERS}")
        elif key in _ADMIN:
            self.entries[_ADMIN[key]] = entry
        elif key not in ADMIN_KEYS:
            self._unused.append(key)
        elif (verdict := admin_verdict(key, entry.value))[0]:
            self.problems.append(f"{entry} {verdict[1]}")


def _parse(path: Path) -> Iterator[Entry]:
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


def _same_interval(one: Entry, other: Entry) -> bool:
    """Whether two spellings of the interval are the same; a malformed one is not."""
    try:
        return convert.duration(one.value) == convert.duration(other.value)
    except ValueError:
        return False
