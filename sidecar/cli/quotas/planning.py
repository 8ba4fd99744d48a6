"""A plan, compared with the brokers' capacity, the tenants and the current quotas.

Example: with ``--tenants 50 --capacity 6400`` and no broker's address, no broker is contacted, and
there are no current quotas to compare with.
"""

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sidecar.cli.kafka_options import SERVERS, KafkaOptions, load_kafka_admin
from sidecar.cli.quotas.capacity import warnings as capacity_warnings
from sidecar.cli.quotas.plan_options import PlanOptions
from sidecar.client_quotas.plan import without_throttles
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.request_time.plan_review import review_plan
from sidecar.quotas.request_time.quota_plan import Change, Plan, TenantKind, changes
from sidecar.quotas.request_time.thread_capacity import smallest
from sidecar.request_time.cluster_state import Capacities, read_capacities, read_quotas
from sidecar.request_time.tenants import read_known

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.settings import KafkaAdmin


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what the brokers have now.

    Attributes:
        plan: the share of each tenant.
        kind: whether tenants are users or client-ids.
        found: the brokers' capacities; None if they were not read.
        quotas: the current quotas; None if they were not read.
        warnings: what to know before the plan is applied.
    """

    plan: Plan
    kind: TenantKind
    found: Capacities | None
    quotas: ClientQuotas | None
    warnings: tuple[str, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes to the current quotas; the whole plan if these are not known."""
        return changes(self.quotas or {}, self.plan.target(self.kind))


def planned(options: PlanOptions, kafka: KafkaOptions) -> Planned:
    """Return the plan of the options; read the brokers if their address is known.

    Raises:
        BrokersError: no broker reported its capacity.
        PlanError: nothing can be planned.
        SettingsError: a file or a setting can't be used.
    """
    if options.tenants is None and options.tenants_from is None:
        raise click.UsageError("no tenants to share the capacity: give --tenants or --tenants-from")
    source = options.source
    if options.capacity_percent is None or (source and source.of_brokers) or _reachable(kafka):
        return asyncio.run(planned_beside(options, load_kafka_admin(kafka)))
    tenants = source.from_file() if source else None
    plan = options.plan(options.capacity_percent, tenants)
    warnings = tuple(map(str, review_plan(plan, options.tenant_kind, None, None)))
    return Planned(plan, options.tenant_kind, None, None, warnings)


async def planned_beside(options: PlanOptions, admin: "KafkaAdmin") -> Planned:
    """Return the plan and the cluster's state.

    Raises:
        BrokersError: no broker reported its capacity.
        PlanError: nothing can be planned.
        SettingsError: a file or a setting can't be used.
    """
    quotas = without_throttles(await read_quotas(admin))
    capacity_percent, found = await read_capacity(options, admin)
    tenants = await options.source.read(admin, quotas) if options.source else None
    known = await read_known(admin, quotas, options.tenant_kind)
    plan = options.plan(capacity_percent, tenants)
    of_brokers = () if found is None else capacity_warnings(found)
    warnings = map(str, review_plan(plan, options.tenant_kind, quotas, known))
    return Planned(plan, options.tenant_kind, found, quotas, (*of_brokers, *warnings))


async def read_capacity(
    options: PlanOptions, admin: "KafkaAdmin"
) -> tuple[float, Capacities | None]:
    """Return the capacity to share, and the brokers that reported it.

    Raises:
        BrokersError: no broker reported its capacity.
    """
    if options.capacity_percent is not None:
        return options.capacity_percent, None
    found = await read_capacities(admin)
    return smallest(found.brokers).percent, found


def _reachable(kafka: KafkaOptions) -> bool:
    """Whether an option or a setting names the brokers' address."""
    return kafka != KafkaOptions() or bool(os.environ.get(SERVERS))
