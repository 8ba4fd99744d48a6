"""Settings from Java properties files: the broker's own, and those that Kafka's tools take.

Of a broker's server.properties only keys under ``client.quota.callback.static.`` are ours, by the
names of the Strimzi plugin and of proposal 047; all others are the broker's. A file for Kafka's
tools has the admin client's keys and no prefix. Of a key that is set twice the last counts, as in
Kafka. A value that a config provider of Kafka's would fill in (``${...}``) is refused: it would be
used as the password itself.

Example: ``client.quota.callback.static.storage.check-interval=30`` (the plugin's spelling) is the
same as ``client.quota.callback.static.storage.check.interval=PT30S``.
"""

import re
from pathlib import Path

from sidecar.formats.java_properties import parse_properties
from sidecar.settings import convert, keys
from sidecar.settings.foreign import ADMIN_KEYS, PLUGIN_NOTICES, REMOVED_KEYS
from sidecar.settings.forms import Entry
from sidecar.settings.sources import Source

_INTERVAL = "storage_check_interval"
_PLUGIN_INTERVAL = "storage.check-interval"
_PLACEHOLDER = re.compile(r"\$\{[^}:]+:[^}]*\}")
_NO_PROVIDERS = "config providers aren't supported; set the value itself"
_OURS = {keys.dotted(field): field for field in keys.FIELDS if keys.property_key(field)}
_KNOWN = [*_OURS, _PLUGIN_INTERVAL, *PLUGIN_NOTICES]
_KNOWN += [keys.ADMIN_PREFIX + key for key in ADMIN_KEYS]


class _PropertiesFile(Source):
    """A properties file; what is before a mistake in it is read."""

    def __init__(self, kind: str, path: Path, prefix: str) -> None:
        super().__init__()
        written: dict[str, Entry] = {}
        try:
            for key, value, line in parse_properties(path.read_bytes()):
                if key.startswith(prefix):
                    entry = Entry(value, key, f"properties {path}:{line}")
                    written[key.removeprefix(prefix)] = entry
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
        field, seconds = key.replace(".", "_"), str(entry.value)
        variable = keys.environment_key(field)
        if key.startswith(keys.ADMIN_PREFIX) and _PLACEHOLDER.search(str(entry.value)):
            self.problems.append(f"{entry}: {_NO_PROVIDERS}, in {variable} for instance")
        elif key == _PLUGIN_INTERVAL and re.fullmatch("[0-9]{1,10}", seconds):
            self._take(_INTERVAL, Entry(f"PT{int(seconds)}S", entry.key, entry.origin))
        elif key == _PLUGIN_INTERVAL:
            self.problems.append(f"{entry}: {seconds[:40]!r} is not a whole number of seconds")
        elif key in PLUGIN_NOTICES:
            self.notices.append(f"{entry} {PLUGIN_NOTICES[key]}")
        elif key in REMOVED_KEYS:
            self.problems.append(f"{entry} {REMOVED_KEYS[key]}")
        elif field in keys.FIELDS and key not in _OURS:
            toml = keys.toml_key(field)
            self.problems.append(f"{entry} is not a property: set {variable}, or {toml} in TOML")
        else:
            self._take(field if key in _KNOWN else key, entry)

    def _take(self, field: str, entry: Entry) -> None:
        other = self.entries.get(field)
        if other is not None and not _same_duration(other, entry):
            self.problems.append(f"{other} and {entry} are two spellings of one setting and differ")
        self.take(field, entry, _KNOWN, keys.PROPERTY_PREFIX)


class ClientProperties(_PropertiesFile):
    """What Kafka's tools take as ``--command-config``: the admin client's keys, and others'."""

    def __init__(self, path: Path) -> None:
        self._unused: list[str] = []
        super().__init__("command config", path, "")
        # The admin client's own tuning is not worth a word.
        unused = ", ".join(self._unused)
        self.notices = [f"{path}: no effect here: {unused}"] if unused else []

    def _sort(self, key: str, entry: Entry) -> None:
        name = keys.ADMIN_PREFIX + key
        if name in _OURS and _PLACEHOLDER.search(str(entry.value)):
            self.problems.append(f"{entry}: {_NO_PROVIDERS}")
        elif name in _OURS or key in ADMIN_KEYS:
            self.take(name.replace(".", "_"), entry, ())
        else:
            self._unused.append(key)


def _same_duration(one: Entry, other: Entry) -> bool:
    """Whether two spellings of the interval are the same; a malformed one is not."""
    try:
        return convert.duration(one.value) == convert.duration(other.value)
    except ValueError:
        return False
