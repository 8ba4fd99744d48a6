"""Shares as planned while tenants come and go: who counts, and how large a step is.

A tenant counts once it has been there for the stabilization time, and no longer once it has been
gone for it; so one that only restarts changes nobody's share. Where nobody counts yet, as at the
beginning, those who are there count at once. A quota changes by at most a part of itself in one
step; a tenant's first quota is set at once.

Example: 100 tenants have 64 % of 6,400 %. With a stabilization time of 5 minutes 15 more, who came
at minute 0, count from minute 5 on: 55.7 % each. With a largest change of 0.1 the others change
from 64 to 57.6 first and to 55.7 one step later; until then the sum is over the capacity.

Source: the article on request_percentage, "Quantidade variável de tenants".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.quotas.request_time.fair_shares import Tenant
from sidecar.quotas.request_time.quota_plan import Change, changes

_TENTHS: Final = 10


class Watch:
    """Who counts, which quotas were set, and the next step.

    Args:
        stabilization_ms: how long a tenant has to be there, or to be gone.
        largest_change: the part of itself by which a quota may move in one step; more than 0.

    Raises:
        ValueError: a number out of its range.
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
        self._applied: dict[Entity, dict[str, float]] = {}
        self._capacity_percent: float | None = None
        self._larger_since_ms: int | None = None

    def __repr__(self) -> str:
        return f"Watch({len(self._counted)} tenants, {len(self._moved_at_ms)} not counted yet)"

    @property
    def unstable(self) -> int:
        """How many have come or gone and are waited for."""
        return len(self._moved_at_ms)

    def capacity(self, percent: float, now_ms: int) -> float:
        """The capacity to plan for: a larger one counts after that time, a smaller one at once.

        A broker that restarts, which may be the smallest, is not seen meanwhile.

        Args:
            percent: of the smallest broker that is there now.
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
        """The tenants to plan for.

        Args:
            there: all that are there now; their terms hold at once.
            now_ms: steady; it may stand still.
        """
        present = {tenant.name: tenant for tenant in there}
        if not self._counted:
            self._counted = present
            self._moved_at_ms = {}
            return list(present.values())
        counted = {name: present.get(name, tenant) for name, tenant in self._counted.items()}
        # Those who came and those who went; nobody else waits.
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
        """What to change now.

        Whoever is not in the target any more loses the quota that was set here, unless someone else
        has changed it since.

        Args:
            quotas: of today.
            target: the plan for the tenants that count.
        """
        due = limited(changes(quotas, target), self._largest_change)
        gone = {
            entity: {key: None for key, value in values.items() if quotas[entity].get(key) == value}
            for entity, values in self._applied.items()
            if entity not in target and entity in quotas
        }
        moved = {(change.entity, change.key): change.after for change in due}
        # Those who are gone stay until their quota is seen to be: the step may fail.
        still = {entity: self._applied[entity] for entity, values in gone.items() if values}
        applied = {
            entity: {key: moved.get((entity, key)) or value for key, value in values.items()}
            for entity, values in target.items()
        }
        self._applied = still | applied
        return (*due, *changes(quotas, gone))


def limited(changed: Sequence[Change], largest_change: float) -> tuple[Change, ...]:
    """The same changes, each by ``largest_change`` (a part of the quota) at most."""
    return tuple(_limited(change, largest_change) for change in changed)


def _limited(change: Change, largest_change: float) -> Change:
    before, after = change.before, change.after
    if before is None or after is None:
        return change
    # At least a tenth, the unit of shares: a step that rounds to none never ends.
    furthest = max(before * largest_change, 1 / _TENTHS)
    if abs(after - before) <= furthest:
        return change
    moved = before + math.copysign(furthest, after - before)
    stepped = max(round(moved * _TENTHS) / _TENTHS, min(before, after))
    return Change(change.entity, change.key, before, stepped)
