"""A plan beside what there is: the brokers' capacity, who is there, the quotas of today.

Example: with ``--tenants 50 --capacity 6400`` and no brokers' address none is contacted, and there
is no "today" to compare with.
"""

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sidecar.cli.kafka_options import SERVERS, KafkaOptions, load_kafka_admin
from sidecar.cli.quotas.plan_options import PlanOptions
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.producer_ids.throttle_signature import without_signed
from sidecar.quotas.request_time.plan_review import PlanWarning, review_plan
from sidecar.quotas.request_time.quota_plan import Change, Plan, TenantKind, changes
from sidecar.quotas.request_time.thread_capacity import smallest
from sidecar.request_time.cluster_state import Capacities, read_capacities, read_quotas
from sidecar.request_time.tenants import read_known

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.settings import KafkaAdmin


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan beside what there is.

    Attributes:
        plan: who gets how much.
        kind: as what.
        found: the brokers' capacities; None: they were not read.
        quotas: of today; None: they were not read.
        warnings: what to know before it is applied.
    """

    plan: Plan
    kind: TenantKind
    found: Capacities | None
    quotas: ClientQuotas | None
    warnings: tuple[PlanWarning, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """Against today's quotas; all of it when these are not known."""
        return changes(self.quotas or {}, self.plan.target(self.kind))


def planned(options: PlanOptions, kafka: KafkaOptions) -> Planned:
    """The plan by the options; brokers are read if their address is known.

    Raises:
        BrokersError: no broker reported what is needed.
        PlanError: nothing can be planned.
        SettingsError: a file or a setting can't be used.
    """
    _check(options)
    source = options.source
    if options.capacity_percent is None or (source and source.of_brokers) or _reachable(kafka):
        return planned_beside(options, load_kafka_admin(kafka))
    tenants = source.from_file() if source else None
    plan = options.plan(options.capacity_percent, tenants)
    warnings = review_plan(plan, options.tenant_kind, None, None)
    return Planned(plan, options.tenant_kind, None, None, warnings)


def planned_beside(options: PlanOptions, admin: "KafkaAdmin") -> Planned:
    """The same, beside a cluster.

    Raises:
        BrokersError: no broker reported what is needed.
        PlanError: nothing can be planned.
        SettingsError: a file or a setting can't be used.
    """
    _check(options)
    return asyncio.run(_planned(options, admin))


async def read_capacity(
    options: PlanOptions, admin: "KafkaAdmin"
) -> tuple[float, Capacities | None]:
    """What there is to share, and the brokers that reported it.

    Raises:
        BrokersError: no broker reported it.
    """
    if options.capacity_percent is not None:
        return options.capacity_percent, None
    found = await read_capacities(admin)
    return smallest(found.brokers).percent, found


async def _planned(options: PlanOptions, admin: "KafkaAdmin") -> Planned:
    quotas = without_signed(await read_quotas(admin))
    capacity_percent, found = await read_capacity(options, admin)
    tenants = await options.source.read(admin, quotas) if options.source else None
    known = await read_known(admin, quotas, options.tenant_kind)
    plan = options.plan(capacity_percent, tenants)
    warnings = review_plan(plan, options.tenant_kind, quotas, known)
    return Planned(plan, options.tenant_kind, found, quotas, warnings)


def _check(options: PlanOptions) -> None:
    if options.tenants is None and options.tenants_from is None:
        raise click.UsageError("who shares it? give --tenants or --tenants-from")


def _reachable(kafka: KafkaOptions) -> bool:
    """Whether a setting or an option has the brokers' address."""
    return kafka != KafkaOptions() or bool(os.environ.get(SERVERS))
