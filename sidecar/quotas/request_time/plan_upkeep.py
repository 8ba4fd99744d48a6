"""Keeps shares as planned while tenants come and go: which tenants count, and the size of steps.

A tenant counts after it has been present for the stabilization time. It stops counting after it has
been absent for that time. A tenant that only restarts therefore changes no share. If no tenant
counts yet, as at the start, all present tenants count at once. A step changes a quota by at most a
fraction of itself. A tenant's first quota is set at once.

Example: 100 tenants have 64 % each of 6,400 %. Another 15 come at minute 0. With a stabilization
time of 5 minutes they count from minute 5 on, and each share is 55.7 %. With a largest change of
0.1, the quotas of the others go from 64 % to 57.6 %, and to 55.7 % one step later. Until then the
sum exceeds the capacity.

Source: the article on request_percentage, "Quantidade variável de tenants".
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.quotas.request_time.fair_shares import Tenant
from sidecar.quotas.request_time.quota_plan import Change, changes

_TENTHS: Final = 10


class Watch:
    """The tenants that count, the quotas that were set, and the next step.

    Args:
        stabilization_ms: how long a tenant must be present, or absent.
        largest_change: the fraction by which a quota may change in one step; above 0.

    Raises:
        ValueError: a number is out of its range.
    """

    def __init__(self, stabilization_ms: int, largest_change: float) -> None:
        if stabilization_ms < 0 or not largest_change > 0:
            raise ValueError(
                "a stabilization time of 0 or more and a largest change above 0 are needed"
            )
        self._stabilization_ms = stabilization_ms
        self._largest_change = largest_change
        self._counted: dict[str, Tenant] = {}
        self._moved_at_ms: dict[str, int] = {}
        self._applied: dict[Entity, dict[str, set[float]]] = {}
        self._capacity_percent: float | None = None
        self._larger_since_ms: int | None = None

    def __repr__(self) -> str:
        return f"Watch({len(self._counted)} tenants, {len(self._moved_at_ms)} not counted yet)"

    @property
    def unstable(self) -> int:
        """How many tenants have come or gone within the stabilization time."""
        return len(self._moved_at_ms)

    def capacity(self, percent: float, now_ms: int) -> float:
        """Return the capacity to plan for: a smaller one at once, a larger one after that time.

        The smallest broker may be restarting, and then the capacity only seems larger.

        Args:
            percent: the capacity of the smallest broker that is present now.
            now_ms: as in ``count``.
        """
        if self._capacity_percent is None or percent <= self._capacity_percent:
            self._capacity_percent, self._larger_since_ms = percent, None
            return percent
        if self._larger_since_ms is None:
            self._larger_since_ms = now_ms
        if now_ms >= self._larger_since_ms + self._stabilization_ms:
            self._capacity_percent, self._larger_since_ms = percent, None
        return self._capacity_percent

    def count(self, there: Iterable[Tenant], now_ms: int) -> list[Tenant]:
        """Return the tenants to plan for.

        Args:
            there: all present tenants; changed terms apply at once.
            now_ms: a steady time in milliseconds; it may stand still.
        """
        present = {tenant.name: tenant for tenant in there}
        if not self._counted:
            self._counted = present
            self._moved_at_ms = {}
            return list(present.values())
        counted = {name: present.get(name, tenant) for name, tenant in self._counted.items()}
        # Only tenants that came or went have to wait.
        moved = present.keys() ^ counted.keys()
        self._moved_at_ms = {name: self._moved_at_ms.get(name, now_ms) for name in sorted(moved)}
        for name, since_ms in list(self._moved_at_ms.items()):
            if now_ms < since_ms + self._stabilization_ms:
                continue
            del self._moved_at_ms[name]
            if name in present:
                counted[name] = present[name]
            else:
                del counted[name]
        self._counted = counted
        return list(counted.values())

    def step(
        self, quotas: ClientQuotas, target: Mapping[Entity, Mapping[str, float]]
    ) -> tuple[Change, ...]:
        """Return the changes of the next step.

        A tenant that is no longer in the target loses the quota that was set here, unless somebody
        else has changed it since.

        Args:
            quotas: the current quotas.
            target: the plan for the tenants that count.
        """
        due = [limited(each, self._largest_change) for each in changes(quotas, target)]
        gone = {
            entity: {key: None for key in values if quotas[entity].get(key) in values[key]}
            for entity, values in self._applied.items()
            if entity not in target and entity in quotas
        }
        moved = {(change.entity, change.key): change.after for change in due}
        # A tenant that left stays here until its quota is gone too, because a step may fail.
        still = {entity: self._applied[entity] for entity, values in gone.items() if values}
        applied: dict[Entity, dict[str, set[float]]] = {}
        for entity, values in target.items():
            own, now = self._applied.get(entity, {}), quotas.get(entity, {})
            # This step may fail too, so a current quota that was set here counts until it is gone.
            applied[entity] = {
                key: {moved.get((entity, key)) or value}
                | {each for each in own.get(key, ()) if each == now.get(key)}
                for key, value in values.items()
            }
        self._applied = still | applied
        return (*due, *changes(quotas, gone))


def limited(change: Change, largest_change: float) -> Change:
    """Limit a change to ``largest_change``, a fraction of the quota."""
    before, after = change.before, change.after
    if before is None or after is None:
        return change
    # At least 0.1, the unit of shares: with steps that round to 0 the change would never end.
    furthest = max(before * largest_change, 1 / _TENTHS)
    if abs(after - before) <= furthest:
        return change
    moved = before + math.copysign(furthest, after - before)
    stepped = max(round(moved * _TENTHS) / _TENTHS, min(before, after))
    return Change(change.entity, change.key, before, stepped)
