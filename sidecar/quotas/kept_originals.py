"""The originals of produce quotas that a sidecar has lowered, kept among the quotas themselves.

Before a sidecar lowers a quota, it writes the original into the cluster as the quota of a name that
no client has, of the same kind of entity:

- ``throttle-sidecar.before:NAME`` has the quota that NAME had;
- ``throttle-sidecar.without:NAME`` says that NAME had none. Its quota is only a number: the rate
  that clients wrote before, which a throttle factor is a share of.

The default has ``before-default`` in place of ``before:NAME``. Of a user with a client-id, the user
has the prefix.

This needs no topic, no right and no request beyond those for quotas, and one read returns quotas
and originals of the same moment. A person sees the originals with ``kafka-configs.sh --describe``
and restores them by hand, and so can any sidecar. Kafka rejects unknown keys of a quota or a topic,
so the name is the only place for foreign data; a compacted topic would need rights to create, write
and read it, and a client that a quota could throttle. The kind of entity is the same because the
first quota of a new kind changes how Kafka groups all clients.

Example: alice's quota of 10 MB/s is lowered to 8.5 MB/s::

    Quota configs for user-principal 'alice' are producer_byte_rate=8559249.0
    Quota configs for user-principal 'throttle-sidecar.before:alice' are producer_byte_rate=1.0E7
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey

PREFIX: Final = "throttle-sidecar."
_BEFORE: Final = f"{PREFIX}before"
_WITHOUT: Final = f"{PREFIX}without"
_NAMED: Final = ":"
_OF_DEFAULT: Final = "-default"


@dataclass(frozen=True, slots=True)
class Kept:
    """The original of a produce quota.

    Attributes:
        original: bytes/s on each broker; None if there was no quota.
        base: the rate that a throttle factor is a share of, bytes/s.
    """

    original: float | None
    base: float


def record_of(entity: Entity, kept: Kept) -> tuple[Entity, float]:
    """The entity that keeps an original in the cluster, and its quota."""
    if kept.original is not None:
        return _record(_BEFORE, entity), kept.original
    # Kafka accepts only whole numbers above 0.
    return _record(_WITHOUT, entity), float(max(1, round(kept.base)))


def records_of(entity: Entity) -> tuple[Entity, Entity]:
    """Both entities that may keep an entity's original."""
    return _record(_BEFORE, entity), _record(_WITHOUT, entity)


def originals_in(quotas: ClientQuotas) -> dict[Entity, Kept]:
    """The originals that the cluster keeps, by the entity that they belong to."""
    found: dict[Entity, Kept] = {}
    for record, values in quotas.items():
        value = values.get(QuotaKey.PRODUCE)
        if value is None:
            continue
        for prefix in (_BEFORE, _WITHOUT):
            entity = _unmarked(prefix, record)
            # Where both are written, a quota was there at one time: that is restored.
            if entity is not None and (prefix == _BEFORE or entity not in found):
                found[entity] = Kept(value if prefix == _BEFORE else None, value)
    return found


def without_records(quotas: ClientQuotas) -> dict[Entity, Mapping[str, float]]:
    """The quotas of clients, as they apply now."""
    return {entity: values for entity, values in quotas.items() if not is_record(entity)}


def with_originals(quotas: ClientQuotas, changed: Collection[Entity] = ()) -> ClientQuotas:
    """The quotas with their originals, but for entities whose quota somebody has changed since."""
    kept = originals_in(quotas)
    if not kept:
        return quotas
    key = QuotaKey.PRODUCE.value
    restored: dict[Entity, Mapping[str, float]] = {}
    for entity, values in without_records(quotas).items():
        if entity in kept and entity not in changed:
            original = kept[entity].original
            others = {name: value for name, value in values.items() if name != key}
            values = others if original is None else {**others, key: original}  # noqa: PLW2901 - the same quotas
        if values:
            restored[entity] = values
    return restored


def is_record(entity: Entity) -> bool:
    """Whether an entity keeps an original, and is no client."""
    return any(_unmarked(prefix, entity) is not None for prefix in (_BEFORE, _WITHOUT))


def _record(prefix: str, entity: Entity) -> Entity:
    part = "client_id" if entity.user is None else "user"
    name = getattr(entity, part)
    marked = prefix + (_NAMED + name if isinstance(name, str) else _OF_DEFAULT)
    return replace(entity, **{part: marked})


def _unmarked(prefix: str, record: Entity) -> Entity | None:
    part = "client_id" if record.user is None else "user"
    name = getattr(record, part)
    if not isinstance(name, str) or not name.startswith(prefix):
        return None
    rest = name.removeprefix(prefix)
    if rest == _OF_DEFAULT:
        return replace(record, **{part: DEFAULT})
    return replace(record, **{part: rest[1:]}) if rest.startswith(_NAMED) else None
