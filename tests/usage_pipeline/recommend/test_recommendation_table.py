"""Recommended quotas, from usage and from replayed candidates."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from tests.usage_pipeline import build
from tests.usage_pipeline.build import frame_of, usage_rows
from usage_pipeline.recommend.recommendation_table import gold_recommendation
from usage_pipeline.recommend.terms import UNCLEAR_NAME, Terms
from usage_pipeline.tables.schemas import GOLD_REPLAY, SILVER_QUOTA_CONFIG

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
HOUR_S = 3600


def used(second: int, amount: float, **other: object) -> dict[str, object]:
    usual = {"broker": 0, "client_id": "writer", "amount": amount, "events": 10}
    return build.used(START + timedelta(seconds=second), **usual | other)


def replayed(
    scenario: str, quota: float | None, throttled: int, **other: object
) -> dict[str, object]:
    return {
        "dt": START.date(),
        "quota_type": "produce",
        "shared_by": "user=alice",
        "algorithm": "rate",
        "scenario": scenario,
        "quota": quota,
        "events": 1000,
        "throttled": throttled,
        "throttle_ms_max": 900,
        "peak_rate": 9e6,
        "unknown": 0,
        **other,
    }


SWEEP = [
    replayed("in force", 5e6, 30),
    replayed("=1000000", 1e6, 400),
    replayed("=2000000", 2e6, 9),
    # 2,000,000 is not under the target, so it is no candidate either.
    replayed("=3000000", 3e6, 11),
    replayed("=4000000", 4e6, 10),
    replayed("=8000000", 8e6, 0),
    replayed("=3500000", 3.5e6, 0, algorithm="burst-spreading"),
]


def test_the_smallest_that_throttles_few(spark: SparkSession, tmp_path: Path) -> None:
    """Each tenant has a row: by the sweep, by the percentile, the floor, or why there is none."""
    usage = [
        *(used(second, 1e6) for second in range(0, HOUR_S, 10)),
        # The same clients on another broker, a tenth as busy: the busiest counts.
        *(used(second, 1e5, broker=1) for second in range(0, HOUR_S, 10)),
        *(used(second, 6e7, user="bob") for second in range(0, HOUR_S, 10)),
        *(used(second, 10.0, user="", client_id="etl") for second in range(0, HOUR_S, 10)),
        used(5, 1e6, user="carol"),
        used(5, 1e6, user="broker"),
        used(5, 1e6, user="dave"),
        used(5, 1e6, user="erin", quota_type="fetch"),
        # 500 ids in an hour and 100 in another are 60 an hour over ten hours.
        used(5, 500.0, user="frank", quota_type="producer_ids"),
        used(HOUR_S - 5, 100.0, user="frank", quota_type="producer_ids"),
    ]
    bob = {"shared_by": "user=bob,client-id=writer", "events": 1000}
    replay = [
        *SWEEP,
        replayed("=8000000", 8e6, 0, broker=1),
        replayed("in force", None, 0, **bob),
        replayed("=5000000", 5e6, 2, **bob),
        replayed("=9000000", 9e6, 0, **bob),
        replayed("=10", 10.0, 0, shared_by="client-id=etl"),
        replayed("=10", 10.0, 400, shared_by="user=carol"),
        replayed("=10", 10.0, 0, shared_by="user=broker"),
        replayed("in force", 10.0, 0, shared_by="user=erin", quota_type="fetch", unknown=4),
        replayed("=10", 10.0, 0, shared_by="user=erin", quota_type="fetch"),
        replayed("=55", 55.0, 0, shared_by="user=frank", quota_type="producer_ids"),
        replayed("in force", 2e6, 0, shared_by="user=dave"),
    ]
    # Who shares: by the quotas that are set.
    entities: list[tuple[str | None, str | None]] = [
        *((user, None) for user in ("alice", "carol", "broker", "dave")),
        *(("bob", "writer"), (None, "etl")),
    ]
    in_force = {"key": "producer_byte_rate", "value": 1e9, "valid_from": START}
    quotas = [
        {**in_force, "entity": "", "user": user, "client_id": client_id}
        for user, client_id in entities
    ]
    terms = Terms(cluster_users=frozenset({"broker"}))
    rows = gold_recommendation(
        usage_rows(spark, tmp_path, usage),
        frame_of(spark, GOLD_REPLAY, *replay),
        frame_of(spark, SILVER_QUOTA_CONFIG, *quotas),
        terms,
        {"produce": 1.1e7},
        day=START.date(),
    ).collect()
    found = {row.entity: row for row in rows}
    alice = found["user=alice"]
    assert (4e6, 0.01, 1e5, 5e6, None) == _recommended(alice)
    assert ("producer_byte_rate", 9e6, 7200, 1.0, 1.0) == (
        alice.key,
        alice.peak_rate,
        alice.events,
        alice.hours,
        alice.coverage,
    )
    assert date(2026, 1, 5) == alice.dt
    assert "low" == alice.confidence
    assert (6.9e6, 0.002, 6e6, None, None) == _recommended(found["user=bob,client-id=writer"])
    assert (1e5, 0.0, 1.0, None, None) == _recommended(found["client-id=etl"])
    assert (None, None, 1e5, None) == _recommended(found["user=carol"])[:4]
    assert found["user=carol"].refused.startswith("every candidate throttles more than 1 %, or for")
    unseen = found["user=erin"].refused
    assert unseen.startswith("40 % of the charges have unknown amounts")
    assert (
        "no candidate was replayed; use `pipeline replay` with --candidates"
        == found["user=dave"].refused
    )
    assert found["user=broker"].refused.startswith("brokers use it for their own work")
    assert (69.0, 0.0, 60.0, None, None) == _recommended(found["user=frank"])
    assert 1.0 == found["user=frank"].hours
    # Dave's quota stays, since none is recommended.
    assert pytest.approx((4e6 + 6.9e6 + 1e5 + 2e6) / 1.1e7) == alice.share_of_capacity


def test_no_quota_is_for_clients_that_it_was_not_measured_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A user's quota precedes those of client-ids, and a client-id's applies to all its users."""
    clients = [
        *(("ANONYMOUS", "etl"), ("ANONYMOUS", ""), ("ANONYMOUS", "web"), ("alice", "web")),
        *(("ANONYMOUS", "<default>"), ("team,client-id=etl", "x")),
    ]
    usage = [
        used(second, 1e6, user=user, client_id=client_id)
        for user, client_id in clients
        for second in range(0, HOUR_S, 600)
    ]
    refused = {
        "user=ANONYMOUS": "a quota for it would also apply to client-id=",
        "client-id=web": "a quota for it would also apply to user=alice, whose usage",
        "client-id=<default>": UNCLEAR_NAME,
        "user=team,client-id=etl": UNCLEAR_NAME,
    }
    names = {"client-id=etl", "user=alice", *refused}
    rows = gold_recommendation(
        usage_rows(spark, tmp_path, usage),
        frame_of(spark, GOLD_REPLAY, *(replayed("=10", 10.0, 0, shared_by=each) for each in names)),
        frame_of(spark, SILVER_QUOTA_CONFIG),
        Terms(),
        {},
        day=START.date(),
    ).collect()
    found = {row.entity: row for row in rows}
    assert names == set(found)
    assert {"client-id=etl", "user=alice"} == {row.entity for row in rows if row.quota is not None}
    for name, reason in refused.items():
        assert found[name].refused.startswith(reason)


