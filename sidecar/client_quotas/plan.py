"""Plans which produce quotas to lower, to raise and to restore: a function of what is known.

Which quotas:

- Each produce quota of a user, a client-id or both, defaults included. A quota at or below the
  floor stays as it is.
- Clients without any produce quota get one by the default client-id. That is the last of Kafka's
  eight levels, so it changes nothing for clients that have a quota at another level. It is left
  out if the default user has a produce quota, which already reaches every user with a name.
- A user that a storage budget slows: its own produce quotas, each by the lower of the two factors.
  A user without any gets a copy of each quota that limits its clients, or one for its clients if
  there is none. So these fall for this user alone. No copy is above its source, if that is 16 KiB/s
  or more.

A value that is neither the original nor a rung of the ladder (``sidecar.throttle.quota_steps``) was
set by somebody else, such as Strimzi's User Operator. It becomes the new original. The same holds
if a lowered quota is set back to its original. After ``MOST_FIGHTS`` such changes of an entity, the
sidecar leaves the entity alone until it is started again.

Example: at factor 0.0, alice has 10 MB/s and nobody else has a quota; brokers fill at 3 MB/s. The
plan keeps the originals "alice: 10 MB/s" and "default client-id: none", and sets 6 MB/s for both.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.client_quotas.rates import Rates
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, Name, QuotaKey
from sidecar.quotas.kept_originals import Kept, originals_in, with_originals
from sidecar.quotas.producer_ids.throttle_signature import without_signed
from sidecar.throttle.quota_steps import (
    FIRST,
    RISE,
    SMALLEST_FLOOR,
    STEP_S,
    Held,
    highest_rung,
    is_rung,
    next_quota,
)

MOST_FIGHTS: Final = 3
"""How often somebody else may set a lowered quota until the sidecar leaves it alone."""

_LAG_S: Final = 3.0
"""A broker may show a quota as it was for so long after a change."""

_ALL_OTHERS: Final = Entity(client_id=DEFAULT)
_ALL_USERS: Final = Entity(user=DEFAULT)
_FOR_ALL_USERS: Final = {_ALL_USERS, Entity(DEFAULT, DEFAULT)}
"""Where there is one of these, quotas of client-ids alone limit no client of a user."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a cluster has.

    Attributes:
        quotas: entity -> its produce quota, bytes/s on each broker.
        kept: entity -> the original that the cluster keeps.
    """

    quotas: Mapping[Entity, float]
    kept: Mapping[Entity, Kept]

    @property
    def changed(self) -> list[Entity]:
        """The entities with an original whose quota somebody else has set or removed since."""
        return [
            entity
            for entity, kept in self.kept.items()
            if not _is_ours(self.quotas.get(entity), kept)
        ]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted at a moment.

    Attributes:
        factor: the throttle factor, 0.0 to 1.0.
        floor: the lowest quota to set, bytes/s.
        now: steady seconds.
        rates: what clients write.
        users: user -> its factor by storage budgets, below 1.0.
        rise: by how much a quota may rise in a step.
        restores: whether quotas may be as they were.
    """

    factor: float
    floor: float
    now: float
    rates: Rates = field(default_factory=Rates)
    users: Mapping[Name, float] = field(default_factory=dict)
    rise: float = RISE
    restores: bool = True

    def factor_of(self, entity: Entity) -> float:
        """The factor for a quota: the lower of that for all and that of its user."""
        return min(self.factor, self.users.get(entity.user, 1.0))

    def most_of(self, entity: Entity) -> float:
        """The base of a copy that no quota limits: what its clients write, or half the floor."""
        return max(self.rates.rate_of(entity) or FIRST, self.floor / 2)


@dataclass(frozen=True, slots=True)
class Planned:
    """The next changes.

    Attributes:
        keep: entity -> its original, to be kept in the cluster before anything else.
        values: entity -> the quota to set.
        restore: entity -> its original, to be set, and then no longer kept.
        release: entities whose original is no longer kept, but whose quota stays as it is.
    """

    keep: dict[Entity, Kept] = field(default_factory=dict)
    values: dict[Entity, float] = field(default_factory=dict)
    restore: dict[Entity, float | None] = field(default_factory=dict)
    release: set[Entity] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.keep or self.values or self.restore or self.release)


