"""Quotas as JSON: one form everywhere, so that a printed plan can be applied or compared.

``quotas plan --json`` and ``quotas show --json`` print this form; ``quotas apply``, ``quotas diff``
and the pipeline read it.

Example: ``{"entity": {"user": null}, "quotas": {"request_percentage": 9.2}}`` is the default user.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from sidecar.errors import SettingsError
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.quotas.kept_originals import with_originals
from sidecar.quotas.producer_ids.throttle_signature import without_signed

_F = TypeVar("_F", bound="_QuotaFile")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The contents of a file.

    Attributes:
        target: the quotas.
        tenants: how many tenants share the default; 0 if the default is for tenants without a name.
        capacity_percent: the capacity of the plan, if the command line gave it; else None.
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
    """Return the quotas as JSON documents."""
    return [{"entity": entity.parts(), "quotas": dict(values)} for entity, values in quotas.items()]


def read_quota_file(path: Path) -> dict[Entity, dict[str, float]]:
    """Read a file that ``plan --json`` or ``show --json`` has printed.

    Raises:
        SettingsError: the file can't be read or has another form.
    """
    return _by_entity(path, _read(path, _QuotaFile))


def read_plan_file(path: Path) -> PlanFile:
    """Read such a file with its records about the plan.

    Raises:
        SettingsError: the file can't be read or has another form.
    """
    document = _read(path, _PlanDocument)
    return PlanFile(
        _by_entity(path, document),
        # In a plan with --default, and in the output of "show", tenants do not share the default.
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
    # What was read during a throttle has its originals, and what sidecars set ends with it.
    quotas = without_signed(with_originals(dict(target)))
    return {entity: dict(values) for entity, values in quotas.items()}
