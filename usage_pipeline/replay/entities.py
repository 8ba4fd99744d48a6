"""The quota of each client over time, and the clients that share it.

For each (user, client-id) and kind of quota, the eight levels of ``sidecar.quotas.entities`` are
resolved. The first level with a quota determines the tags, and the tags determine the limit.
Clients without a quota are identified by whom a quota would be set for. If all quotas of the kind
are for users, for client-ids or for both together, that is the same kind of entity. If some of
several kinds are for client-ids, it is the client-id. Otherwise it is the user, or the client-id
without a login. ``by_default`` adds an unlimited default quota to kinds without quotas.

There are few clients and quotas compared with requests, so this runs once per client before a join.

Example: with 10 MB/s for user alice and 1 MB/s for client-id etl, alice's etl has the entity
"user=alice" and the limit 10 MB/s, shared by "user=alice"; bob's etl has "client-id=etl", 1 MB/s.

Source: Kafka's ClientQuotaManager, DefaultQuotaCallback; KIP-936 for producer ids, by user alone.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.silver.quota_config import DEFAULT
from usage_pipeline.usage.quota_types import ANONYMOUS, KEYS, PRODUCER_IDS

EVER: Final = 1 << 62
"""Milliseconds since 1970, after any log."""

_OF_USER: Final = 3
_OF_CLIENT: Final = 7
"""The levels of a quota for a user and for a client-id."""
_BY_USER: Final = frozenset({1, 2, 3, 4, 5, 6})
_BY_CLIENT: Final = frozenset({1, 2, 4, 5, 7, 8})
_SHARED_BY: Final = {
    (True, True): _BY_USER & _BY_CLIENT,
    (True, False): _BY_USER - _BY_CLIENT,
    (False, True): _BY_CLIENT - _BY_USER,
    (False, False): frozenset[int](),
}
"""The levels of quotas, by whether the tags contain the user and the client-id."""
_TYPES: Final = {key: quota_type for quota_type, key in KEYS.items()}


class Quota(NamedTuple):
    """A quota of an entity, with its time.

    Attributes:
        entity: the entity, as in the tables.
        limit: the limit in its unit.
        from_ms: the start, milliseconds since 1970.
        to_ms: the exclusive end.
    """

    entity: str
    limit: float
    from_ms: int
    to_ms: int


class ClientQuota(NamedTuple):
    """The quota of a client during some time.

    Attributes:
        from_ms: the start, milliseconds since 1970.
        to_ms: the exclusive end.
        counts: whether any quota of this kind exists in this time.
        entity: the entity of the quota; without a quota, as ``shared_by``.
        shared_by: the clients that share the quota.
        limit: the limit; None if there is none, or if it throttles no client.
    """

    from_ms: int
    to_ms: int
    counts: bool
    entity: str
    shared_by: str
    limit: float | None


_Parts = tuple[str | None, str | None]
"""The user and client-id of an entity."""
_Shape = tuple[bool, bool]
"""Whether an entity has a user, and whether a client-id."""


class Quotas:
    """All quotas of one kind."""

    def __init__(self, quota_type: str) -> None:
        self._quota_type = quota_type
        self._by_parts: dict[_Parts, list[Quota]] = defaultdict(list)
        self._spans: dict[_Shape, list[tuple[int, int]]] = defaultdict(list)
        self._joined = True

    def add(self, user: str | None, client_id: str | None, quota: Quota) -> None:
        """Another quota."""
        if quota.from_ms >= quota.to_ms:
            return
        self._by_parts[user, client_id].append(quota)
        shape = (user is not None, client_id is not None)
        self._spans[shape].append((quota.from_ms, quota.to_ms))
        self._joined = False

    def of_client(self, user: str, client_id: str) -> Iterator[ClientQuota]:
        """Return the quotas of a client in the order of time."""
        if not self._joined:
            self._spans.update({shape: _joined(spans) for shape, spans in self._spans.items()})
            self._joined = True
        levels = self._of_levels(user, client_id)
        changes = {each for _, quota in levels for each in (quota.from_ms, quota.to_ms)}
        changes |= {each for spans in self._spans.values() for span in spans for each in span}
        edges = sorted({-EVER, EVER} | changes)
        last: ClientQuota | None = None
        for from_ms, to_ms in pairwise(edges):
            in_force = [each for each in levels if each[1].from_ms <= from_ms < each[1].to_ms]
            resolved = self._resolved(user, client_id, from_ms, to_ms, in_force)
            if last is None or last[_AFTER_TIMES:] == resolved[_AFTER_TIMES:]:
                last = resolved._replace(from_ms=resolved.from_ms if last is None else last.from_ms)
                continue
            yield last
            last = resolved
        if last is not None:
            yield last

    def others_that_apply(self, user: str, client_id: str | None) -> list[str]:
        """Return the groups without this client whose quota would apply to it all the same.

        Example: without any quota, ANONYMOUS's etl is grouped by its client-id. A quota for the
        user ANONYMOUS precedes that of a client-id, so it would apply to etl.

        Args:
            user: the client's user.
            client_id: its client-id; None for any client-id that has no quota.
        """
        own = "\0" if client_id is None else client_id
        *_, last = self.of_client(user, own)
        levels = self._of_levels(user, own)
        first = min((level for level, quota in levels if quota.to_ms >= EVER), default=math.inf)
        groups = {_OF_USER: entity_name(user or None, None)}
        if client_id is not None and self._quota_type != PRODUCER_IDS:
            groups[_OF_CLIENT] = entity_name(None, client_id or None)
        return [
            group
            for level, group in groups.items()
            if group and level < first and group != last.shared_by
        ]

    def _of_levels(self, user: str, client_id: str) -> list[tuple[int, Quota]]:
        """The quotas of a client at any time, each with its level, in the order of levels."""
        return [
            (level, quota)
            for level, parts in enumerate(_levels(user, client_id), 1)
            if self._quota_type != PRODUCER_IDS or level in _SHARED_BY[True, False]
            for quota in self._by_parts.get(parts, ())
        ]

    def _resolved(
        self, user: str, client_id: str, from_ms: int, to_ms: int, in_force: list[tuple[int, Quota]]
    ) -> ClientQuota:
        shapes = [
            shape
            for shape, spans in self._spans.items()
            if any(span[0] <= from_ms < span[1] for span in spans)
        ]
        counts = bool(shapes) or self._quota_type == PRODUCER_IDS
        tags, quota = _resolve(user, client_id, in_force)
        if quota is None:
            # Without a login, everybody is ANONYMOUS, and the brokers too.
            has_login = user != ANONYMOUS or not client_id
            by_user, by_client = has_login, not has_login
            if self._quota_type == PRODUCER_IDS:
                by_user, by_client = True, False
            elif len(shapes) == 1:
                by_user, by_client = shapes[0]
            elif (False, True) in shapes:
                by_user, by_client = False, True
            tags = (user if by_user else "", client_id if by_client else "")
        shared_by = entity_name(*(tag or None for tag in tags))
        entity, limit = (shared_by, None) if quota is None else (quota.entity, quota.limit)
        return ClientQuota(from_ms, to_ms, counts, entity, shared_by, limit)


_AFTER_TIMES: Final = ClientQuota._fields.index("counts")


def _resolve(
    user: str, client_id: str, in_force: list[tuple[int, Quota]]
) -> tuple[tuple[str, str], Quota | None]:
    """Return the tags and the quota; ``in_force`` has the current levels in order."""
    if not in_force:
        return ("", ""), None
    first, _ = in_force[0]
    # The first level determines the tags, and the tags the quota. An empty name has no level.
    tags = (user if first in _BY_USER else "", client_id if first in _BY_CLIENT else "")
    allowed = _SHARED_BY[bool(tags[0]), bool(tags[1])]
    quota = next((quota for level, quota in in_force if level in allowed), None)
    # Brokers reject limits of 0 and below; an infinite limit throttles no client.
    return tags, quota if quota is not None and 0 < quota.limit < math.inf else None


def _levels(user: str, client_id: str) -> tuple[_Parts, ...]:
    # This entity matches no client: a user with the name "<default>" is not the default.
    own_user, own_client = ("\0" if name == DEFAULT else name for name in (user, client_id))
    return (
        *((own_user, own_client), (own_user, DEFAULT), (own_user, None)),
        *((DEFAULT, own_client), (DEFAULT, DEFAULT), (DEFAULT, None)),
        *((None, own_client), (None, DEFAULT)),
    )


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge consecutive spans with the same quota."""
    merged: list[tuple[int, int]] = []
    for from_ms, to_ms in sorted(spans):
        if merged and from_ms <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], to_ms))
        else:
            merged.append((from_ms, to_ms))
    return merged