@dataclass(slots=True)
class Ledger:
    """What a sidecar knows of the quotas that it changes.

    Attributes:
        kept: entity -> its original, as in the state file.
        seen: entity -> its produce quota, and when that was first seen, steady seconds.
        own: entity -> the value that this sidecar set last, and when.
        fights: how often somebody else set a lowered quota.
        others_at: when another sidecar was seen to lower a quota, steady seconds.
    """

    kept: dict[Entity, Kept] = field(default_factory=dict)
    seen: dict[Entity, tuple[float | None, float]] = field(default_factory=dict)
    own: dict[Entity, tuple[float | None, float]] = field(default_factory=dict)
    fights: Counter[Entity] = field(default_factory=Counter)
    others_at: float = -math.inf

    @property
    def left(self) -> list[Entity]:
        """The entities that the sidecar leaves alone."""
        return [entity for entity, count in self.fights.items() if count >= MOST_FIGHTS]

    def copies(self, found: Found) -> list[Entity]:
        """The quotas of users that had none of their own."""
        kept = self.kept | dict(found.kept)
        return [entity for entity, each in kept.items() if _is_copy(entity, each.original)]

    def lowered(self, found: Found) -> dict[Entity, float]:
        """The quotas that are not as they were."""
        return {
            entity: value
            for entity, kept in (self.kept | dict(found.kept)).items()
            if (value := found.quotas.get(entity)) is not None and value != kept.original
        }

    def note_set(self, entity: Entity, value: float | None, now: float) -> None:
        """Note a value that was set."""
        self.own[entity] = self.seen[entity] = (value, now)

    def note_restoring(self, originals: Mapping[Entity, float | None], now: float) -> None:
        """Note that originals are about to be set. If the answer is lost, nobody else set them."""
        self.own |= {entity: (original, now) for entity, original in originals.items()}

    def plan(self, found: Found, wanted: Wanted) -> Planned:
        """Return the changes that are due, and note what was found."""
        planned = Planned()
        self.see(found, wanted.now)
        for entity, kept in list(self.kept.items()):
            value, _ = self.seen[entity]
            own, own_at = self.own.get(entity, (value, -_LAG_S))
            if wanted.now < own_at + _LAG_S:
                continue
            if entity not in found.kept and value == kept.original:
                # Another sidecar has restored it.
                self._forget(entity)
                continue
            current = self._settled(entity, kept, own, planned)
            if current is None:
                continue
            if entity not in found.kept:
                planned.keep[entity] = current
            # Without a quota, clients write what they wrote before. With one, it bounds them, and
            # fill rates may be too low while clients wait and segments are deleted.
            rate = current.base if value is None else wanted.rates.later(entity)
            self._step(entity, current, planned, wanted, rate)
        if wanted.factor < 1.0 or wanted.users:
            self._begin(found, planned, wanted)
        self._keep_copies(planned)
        return planned

    def _keep_copies(self, planned: Planned) -> None:
        """Remove the copies for a user together, and after the quotas that they are copies of rose.

        If one went earlier, other quotas would apply to the user's clients for a few steps.
        """
        lowered = self.kept.keys() - planned.restore.keys()
        users = {each.user for each in lowered}
        for entity in [*planned.restore]:
            is_copy = _is_copy(entity, planned.restore[entity])
            if is_copy and users & {None, DEFAULT, entity.user}:
                del planned.restore[entity]

    def see(self, found: Found, now: float) -> None:
        """Note what was found."""
        self.kept |= found.kept
        for entity in {*found.quotas, *self.kept, *self.seen, _ALL_OTHERS}:
            value = found.quotas.get(entity)
            own, own_at = self.own.get(entity, (None, -math.inf))
            is_late = now < own_at + _LAG_S
            before = self.seen.get(entity)
            if before is None or before[0] != value:
                is_fallen = before is not None and is_rung(value) and _is_below(value, before[0])
                if is_fallen and value != own and not is_late:
                    self.others_at = now
                self.seen[entity] = (value, now)
            if entity in self.kept:
                continue
            if not is_late:
                self.own.pop(entity, None)
            if value is None and entity != _ALL_OTHERS:
                del self.seen[entity]

    def _settled(
        self, entity: Entity, kept: Kept, own: float | None, planned: Planned
    ) -> Kept | None:
        """The original that counts now; None if the sidecar leaves the entity alone."""
        value, _ = self.seen[entity]
        is_back = value == kept.original and own != value
        if not is_back and _is_ours(value, kept):
            return kept
        self.fights[entity] += 1
        if self.fights[entity] >= MOST_FIGHTS:
            self._forget(entity)
            planned.release.add(entity)
            return None
        self.own.pop(entity, None)
        if is_back:
            return kept
        changed = Kept(value, kept.base if value is None else value)
        self.kept[entity] = planned.keep[entity] = changed
        return changed

    def _begin(self, found: Found, planned: Planned, wanted: Wanted) -> None:
        """Begin to lower the quotas that are still as they were."""
        new = {entity: Kept(value, value) for entity, value in found.quotas.items()}
        if wanted.factor < 1.0 and _ALL_OTHERS not in new and _ALL_USERS not in new:
            new[_ALL_OTHERS] = Kept(None, wanted.rates.rate_of(_ALL_OTHERS) or FIRST)
        rates = {entity: wanted.rates.rate_of(entity) for entity in new}
        for user in wanted.users:
            for entity, (base, rate) in self._copies(user, found, wanted).items():
                new[entity], rates[entity] = Kept(None, base), rate
                self.seen.setdefault(entity, (None, wanted.now - STEP_S))
        for entity, kept in new.items():
            if entity in self.kept or entity in planned.release or entity in self.left:
                continue
            self._step(entity, kept, planned, wanted, rates[entity])
            if entity in planned.values:
                self.kept[entity] = planned.keep[entity] = kept

    def _copies(
        self, user: Name, found: Found, wanted: Wanted
    ) -> dict[Entity, tuple[float, float]]:
        """Quotas that limit a user's clients as now, but no others: their bases, and rates.

        A quota that was not there begins and ends at twice its base. So that is never above the
        quota that it is a copy of.
        """
        quotas = found.quotas
        if has_own(user, quotas):
            return {}
        copies: dict[Entity, tuple[float, float]] = {}
        for source in sources_of_copies(quotas):
            entity = Entity(user, source.client_id)
            if entity in quotas:
                continue
            kept = self.kept.get(source, Kept(quotas[source], quotas[source]))
            most = wanted.most_of(entity)
            if kept.original is not None:
                most = min(most, _half(kept.original))
            copies[entity] = (most, min(most, _half(quotas[source])))
        if Entity(user) not in copies and Entity(user, DEFAULT) not in copies:
            most = wanted.most_of(Entity(user, DEFAULT))
            copies[Entity(user, DEFAULT)] = (most, most)
        return copies

    def _step(
        self, entity: Entity, kept: Kept, planned: Planned, wanted: Wanted, rate: float | None
    ) -> None:
        value, since = self.seen[entity]
        held = Held(kept.original, kept.base, value, since)
        factor = wanted.factor_of(entity)
        # A quota below the floor stays as it is, and so does a copy of it.
        floor = (
            min(wanted.floor, 2 * kept.base) if _is_copy(entity, kept.original) else wanted.floor
        )
        after = next_quota(held, factor, floor, wanted.now, rate, rise=wanted.rise)
        if after == kept.original and (after != value or (factor >= 1.0 and entity in self.kept)):
            if wanted.restores:
                planned.restore[entity] = after
        elif after is not None and after != value:
            planned.values[entity] = after

    def _forget(self, entity: Entity) -> None:
        self.kept.pop(entity, None)
        self.own.pop(entity, None)

    def restored(self, entity: Entity, now: float) -> None:
        """Note that an original was restored."""
        original = self.kept.pop(entity).original
        # A broker may show the quota of before for a moment.
        self.note_set(entity, original, now)


