"""Who a client quota is for, and which quota a client has: the eight levels (KIP-55, KIP-546).

A quota is for an entity: a user, a client-id or both, each by name or as the default. A client is
under the first of these that has a quota of that kind:

1. user and client-id, 2. user and default client-id, 3. user,
4. default user and client-id, 5. default user and default client-id, 6. default user,
7. client-id, 8. default client-id.

Clients under levels 1, 2, 4 and 5 share it by user and client-id, under 3 and 6 by user, under 7
and 8 by client-id; the entity says who may use how much, these two tags say who uses it together.
The limit is then resolved by the tags, and one that is empty takes no part: so no default limits a
client-id that is empty, nor a user without a name.

Example: with 10 MB/s for user alice and 1 MB/s for client-id etl, alice's etl is under level 3:
all that alice sends shares 10 MB/s on each broker.

Source: Kafka's ClientQuotaManager, DefaultQuotaCallback.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, Self


class QuotaKey(StrEnum):
    """What is limited, by the name that it has in Kafka's configuration."""

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
    """Stands for whoever has no entity of their own."""

    DEFAULT = "<default>"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default.DEFAULT


def user_name(name: str) -> str:
    """A user's name as somebody wrote it.

    Raises:
        ValueError: it is a principal, as ACLs have it: nobody is called "User:alice", so a quota
            for them would be of no effect.
    """
    if name.startswith(PRINCIPAL_TYPE):
        raise ValueError(f'is a user\'s name without "{PRINCIPAL_TYPE}"')
    return name


Name = str | Default | None
"""A user's or client's name, the default, or None: this part is not in the entity."""

PRINCIPAL_TYPE: Final = "User:"
"""What ACLs have before a user's name."""

LONGEST_USER: Final = 1024
"""Characters of a principal's name; a certificate's subject has some hundreds. Who has a longer one
has no quota on producer ids, so that what is remembered of users is bounded."""

_USER = "user"
_CLIENT_ID = "client-id"
_IP = "ip"


@dataclass(frozen=True, slots=True)
class Entity:
    """Who a quota is for; an address has quotas of its own kind, and is never part of another.

    Attributes:
        user: the principal's name without "User:", not sanitised.
        client_id: as clients send it.
        ip: an address or host name.

    Raises:
        ValueError: no part at all, or an address with a user or client-id.
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
        """From Kafka's parts: "user", "client-id" or "ip" to a name, None for the default.

        Raises:
            ValueError: as the class; or a part that is not known.
        """
        if unknown := set(parts) - {_USER, _CLIENT_ID, _IP}:
            raise ValueError(f"unknown kind of entity: {', '.join(sorted(unknown))}")
        names = {kind: DEFAULT if name is None else name for kind, name in parts.items()}
        return cls(names.get(_USER), names.get(_CLIENT_ID), names.get(_IP))

    def parts(self) -> dict[str, str | None]:
        """As Kafka's messages have it; the reverse of ``of``."""
        named = {_USER: self.user, _CLIENT_ID: self.client_id, _IP: self.ip}
        return {
            kind: None if isinstance(name, Default) else name
            for kind, name in named.items()
            if name is not None
        }

    def __str__(self) -> str:
        return describe_parts(self.parts())


def describe_parts(parts: Mapping[str, str | None]) -> str:
    """An entity's parts for a person: user 'alice', client-id the default."""
    return ", ".join(
        f"{kind} {'the default' if name is None else repr(name)}" for kind, name in parts.items()
    )


ClientQuotas = Mapping[Entity, Mapping[str, float]]
"""All quotas of a cluster: for each entity, those it has by their names in ``QuotaKey``."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The quota that a client is under.

    Attributes:
        entity: whose quota it is.
        limit: in the unit of its ``QuotaKey``.
        tags: (user, client-id) of all who share it; "" for a part that does not count.
    """

    entity: Entity
    limit: float
    tags: tuple[str, str]


def resolve(quotas: ClientQuotas, key: str, user: str, client_id: str) -> Resolved | None:
    """The quota of a client; None: it has none of this kind.

    Args:
        quotas: all of the cluster.
        key: of ``QuotaKey``, or another name.
        user: the principal's name, not sanitised.
        client_id: "" when the client sends none.
    """
    # The first level that has a quota determines the tags, and the tags the quota.
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
    """The entities whose quotas are shared by these tags, the strictest first."""
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
