"""Turns shares into quotas: the request_percentage of each entity, and the changes (KIP-124).

A plan has shares for names, or one share for the default entity, which new tenants get too. The
plan itself is the same for users and for client-ids. The comparison with the current quotas says
which of the two it is for.

Example: 50 tenants with 6,400 % make one share of 128 % for the default. If the default was 64 %,
for 100 tenants, that is one change: 64 to 128. With a reserve of 400 % for mirror, each of 50
tenants gets 120 %, and mirror gets 400 % by name.

Source: KIP-124 (the unit), KIP-546 (entities); the eight levels are in ``sidecar.quotas.entities``.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Default, Entity, QuotaKey
from sidecar.quotas.request_time.fair_shares import (
    SMALL_PERCENT,
    Shares,
    ShareWarning,
    SmallShare,
    Tenant,
    equal_share,
    fair_shares,
)

Who = str | Default
"""A name, or the default for tenants without a quota of their own."""


class TenantKind(StrEnum):
    """Whether tenants are users or client-ids, in the words of kafka-configs.sh."""

    USERS = "users"
    CLIENTS = "clients"

    def entity(self, who: Who) -> Entity:
        """Return the entity of a name or of the default."""
        return Entity(user=who) if self is TenantKind.USERS else Entity(client_id=who)

    def name_of(self, entity: Entity) -> str | None:
        """Return the name of an entity of this kind; None for another kind or the default."""
        name = entity.user if self is TenantKind.USERS else entity.client_id
        return name if isinstance(name, str) and entity == self.entity(name) else None


@dataclass(frozen=True, slots=True)
class Terms:
    """The capacity to share, and the reserve.

    Attributes:
        capacity_percent: the capacity of the smallest broker, in percent of one thread.
        reserve_percent: the part of it that is reserved for internal users.
        internal: the users that share the reserve equally; if empty, it is only kept free.
        default_percent: the quota of tenants without a share by name; None leaves them unchanged.

    Raises:
        ValueError: the reserve takes the whole capacity, there are internal users without a
        reserve,
            an internal user is named twice, or the default is not a share.
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
    """The planned shares.

    Attributes:
        terms: the capacity and the reserve.
        tenants: the number of tenants.
        shares: request_percentage by name or for the default, in the order of the tenants.
        warnings: the warnings about the shares themselves. Those about their sum and the current
            quotas come from ``sidecar.quotas.request_time.plan_review``.
    """

    terms: Terms
    tenants: int
    shares: Mapping[Who, float]
    warnings: tuple[ShareWarning, ...]

    def target(self, kind: TenantKind) -> dict[Entity, dict[str, float]]:
        """Return the plan as quotas for users or for client-ids."""
        return {
            kind.entity(who): {QuotaKey.REQUEST.value: share} for who, share in self.shares.items()
        }


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one quota of one entity.

    Attributes:
        entity: the entity.
        key: a ``QuotaKey`` or another name.
        before: the current limit; None if the entity has no quota of its own.
        after: the planned limit; None removes the quota.
    """

    entity: Entity
    key: str
    before: float | None
    after: float | None


def equal_plan(terms: Terms, tenants: int) -> Plan:
    """Plan one equal share for the default entity.

    Raises:
        ValueError: there is no tenant, or no capacity to share.
    """
    share = equal_share(terms.capacity_percent - terms.reserve_percent, tenants)
    # The tenants have no names here, and a warning applies to each of them.
    small = _small(f"each of {tenants:,} tenants", share)
    internal = _internal(terms)
    shares: dict[Who, float] = {DEFAULT: share}
    shares.update(internal.percent)
    return Plan(terms, tenants, shares, (*small, *internal.warnings))


def named_plan(terms: Terms, tenants: Collection[Tenant]) -> Plan:
    """Plan a share for each tenant by name. Internal users are not tenants.

    Raises:
        ValueError: there is no tenant, two have the same name, or there is no capacity to share.
    """
    sharing = [tenant for tenant in tenants if tenant.name not in terms.internal]
    if not sharing:
        raise ValueError("there is no tenant to share the capacity")
    fair = fair_shares(terms.capacity_percent, sharing, reserve_percent=terms.reserve_percent)
    internal = _internal(terms)
    shares: dict[Who, float] = {}
    shares.update(fair.percent)
    shares.update(internal.percent)
    small: tuple[ShareWarning, ...] = ()
    if terms.default_percent is not None:
        shares[DEFAULT] = terms.default_percent
        small = _small("each tenant without a name", terms.default_percent)
    return Plan(terms, len(sharing), shares, (*fair.warnings, *small, *internal.warnings))


def changes(
    quotas: ClientQuotas, target: Mapping[Entity, Mapping[str, float | None]]
) -> tuple[Change, ...]:
    """Return the changes to the current quotas. A target of None removes a quota; others stay."""
    compared = (
        Change(entity, key, quotas.get(entity, {}).get(key), after)
        for entity, values in target.items()
        for key, after in values.items()
    )
    return tuple(change for change in compared if change.before != change.after)


def removals(
    quotas: ClientQuotas, target: Mapping[Entity, Mapping[str, float]]
) -> tuple[Change, ...]:
    """Return the quotas to remove so that only the target stays."""
    return tuple(
        Change(entity, key, value, None)
        for entity, values in quotas.items()
        for key, value in values.items()
        if key not in target.get(entity, {})
    )


def by_entity(
    changed: Sequence[Change],
) -> list[tuple[dict[str, str | None], dict[str, float | None]]]:
    """Group changes for AlterClientQuotas: each entity once, with all its changes."""
    grouped: dict[Entity, dict[str, float | None]] = {}
    for change in changed:
        grouped.setdefault(change.entity, {})[change.key] = change.after
    return [(entity.parts(), values) for entity, values in grouped.items()]


def _internal(terms: Terms) -> Shares:
    if not terms.internal:
        return Shares({}, ())
    return fair_shares(terms.reserve_percent, [Tenant(name) for name in terms.internal])


def _small(who: str, share: float) -> tuple[ShareWarning, ...]:
    return (SmallShare(who, share),) if share < SMALL_PERCENT else ()