def by_default(
    config: DataFrame, entity: str | None, configured: AbstractSet[str] | None = None
) -> DataFrame:
    """Return quotas with an unlimited default quota of each kind that has none.

    Args:
        config: rows of SILVER_QUOTA_CONFIG.
        entity: the parts of the default's entity: "user", "client-id" or "user,client-id"; None to
            add no default.
        configured: ``configured_kinds(config)``; None to query them.
    """
    if entity is None:
        return config
    parts = dict.fromkeys(entity.split(","), DEFAULT)
    user, client_id = parts.get("user"), parts.get("client-id")
    if configured is None:
        configured = configured_kinds(config)
    kinds = set(KEYS) - {PRODUCER_IDS} - configured
    rows = [
        (entity_name(user, client_id), user, client_id, KEYS[kind], math.inf)
        for kind in sorted(kinds)
    ]
    schema = "entity string, user string, client_id string, key string, value double"
    defaults = config.sparkSession.createDataFrame(rows, schema)
    ever = defaults.withColumn("valid_from", sf.timestamp_seconds(sf.lit(0)))
    return config.unionByName(ever, allowMissingColumns=True)


def entities_in_words(configured: AbstractSet[str], entity: str | None) -> dict[str, str]:
    """Return for each kind of quota whom quotas are recommended for, and why.

    Args:
        configured: the kinds that have quotas.
        entity: as in ``by_default``; None if it was not asked for.
    """
    others = (
        "each user, or each client-id where clients do not log in"
        if entity is None
        else f"each {entity.replace(',', ' and ')}, as --entity says"
    )
    return {
        kind: "the entities of the current quotas" if kind in configured else others
        for kind in KEYS
        if kind != PRODUCER_IDS
    }


