"""What loading returns besides the settings: where each came from, for the ``settings`` command.

Example: ``SettingRow(name="storage.check.interval", value="PT30S", origin="environment", ...)``.
"""

from dataclasses import dataclass

from sidecar.settings.values import Settings


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as a person reads it.

    Attributes:
        name: the setting's one name: the property's, without the plugin's prefix.
        environment: the environment variable; "" when there is none.
        property: the property in a Java properties file; "" when there is none.
        toml: the dotted key in the TOML file.
        value: the value in force, a secret as stars, "" when not set or not understood.
        origin: "environment", "properties FILE:LINE", "toml FILE" or "default".
        default: the value when nothing is set, and "" for nothing.
        unit: what the value is counted in, or its form.
        meaning: what it does, and the reason for the default.
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
