"""The target of ``apply`` and ``diff``: a plan made now, or the quotas in a file.

Example: yesterday ``quotas show --json`` wrote before.json. ``--plan before.json --exact`` restores
these quotas and removes any that were set since then.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from sidecar.cli.quotas.capacity import warnings as capacity_warnings
from sidecar.cli.quotas.plan_options import PlanOptions, plan_options
from sidecar.cli.quotas.planning import planned_beside
from sidecar.client_quotas.plan import without_throttles
from sidecar.errors import BrokersError
from sidecar.quotas.quota_file import PlanFile, read_plan_file
from sidecar.quotas.request_time.plan_review import QuotasFromFile, review_quotas
from sidecar.quotas.request_time.quota_plan import Change, TenantKind, changes, removals
from sidecar.quotas.request_time.thread_capacity import smallest
from sidecar.request_time.cluster_state import read_capacities, read_quotas
from sidecar.request_time.tenants import read_known

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.settings import KafkaAdmin

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    """The changes, and the warnings about them."""

    changes: tuple[Change, ...]
    warnings: tuple[str, ...]


def target_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``options: PlanOptions``, ``plan_file: Path | None`` and ``exact: bool``."""
    plan_file = click.option(
        "--plan",
        "plan_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help='Quotas that "quotas plan --json" or "quotas show --json" printed, instead of a plan'
        " made now.",
    )
    exact = click.option(
        "--exact",
        is_flag=True,
        help="With --plan: remove quotas that are not in the file.",
    )
    return plan_options(plan_file(exact(function)))


def read_planned_changes(
    options: PlanOptions, plan_file: Path | None, exact: bool, admin: "KafkaAdmin"
) -> PlannedChanges:
    """Return the changes.

    Raises:
        BrokersError: no broker reported its capacity.
        PlanError: nothing can be planned.
        SettingsError: a file or a setting can't be used.
        UsageError: options that exclude each other.
    """
    if plan_file is None:
        if exact:
            raise click.UsageError("--exact needs --plan")
        if options.tenants is None and options.tenants_from is None:
            raise click.UsageError(
                "no tenants to share the capacity: give --tenants, --tenants-from or --plan"
            )
        found = asyncio.run(planned_beside(options, admin))
        return PlannedChanges(found.changes, found.warnings)
    if options != PlanOptions():
        raise click.UsageError(
            "--plan already contains the quotas: leave out the options that plan"
        )
    return asyncio.run(_from_file(read_plan_file(plan_file), exact, admin))


async def _from_file(file: PlanFile, exact: bool, admin: "KafkaAdmin") -> PlannedChanges:
    quotas = without_throttles(await read_quotas(admin))
    from_file = QuotasFromFile(file.target, exact, file.tenants)
    capacity_percent = file.capacity_percent
    of_brokers: tuple[str, ...] = ()
    if capacity_percent is None and from_file.requests:
        capacity_percent, of_brokers = await _capacity(admin)
    known = await read_known(admin, quotas, TenantKind.USERS) if from_file.users else None
    extra = removals(quotas, file.target) if exact else ()
    warnings = map(str, review_quotas(from_file, capacity_percent, quotas, known))
    return PlannedChanges(
        (*changes(quotas, file.target), *extra),
        (*of_brokers, *warnings),
    )


async def _capacity(admin: "KafkaAdmin") -> tuple[float | None, tuple[str, ...]]:
    """Return the smallest broker's capacity, and warnings; quotas can be set without a capacity."""
    try:
        found = await read_capacities(admin)
    except BrokersError as error:
        return None, (f"sums are not compared with the brokers' capacity: {error}",)
    return smallest(found.brokers).percent, capacity_warnings(found)