def configured_kinds(config: DataFrame) -> set[str]:
    """Query the kinds that have quotas, from rows of SILVER_QUOTA_CONFIG."""
    keys = config.where(sf.col("value").isNotNull()).select("key").distinct().collect()
    return {_TYPES[row.key] for row in keys if row.key in _TYPES}


def entity_name(user: str | None, client_id: str | None) -> str:
    """Format an entity as in the tables: "user=alice,client-id=etl", without None."""
    parts = {"user": user, "client-id": client_id}
    return ",".join(f"{kind}={name}" for kind, name in parts.items() if name is not None)


def quotas_of(config: DataFrame) -> dict[str, Quotas]:
    """Query the quotas of each kind, which are few, from rows of SILVER_QUOTA_CONFIG."""
    by_type = {quota_type: Quotas(quota_type) for quota_type in KEYS}
    quotas = config.where(sf.col("value").isNotNull() & sf.col("key").isin(*_TYPES)).select(
        *("entity", "user", "client_id", "key", "value"),
        sf.unix_millis("valid_from").alias("from_ms"),
        sf.coalesce(sf.unix_millis("valid_to"), sf.lit(EVER)).alias("to_ms"),
    )
    for row in quotas.collect():
        quota = Quota(row.entity, row.value, row.from_ms, row.to_ms)
        by_type[_TYPES[row.key]].add(row.user, row.client_id, quota)
    return by_type
