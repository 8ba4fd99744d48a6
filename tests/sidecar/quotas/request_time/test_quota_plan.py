"""Plans: what share tenants have, as users or client-ids, and what that changes."""

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.request_time.fair_shares import MinimumNotMet, SmallShare, Tenant
from sidecar.quotas.request_time.quota_plan import (
    Change,
    TenantKind,
    Terms,
    by_entity,
    changes,
    equal_plan,
    named_plan,
    removals,
)

KEY = "request_percentage"
USERS, CLIENTS = TenantKind.USERS, TenantKind.CLIENTS


def test_an_equal_share_is_the_defaults() -> None:
    """So many tenants have one share, that of the default user or client-id."""
    plan = equal_plan(Terms(6400), 115)
    assert {Entity(DEFAULT): {KEY: 55.7}} == plan.target(USERS)
    assert {Entity(client_id=DEFAULT): {KEY: 55.7}} == plan.target(CLIENTS)
    assert () == plan.warnings


def test_a_small_equal_share_is_reported_once() -> None:
    """It is reported for all nameless tenants, not once for each of them."""
    plan = equal_plan(Terms(1100), 2000)
    assert (SmallShare("each of 2,000 tenants", 0.6),) == plan.warnings


def test_a_reserve_is_shared_by_internal_users() -> None:
    """They have equal parts of it by name, and no part of the rest."""
    plan = equal_plan(Terms(6400, 400, ("mirror", "monitor")), 50)
    assert {DEFAULT: 120.0, "mirror": 200.0, "monitor": 200.0} == plan.shares
    tenants = [Tenant("ann"), Tenant("mirror"), Tenant("bob")]
    plan = named_plan(Terms(6400, 400, ("mirror",)), tenants)
    assert {"ann": 3000.0, "bob": 3000.0, "mirror": 400.0} == plan.shares
    assert 2 == plan.tenants


def test_named_shares_and_a_default_beside_them() -> None:
    """Weights count; whoever is not named has the default, as it was set."""
    plan = named_plan(Terms(400, default_percent=2.5), [Tenant("ann", 1), Tenant("bob", 3)])
    expected = {
        Entity("ann"): {KEY: 100.0},
        Entity("bob"): {KEY: 300.0},
        Entity(DEFAULT): {KEY: 2.5},
    }
    assert expected == plan.target(USERS)


def test_warnings_of_the_shares_are_the_plans() -> None:
    """A minimum that there is no room for names its tenant."""
    plan = named_plan(Terms(100), [Tenant("ann", minimum_percent=80), Tenant("bob", 1, 80)])
    assert {("ann", 50.0), ("bob", 50.0)} == {
        (each.tenant, each.share_percent)
        for each in plan.warnings
        if isinstance(each, MinimumNotMet)
    }


def test_a_small_default_is_reported() -> None:
    """As small shares of names are."""
    plan = named_plan(Terms(400, default_percent=0.04), [Tenant("ann")])
    assert (SmallShare("each tenant without a name", 0.04),) == plan.warnings


def test_the_sum_of_a_plan_is_for_its_review() -> None:
    """Forty of the smallest shares are 4 % of 1; the review says so, with all other quotas."""
    plan = named_plan(Terms(1), [Tenant(f"tenant-{number}") for number in range(40)])
    assert {SmallShare} == {type(each) for each in plan.warnings}
    internal = tuple(f"user-{number}" for number in range(40))
    plan = equal_plan(Terms(1, 0.99, internal), 3)
    assert {SmallShare} == {type(each) for each in plan.warnings}


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"reserve_percent": 100.0}, "^a reserve of 100 % leaves nothing of 100 %$"),
        ({"reserve_percent": -1.0}, "^a reserve of -1 % leaves nothing of 100 %$"),
        ({"internal": ("mirror",)}, "^internal users need a reserve to share$"),
        ({"reserve_percent": 10.0, "internal": ("a", "a")}, "^an internal user is named twice$"),
        ({"default_percent": 0.0}, "^a default of 0 % is no share$"),
        ({"default_percent": float("nan")}, "^a default of nan % is no share$"),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, object], why: str) -> None:
    """A full reserve, internal users without one or named twice, and a default of 0 are refused."""
    with pytest.raises(ValueError, match=why):
        Terms(100.0, **terms)  # type: ignore[arg-type] # of several types, chosen by name


def test_nobody_can_share_nothing() -> None:
    """Internal users alone are no tenants."""
    with pytest.raises(ValueError, match="no tenant"):
        named_plan(Terms(100, 10, ("mirror",)), [Tenant("mirror")])


@pytest.mark.parametrize(
    ("kind", "entity", "expected"),
    [
        (USERS, Entity("ann"), "ann"),
        (USERS, Entity(DEFAULT), None),
        (USERS, Entity("ann", "etl"), None),
        (USERS, Entity(client_id="etl"), None),
        (CLIENTS, Entity(client_id="etl"), "etl"),
        (CLIENTS, Entity("ann", "etl"), None),
        (CLIENTS, Entity(ip="192.0.2.1"), None),
    ],
)
def test_the_name_of_an_entity_of_a_kind(
    kind: TenantKind, entity: Entity, expected: str | None
) -> None:
    """It exists only for an entity of this kind alone, and not for the default."""
    assert expected == kind.name_of(entity)


def test_kinds_are_called_as_by_kafka_configs() -> None:
    """Routes and commands take these words."""
    assert ["users", "clients"] == list(TenantKind)


def test_only_what_differs_changes() -> None:
    quotas = {
        Entity("ann"): {KEY: 64.0, "producer_byte_rate": 1e6},
        Entity("bob"): {KEY: 55.7},
        Entity("joe"): {KEY: 1.0},
    }
    target: dict[Entity, dict[str, float | None]] = {
        Entity("ann"): {KEY: 55.7},
        Entity("bob"): {KEY: 55.7},
        Entity("eve"): {KEY: 55.7, "producer_byte_rate": None},
        Entity("joe"): {KEY: None},
    }
    expected = (
        Change(Entity("ann"), KEY, 64.0, 55.7),
        Change(Entity("eve"), KEY, None, 55.7),
        Change(Entity("joe"), KEY, 1.0, None),
    )
    assert expected == changes(quotas, target)


def test_removals_are_what_is_not_wanted() -> None:
    """A whole entity is removed, or one of its quotas."""
    quotas = {Entity("ann"): {KEY: 64.0, "producer_byte_rate": 1e6}, Entity("bob"): {KEY: 1.0}}
    expected = (
        Change(Entity("ann"), "producer_byte_rate", 1e6, None),
        Change(Entity("bob"), KEY, 1.0, None),
    )
    assert expected == removals(quotas, {Entity("ann"): {KEY: 7.0}})


def test_an_entity_is_altered_once() -> None:
    """Kafka refuses a request that names an entity twice."""
    changed = (
        Change(Entity("ann", DEFAULT), KEY, None, 5.0),
        Change(Entity("bob"), KEY, 1.0, None),
        Change(Entity("ann", DEFAULT), "producer_byte_rate", 1e6, None),
    )
    expected = [
        ({"user": "ann", "client-id": None}, {KEY: 5.0, "producer_byte_rate": None}),
        ({"user": "bob"}, {KEY: None}),
    ]
    assert expected == by_entity(changed)