def test_gaps_refuse(spark: SparkSession, tmp_path: Path) -> None:
    """Logs of less than half of the time are too little, and then there is no number."""
    [gap] = gold_recommendation(
        usage_rows(
            spark, tmp_path, (used(second, 1e6) for second in (-5400, *range(0, HOUR_S, 10)))
        ),
        frame_of(spark, GOLD_REPLAY, *SWEEP),
        frame_of(spark, SILVER_QUOTA_CONFIG),
        Terms(),
        {},
        day=START.date(),
    ).collect()
    assert gap.refused.startswith("the logs cover 46 % of the time, less than 50 %: leave the log")
    assert (None, None, None) == (gap.quota, gap.throttled_share, gap.share_of_capacity)


WEEK = range(0, 168 * HOUR_S, 600)


def each_day(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows of the first day, and the same candidates on the other days of the week."""
    dates = [START.date() + timedelta(days=day) for day in range(1, 8)]
    return [
        *rows,
        *({**row, "dt": day, "unknown": 0, "worst": None} for day in dates for row in rows),
    ]


def waited(name: str, waited_ms: int, unknown: int) -> list[dict[str, object]]:
    """The replay of a tenant whose longest wait is this one, with charges of unknown amounts."""
    at = START + timedelta(hours=1)
    worst = [{"at": at, "throttle_ms": waited_ms}] if waited_ms else None
    candidate = replayed(
        *("=9000000", 9e6, 1), throttle_ms_max=waited_ms, worst=worst, broker=4, amount=1e6
    )
    rows = candidate, replayed("in force", None, 0, unknown=unknown)
    return [{**row, "shared_by": f"user={name}"} for row in rows]


@pytest.fixture(scope="module")
def of_a_week(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """User -> the recommendation."""
    usage = [
        *(used(second, 1e6) for second in WEEK),
        *(used(second, 1e6, user="bob") for second in WEEK[144 * 6 :]),
        *(used(second, 1e6, user="carol", throttled=1) for second in WEEK),
        *(used(second, 100.0, user="dave", quota_type="request") for second in WEEK),
        *(used(second, 1e6, user="erin") for second in WEEK),
        *(used(second, 6e6, user="erin") for second in range(60, 120)),
        *(used(second, 1e6, user=name) for name in _WAITED for second in WEEK),
        *(used(second, 1e6, user="ivan") for second in WEEK),
        *(used(second, 1e6, user="ivan", broker=7) for second in range(0, HOUR_S, 600)),
    ]
    replay = [
        *(replayed("=9000000", 9e6, 0, shared_by=f"user={who}") for who in _CONFIDENCE),
        replayed("=20", 20.0, 400, quota_type="request", shared_by="user=dave"),
        replayed("=40", 40.0, 3, quota_type="request", shared_by="user=dave"),
        replayed("=60", 60.0, 0, quota_type="request", shared_by="user=dave"),
        replayed("=1000000", 1e6, 0, shared_by="user=erin"),
        *(row for name, (replay, _) in _WAITED.items() for row in waited(name, *replay)),
    ]
    rows = gold_recommendation(
        usage_rows(spark, tmp_path_factory.mktemp("usage"), usage),
        frame_of(spark, GOLD_REPLAY, *each_day(replay)),
        frame_of(spark, SILVER_QUOTA_CONFIG),
        Terms(whole_seconds=frozenset({4})),
        {},
        day=START.date(),
    ).collect()
    return {row.entity.removeprefix("user="): row for row in rows}


def test_request_time_has_room_for_the_network_threads(of_a_week: dict[str, Row]) -> None:
    """The quota is five times what the log shows, and judged by what the log shows."""
    dave = of_a_week["dave"]
    assert (200.0, 0.003, "medium") == (dave.quota, dave.throttled_share, dave.confidence)
    assert dave.caveats.startswith("the log lacks the time of the network threads")


@pytest.mark.parametrize(
    ("unread", "expected"),
    [
        ({1: 0.005}, ("high", None)),
        ({1: 0.0, 2: 0.02}, ("medium", None)),
        (
            {1: 0.0, 2: 0.051, 3: 0.01},
            (
                "low",
                "5.1 % of the requests in the logs of broker 2 could not be read; the table"
                " quarantine has the reasons",
            ),
        ),
    ],
)
def test_requests_that_could_not_be_read_count_against_it(
    spark: SparkSession,
    tmp_path: Path,
    unread: dict[int, float],
    expected: tuple[str, str | None],
) -> None:
    """Any tenant may have sent them: the worst broker decides for all."""
    [alice] = gold_recommendation(
        usage_rows(spark, tmp_path, (used(second, 1e6) for second in WEEK)),
        frame_of(spark, GOLD_REPLAY, *each_day([replayed("=9000000", 9e6, 0)])),
        frame_of(spark, SILVER_QUOTA_CONFIG),
        Terms(unread=unread),
        {},
        day=START.date(),
    ).collect()
    assert expected == (alice.confidence, alice.refused)
    assert (alice.quota is None) == (alice.refused is not None)
    assert max(unread.values()) == alice.unread_share
    assert ("2 % of the requests in the logs" in (alice.caveats or "")) == (0.02 in unread.values())


def test_confidence_is_from_the_evidence(of_a_week: dict[str, Row]) -> None:
    """A week is high, a day medium; a week in which a tenth was throttled is low.

    It is low too if a broker of the tenant's has an hour of logs: a quota applies to each broker.
    """
    rows = {name: of_a_week[name] for name in _CONFIDENCE}
    assert _CONFIDENCE == {
        name: (row.hours, row.events, row.confidence, row.caveats) for name, row in rows.items()
    }


_CONFIDENCE = {
    "alice": (168.0, 10_080, "high", None),
    "bob": (
        *(24.0, 1440, "medium"),
        "there were charges in 24 hours: 168 for high; there are 1440 charges: 10,000 for high",
    ),
    "carol": (
        *(168.0, 10_080, "low"),
        "10.0 % of the charges were throttled, so the demand may be higher: raise the quota for a"
        " while, and log again",
    ),
    "ivan": (
        *(168.0, 10_140, "low"),
        "the logs cover 0.6 % of the time on broker 7: 95 % for high",
    ),
}


_WAITED = {
    "frank": ((5_000, 100), ("high", None)),
    "grace": (
        (5_001, 100),
        ("medium", "a request would have waited for 5.0 s: a larger quota avoids that"),
    ),
    "heidi": ((0, 110), ("medium", "1.1 % of the charges have unknown amounts")),
}
"""User -> the longest wait and the charges of unknown amounts, and the advice."""


@pytest.mark.parametrize("name", _WAITED)
def test_what_lowers_the_confidence(of_a_week: dict[str, Row], name: str) -> None:
    """Waits that people notice, and charges of which nobody knows the amount."""
    row, ((waited_ms, _), expected) = of_a_week[name], _WAITED[name]
    assert expected == (row.confidence, row.caveats)
    assert row.whole_seconds
    assert [(4, waited_ms)] * bool(waited_ms) == [
        (each.broker, each.throttle_ms) for each in row.worst
    ]


def test_what_queues_does_not_wait_for_long(of_a_week: dict[str, Row]) -> None:
    """A replay lets each request come at its time, however long the ones before it waited.

    6 MB/s for a minute may take half a minute longer.
    """
    erin = of_a_week["erin"]
    assert (4e6, "delay", 30.0) == (erin.quota, erin.decided_by, erin.longest_delay_s)
    assert "data would have waited for up to 30 s" in erin.caveats


def _recommended(row: Row) -> tuple[object, ...]:
    return (row.quota, row.throttled_share, row.percentile_rate, row.in_force, row.refused)
