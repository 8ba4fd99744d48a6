"""From shares to quotas: who is to have which request_percentage, and what that changes (KIP-124).

A plan has shares for names, or one share for the default entity, so that whoever comes has it too.
It is for users or for client-ids alike; which of them it becomes is said when it is compared with
the quotas of today.

Example: 50 tenants on 6,400 % are one share of 128 for the default. Where 100 were before, with 64,
that is one change: 64 to 128. With a reserve of 400 % for mirror, 50 tenants have 120 each, and
mirror has 400 by its name.

Source: KIP-124 (the unit), KIP-546 (entities); the eight levels are in ``sidecar.quotas.entities``.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Default, Entity, QuotaKey
from sidecar.quotas.request_time.fair_shares import (
    OverCapacity,
    Shares,
    ShareWarning,
    Tenant,
    equal_share,
    fair_shares,
    review,
)

Who = str | Default
"""A name, or whoever has no quota by name."""


class TenantKind(StrEnum):
    """What distinguishes tenants, as kafka-configs.sh calls it."""

    USERS = "users"
    CLIENTS = "clients"

    def entity(self, who: Who) -> Entity:
        """The entity of a name or of the default."""
        return Entity(user=who) if self is TenantKind.USERS else Entity(client_id=who)

    def name_of(self, entity: Entity) -> str | None:
        """The name of an entity of this kind; None: it is of another kind, or the default."""
        name = entity.user if self is TenantKind.USERS else entity.client_id
        return name if isinstance(name, str) and entity == self.entity(name) else None


@dataclass(frozen=True, slots=True)
class Terms:
    """What there is to share, and what of it is reserved.

    Attributes:
        capacity_percent: of the smallest broker, in percent of one thread.
        reserve_percent: reserved from it for internal users.
        internal: who has equal parts of the reserve, by name; nobody: it is only reserved.
        default_percent: for whoever has no share by name; None: they are left as they are.

    Raises:
        ValueError: nothing is left beside the reserve; internal users without a reserve, or one
            of them named twice; a default that is no share.
    """

    capacity_percent: float
    reserve_percent: float = 0.0
    internal: tuple[str, ...] = ()
    default_percent: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.reserve_percent < self.capacity_percent:
            raise ValueError(
                f"a reserve of {self.reserve_percent:g} % leaves nothing of "
                f"{self.capacity_percent:g} %"
            )
        if self.default_percent is not None and not 0 < self.default_percent < math.inf:
            raise ValueError(f"a default of {self.default_percent:g} % is no share")
        if self.internal and not self.reserve_percent > 0:
            raise ValueError("internal users need a reserve to share")
        if len(set(self.internal)) < len(self.internal):
            raise ValueError("an internal user is named twice")


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is to have how much.

    Attributes:
        terms: what was shared.
        tenants: among how many.
        shares: request_percentage by name or for the default, in the order of the tenants.
        warnings: what to know of the shares themselves; see
            ``sidecar.quotas.request_time.plan_review`` for those about today's quotas.
    """

    terms: Terms
    tenants: int
    shares: Mapping[Who, float]
    warnings: tuple[ShareWarning, ...]

    def target(self, kind: TenantKind) -> dict[Entity, dict[str, float]]:
        """The quotas that the plan is, for users or for client-ids."""
        return {
            kind.entity(who): {QuotaKey.REQUEST.value: share} for who, share in self.shares.items()
        }


@dataclass(frozen=True, slots=True)
class Change:
    """One quota of one entity, today and planned.

    Attributes:
        entity: whose.
        key: of ``QuotaKey``, or another name.
        before: None: it has none of its own today.
        after: None: it is to be removed.
    """

    entity: Entity
    key: str
    before: float | None
    after: float | None


def equal_plan(terms: Terms, tenants: int) -> Plan:
    """One share for the default, so many times of which are the capacity.

    Raises:
        ValueError: no tenant, or nothing to share.
    """
    share = equal_share(terms.capacity_percent - terms.reserve_percent, tenants)
    # They have no names yet, and what there is to say is the same for each of them.
    small = review({f"each of {tenants:,} tenants": share}, terms.capacity_percent)
    internal = _internal(terms)
    shares: dict[Who, float] = {DEFAULT: share}
    shares.update(internal.percent)
    return Plan(terms, tenants, shares, (*small, *internal.warnings))


def named_plan(terms: Terms, tenants: Collection[Tenant]) -> Plan:
    """A share for each tenant by name; internal users are no tenants.

    Raises:
        ValueError: no tenant, two of one name, or nothing to share.
    """
    sharing = [tenant for tenant in tenants if tenant.name not in terms.internal]
    if not sharing:
        raise ValueError("there is no tenant to share anything")
    fair = fair_shares(terms.capacity_percent, sharing, reserve_percent=terms.reserve_percent)
    internal = _internal(terms)
    shares: dict[Who, float] = {}
    shares.update(fair.percent)
    shares.update(internal.percent)
    if terms.default_percent is not None:
        shares[DEFAULT] = terms.default_percent
    # The review warns of a sum over the capacity, and counts what is outside the plan too.
    warnings = [each for each in fair.warnings if not isinstance(each, OverCapacity)]
    return Plan(terms, len(sharing), shares, (*warnings, *internal.warnings))


def changes(
    quotas: ClientQuotas, target: Mapping[Entity, Mapping[str, float | None]]
) -> tuple[Change, ...]:
    """What is to change from today's quotas; what is not in the target stays, None is removed."""
    compared = (
        Change(entity, key, quotas.get(entity, {}).get(key), after)
        for entity, values in target.items()
        for key, after in values.items()
    )
    return tuple(change for change in compared if change.before != change.after)


def removals(
    quotas: ClientQuotas, target: Mapping[Entity, Mapping[str, float]]
) -> tuple[Change, ...]:
    """What is to be removed when only the target may stay."""
    return tuple(
        Change(entity, key, value, None)
        for entity, values in quotas.items()
        for key, value in values.items()
        if key not in target.get(entity, {})
    )


def by_entity(
    changed: Sequence[Change],
) -> list[tuple[dict[str, str | None], dict[str, float | None]]]:
    """Changes as AlterClientQuotas takes them: each entity once, with all that changes for it."""
    grouped: dict[Entity, dict[str, float | None]] = {}
    for change in changed:
        grouped.setdefault(change.entity, {})[change.key] = change.after
    return [(entity.parts(), values) for entity, values in grouped.items()]


def _internal(terms: Terms) -> Shares:
    if not terms.internal:
        return Shares({}, ())
    return fair_shares(terms.reserve_percent, [Tenant(name) for name in terms.internal])
