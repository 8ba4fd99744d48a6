"""What is reported of a plan beside today's quotas and the users that exist."""

from collections.abc import Collection

import pytest

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from sidecar.quotas.request_time.fair_shares import SmallShare, Tenant
from sidecar.quotas.request_time.plan_review import (
    OutsidePlan,
    OverCapacity,
    PlanWarning,
    QuotasFromFile,
    UnknownTenant,
    Unlimited,
    review_plan,
    review_quotas,
)
from sidecar.quotas.request_time.quota_plan import Plan, TenantKind, Terms, equal_plan, named_plan

KEY = "request_percentage"
USERS, CLIENTS = TenantKind.USERS, TenantKind.CLIENTS
THREE = named_plan(Terms(1200, default_percent=5), [Tenant("ann"), Tenant("bob"), Tenant("joe")])


def review(
    plan: Plan, quotas: ClientQuotas, kind: TenantKind = USERS, known: Collection[str] | None = None
) -> tuple[PlanWarning, ...]:
    return review_plan(plan, kind, quotas, known)


def test_a_plan_that_fits_says_nothing() -> None:
    """Today's quotas of the same entities, and of other kinds, are ignored."""
    quotas = {
        Entity("ann"): {KEY: 9000.0},
        Entity(DEFAULT): {KEY: 10.0},
        Entity("carol"): {"producer_byte_rate": 1e6},
        Entity(ip="192.0.2.1"): {"connection_creation_rate": 2.0},
    }
    assert () == review(THREE, quotas, known=["ann", "bob", "joe"])


def test_rounding_alone_is_not_over_the_capacity() -> None:
    """120 x 9.2 is 1,104 of 1,100, by name and as the default."""
    by_name = [Tenant(f"tenant {n}") for n in range(120)]
    assert () == review(equal_plan(Terms(1100), 120), {})
    assert () == review(named_plan(Terms(1100, default_percent=1), by_name), {})


def test_what_others_keep_is_reported_and_counted() -> None:
    """The example: carol has 500 % besides three times 400 % of 1,200 %."""
    carol = Entity("carol")
    expected = (
        OverCapacity("user 'carol'", 500.0, 1700.0, 1200.0),
        OutsidePlan(carol, 500.0),
    )
    assert expected == review(THREE, {carol: {KEY: 500.0}})
    assert [
        "user 'carol': its 500 % and all other shares are 1,700.0 %, over the capacity of 1,200 %",
        "user 'carol': keeps 500 %, which is not in the plan",
    ] == list(map(str, expected))


def test_the_largest_share_is_named() -> None:
    """Here it is the plan's own; a default quota is for nobody yet, and is not counted."""
    quotas = {Entity("carol"): {KEY: 300.0}, Entity(DEFAULT, DEFAULT): {KEY: 9000.0}}
    over = review(THREE, quotas)[0]
    assert OverCapacity("ann", 400.0, 1500.0, 1200.0) == over


@pytest.mark.parametrize(("share", "warnings"), [(0.2, 1), (0.3, 2)])
def test_shares_rounded_to_tenths_may_exceed_the_capacity(share: float, warnings: int) -> None:
    """Each of four by 0.05 % at most; that carol is outside the plan is one warning."""
    assert warnings == len(review(THREE, {Entity("carol"): {KEY: share}}))


def test_named_tenants_are_among_those_that_are_only_counted() -> None:
    """One of 12 tenants of 100 % has a quota of 100 % by name: the sum stays 1,200 %."""
    plan = equal_plan(Terms(1200), 12)
    outside = OutsidePlan(Entity("carol"), 100.0)
    assert (outside,) == review(plan, {Entity("carol"): {KEY: 100.0}})
    over = OverCapacity("user 'carol'", 150.0, 1250.0, 1200.0)
    assert over == review(plan, {Entity("carol"): {KEY: 150.0}})[0]
    over = OverCapacity("each of 12 tenants", 100.0, 1250.0, 1200.0)
    both = {Entity("carol", "etl"): {KEY: 50.0}}
    assert over == review(plan, both)[0]


@pytest.mark.parametrize(
    ("kind", "quotas", "expected"),
    [
        (USERS, {Entity("ann", "etl"): {KEY: 1.0}}, [Entity("ann", "etl")]),
        (
            USERS,
            {Entity("bob"): {"producer_byte_rate": 1.0}, Entity("ann", "etl"): {KEY: 1.0}},
            [Entity("ann", "etl")],
        ),
        (USERS, {Entity(client_id="etl"): {KEY: 1.0}}, []),
        (CLIENTS, {Entity(DEFAULT): {KEY: 1.0}}, [Entity(DEFAULT)]),
        (CLIENTS, {Entity(client_id="etl"): {KEY: 1.0}}, [Entity(client_id="etl")]),
    ],
)
def test_quotas_of_other_levels(
    kind: TenantKind, quotas: ClientQuotas, expected: list[Entity]
) -> None:
    """Levels above the plan's are reported, client-ids behind a default user are not."""
    reported = review(THREE, quotas, kind)
    assert expected == [each.entity for each in reported if isinstance(each, OutsidePlan)]


