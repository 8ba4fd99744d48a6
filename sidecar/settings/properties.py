"""Reads settings from Java properties files: a broker's file, or a file for Kafka's tools.

In a broker's server.properties only keys under ``client.quota.callback.static.`` are settings of
the sidecar. Their names are those of the Strimzi plugin and of proposal 047. A file for Kafka's
tools has the admin client's keys without a prefix. If a key is set twice, the last value counts, as
in Kafka. References to config providers (``${...}``) are replaced by what they name.

Example: ``client.quota.callback.static.storage.check-interval=30`` (the plugin's spelling) is the
same as ``client.quota.callback.static.storage.check.interval=PT30S``.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from sidecar.formats.java_properties import parse_properties
from sidecar.settings import convert, keys
from sidecar.settings.foreign import (
    ADMIN_KEYS,
    COMMA,
    EXCLUDED,
    PLUGIN_NOTICES,
    REFUSED,
    REMOVED_KEYS,
)
from sidecar.settings.forms import Entry
from sidecar.settings.placeholders import PROVIDERS, Providers
from sidecar.settings.sources import Source

_NO_NAME = re.compile(r",\s*User:|^User:", re.IGNORECASE)
"""What the callback refuses: several names with commas, or another spelling of the type."""
_PLUGIN_INTERVAL = "storage.check-interval"
_OURS = {keys.dotted(field): field for field in keys.FIELDS if keys.property_key(field)}
_KNOWN = [*_OURS, _PLUGIN_INTERVAL, *PLUGIN_NOTICES]
_KNOWN += [keys.ADMIN_PREFIX + key for key in ADMIN_KEYS]


def read_broker_properties(path: Path, environ: Mapping[str, str]) -> Source:
    """Read the plugin's settings in a broker's properties."""
    source = Source()
    pairs = _pairs("properties file", path, keys.PROPERTY_PREFIX, source, environ)
    for written, found in pairs.items():
        key, entry = _in_our_spelling(written, found)
        field, value = key.replace(".", "_"), str(entry.value)
        variable = keys.environment_key(field)
        if key.startswith(f"{keys.ADMIN_PREFIX}{PROVIDERS}."):
            continue
        if key == _PLUGIN_INTERVAL:
            source.problems.append(f"{entry}: {value[:40]!r} is not a whole number of seconds")
        elif key in PLUGIN_NOTICES:
            source.notices.append(f"{entry} {PLUGIN_NOTICES[key]}")
            if key == EXCLUDED and (name := _odd_name(value)) is not None:
                why = REFUSED if _NO_NAME.search(name) else COMMA
                source.notices.append(f"{entry}: {name!r} {why}")
        elif key in REMOVED_KEYS:
            source.problems.append(f"{entry} {REMOVED_KEYS[key]}")
        elif field in keys.FIELDS and key not in _OURS:
            toml = keys.toml_key(field)
            source.problems.append(f"{entry} is not a property: set {variable}, or {toml} in TOML")
        else:
            other = source.entries.get(field, entry)
            if other is not entry and not _same_duration(other, entry):
                differ = "are two spellings of one setting and differ"
                source.problems.append(f"{other} and {entry} {differ}")
            source.take(field if key in _KNOWN else key, entry, _KNOWN, keys.PROPERTY_PREFIX)
    return source


def read_client_properties(path: Path, environ: Mapping[str, str]) -> Source:
    """Read a file that Kafka's tools take as ``--command-config``."""
    source, unused = Source(), []
    for key, entry in _pairs("command config", path, "", source, environ).items():
        name = keys.ADMIN_PREFIX + key
        if name in _OURS or key in ADMIN_KEYS:
            source.take(name.replace(".", "_"), entry, ())
        elif not key.startswith(f"{PROVIDERS}."):
            unused.append(key)
    # Keys that tune the Java client get no notice here.
    source.notices = [f"{path}: no effect here: {', '.join(unused)}"] if unused else []
    return source


def _pairs(
    kind: str, path: Path, prefix: str, source: Source, environ: Mapping[str, str]
) -> dict[str, Entry]:
    """Return the keys under the prefix, without it. The source gets the problem of a bad file."""
    pairs: dict[str, Entry] = {}
    written: dict[str, str] = {}
    try:
        for key, value, line in parse_properties(path.read_bytes()):
            written[key] = value
            if key.startswith(prefix):
                origin = f"properties {path}:{line}"
                pairs[key.removeprefix(prefix)] = Entry(value, key, origin, path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        source.unreadable(f"the {kind} {path} can't be read: {why}")
    providers = Providers(written.items(), environ)
    for key, entry in list(pairs.items()):
        if not {key, keys.ADMIN_PREFIX + key} & set(_KNOWN):
            # The keys of other programs in the same file may refer to what is not here.
            continue
        try:
            pairs[key] = providers.resolved(entry)
        except ValueError as error:
            del pairs[key]
            source.unreadable(f"{entry}: {error}")
    return pairs


def _odd_name(value: str) -> str | None:
    """Return the first name that looks like several; the name of a certificate has commas too."""
    names = (name.strip().removeprefix("User:") for name in value.split(";"))
    return next(
        (each for each in names if _NO_NAME.search(each) or ("," in each and "=" not in each)), None
    )


def _in_our_spelling(key: str, entry: Entry) -> tuple[str, Entry]:
    """Convert the plugin's interval, in whole seconds, to ours; return any other key unchanged."""
    seconds = str(entry.value)
    if key == _PLUGIN_INTERVAL and re.fullmatch("[0-9]{1,10}", seconds):
        ours = Entry(f"PT{int(seconds)}S", entry.key, entry.origin)
        return keys.dotted("storage_check_interval"), ours
    return key, entry


def _same_duration(first: Entry, second: Entry) -> bool:
    """Whether two spellings of the interval mean the same; a malformed one never does."""
    try:
        return convert.duration(first.value) == convert.duration(second.value)
    except ValueError:
        return False
