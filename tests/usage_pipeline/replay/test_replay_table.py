"""A replay says of each charge what the daemon predicts, event by event, on every node."""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey
from sidecar.quotas.producer_ids.id_counts import ProducerIds, ProducerIdSettings
from sidecar.quotas.rate import QuotaWindow
from tests.support.prediction import Charge, Prediction, Predictor
from tests.usage_pipeline.build import files_of
from tests.usage_pipeline.silver_tables import row
from usage_pipeline.kernels.values import Span
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.replay_table import Candidates, replay, replay_events
from usage_pipeline.replay.request_percentage import percent
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shards import Shards, shards_of
from usage_pipeline.silver.dim_topic import dim_topic
from usage_pipeline.silver.quota_config import snapshot_rows
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.schemas import SILVER_QUOTA_CONFIG, SILVER_REQUEST
from usage_pipeline.usage.mutations import MutationRequests
from usage_pipeline.usage.quota_types import KEYS

pytestmark = pytest.mark.spark

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
START_MS = int(START.timestamp()) * 1000
DAY_MS = 86_400_000
AMOUNTS = {"produce": 900, "fetch": 900, "request": 60, "controller_mutation": 40}
MS_PER_PERCENT = 10
NS_PER_PERCENT = 10_000_000
LIMITS = {"produce": 300.0, "fetch": 300.0, "request": 20.0, "controller_mutation": 5.0}


def event(**fields: Any) -> dict[str, Any]:
    """Returns a charge: 100 bytes that alice's etl wrote to broker 1."""
    return {
        "broker": 1,
        "quota_type": "produce",
        "user": "alice",
        "client_id": "etl",
        "at_ms": START_MS,
        "amount": 100.0,
        "strict": False,
        "waited_ms": 0,
        "producer_id": None,
        "src_file": "kafka-1.log",
        "src_offset": 0,
        **fields,
    }


def request(charge: dict[str, Any]) -> dict[str, Any]:
    """Returns the request that is charged so, and with nothing else, as SILVER_REQUEST has it."""
    amount = charge["amount"]
    whole = None if amount is None else round(amount)
    charged_ts = datetime.fromtimestamp((charge["at_ms"] + charge["waited_ms"]) / 1000, UTC)
    about: dict[str, dict[str, Any]] = {
        "produce": {"api": "PRODUCE", "quota_bytes": whole, "bytes_known": whole is not None},
        "fetch": {"api": "FETCH", "quota_bytes": whole, "bytes_known": whole is not None},
        "request": {"exempt": False, "local_ms": MS_PER_PERCENT * (whole or 0)},
        "controller_mutation": {
            "api": "CREATE_TOPICS",
            "api_version": 6 if charge["strict"] else 5,
            "is_forwarded": True,
            "remote_ms": float(charge["waited_ms"]),
            "topic_changes": [("t", "", whole, 0)],
        },
        "producer_ids": {"api": "INIT_PRODUCER_ID", "producer_id": charge["producer_id"]},
    }
    same = {
        name: charge[name] for name in ("broker", "user", "client_id", "src_file", "src_offset")
    }
    times = {"log_ts": charged_ts, "quota_ts": charged_ts}
    return row(**same, **times, **about[charge["quota_type"]])


def charged(
    spark: SparkSession, out: Path, charges: Iterable[dict[str, Any]]
) -> tuple[Requests, MutationRequests]:
    """Returns the requests that are charged so, from files of the table."""
    requests = Requests(spark, files_of(out, SILVER_REQUEST, map(request, charges)))
    changes = requests.of_admins()
    return requests, MutationRequests.from_changes(changes, dim_topic(changes))


Quotas = Sequence[tuple[int, ClientQuotas]]
"""What is in force from so many milliseconds after START on."""


