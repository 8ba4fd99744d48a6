"""Quotas, changes and plans as JSON and as tables.

Quotas are written in one form everywhere, so that what ``plan --json`` or ``show --json`` printed
can be applied or compared.

Example: ``{"entity": {"user": null}, "quotas": {"request_percentage": 9.2}}`` is the default user.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

import click
import msgspec

from sidecar.errors import SettingsError
from sidecar.quotas.commands import number
from sidecar.quotas.entities import ClientQuotas, Default, Entity
from sidecar.quotas.request_time.quota_plan import Change

_SHOWN_WARNINGS: Final = 20

_F = TypeVar("_F", bound="_QuotaFile")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What a file has.

    Attributes:
        target: the quotas.
        tenants: how many the default is shared among; 0: it is for whoever is not named.
        capacity_percent: that they were planned for, where the command line named it and no broker
            was read.
    """

    target: dict[Entity, dict[str, float]]
    tenants: int
    capacity_percent: float | None


class _Entry(msgspec.Struct):
    entity: dict[str, str | None]
    quotas: dict[str, float]


class _QuotaFile(msgspec.Struct):
    quotas: list[_Entry]


class _PlanDocument(_QuotaFile):
    tenants: Annotated[int, msgspec.Meta(ge=0)] = 0
    default_percent: float | msgspec.UnsetType | None = msgspec.UNSET
    capacity_percent: Annotated[float, msgspec.Meta(gt=0)] | None = None
    capacity: object = None


def quota_documents(quotas: ClientQuotas) -> list[dict[str, object]]:
    """The quotas of each entity."""
    return [{"entity": entity.parts(), "quotas": dict(values)} for entity, values in quotas.items()]


def in_order(quotas: ClientQuotas) -> ClientQuotas:
    """Users, then client-ids, then addresses, by name, the default of each first."""

    def rank(entity: Entity) -> tuple[bool, bool, str, bool, str, str]:
        user, client_id, ip = (
            "" if name is None or isinstance(name, Default) else name
            for name in (entity.user, entity.client_id, entity.ip)
        )
        has_client = entity.client_id is not None
        return (entity.ip is not None, entity.user is None, user, has_client, client_id, ip)

    return {entity: quotas[entity] for entity in sorted(quotas, key=rank)}


def change_documents(changed: Iterable[Change]) -> list[dict[str, object]]:
    """Each change."""
    return [
        {
            "entity": change.entity.parts(),
            "key": change.key,
            "before": change.before,
            "after": change.after,
        }
        for change in changed
    ]


def read_quota_file(path: Path) -> dict[Entity, dict[str, float]]:
    """The quotas in a file that ``plan --json`` or ``show --json`` has printed.

    Raises:
        SettingsError: it is not such a file.
    """
    return _by_entity(path, _read(path, _QuotaFile))


def read_plan_file(path: Path) -> PlanFile:
    """The same, with what the file records of how they were planned.

    Raises:
        SettingsError: it is not such a file.
    """
    document = _read(path, _PlanDocument)
    return PlanFile(
        _by_entity(path, document),
        # A plan that has a default for others, and what "show" prints, share it among nobody.
        tenants=document.tenants if document.default_percent is None else 0,
        capacity_percent=document.capacity_percent if document.capacity is None else None,
    )


def _read(path: Path, kind: type[_F]) -> _F:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise SettingsError((f"{path} can't be read: {error.strerror}",)) from error
    except ValueError as error:
        raise _no_quotas(path, error) from error


def _no_quotas(path: Path, error: ValueError) -> SettingsError:
    text = f'{path} is not what "quotas plan --json" or "quotas show --json" prints: {error}'
    return SettingsError((text,))


def _by_entity(path: Path, document: _QuotaFile) -> dict[Entity, dict[str, float]]:
    try:
        target = [(Entity.of(each.entity), each.quotas) for each in document.quotas]
    except ValueError as error:
        raise _no_quotas(path, error) from error
    if len({entity for entity, _ in target}) < len(target):
        raise _no_quotas(path, ValueError("an entity is in it twice"))
    return dict(target)


def print_changes(changed: Sequence[Change]) -> None:
    """A table of them, or that there is none."""
    if not changed:
        click.echo("Nothing changes.")
        return
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(change.entity), change.key, quota_text(change.before), quota_text(change.after)]
        for change in changed
    ]
    print_rows(["Entity", "Quota", "Today", "Planned"], rows, ())


def print_quotas(quotas: ClientQuotas, keys: Sequence[str] = ()) -> None:
    """A table of them, or that there is none: of these keys, if there are any."""
    if not quotas:
        click.echo(f"No {' or '.join(keys) or 'quota'} is set.")
        return
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(entity), key, number(value)]
        for entity, values in quotas.items()
        for key, value in values.items()
    ]
    print_rows(["Entity", "Quota", "Limit"], rows, ())


def print_warnings(warnings: Sequence[object]) -> None:
    """The first of them on standard error, and how many more there are."""
    from sidecar.logs import printable  # noqa: PLC0415 - slow to import

    for warning in warnings[:_SHOWN_WARNINGS]:
        click.echo(f"Warning: {printable(str(warning))}", err=True)
    more = len(warnings) - _SHOWN_WARNINGS
    if more > 0:
        click.echo(f"Warning: and {more:,} more; --json has them all", err=True)


def quota_text(value: float | None) -> str:
    """A limit in digits, or that there is none."""
    return "none" if value is None else number(value)


def echo_json(document: Mapping[str, object]) -> None:
    """Print it."""
    click.echo(json.dumps(document, indent=2))
