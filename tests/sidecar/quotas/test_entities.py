"""Which entity a quota is for, and which of the eight levels a client is under.

The table of levels is the one that the quota callback's own test compares with Kafka's manager.
"""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.entities import (
    DEFAULT,
    ClientQuotas,
    Entity,
    Name,
    QuotaKey,
    Resolved,
    resolve,
    user_name,
)

LEVELS: Final[tuple[tuple[Name, Name, float, tuple[str, str]], ...]] = (
    ("ann", "etl", 1000.0, ("ann", "etl")),
    ("ann", DEFAULT, 2000.0, ("ann", "etl")),
    ("ann", None, 3000.0, ("ann", "")),
    (DEFAULT, "etl", 4000.0, ("ann", "etl")),
    (DEFAULT, DEFAULT, 5000.0, ("ann", "etl")),
    (DEFAULT, None, 6000.0, ("ann", "")),
    (None, "etl", 7000.0, ("", "etl")),
    (None, DEFAULT, 8000.0, ("", "etl")),
)
"""User, client-id, limit, and the tags that ann's etl has under it; the strictest first."""

KEY: Final[str] = QuotaKey.PRODUCE


def quotas(*levels: int) -> dict[Entity, dict[str, float]]:
    """Quotas of some levels, 1 to 8."""
    chosen = [LEVELS[level - 1] for level in levels]
    return {Entity(user, client_id): {KEY: limit} for user, client_id, limit, _ in chosen}


def test_quotas_are_called_as_in_kafka() -> None:
    """Brokers know them by these names."""
    assert {
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    } == {*QuotaKey}


@pytest.mark.parametrize("level", range(1, 9))
def test_each_level_alone(level: int) -> None:
    """One level's quota is found, and shared by whom the level says."""
    user, client_id, limit, tags = LEVELS[level - 1]
    expected = Resolved(Entity(user, client_id), limit, tags)
    assert expected == resolve(quotas(level), KEY, "ann", "etl")


@pytest.mark.parametrize("level", range(1, 9))
def test_stricter_level_wins(level: int) -> None:
    """A level takes precedence over all that come after it."""
    found = resolve(quotas(*range(8, level - 1, -1)), KEY, "ann", "etl")
    assert found is not None
    assert 1000.0 * level == found.limit


@pytest.mark.parametrize(
    ("user", "client_id", "level"),
    [("ann", "web", 2), ("bob", "etl", 4), ("bob", "web", 5)],
)
def test_others_have_the_defaults(user: str, client_id: str, level: int) -> None:
    """A name that is not there has the default of its kind."""
    found = resolve(quotas(*range(1, 9)), KEY, user, client_id)
    assert found is not None
    assert (1000.0 * level, (user, client_id)) == (found.limit, found.tags)


@pytest.mark.parametrize(
    ("levels", "user", "client_id", "found"),
    [
        ((8,), "ann", "", None),
        ((2,), "ann", "", None),
        ((5,), "ann", "", None),
        ((2, 3), "ann", "", 3),
        ((5, 6), "ann", "", 6),
        ((3, 8), "bob", "", None),
        ((6,), "", "etl", None),
        ((6, 7), "", "etl", None),
        ((4, 7), "", "etl", 7),
        ((5, 6), "", "", None),
    ],
)
def test_empty_names_are_under_no_default(
    levels: tuple[int, ...], user: str, client_id: str, found: int | None
) -> None:
    """Kafka's own manager answers so: an empty tag is not looked up."""
    resolved = resolve(quotas(*levels), KEY, user, client_id)
    assert (None if found is None else 1000.0 * found) == (resolved and resolved.limit)


def test_named_quotas_are_of_nobody_else() -> None:
    """Without defaults a client that is not named has no quota."""
    assert None is resolve(quotas(1, 3, 7), KEY, "bob", "web")
    assert None is resolve({}, KEY, "ann", "etl")


def test_each_kind_of_quota_has_its_own_level() -> None:
    """A level that has no quota of the kind that is asked for is passed over."""
    both: ClientQuotas = {
        Entity("ann", "etl"): {QuotaKey.FETCH: 1.0},
        Entity("ann"): {QuotaKey.PRODUCE: 2.0, QuotaKey.FETCH: 3.0},
    }
    assert Resolved(Entity("ann"), 2.0, ("ann", "")) == resolve(both, KEY, "ann", "etl")
    fetch = Resolved(Entity("ann", "etl"), 1.0, ("ann", "etl"))
    assert fetch == resolve(both, QuotaKey.FETCH, "ann", "etl")
    assert None is resolve(both, QuotaKey.REQUEST, "ann", "etl")


