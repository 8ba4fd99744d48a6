"""Entities of client quotas, and the quota of a client: the eight levels (KIP-55, KIP-546).

A quota belongs to an entity: a user, a client-id or both, each by name or as the default. The first
of these levels that has a quota of a kind gives a client its quota of that kind:

1. user and client-id, 2. user and default client-id, 3. user,
4. default user and client-id, 5. default user and default client-id, 6. default user,
7. client-id, 8. default client-id.

The level also decides which clients share the quota. At levels 1, 2, 4 and 5, clients with the same
user and client-id share it; at levels 3 and 6, clients with the same user; at levels 7 and 8,
clients with the same client-id. Kafka expresses this by two tags, (user, client-id), and then finds
the limit by the tags. An empty tag takes no part in that, so no default limits a client with an
empty client-id or a user without a name.

Example: user alice has 10 MB/s and client-id etl has 1 MB/s. Level 3 applies to alice's client etl,
so everything that alice sends shares 10 MB/s on each broker.

Source: Kafka's ClientQuotaManager, DefaultQuotaCallback.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, Self


class QuotaKey(StrEnum):
    """The kinds of quotas, by their names in Kafka's configuration."""

    PRODUCE = "producer_byte_rate"
    """Bytes per second on each broker."""
    FETCH = "consumer_byte_rate"
    """Bytes per second on each broker."""
    REQUEST = "request_percentage"
    """Percent of one thread's time on each broker (KIP-124)."""
    CONTROLLER_MUTATION = "controller_mutation_rate"
    """Partitions created or deleted per second in the cluster (KIP-599)."""
    CONNECTION_CREATION = "connection_creation_rate"
    """Connections per second from an IP address on each broker (KIP-612)."""


class Default(Enum):
    """The default entity: it stands for all users or client-ids without an entity of their own."""

    DEFAULT = "<default>"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default.DEFAULT


def user_name(name: str) -> str:
    """Return a user's name that an operator wrote.

    Raises:
        ValueError: the name is a principal as in ACLs. No user is called "User:alice", so a quota
            for that name would have no effect.
    """
    if name.startswith(PRINCIPAL_TYPE):
        raise ValueError(f'is a user\'s name without "{PRINCIPAL_TYPE}"')
    return name


Name = str | Default | None
"""The name of a user or client-id, the default, or None if the entity lacks this part."""

PRINCIPAL_TYPE: Final = "User:"
"""The prefix of a user's name in ACLs."""

LONGEST_USER: Final = 1024
"""The longest principal name that is remembered. A certificate's subject has some 100 characters.
A user with a longer name, or without one, has no quota on producer ids. This bounds the memory that
users take."""

_USER = "user"
_CLIENT_ID = "client-id"
_IP = "ip"


@dataclass(frozen=True, slots=True)
class Entity:
    """The entity that a quota belongs to.

    An IP address has its own kind of quota and is never combined with a user or client-id.

    Attributes:
        user: the principal's name without "User:", not sanitised.
        client_id: the client-id that clients send.
        ip: an address or host name.

    Raises:
        ValueError: there is no part, or an address with a user or client-id.
    """

    user: Name = None
    client_id: Name = None
    ip: Name = None

    def __post_init__(self) -> None:
        if self.user is self.client_id is self.ip is None:
            raise ValueError("an entity is a user, a client-id, both, or an address")
        if self.ip is not None and (self.user is not None or self.client_id is not None):
            raise ValueError("an address can't be combined with a user or client-id")

    @classmethod
    def of(cls, parts: Mapping[str, str | None]) -> Self:
        """Make an entity of Kafka's parts.

        Args:
            parts: "user", "client-id" or "ip" -> a name, or None for the default.

        Raises:
            ValueError: as for the class, or a part is unknown.
        """
        if unknown := set(parts) - {_USER, _CLIENT_ID, _IP}:
            raise ValueError(f"unknown kind of entity: {', '.join(sorted(unknown))}")
        names = {kind: DEFAULT if name is None else name for kind, name in parts.items()}
        return cls(names.get(_USER), names.get(_CLIENT_ID), names.get(_IP))

    def parts(self) -> dict[str, str | None]:
        """Return the parts as in Kafka's messages; the reverse of ``of``."""
        named = {_USER: self.user, _CLIENT_ID: self.client_id, _IP: self.ip}
        return {
            kind: None if isinstance(name, Default) else name
            for kind, name in named.items()
            if name is not None
        }

    def __str__(self) -> str:
        return describe_parts(self.parts())


def describe_parts(parts: Mapping[str, str | None]) -> str:
    """Return the parts in words: user 'alice', client-id the default."""
    return ", ".join(
        f"{kind} {'the default' if name is None else repr(name)}" for kind, name in parts.items()
    )


ClientQuotas = Mapping[Entity, Mapping[str, float]]
"""All quotas of a cluster: entity -> name of the quota (``QuotaKey``) -> limit."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The quota that applies to a client.

    Attributes:
        entity: the entity that has the quota.
        limit: in the unit of its ``QuotaKey``.
        tags: the (user, client-id) of all clients that share it; "" for a part that is ignored.
    """

    entity: Entity
    limit: float
    tags: tuple[str, str]


def resolve(quotas: ClientQuotas, key: str, user: str, client_id: str) -> Resolved | None:
    """Return the quota of a client, or None if it has none of this kind.

    Args:
        quotas: all quotas of the cluster.
        key: a ``QuotaKey`` or another name.
        user: the principal's name, not sanitised.
        client_id: "" if the client sends none.
    """
    # The first level with a quota determines the tags, and the tags determine the quota.
    shape = next((each for each in _levels(user, client_id) if key in quotas.get(each, {})), None)
    if shape is None:
        return None
    tags = _tags(shape, user, client_id)
    for entity in entities_of(*tags):
        limit = quotas.get(entity, {}).get(key)
        if limit is not None:
            return Resolved(entity, limit, tags)
    return None


def entities_of(user_tag: str, client_tag: str) -> list[Entity]:
    """Return the entities whose quota has these tags, in the order of the levels."""
    if not user_tag:
        clients = (client_tag, DEFAULT) if client_tag else ()
        return [Entity(client_id=name) for name in clients]
    users = (user_tag, DEFAULT)
    if not client_tag:
        return [Entity(name) for name in users]
    return [Entity(name, client) for name in users for client in (client_tag, DEFAULT)]


def _levels(user: str, client_id: str) -> Iterator[Entity]:
    for user_name in (user, DEFAULT):
        for client_name in (client_id, DEFAULT, None):
            yield Entity(user_name, client_name)
    yield Entity(client_id=client_id)
    yield Entity(client_id=DEFAULT)


def _tags(entity: Entity, user: str, client_id: str) -> tuple[str, str]:
    return (
        "" if entity.user is None else user,
        "" if entity.client_id is None else client_id,
    )
