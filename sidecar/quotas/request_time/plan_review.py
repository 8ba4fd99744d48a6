"""Reviews a plan before it is applied, against the current quotas and the known users.

A quota that is not in the plan stays as it is. It may take precedence over a planned quota, or its
entity may use capacity in addition to the planned shares. Rounding alone causes no warning: 120
shares of 9.2 % are 1,104 % of 1,100 %.

Example: three tenants have 400 % each of 1,200 %. Carol is not in the plan and has had 500 % since
last year. She keeps them, so the sum is 1,700 %. Quotas from a file are reviewed in the same way.

Source: the levels are those of KIP-55 and KIP-546, see ``sidecar.quotas.entities``.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey
from sidecar.quotas.request_time.fair_shares import SMALL_PERCENT, ShareWarning, SmallShare
from sidecar.quotas.request_time.quota_plan import Plan, TenantKind

_MOST_ROUNDED_UP: Final = 0.05
"""The largest error of rounding to the nearest tenth."""
_FLOAT_NOISE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class OverCapacity:
    """Shares whose sum exceeds the capacity by more than rounding explains.

    Attributes:
        tenant: the tenant with the largest share; of several, the first by name.
        share_percent: the share of that tenant.
        sum_percent: the sum of all shares.
        capacity_percent: the capacity that they share.
    """

    tenant: str
    share_percent: float
    sum_percent: float
    capacity_percent: float

    def __str__(self) -> str:
        return (
            f"{self.tenant}: its {self.share_percent:g} % and all other shares are "
            f"{self.sum_percent:,.1f} %, over the capacity of {self.capacity_percent:,g} %"
        )


@dataclass(frozen=True, slots=True)
class OutsidePlan:
    """A current request_percentage that the plan does not change."""

    entity: Entity
    limit: float

    def __str__(self) -> str:
        return f"{self.entity}: keeps {self.limit:g} %, which is not in the plan"


@dataclass(frozen=True, slots=True)
class UnknownTenant:
    """A name that the cluster does not know."""

    tenant: str

    def __str__(self) -> str:
        return f"{self.tenant}: no SCRAM credential, ACL or quota has this name"


@dataclass(frozen=True, slots=True)
class Unlimited:
    """Tenants that the plan does not name have no limit."""

    kind: TenantKind

    def __str__(self) -> str:
        return f"{self.kind} that are not named have no limit; a default gives them one"


PlanWarning = ShareWarning | OverCapacity | OutsidePlan | UnknownTenant | Unlimited

_Spent = tuple[float, int, str]
"""A share, the number of tenants that have it, and their names."""


@dataclass(frozen=True, slots=True)
class QuotasFromFile:
    """Quotas from a file.

    Attributes:
        target: the quotas, of any kind.
        exact: whether to remove current quotas that are not among them.
        tenants: how many tenants share the default; 0 if none does yet.
    """

    target: ClientQuotas
    exact: bool
    tenants: int

    @property
    def requests(self) -> dict[Entity, float]:
        """Return the request_percentage of each entity that gets one."""
        return {
            entity: values[QuotaKey.REQUEST]
            for entity, values in self.target.items()
            if QuotaKey.REQUEST in values
        }

    @property
    def users(self) -> list[str]:
        """Return the named users in their order, each once."""
        named = (entity.user for entity in self.target)
        return list(dict.fromkeys(user for user in named if isinstance(user, str)))


def review_plan(
    plan: Plan, kind: TenantKind, quotas: ClientQuotas | None, known: Collection[str] | None
) -> tuple[PlanWarning, ...]:
    """Return all warnings about a plan for users or client-ids.

    The current quotas and the known names are None if they can't be read.
    """
    outside = tuple(_outside(plan.target(kind), quotas or {}))
    unknown = _unknown([who for who in plan.shares if isinstance(who, str)], known)
    has_default = DEFAULT in plan.shares or kind.entity(DEFAULT) in {
        each.entity for each in outside
    }
    unlimited = () if has_default or quotas is None else (Unlimited(kind),)
    over = _over(_spent(plan, kind, outside), plan.terms.capacity_percent)
    return (*plan.warnings, *over, *outside, *unknown, *unlimited)


def review_quotas(
    planned: QuotasFromFile,
    capacity_percent: float | None,
    quotas: ClientQuotas,
    known: Collection[str] | None,
) -> tuple[PlanWarning, ...]:
    """Return all warnings about quotas from a file. For other kinds, only unknown users count.

    The capacity is that of the smallest broker, in percent of one thread. The capacity and the
    known users are None if they can't be read.
    """
    requests = planned.requests
    unknown = tuple(_unknown(planned.users, known))
    if not requests:
        return unknown
    kind = TenantKind.CLIENTS
    if any(entity.user is not None for entity in requests):
        kind = TenantKind.USERS
    outside = () if planned.exact else tuple(_outside(planned.target, quotas))
    spent = _spent_beside(planned, kind, outside)
    over = () if capacity_percent is None else _over(spent, capacity_percent)
    small = (
        SmallShare(who, share) for share, _, who in _shares(planned, kind) if share < SMALL_PERCENT
    )
    defaults = {*requests, *(each.entity for each in outside)}
    has_default = not defaults.isdisjoint(each.entity(DEFAULT) for each in TenantKind)
    unlimited = () if has_default else (Unlimited(kind),)
    return (*small, *over, *outside, *unknown, *unlimited)


def _unknown(names: Iterable[str], known: Collection[str] | None) -> Iterator[UnknownTenant]:
    return (UnknownTenant(who) for who in names if known is not None and who not in known)


def _outside(target: ClientQuotas, quotas: ClientQuotas) -> Iterator[OutsidePlan]:
    for entity, values in quotas.items():
        limit = values.get(QuotaKey.REQUEST)
        if limit is None or QuotaKey.REQUEST in target.get(entity, {}) or entity.ip is not None:
            continue
        if not _behind_default_user(entity, target):
            yield OutsidePlan(entity, limit)


def _behind_default_user(entity: Entity, target: ClientQuotas) -> bool:
    # Quotas of client-ids have the lowest precedence: with a default user they never apply.
    return entity.user is None and QuotaKey.REQUEST in target.get(Entity(user=DEFAULT), {})


def _spent(plan: Plan, kind: TenantKind, outside: Collection[OutsidePlan]) -> list[_Spent]:
    """Return what named quotas use; a default is not counted until a tenant has it."""
    spent: list[_Spent] = []
    for who, share in plan.shares.items():
        if isinstance(who, str):
            spent.append((share, 1, who))
        elif plan.terms.default_percent is None:
            spent.append(_shared(share, plan.tenants, kind, outside))
    return [*spent, *_by_name(outside)]


def _spent_beside(
    planned: QuotasFromFile, kind: TenantKind, outside: Collection[OutsidePlan]
) -> list[_Spent]:
    spent = [
        (share, 1, str(entity))
        for entity, share in planned.requests.items()
        if not _of_default(entity) and not _behind_default_user(entity, planned.target)
    ]
    default = planned.requests.get(kind.entity(DEFAULT))
    if default is not None and planned.tenants:
        spent.append(_shared(default, planned.tenants, kind, outside))
    return [*spent, *_by_name(outside)]


def _shares(planned: QuotasFromFile, kind: TenantKind) -> Iterator[_Spent]:
    """Return each share with its tenants; a shared default counts for the tenants that share it."""
    for entity, share in planned.requests.items():
        if planned.tenants and entity == kind.entity(DEFAULT):
            yield _shared(share, planned.tenants, kind, ())
        else:
            yield share, 1, str(entity)


def _shared(
    share: float, tenants: int, kind: TenantKind, outside: Collection[OutsidePlan]
) -> _Spent:
    # They are among the tenants of which only the number is known.
    named = sum(kind.name_of(each.entity) is not None for each in outside)
    return share, max(0, tenants - named), f"each of {tenants:,} tenants"


def _by_name(outside: Collection[OutsidePlan]) -> Iterator[_Spent]:
    return ((each.limit, 1, str(each.entity)) for each in outside if not _of_default(each.entity))


def _of_default(entity: Entity) -> bool:
    return DEFAULT in (entity.user, entity.client_id)


def _over(spent: Collection[_Spent], capacity_percent: float) -> Iterator[OverCapacity]:
    total = math.fsum(share * count for share, count, _ in spent)
    allowed = _MOST_ROUNDED_UP * sum(count for _, count, _ in spent) + _FLOAT_NOISE
    if total - capacity_percent > allowed:
        share, _, largest = min(spent, key=lambda each: (-each[0], each[2]))
        yield OverCapacity(largest, share, total, capacity_percent)
