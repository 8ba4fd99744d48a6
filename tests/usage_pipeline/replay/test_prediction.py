"""Throttle times predicted from charges: by which quota, how long, what is shared, and bounds."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.entities import DEFAULT, Entity, QuotaKey, Resolved
from sidecar.quotas.mutations.burst_rate import BurstRate
from sidecar.quotas.rate import QuotaWindow
from tests.support.prediction import Charge, Prediction, Predictor
from usage_pipeline.replay.rate_quota import RateQuota

ETL = Entity(client_id="etl")
WINDOW = QuotaWindow()
KEYS = st.sampled_from([QuotaKey.PRODUCE, QuotaKey.REQUEST])


def predictor(limits: Mapping[Entity, float], key: QuotaKey = QuotaKey.PRODUCE) -> Predictor:
    made = Predictor(WINDOW)
    made.set_quotas({entity: {key: limit} for entity, limit in limits.items()})
    return made


def limits(*entities: Entity) -> dict[Entity, dict[str, float]]:
    """A limit of 100 bytes a second for each."""
    return {entity: {QuotaKey.PRODUCE: 100.0} for entity in entities}


def charge(
    amount: float,
    at_ms: int = 0,
    key: QuotaKey = QuotaKey.PRODUCE,
    *,
    user: str = "alice",
    client_id: str = "etl",
    **how: bool,
) -> Charge:
    return Charge(at_ms, key, user, client_id, amount, **how)


def test_the_modules_example() -> None:
    """1,500 bytes at 100 a second wait 5 s; with 500 more a second later it is 10 s."""
    etl = predictor({ETL: 100.0})
    reported = [etl.charge(charge(1500)), etl.charge(charge(500, 1000))]
    quota = Resolved(ETL, 100.0, ("", "etl"))
    assert [
        Prediction(quota, throttle_ms=5000, rate=150.0),
        Prediction(quota, throttle_ms=10_000, rate=200.0),
    ] == reported


@given(KEYS, st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 500)), max_size=50))
def test_it_is_the_quotas_own_arithmetic(key: QuotaKey, events: list[tuple[int, float]]) -> None:
    """Each wait is that of the class that is compared with Kafka's own; request time is bounded."""
    whole = predictor({ETL: 100.0}, key)
    most_ms = None if key is QuotaKey.PRODUCE else WINDOW.window_ms
    alone = RateQuota(100.0, WINDOW, most_ms)
    now_ms = 0
    for later_ms, amount in events:
        now_ms += later_ms
        expected = alone.record(amount, now_ms)
        assert expected == whole.charge(charge(amount, now_ms, key)).throttle_ms


def test_who_shares_a_quota_waits_for_all() -> None:
    """Two client-ids of a user are one tag; another user under the same default has his own."""
    users = predictor({Entity(user=DEFAULT): 100.0})
    waits = [
        users.charge(charge(1500, user=user, client_id=client_id)).throttle_ms
        for user, client_id in (("alice", "etl"), ("alice", "web"), ("bob", "etl"))
    ]
    assert [5000, 20_000, 5000] == waits


def test_kinds_of_quota_are_counted_apart() -> None:
    """Produced bytes do not count as request time."""
    both = Predictor(WINDOW)
    both.set_quotas({ETL: {QuotaKey.PRODUCE: 100.0, QuotaKey.REQUEST: 10.0}})
    assert 5000 == both.charge(charge(1500)).throttle_ms
    assert 0 == both.charge(charge(1, key=QuotaKey.REQUEST)).throttle_ms


def test_a_kind_without_a_rule_is_refused() -> None:
    """It is not predicted by another kind's rule, whether anybody has such a quota or not."""
    for limits_of in ({}, {ETL: 100.0}):
        made = predictor(limits_of, QuotaKey.CONNECTION_CREATION)
        with pytest.raises(ValueError, match="connection_creation_rate"):
            made.charge(charge(1.0, key=QuotaKey.CONNECTION_CREATION))


def test_what_is_not_checked_counts_for_the_next() -> None:
    """Network threads' time is part of the rate that the next charge is checked by."""
    etl = predictor({ETL: 100.0}, QuotaKey.REQUEST)
    unchecked = etl.charge(charge(1000, key=QuotaKey.REQUEST, checked=False))
    assert (0, None) == (unchecked.throttle_ms, unchecked.rate)
    assert 100 == etl.charge(charge(10, key=QuotaKey.REQUEST)).throttle_ms


def test_a_throttled_fetch_is_taken_back() -> None:
    """Its answer was empty: the next small one is not throttled."""
    etl = predictor({ETL: 100.0}, QuotaKey.FETCH)
    waits = [etl.charge(charge(size, key=QuotaKey.FETCH)).throttle_ms for size in (900, 200, 50)]
    assert [0, 1000, 0] == waits


def test_a_fetch_that_reaches_the_limit_counts() -> None:
    """1,000 bytes in 10 s are the limit itself: no wait, and nothing is taken back."""
    etl = predictor({ETL: 100.0}, QuotaKey.FETCH)
    waits = [etl.charge(charge(size, key=QuotaKey.FETCH)).throttle_ms for size in (1000, 50)]
    assert [0, 500] == waits


def test_strict_mutations_are_refused_and_not_counted() -> None:
    """60 at once leave a bucket of 55 in debt by 5: at 5 a second the next is refused for 1 s."""
    etl = predictor({ETL: 5.0}, QuotaKey.CONTROLLER_MUTATION)
    key = QuotaKey.CONTROLLER_MUTATION
    reported = [etl.charge(charge(amount, key=key, strict=True)) for amount in (60, 10, 10)]
    assert [(True, 0), (False, 1000), (False, 1000)] == [
        (each.accepted, each.throttle_ms) for each in reported
    ]
    permissive = etl.charge(charge(10, key=key))
    assert (True, 3000, None) == (permissive.accepted, permissive.throttle_ms, permissive.rate)