def has_own(user: Name, quotas: Collection[Entity]) -> bool:
    """Whether a user has a quota for all its clients, so that it gets no copies."""
    return Entity(user) in quotas or Entity(user, DEFAULT) in quotas


def sources_of_copies(quotas: Collection[Entity]) -> list[Entity]:
    """The quotas of which a user without one of its own gets copies."""
    # Of a user and of a client-id, the quota of the user applies (``sidecar.quotas.entities``).
    kinds = (None, DEFAULT) if _FOR_ALL_USERS.isdisjoint(quotas) else (DEFAULT,)
    return [each for kind in kinds for each in quotas if each.user is kind]


def without_throttles(quotas: ClientQuotas) -> ClientQuotas:
    """The quotas as their owners set them, for whoever compares or plans quotas."""
    key = QuotaKey.PRODUCE.value
    produce = {entity: values[key] for entity, values in quotas.items() if key in values}
    changed = Found(produce, originals_in(quotas)).changed
    return without_signed(with_originals(quotas, changed))


def beginning(found: Found, wanted: Wanted) -> Planned:
    """The first changes of a throttle, as if all quotas had been seen long before."""
    ledger = Ledger()
    ledger.plan(found, replace(wanted, factor=1.0, now=wanted.now - STEP_S))
    return ledger.plan(found, wanted)


def _half(quota: float) -> float:
    return highest_rung(max(quota, SMALLEST_FLOOR)) / 2


def _is_copy(entity: Entity, original: float | None) -> bool:
    return original is None and entity.user not in {None, DEFAULT}


def _is_below(value: float | None, other: float | None) -> bool:
    return value is not None and (other is None or value < other)


def _is_ours(value: float | None, kept: Kept) -> bool:
    return value == kept.original or (is_rung(value) and _is_below(value, kept.original))
