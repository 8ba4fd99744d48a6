"""The names of settings in the environment, in properties and in TOML.

All of them follow from the setting's name. The environment has the name in capitals after
``SIDECAR_``, properties have it with dots after the plugin's prefix, and TOML has it in tables. The
tables of TOML may be grouped in any way, as long as the words and their order are the same.

Example: ``storage_check_interval`` is ``SIDECAR_STORAGE_CHECK_INTERVAL``,
``client.quota.callback.static.storage.check.interval`` and ``storage.check_interval``.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from sidecar.settings.forms import Default, Form, fields_of, marks
from sidecar.settings.model import KafkaAdmin, Settings
from sidecar.settings.values import Place
from sidecar.throttle.limits import Limit

ENVIRONMENT_PREFIX: Final = "SIDECAR_"
PROPERTY_PREFIX: Final = "client.quota.callback.static."
ADMIN_PREFIX: Final = "kafka.admin."

_PROPERTIES: Final = re.compile(
    "storage_check_interval|(?:kafka_admin|throttle_factor|storage_per_volume_limit)_.*"
)
_TABLES: Final = re.compile(
    "(storage_per_volume_(?:limit|soft_limit|stop)|storage|kafka_admin|throttle_(?:factor|emergency)"
    "|aiven|http|metrics|webhook|kubernetes|history|producer_id_quota"
    "|controller_(?:mutations|quota)|log|relief)_(.*)"
)
# Variables that Kubernetes injects for a Service called "sidecar", besides SIDECAR_PORT.
_OWN_SERVICE_VARIABLE: Final = re.compile(
    r"SIDECAR_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?"
    r"|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
# Variables that Kubernetes injects for a Service whose name starts with "sidecar-".
_SERVICE_VARIABLE: Final = re.compile(
    r"SIDECAR_.+_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_.+)?)?)"
)


def dotted(field: str) -> str:
    """The setting's one name, with dots."""
    return field.replace("_", ".")


def environment_key(field: str) -> str:
    """The setting's environment variable."""
    return ENVIRONMENT_PREFIX + field.upper()


def property_key(field: str) -> str:
    """The setting's property; "" if the plugin has no such setting."""
    return PROPERTY_PREFIX + dotted(field) if _PROPERTIES.fullmatch(field) else ""


def toml_key(field: str) -> str:
    """The setting's documented key in the TOML file."""
    if match := _TABLES.fullmatch(field):
        return f"{match[1].replace('storage_', 'storage.')}.{match[2]}"
    return field


def name_in(place: Place, field: str) -> str:
    """Return how a message names a setting that was not set.

    Args:
        place: where the reader sets settings; a file's key is named with the variable.
        field: the name of its field.
    """
    if place == "command config":
        if field == "kafka_admin_bootstrap_servers":
            return "--bootstrap-server"
        return f"{dotted(field).removeprefix(ADMIN_PREFIX)} in --command-config"
    key = {"properties": property_key, "toml": toml_key}.get(place, environment_key)(field)
    variable = environment_key(field)
    return f"{key} ({variable})" if key not in {"", variable} else variable


def stop_line_key(kind: type[Limit]) -> str | None:
    """The environment variable of a stop line of this type; None if the type has none."""
    fields = fields_of(Settings, "stop line").items()
    return next((environment_key(name) for name, each in fields if each is kind), None)


def nearest(key: str, known: Iterable[str]) -> str:
    """Return the known key that is most similar to an unknown key; for a table, a key in it."""
    import difflib  # noqa: PLC0415 - 0.2 MB, which only a wrong key needs

    every = list(known)
    within = [name for name in every if name.startswith(f"{key}.")]
    return difflib.get_close_matches(key, within or every, n=1, cutoff=0.0)[0]


def is_injected(variable: str, value: str) -> bool:
    """Whether Kubernetes sets this variable to such a value for a Service called sidecar."""
    if variable == "SIDECAR_PORT":
        return "://" in value
    return _OWN_SERVICE_VARIABLE.fullmatch(variable) is not None


def looks_injected(variable: str) -> bool:
    """Whether Kubernetes may have set this variable for a Service called sidecar-something."""
    return _SERVICE_VARIABLE.fullmatch(variable) is not None


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as a person reads it.

    Attributes:
        name: the setting's one name: the property's, without the plugin's prefix.
        environment: the environment variable.
        property: the property in a Java properties file; "" when there is none.
        toml: the dotted key in the TOML file.
        value: the current value, with a secret as stars; "" if it is not set or not valid.
        origin: "environment", "properties FILE:LINE", "toml FILE" or "default".
        default: the default value, or a description of it.
        unit: the unit of the value, or its form.
        meaning: the effect of the setting.
        problems: one line for each problem, also if the setting is missing.
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
class About:
    """A setting: its place in the input of ``Settings``, its form, and its row if it is not set."""

    path: tuple[str, ...]
    form: Form
    unset: SettingRow


def _about(model: type[BaseModel], *path: str) -> Iterator[tuple[str, About]]:
    for name, info in model.model_fields.items():
        if model is Settings and info.annotation == KafkaAdmin | None:
            yield from _about(KafkaAdmin, name)
        for form in (mark for mark in marks(info) if isinstance(mark, Form)):
            where = (*path, info.alias or name)
            field = "_".join(where)
            value = "" if info.default in (None, ()) else form.write(info.default)
            words = [mark.words for mark in marks(info) if isinstance(mark, Default)]
            row = SettingRow(
                name=dotted(field),
                environment=environment_key(field),
                property=property_key(field),
                toml=toml_key(field),
                value=value,
                origin="default",
                default=(*words, value or "none")[0],
                unit=form.unit,
                meaning=" ".join((info.description or "").split()),
            )
            yield field, About(where, form, row)


FIELDS: Final = dict(_about(Settings))
"""All settings by their names, in the documented order."""