def test_mutations_by_the_spread_rate() -> None:
    """By KIP-599 as first proposed the second of two bursts waits otherwise than by tokens."""
    window = QuotaWindow(100, 1000)
    key = QuotaKey.CONTROLLER_MUTATION
    waits = []
    for mutations in (lambda limit, _now_ms: BurstRate(limit, window), None):
        made = Predictor(window, mutations=mutations)
        made.set_quotas({ETL: {key: 5.0}})
        waits.append([made.charge(charge(560, at_ms, key)).throttle_ms for at_ms in (0, 50_000)])
    spread = BurstRate(5.0, window)
    expected = [spread.admit(560, at_ms, strict=False).throttle_ms for at_ms in (0, 50_000)]
    assert [expected, [12_000, 74_000]] == waits
    assert 74_000 != expected[1]


def test_the_answer_reports_the_wait_that_is_left() -> None:
    """A controller that took 400 ms of 1,000 to commit reports 600 ms, and none after a second."""
    key = QuotaKey.CONTROLLER_MUTATION
    for waited_ms, expected in ((400, 600), (1500, 0)):
        etl = predictor({ETL: 5.0}, key)
        late = Charge(0, key, "alice", "etl", 60, waited_ms=waited_ms)
        assert expected == etl.charge(late).throttle_ms


def test_a_quota_that_changes_keeps_what_was_recorded() -> None:
    """Half the limit is twice the wait, for bytes and for partitions."""
    for key in (QuotaKey.PRODUCE, QuotaKey.CONTROLLER_MUTATION):
        etl = predictor({ETL: 100.0}, key)
        etl.charge(charge(1500, key=key))
        etl.set_quotas({ETL: {key: 50.0}})
        now = etl.charge(charge(0, key=key))
        # (150 - 50) / 50 x 10 s; 400 short at 50 a second.
        assert {QuotaKey.PRODUCE: 20_000, QuotaKey.CONTROLLER_MUTATION: 8000}[key] == (
            now.throttle_ms
        )


def test_without_any_quota_nothing_is_recorded() -> None:
    """A client that gets the first quota of a kind starts with an empty rate."""
    etl = predictor({})
    assert Prediction() == etl.charge(charge(1500))
    etl.set_quotas({ETL: {QuotaKey.PRODUCE: 100.0}})
    assert 0 == etl.charge(charge(500)).throttle_ms


@pytest.mark.parametrize(
    ("has_quota", "gets_quota"),
    [
        (Entity(client_id="web"), ETL),
        (Entity(user="bob"), Entity(user="alice")),
        (Entity(user="bob", client_id="web"), Entity(user="alice", client_id="etl")),
    ],
)
def test_who_has_no_quota_is_recorded_all_the_same(has_quota: Entity, gets_quota: Entity) -> None:
    """Once another client has a quota of that kind, usage counts for a quota that is set later."""
    quotas = limits(has_quota)
    free = Predictor(WINDOW)
    free.set_quotas(quotas)
    assert Prediction() == free.charge(charge(1500))
    free.set_quotas(limits(has_quota, gets_quota))
    assert 5000 == free.charge(charge(0)).throttle_ms


def test_among_several_kinds_the_free_are_recorded_by_client_id() -> None:
    """If users and client-ids have quotas, a client under neither has the client-id's tag."""
    mixed = Predictor(WINDOW)
    mixed.set_quotas(limits(Entity(user="bob"), ETL))
    mixed.charge(charge(1500, client_id="web"))
    for entity, expected in ((Entity(user="alice"), 0), (Entity(client_id="web"), 5000)):
        mixed.set_quotas(limits(Entity(user="bob"), ETL, entity))
        assert expected == mixed.charge(charge(0, client_id="web")).throttle_ms


@pytest.mark.parametrize("limit", [0.0, -1.0, float("inf")])
@pytest.mark.parametrize("key", [QuotaKey.PRODUCE, QuotaKey.CONTROLLER_MUTATION])
def test_a_limit_that_no_broker_takes_throttles_nobody(key: QuotaKey, limit: float) -> None:
    """There is no wait for it; a bucket that loses its limit is full when it has one again."""
    etl = predictor({ETL: 1.0}, key)
    etl.charge(charge(1500, key=key))
    etl.set_quotas({ETL: {key: limit}})
    assert Prediction() == etl.charge(charge(1500, key=key))
    etl.set_quotas({ETL: {key: 1.0}})
    again = etl.charge(charge(1, key=key)).throttle_ms
    assert (key is QuotaKey.CONTROLLER_MUTATION) is (again == 0)


def test_the_longest_unused_makes_room() -> None:
    """Of two with room for one the first is forgotten, and that is counted."""
    small = Predictor(WINDOW, most=1)
    small.set_quotas({Entity(client_id=DEFAULT): {QuotaKey.PRODUCE: 100.0}})
    waits = [
        small.charge(charge(size, client_id=client_id)).throttle_ms
        for client_id, size in (("etl", 1500), ("etl", 0), ("web", 0), ("etl", 0))
    ]
    assert ([5000, 5000, 0, 0], 2) == (waits, small.dropped)
    with pytest.raises(ValueError, match="at least one"):
        Predictor(WINDOW, most=0)