def config(spark: SparkSession, quotas: Quotas) -> DataFrame:
    """Returns quotas as SILVER_QUOTA_CONFIG has them."""
    rows = []
    for at, (from_ms, in_force) in enumerate(quotas):
        to_ms = quotas[at + 1][0] if at + 1 < len(quotas) else None
        for each in snapshot_rows(in_force):
            parts = {"user": each.user, "client-id": each.client_id}
            name = ",".join(f"{kind}={part}" for kind, part in parts.items() if part)
            since = START + timedelta(milliseconds=from_ms)
            until = None if to_ms is None else START + timedelta(milliseconds=to_ms)
            rows.append(
                (name, each.user, each.client_id, each.key, each.value, since, until, "log")
            )
    return spark.createDataFrame(rows, SILVER_QUOTA_CONFIG.schema)


def made_up(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Draws charges of few clients within seconds, many in the same millisecond, on two brokers."""
    rows = []
    for at in range(count):
        quota_type = chance.choice(list(AMOUNTS))
        amount = chance.randrange(AMOUNTS[quota_type])
        rows.append(
            event(
                broker=chance.choice([1, 2]),
                quota_type=quota_type,
                user=chance.choice(["alice", "bob"]),
                client_id=chance.choice(["etl", "web", ""]),
                at_ms=START_MS + chance.randrange(0, 40_000, 20),
                amount=percent(amount * NS_PER_PERCENT) if quota_type == "request" else amount,
                strict=quota_type == "controller_mutation" and chance.random() < 0.5,
                waited_ms=chance.choice([0, 30]) if quota_type == "controller_mutation" else 0,
                src_file=chance.choice(["a.log", "b.log"]),
                src_offset=at * 200,
            )
        )
    chance.shuffle(rows)
    return rows


def predictions(
    rows: Iterable[dict[str, Any]], quotas: Quotas
) -> list[tuple[dict[str, Any], Prediction]]:
    """Returns the daemon's predictions, node by node."""
    nodes: dict[int, Predictor] = {}
    found = []
    order = ("at_ms", "src_file", "src_offset")
    for each in sorted(rows, key=lambda one: [one[name] for name in order]):
        node = nodes.setdefault(each["broker"], Predictor(QuotaWindow()))
        in_force: ClientQuotas = {}
        for from_ms, then in quotas:
            in_force = then if from_ms <= each["at_ms"] - START_MS else in_force
        node.set_quotas(in_force)
        charge = Charge(
            each["at_ms"],
            QuotaKey(KEYS[each["quota_type"]]),
            each["user"],
            each["client_id"],
            each["amount"],
            each["strict"],
            waited_ms=each["waited_ms"],
        )
        found.append((each, node.charge(charge)))
    return found


def all_types(limits: Mapping[Entity, float]) -> ClientQuotas:
    """Returns multiples of ``LIMITS`` for every kind."""
    return {
        entity: {KEYS[kind]: limit * factor for kind, limit in LIMITS.items()}
        for entity, factor in limits.items()
    }


ALICE, ETL, ANY = Entity(user="alice"), Entity(client_id="etl"), Entity(user=DEFAULT)
CHANGING: Quotas = (
    (4_000, all_types({ETL: 1.0})),
    (9_000, all_types({ETL: 1.0, ALICE: 3.0})),
    (15_000, all_types({ALICE: 2.0, ANY: 0.5})),
    (20_000, {}),
    (22_000, all_types({Entity("alice", "web"): 0.5, ETL: math.inf, ALICE: 1.0})),
)


def test_every_charge_is_what_the_daemon_predicts(spark: SparkSession, tmp_path: Path) -> None:
    """Quotas of all shapes change, on two nodes; ties are in the order of file and offset."""
    rows = made_up(random.Random(1), 3000)
    replayed = replay_events(*charged(spark, tmp_path, rows), config(spark, CHANGING)).collect()
    expected = sorted(
        (
            r["broker"],
            r["src_file"],
            r["src_offset"],
            p.throttle_ms,
            p.accepted,
            limit,
        )
        for r, p in predictions(rows, CHANGING)
        for limit in (p.quota and p.quota.limit,)
    )
    assert 300 < sum(each[3] > 0 for each in expected)
    assert expected == sorted(
        (r.broker, r.src_file, r.src_offset, r.throttle_ms, r.accepted, r.limit) for r in replayed
    )


def sums(found: Iterable[tuple[dict[str, Any], Prediction]]) -> dict[tuple[Any, ...], list[int]]:
    """Counts charges and throttled ones, total and longest wait of each node, kind and quota."""
    summed: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for charge, predicted in found:
        assert predicted.quota is not None
        entity = ",".join(
            f"{kind}={name or '<default>'}" for kind, name in predicted.quota.entity.parts().items()
        )
        tags = dict(zip(("user", "client-id"), predicted.quota.tags, strict=True))
        shared = ",".join(f"{kind}={name}" for kind, name in tags.items() if name)
        one = summed[charge["broker"], charge["quota_type"], entity, shared]
        one[0] += 1
        one[1] += predicted.throttle_ms > 0 or not predicted.accepted
        one[2] += predicted.throttle_ms
        one[3] = max(one[3], predicted.throttle_ms)
    return summed


def replayed_sums(rows: Iterable[Row], name: str) -> dict[tuple[Any, ...], list[int]]:
    return {
        (r.broker, r.quota_type, r.entity, r.shared_by): [
            r.events,
            r.throttled,
            r.throttle_ms_total,
            r.throttle_ms_max,
        ]
        for r in rows
        if r.scenario == name and r.algorithm in {"rate", "token-bucket"}
    }


def test_scenarios_are_what_the_daemon_predicts_with_these_quotas(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Quotas in force, doubled, and 200 bytes for each are replayed in one pass."""
    rows = made_up(random.Random(2), 2500)
    quotas = all_types({ALICE: 1.0, ANY: 2.0})
    scenarios = [IN_FORCE, Scenario("x2", factor=2.0), Scenario("=200", quota=200.0)]
    found = replay(
        *charged(spark, tmp_path, rows), config(spark, [(0, quotas)]), scenarios
    ).collect()
    doubled = all_types({ALICE: 2.0, ANY: 4.0})
    flat = {entity: {KEYS[kind]: 200.0 for kind in LIMITS} for entity in (ALICE, ANY)}
    for name, in_force in (("in force", quotas), ("x2", doubled), ("=200", flat)):
        assert sums(predictions(rows, [(0, in_force)])) == replayed_sums(found, name)


def test_large_groups_have_the_same_rows_in_shards_of_their_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every kind with bytes or time, for the quotas in force, others and candidates."""
    inputs = *charged(spark, tmp_path, made_up(random.Random(4), 2500)), config(spark, CHANGING)
    scenarios = [IN_FORCE, *(Scenario(f"x{factor}", factor=factor) for factor in range(2, 7))]
    peaks = spark.createDataFrame(
        [("produce", "client-id=etl", 900.0), ("fetch", "client-id=etl", 900.0)],
        "quota_type string, shared_by string, peak double",
    )

    def replayed() -> list[Row]:
        rows = replay(*inputs, scenarios, candidates=Candidates(peaks, 3)).collect()
        return sorted(rows, key=str)

    together = replayed()
    made: list[Shards] = []

    def noted(*asked: Any) -> Shards:
        made.append(shards_of(*asked))
        return made[-1]

    monkeypatch.setattr("usage_pipeline.replay.replay_table.shards_of", noted)
    monkeypatch.setattr("usage_pipeline.replay.shards._LEAST_LARGE", 40)
    monkeypatch.setattr("usage_pipeline.replay.shards._AVERAGES", 1)
    assert together == replayed()
    # Some of the large groups have several shards.
    assert 0 < made[0].large.size < made[0].count - made[0].shared


def test_a_candidate_is_for_its_entity_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Nobody is limited: bob's quota is tried, alice has no row of it."""
    rows = [
        event(user=user, amount=amount, src_offset=at)
        for user in ("alice", "bob")
        for at, amount in enumerate((1500.0, None))
    ]
    bob = Scenario("=100", quota=100.0, quota_type="produce", entity="user=bob")
    found = replay(*charged(spark, tmp_path, rows), config(spark, []), [IN_FORCE, bob]).collect()
    assert [
        ("user=alice", "in force", None, 1, 0, 0, 150.0, 0, 0, 1),
        ("user=bob", "=100", 100.0, 1, 1, 5000, 150.0, 1, 1, 1),
        ("user=bob", "in force", None, 1, 0, 0, 150.0, 0, 0, 1),
    ] == sorted(
        (
            r.entity,
            r.scenario,
            r.quota,
            r.events,
            r.throttled,
            r.throttle_ms_total,
            r.peak_rate,
            r.near,
            r.over,
            r.unknown,
        )
        for r in found
    )


def test_a_candidate_for_the_default_ends_where_another_begins(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Alice has her own quota from the second charge on, which stays as it is."""
    key = KEYS["produce"]
    rows = [event(amount=1500.0), event(at_ms=START_MS + 6000, amount=1.0, src_offset=1)]
    quotas = [(0, {ANY: {key: 300.0}}), (5000, {ANY: {key: 300.0}, ALICE: {key: 1000.0}})]
    tried = Scenario("=50", quota=50.0, quota_type="produce", entity="user=<default>")
    found = replay(*charged(spark, tmp_path, rows), config(spark, quotas), [tried]).collect()
    assert [
        ("user=<default>", "user=alice", 50.0, 1, 20_000),
        ("user=alice", "user=alice", 1000.0, 0, 0),
    ] == sorted((r.entity, r.shared_by, r.quota, r.throttled, r.throttle_ms_total) for r in found)


def test_each_day_starts_with_empty_windows(spark: SparkSession, tmp_path: Path) -> None:
    """Bytes written before midnight don't count after it."""
    midnight_ms = START_MS - START_MS % DAY_MS + DAY_MS
    rows = [event(at_ms=midnight_ms - at, amount=900.0, src_offset=9 - at) for at in (0, 1)]
    friday = START.date()
    found = replay(
        *charged(spark, tmp_path, rows), config(spark, [(0, {ETL: {KEYS["produce"]: 100.0}})])
    )
    assert [(friday, 0, 90.0), (friday + timedelta(days=1), 0, 90.0)] == sorted(
        (r.dt, r.throttled, r.peak_rate) for r in found.collect()
    )


def test_producer_ids_are_the_daemons(spark: SparkSession, tmp_path: Path) -> None:
    """The user counts, not the client-id; ids that come back are new again after their window."""
    chance = random.Random(3)
    rows = [
        event(
            quota_type="producer_ids",
            user=chance.choice(["alice", "bob"]),
            client_id=chance.choice(["etl", "web"]),
            at_ms=START_MS + at * 40,
            amount=1.0,
            producer_id=chance.randrange(30),
            src_offset=at,
        )
        for at in range(400)
    ]
    daemon = ProducerIds(ProducerIdSettings(2, 3, false_positive_rate=1e-9))
    daemon.set_limits({"alice": 5.0, DEFAULT: 8.0})
    expected = [daemon.record(r["user"], r["producer_id"], r["at_ms"]).throttle_ms for r in rows]
    quotas = {ALICE: {"producer_ids_rate": 5.0}, ANY: {"producer_ids_rate": 8.0}}
    replayed = replay_events(
        *charged(spark, tmp_path, rows), config(spark, [(0, quotas)]), Windows(ids=Span(2, 3000))
    )
    assert 50 < sum(each > 0 for each in expected)
    assert expected == [r.throttle_ms for r in replayed.orderBy("src_offset").collect()]