def test_quota_of_zero_is_a_quota() -> None:
    """0 is found, and not taken for a missing quota."""
    found = resolve({Entity("ann"): {KEY: 0.0}, Entity(DEFAULT): {KEY: 9.0}}, KEY, "ann", "etl")
    assert Resolved(Entity("ann"), 0.0, ("ann", "")) == found


@pytest.mark.parametrize(
    "name", ["CN=a b*,O=ü+%", 'a:b c*"', "<default>", "User:ann", "%3Cdefault%3E"]
)
def test_names_are_taken_as_they_are(name: str) -> None:
    """Nothing in a name is escaped, or stands for the default."""
    named = {Entity(name): {KEY: 1.0}, Entity(client_id=name): {KEY: 2.0}}
    assert Resolved(Entity(name), 1.0, (name, "")) == resolve(named, KEY, name, "etl")
    assert Resolved(Entity(client_id=name), 2.0, ("", name)) == resolve(named, KEY, "ann", name)
    assert None is resolve(named, KEY, "ann", "etl")
    assert None is resolve({Entity(DEFAULT): {}}, KEY, name, name)


def test_addresses_are_under_no_clients_quota() -> None:
    """The quota of an address is not found for a user of that name."""
    assert None is resolve({Entity(ip="ann"): {KEY: 1.0}}, KEY, "ann", "ann")


@pytest.mark.parametrize(
    ("parts", "entity", "message"),
    [
        ({"user": "ann"}, Entity("ann"), "user 'ann'"),
        ({"user": None}, Entity(DEFAULT), "user the default"),
        (
            {"user": "ann", "client-id": None},
            Entity("ann", DEFAULT),
            "user 'ann', client-id the default",
        ),
        ({"client-id": ""}, Entity(client_id=""), "client-id ''"),
        ({"ip": "10.0.0.1"}, Entity(ip="10.0.0.1"), "ip '10.0.0.1'"),
        ({"ip": None}, Entity(ip=DEFAULT), "ip the default"),
    ],
)
def test_parts(parts: dict[str, str | None], entity: Entity, message: str) -> None:
    """Kafka's parts become an entity and come back; its text is readable."""
    assert entity == Entity.of(parts)
    assert parts == entity.parts()
    assert message == str(entity)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "an entity is a user"),
        ({"user": "ann", "ip": "10.0.0.1"}, "an address can't be combined"),
        ({"client-id": None, "ip": None}, "an address can't be combined"),
        ({"user": "ann", "topic": "t", "host": "h"}, "unknown kind of entity: host, topic"),
    ],
)
def test_what_is_no_entity(parts: dict[str, str | None], message: str) -> None:
    """Nothing, an address with a client, and a kind that Kafka does not know are refused."""
    with pytest.raises(ValueError, match=message):
        Entity.of(parts)


def test_default_is_reported_as_itself() -> None:
    assert "DEFAULT" == repr(DEFAULT)
    assert "Entity(user=DEFAULT, client_id=None, ip=None)" == repr(Entity(DEFAULT))


_names = st.sampled_from(["ann", "bob", "etl"])
_parts = st.none() | st.just(DEFAULT) | _names
_entities = st.builds(
    lambda pair: Entity(*pair),
    st.tuples(_parts, _parts).filter(any),
)


@given(
    limits=st.dictionaries(_entities, st.floats(1, 10), max_size=12), user=_names, client_id=_names
)
def test_whoever_shares_a_quota_is_under_it(
    limits: dict[Entity, float], user: str, client_id: str
) -> None:
    """What was found is for this client, and no entity that fits it is of a stricter level."""
    found = resolve(
        {entity: {KEY: limit} for entity, limit in limits.items()}, KEY, user, client_id
    )
    order = [(name, client) for name, client, *_ in LEVELS]

    def level(entity: Entity) -> int | None:
        if entity.user not in (user, DEFAULT, None):
            return None
        if entity.client_id not in (client_id, DEFAULT, None):
            return None
        return order.index(
            (
                "ann" if isinstance(entity.user, str) else entity.user,
                "etl" if isinstance(entity.client_id, str) else entity.client_id,
            )
        )

    fitting = {rank: entity for entity in limits if (rank := level(entity)) is not None}
    if not fitting:
        assert None is found
        return
    best = fitting[min(fitting)]
    assert found is not None
    assert (best, limits[best]) == (found.entity, found.limit)


@pytest.mark.parametrize("name", ["alice", "CN=User:alice", "user:alice", "User", ""])
def test_a_users_name_is_taken_as_it_is(name: str) -> None:
    """Any characters are allowed."""
    assert name == user_name(name)


def test_a_principal_is_no_users_name() -> None:
    """A principal is written as ACLs have it, with its type."""
    with pytest.raises(ValueError, match='without "User:"'):
        user_name("User:alice")