def test_names_that_nobody_has() -> None:
    """They are reported when the cluster's names are known, never guessed."""
    assert (UnknownTenant("joe"),) == review(THREE, {}, known=["ann", "bob"])
    assert () == review(THREE, {}, known=None)


def test_no_limit_for_others() -> None:
    """It is reported when neither the plan nor today's quotas have a default."""
    plan = named_plan(Terms(1200), [Tenant("ann")])
    assert (Unlimited(USERS),) == review(plan, {})
    today = {Entity(DEFAULT): {KEY: 5.0}}
    assert (OutsidePlan(Entity(DEFAULT), 5.0),) == review(plan, today)


def from_file(
    target: dict[Entity, float], *, exact: bool = False, tenants: int = 0, key: str = KEY
) -> QuotasFromFile:
    quotas = {entity: {key: limit} for entity, limit in target.items()}
    return QuotasFromFile(quotas, exact, tenants)


def test_quotas_of_a_file_that_fit_say_nothing() -> None:
    """Rounding alone is no warning there either: 120 times 9.2 of 1,100 %."""
    many = {Entity(f"user {n}"): 9.2 for n in range(120)}
    file = from_file({**many, Entity(DEFAULT): 9000.0})
    assert () == review_quotas(file, 1100.0, {}, file.users)
    assert () == review_quotas(from_file({Entity(DEFAULT): 9.2}, tenants=120), 1100.0, {}, None)


def test_all_that_is_reported_of_a_file() -> None:
    """Small shares, the sum, quotas of others, unknown users and a missing default are reported."""
    file = from_file({Entity("ann"): 0.5, Entity("bob", "etl"): 600.0})
    carol = Entity("carol")
    expected = (
        SmallShare("user 'ann'", 0.5),
        OverCapacity("user 'carol'", 650.0, 1250.5, 1200.0),
        OutsidePlan(carol, 650.0),
        UnknownTenant("bob"),
        Unlimited(USERS),
    )
    assert expected == review_quotas(file, 1200.0, {carol: {KEY: 650.0}}, ["ann"])


def test_what_an_exact_file_removes_is_not_counted() -> None:
    """Carol's quota and the present default are removed."""
    today = {Entity("carol"): {KEY: 650.0}, Entity(DEFAULT): {KEY: 5.0}}
    exact = from_file({Entity("ann"): 600.0}, exact=True)
    assert (Unlimited(USERS),) == review_quotas(exact, 1200.0, today, None)


def test_a_default_that_is_shared_counts_for_all_who_share_it() -> None:
    """12 of 100 % on 1,100 %; one of 0.4 % is small for each of them, one of 1 % is not."""
    file = from_file({Entity(client_id=DEFAULT): 100.0}, tenants=12)
    over = OverCapacity("each of 12 tenants", 100.0, 1200.0, 1100.0)
    assert (over,) == review_quotas(file, 1100.0, {}, None)
    file = from_file({Entity(DEFAULT): 0.4}, tenants=12)
    assert (SmallShare("each of 12 tenants", 0.4),) == review_quotas(file, 1100.0, {}, None)
    file = from_file({Entity(DEFAULT): 1.0}, tenants=12)
    assert () == review_quotas(file, 1100.0, {}, None)


def test_client_ids_of_a_file_behind_its_default_user() -> None:
    """Nobody is under them, so they are not counted; without the default user they are."""
    clients = {Entity(client_id="etl"): 700.0, Entity(client_id="web"): 700.0}
    assert () == review_quotas(from_file({**clients, Entity(DEFAULT): 5.0}), 1100.0, {}, None)
    over = OverCapacity("client-id 'etl'", 700.0, 1400.0, 1100.0)
    assert (over, Unlimited(CLIENTS)) == review_quotas(from_file(clients), 1100.0, {}, None)


def test_a_file_without_shares_of_threads() -> None:
    """Only unknown users are reported, each once."""
    ann = {Entity("ann"): 5.0, Entity("ann", "etl"): 5.0}
    today = {Entity("carol"): {KEY: 9000.0}}
    reported = review_quotas(from_file(ann, key="producer_byte_rate"), 1100.0, today, ["carol"])
    assert (UnknownTenant("ann"),) == reported


def test_another_quota_of_the_same_entity_is_no_share_of_threads() -> None:
    """Ann's request_percentage stays beside the byte rate that the file sets for her."""
    quotas = {
        Entity("ann"): {"producer_byte_rate": 1e6},
        Entity(DEFAULT): {KEY: 5.0},
    }
    reported = review_quotas(
        QuotasFromFile(quotas, exact=False, tenants=0), None, {Entity("ann"): {KEY: 9.0}}, None
    )
    assert (OutsidePlan(Entity("ann"), 9.0),) == reported
