"""Clients' quotas over time are those that the daemon resolves."""

import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sidecar.quotas.entities import DEFAULT, Entity, Name, resolve
from tests.support.prediction import _shaped, _shapes
from tests.usage_pipeline.build import frame_of
from usage_pipeline.replay.entities import EVER, Quota, Quotas, quotas_of
from usage_pipeline.silver.quota_config import DEFAULT as DEFAULT_NAME
from usage_pipeline.silver.quota_config import snapshot_rows
from usage_pipeline.tables.schemas import SILVER_QUOTA_CONFIG
from usage_pipeline.usage.quota_types import KEYS

pytestmark = pytest.mark.spark

START = datetime(2026, 11, 20, tzinfo=UTC)
USERS = ("alice", "bob", "")
CLIENTS = ("etl", "web", "")
ENTITIES = [
    Entity(user, client)
    for user, client in itertools.product(("alice", DEFAULT, None), ("etl", DEFAULT, "", None))
    if user is not None or client is not None
]
LIMITS = (1.0, 20.0, float("inf"))


def text(name: Name) -> str | None:
    return "<default>" if name is DEFAULT else name


def name_of(user: str, client: str) -> str:
    parts = {"user": user, "client-id": client}
    return ",".join(f"{kind}={name}" for kind, name in parts.items() if name)


def test_quotas_are_those_that_the_daemon_resolves(spark: SparkSession) -> None:
    """Quotas of all kinds are set and removed; each client's quota, tags and shape agree."""
    chance = random.Random(6)
    quota_types = ("produce", "fetch", "request")
    rows: list[dict[str, Any]] = []
    states: dict[str, list[dict[Entity, dict[str, float]]]] = {}
    for quota_type in quota_types:
        key = KEYS[quota_type]
        in_force: dict[Entity, dict[str, float]] = {}
        states[quota_type] = [{}]
        for second in range(60):
            entity = chance.choice(ENTITIES)
            for row in rows:
                if row["key"] == key and row["of"] == entity and row["valid_to"] is None:
                    row["valid_to"] = START + timedelta(seconds=second)
            value = None if chance.random() < 0.6 else chance.choice(LIMITS)
            in_force = {each: of for each, of in in_force.items() if each != entity}
            if value is not None:
                in_force[entity] = {key: value}
            states[quota_type].append(in_force)
            rows.append(
                {
                    "of": entity,
                    "entity": name_of(text(entity.user) or "", text(entity.client_id) or ""),
                    "user": text(entity.user),
                    "client_id": text(entity.client_id),
                    "key": key,
                    "value": value,
                    "valid_from": START + timedelta(seconds=second),
                    "valid_to": None,
                    "source": "log",
                }
            )
    config = frame_of(spark, SILVER_QUOTA_CONFIG, *rows)
    quotas_by_type = quotas_of(config)
    start_ms = int(START.timestamp()) * 1000
    for quota_type, user, client in itertools.product(quota_types, USERS, CLIENTS):
        found = list(quotas_by_type[quota_type].of_client(user, client))
        for second, quotas in enumerate(states[quota_type]):
            now_ms = start_ms + second * 1000 - 1
            (one,) = [each for each in found if each.from_ms <= now_ms < each.to_ms]
            expected = expect(quotas, KEYS[quota_type], user, client)
            assert expected == (one.counts, one.entity, one.shared_by, one.limit)


def expect(
    quotas: dict[Entity, dict[str, float]], key: str, user: str, client: str
) -> tuple[bool, str, str, float | None]:
    """Returns what ``Predictor.charge`` uses; it is by user where nothing counts."""
    shapes = _shapes(quotas, key)
    if not shapes:
        return False, name_of(user, ""), name_of(user, ""), None
    quota = resolve(quotas, key, user, client)
    if quota is None or quota.limit == float("inf"):
        # Kafka would take the client-id; it makes no difference without a limit.
        by_users = {(True, True), (True, False)} == set(shapes)
        shared = name_of(user, "") if by_users else name_of(*_shaped(shapes, user, client))
        return True, shared, shared, None
    entity = name_of(text(quota.entity.user) or "", text(quota.entity.client_id) or "")
    return True, entity or "", name_of(*quota.tags), quota.limit


