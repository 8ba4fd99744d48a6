"""Every setting as a row for a person, with secrets masked.

Example: ``kafka.admin.sasl.password`` in the environment has the value ``********`` and the origin
"environment".
"""

from collections.abc import Mapping, Set

from sidecar.settings import keys
from sidecar.settings.durations import format_duration
from sidecar.settings.fields import RawSettings
from sidecar.settings.loaded import SettingRow
from sidecar.settings.problem_list import Problems, one_line
from sidecar.settings.raw_values import Entry
from sidecar.settings.values import Settings

MASK = "********"
"""What is shown of a secret: the same for every one, so not even its length."""


def describe() -> tuple[SettingRow, ...]:
    """Every setting with its default as its value, without loading anything."""
    return rows({}, None, understood=frozenset(), problems=Problems({}))


def rows(
    entries: Mapping[str, Entry],
    settings: Settings | None,
    *,
    understood: Set[str],
    problems: Problems,
) -> tuple[SettingRow, ...]:
    """Every setting in the documented order.

    Args:
        entries: the entries in force, by field name.
        settings: what they came to, for the defaults that follow from other settings; None when
            they can't be used.
        understood: the fields whose values are right by themselves. No other is shown: what is no
            address may be a secret that was put in the wrong place.
        problems: what was found.
    """
    derived = {}
    if settings is not None:
        derived = {
            "storage_check_interval_minimum": format_duration(settings.check_interval_minimum_s),
            "metrics_listen": str(settings.http_listen),
        }
    return tuple(
        _row(
            field,
            entries.get(field),
            derived.get(field, ""),
            is_shown=field in understood,
            problems=problems.of(field),
        )
        for field in keys.FIELDS
    )


def _row(
    field: str, entry: Entry | None, derived: str, *, is_shown: bool, problems: tuple[str, ...]
) -> SettingRow:
    info = RawSettings.model_fields[field]
    about = keys.about(field)
    if entry is not None and not is_shown:
        value = ""
    elif entry is not None:
        value = MASK if about.is_secret else _shown(entry.value)
    else:
        value = derived if info.default is None else about.default
    return SettingRow(
        name=keys.dotted(field),
        environment=keys.environment_key(field),
        property=keys.property_key(field),
        toml=keys.toml_key(field),
        value=value,
        origin=one_line(entry.origin) if entry else "default",
        default=about.default,
        unit=about.unit,
        meaning=" ".join((info.description or "").split()),
        problems=problems,
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    text = str(value)
    if "-----BEGIN" in text:
        return f"PEM text of {len(text)} characters"
    return one_line(text)
