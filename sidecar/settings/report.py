"""What loading returns: the settings, and each of them as a row for a person, secrets masked.

Example: ``kafka.admin.sasl.password`` in the environment has the value ``********`` and the origin
"environment".
"""

from dataclasses import dataclass
from typing import Final

from sidecar.quantities import format_duration
from sidecar.settings import keys
from sidecar.settings.model import Settings
from sidecar.settings.problems import Problems, one_line

MASK: Final = "********"
"""What is shown of a secret: the same for every one, so not even its length."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as a person reads it.

    Attributes:
        name: the setting's one name: the property's, without the plugin's prefix.
        environment: the environment variable.
        property: the property in a Java properties file; "" when there is none.
        toml: the dotted key in the TOML file.
        value: the value in force, a secret as stars, "" when not set or not understood.
        origin: "environment", "properties FILE:LINE", "toml FILE" or "default".
        default: the value when nothing is set, or words for it.
        unit: what the value is counted in, or its form.
        meaning: what it does.
        problems: one line each: that it is missing, or what is wrong with it.
    """

    name: str
    environment: str
    property: str
    toml: str
    value: str
    origin: str
    default: str
    unit: str
    meaning: str
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings and what is to be logged of them.

    Attributes:
        settings: the values in force.
        rows: every setting there is, in the documented order.
        notices: one line each: keys that were accepted and have no effect here.
    """

    settings: Settings
    rows: tuple[SettingRow, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """The settings as they were set, whether or not the daemon starts with them.

    Attributes:
        settings: the values in force; None when there are problems.
        rows: every setting there is, in the documented order, with its problems.
        problems: all of them, one line each, no secret in any; keys that nobody knows come first.
        notices: as in ``Loaded``.
    """

    settings: Settings | None
    rows: tuple[SettingRow, ...]
    problems: tuple[str, ...]
    notices: tuple[str, ...]


def describe() -> tuple[SettingRow, ...]:
    """Every setting with its default as its value, without loading anything."""
    return rows(None, Problems({}))


def rows(settings: Settings | None, problems: Problems) -> tuple[SettingRow, ...]:
    """Every setting in the documented order.

    Args:
        settings: for the defaults that follow from other settings; None when they can't be used.
        problems: what was found. No value that is wrong by itself is shown: what is no address may
            be a secret that was put in the wrong place.
    """
    derived: dict[str, str] = {}
    if settings is not None:
        minimum = format_duration(settings.check_interval_minimum_s)
        derived["storage_check_interval_minimum"] = minimum
        derived["metrics_listen"] = str(settings.http_listen)
    return tuple(_row(field, derived.get(field), problems) for field in keys.FIELDS)


def _row(field: str, derived: str | None, problems: Problems) -> SettingRow:
    about, entry = keys.FIELDS[field], problems.entries.get(field)
    if entry is None:
        value = about.value if derived is None else derived
    elif field in problems.wrong:
        value = ""
    else:
        value = MASK if about.form.is_secret else _shown(entry.value)
    return SettingRow(
        name=keys.dotted(field),
        environment=keys.environment_key(field),
        property=keys.property_key(field),
        toml=keys.toml_key(field),
        value=value,
        origin=one_line(entry.origin) if entry else "default",
        default=about.default,
        unit=about.form.unit,
        meaning=about.meaning,
        problems=problems.of(field),
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    text = str(value)
    if "-----BEGIN" in text:
        return f"PEM text of {len(text)} characters"
    return one_line(text)
