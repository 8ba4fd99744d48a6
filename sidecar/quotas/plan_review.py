"""What to know of a plan before it is applied, beside today's quotas and the users there are.

A quota that is not in the plan stays as it is, and may come before the planned one, or be given
besides: its share of the brokers is spent twice. Rounding alone is no warning: 120 shares of 9.2
are 1,104 of 1,100 %.

Example: three tenants have 400 % each of 1,200 %, and carol, who is not in the plan, has had 500 %
since last year: carol keeps her 500 %, and the sum is 1,700 %.

Source: the levels are those of KIP-55 and KIP-546, see ``sidecar.quotas.entities``.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey
from sidecar.quotas.plan import Plan, TenantKind
from sidecar.quotas.shares import OverCapacity, ShareWarning

_MOST_ROUNDED_UP: Final = 0.05
"""By rounding to the nearest tenth."""
_FLOAT_NOISE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class OutsidePlan:
    """A request_percentage of today that the plan does not change."""

    entity: Entity
    limit: float

    def __str__(self) -> str:
        return f"{self.entity}: keeps {self.limit:g} %, which is not in the plan"


@dataclass(frozen=True, slots=True)
class UnknownTenant:
    """A name that the cluster knows nobody by."""

    tenant: str

    def __str__(self) -> str:
        return f"{self.tenant}: no SCRAM credential, ACL or quota has this name"


@dataclass(frozen=True, slots=True)
class Unlimited:
    """Whoever the plan does not name has no limit at all."""

    kind: TenantKind

    def __str__(self) -> str:
        return f"{self.kind} that are not named have no limit; a default gives them one"


PlanWarning = ShareWarning | OutsidePlan | UnknownTenant | Unlimited


def review_plan(
    plan: Plan, kind: TenantKind, quotas: ClientQuotas | None, known: Collection[str] | None
) -> tuple[PlanWarning, ...]:
    """Everything that there is to say of a plan.

    Args:
        plan: to be applied.
        kind: as what.
        quotas: of today; None: they can't be told.
        known: every name that the cluster knows; None: it can't be told.
    """
    outside = tuple(_outside(plan, kind, quotas or {}))
    unknown = (
        UnknownTenant(who)
        for who in plan.shares
        if known is not None and isinstance(who, str) and who not in known
    )
    has_default = DEFAULT in plan.shares or kind.entity(DEFAULT) in {
        each.entity for each in outside
    }
    unlimited = () if has_default or quotas is None else (Unlimited(kind),)
    return (*plan.warnings, *_over(plan, kind, outside), *outside, *unknown, *unlimited)


def _outside(plan: Plan, kind: TenantKind, quotas: ClientQuotas) -> Iterator[OutsidePlan]:
    wanted = plan.wanted(kind)
    for entity, values in quotas.items():
        limit = values.get(QuotaKey.REQUEST)
        if limit is None or entity in wanted or entity.ip is not None:
            continue
        # Client-ids come last: with a default user nobody is under them.
        if entity.user is None and Entity(user=DEFAULT) in wanted:
            continue
        yield OutsidePlan(entity, limit)


def _over(plan: Plan, kind: TenantKind, outside: Collection[OutsidePlan]) -> Iterator[OverCapacity]:
    """The sum of what the plan gives and what others keep, by name: defaults are for nobody yet."""
    spent: list[tuple[float, int, str]] = []
    # They are some of the tenants that only their number is known of.
    named = sum(kind.name_of(each.entity) is not None for each in outside)
    for who, share in plan.shares.items():
        if isinstance(who, str):
            spent.append((share, 1, who))
        elif plan.terms.default_percent is None:
            spent.append((share, max(0, plan.tenants - named), f"each of {plan.tenants:,} tenants"))
    spent += [
        (each.limit, 1, str(each.entity))
        for each in outside
        if DEFAULT not in (each.entity.user, each.entity.client_id)
    ]
    total = math.fsum(share * count for share, count, _ in spent)
    capacity = plan.terms.capacity_percent
    allowed = _MOST_ROUNDED_UP * sum(count for _, count, _ in spent) + _FLOAT_NOISE
    if total - capacity > allowed:
        share, _, largest = min(spent, key=lambda each: (-each[0], each[2]))
        yield OverCapacity(largest, share, total, capacity)