def test_without_a_login_it_is_the_client_id_that_a_quota_would_be_set_for() -> None:
    """Everybody is ANONYMOUS there, the brokers too; a client without either has no other name."""
    quotas = Quotas("produce")
    found = [
        next(quotas.of_client(user, client_id)).shared_by
        for user, client_id in (("ANONYMOUS", "etl"), ("alice", "etl"), ("ANONYMOUS", ""))
    ]
    assert ["client-id=etl", "user=alice", "user=ANONYMOUS"] == found


def test_a_quota_of_another_group_reaches_a_client() -> None:
    """A user's quota precedes one of a client-id, and the client's own precedes both."""
    quotas = Quotas("produce")
    assert ["user=ANONYMOUS"] == quotas.others_that_apply("ANONYMOUS", "etl")
    assert ["client-id=etl"] == quotas.others_that_apply("alice", "etl")
    assert [] == quotas.others_that_apply("alice", "")
    # The client without a client-id is the only one of its group.
    assert ["user=ANONYMOUS"] == quotas.others_that_apply("ANONYMOUS", None)
    quotas.add("alice", None, Quota("user=alice", 1.0, 0, EVER))
    assert [] == quotas.others_that_apply("alice", "etl")
    quotas.add(None, "etl", Quota("client-id=etl", 1.0, 0, EVER))
    assert ["user=bob"] == quotas.others_that_apply("bob", "etl")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (("bob", DEFAULT_NAME), []),
        ((DEFAULT_NAME, "app"), ["user=bob"]),
        ((DEFAULT_NAME, DEFAULT_NAME), ["user=bob"]),
        ((None, DEFAULT_NAME), ["user=bob"]),
    ],
)
def test_a_quota_reaches_past_later_levels(
    level: tuple[str | None, str | None], expected: list[str]
) -> None:
    """A quota for the user takes the place of the defaults after it in Kafka's order."""
    quotas = Quotas("produce")
    quotas.add(*level, Quota("", 1.0, 0, EVER))
    assert expected == quotas.others_that_apply("bob", "app")


def test_beside_users_with_quotas_it_is_the_user_that_a_quota_would_be_set_for() -> None:
    """Also if one of these users has a quota for a client-id; quotas for client-ids stay such."""
    quotas = Quotas("produce")
    quotas.add("alice", None, Quota("user=alice", 1.0, 0, 10))
    quotas.add("carol", "batch", Quota("user=carol,client-id=batch", 1.0, 0, 20))
    quotas.add(None, "etl", Quota("client-id=etl", 1.0, 5, 20))
    assert [
        (-EVER, "user=bob"),
        (0, "user=bob"),
        (5, "client-id=web"),
        (20, "user=bob"),
    ] == [(each.from_ms, each.shared_by) for each in quotas.of_client("bob", "web")]


def test_producer_ids_are_by_user(spark: SparkSession) -> None:
    """The client-id has no quota; the user's own or the default counts; ranges cover all time."""
    key = KEYS["producer_ids"]
    rows = snapshot_rows({Entity(user=DEFAULT): {key: 50.0}, Entity(DEFAULT, "etl"): {key: 1.0}})
    config = spark.createDataFrame(
        [
            (each.user, each.user, each.client_id, each.key, each.value, START, None, "snapshot")
            for each in rows
        ],
        SILVER_QUOTA_CONFIG.schema,
    )
    start_ms = int(START.timestamp()) * 1000
    found = quotas_of(config)["producer_ids"].of_client("alice", "etl")
    assert [
        (-EVER, start_ms, True, "user=alice", "user=alice", None),
        (start_ms, EVER, True, "<default>", "user=alice", 50.0),
    ] == [(r.from_ms, r.to_ms, r.counts, r.entity, r.shared_by, r.limit) for r in found]
