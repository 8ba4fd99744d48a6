"""Costs of rows of gold_usage_1s."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from sidecar.formats.owners import CLIENT_ID, NOBODY, TOPIC, USER, Rule, in_order
from tests.usage_pipeline.build import frame_of
from usage_pipeline.costs.cost_table import Billing, costs, owner_of_client
from usage_pipeline.costs.log_dirs import Snapshot, Topic
from usage_pipeline.costs.rates import Kind, Rates
from usage_pipeline.tables.schemas import GOLD_USAGE_1S

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 20)
OWNERS = in_order(
    [
        Rule(USER, "alice", is_prefix=False, owner="shop"),
        Rule(CLIENT_ID, "etl", is_prefix=True, owner="data"),
        Rule(CLIENT_ID, "etl-eu", is_prefix=True, owner="eu"),
        Rule(TOPIC, "", is_prefix=True, owner="topics"),
    ]
)


def usage(user: str, client_id: str, quota_type: str, amount: float) -> dict[str, object]:
    return {
        "dt": DAY,
        "user": user,
        "client_id": client_id,
        "quota_type": quota_type,
        "amount": amount,
        "lower_bound": quota_type == "request",
    }


def test_the_first_rule_that_matches_owns_a_client(spark: SparkSession) -> None:
    """A rule of topics owns no client."""
    clients = [("alice", "etl"), ("bob", "etl-us"), ("bob", "etl-eu-1"), ("bob", "x"), ("", "")]
    rows = [usage(user, client_id, "produce", 1.0) for user, client_id in clients]
    owned = frame_of(spark, GOLD_USAGE_1S, *rows).select(
        "user", "client_id", owner_of_client(OWNERS).alias("owner")
    )
    owner_of = {(user, client_id): owner for user, client_id, owner in owned.collect()}
    assert ["shop", "data", "eu", NOBODY, NOBODY] == [owner_of[client] for client in clients]


def test_usage_and_stored_bytes_make_the_bill(spark: SparkSession) -> None:
    """Quotas without a price are left out, and so is, with its reason, what a day does not have."""
    frame = frame_of(
        spark,
        GOLD_USAGE_1S,
        usage("alice", "", "produce", 2e9),
        usage("alice", "x", "produce", 1e9),
        usage("bob", "etl", "fetch", 1e9),
        usage("bob", "", "request", 50.0 * 3600),
        usage("bob", "", "producer_ids", 9.0),
    )
    prices = dict.fromkeys(Kind, Decimal("0.30"))
    snapshots = {DAY - timedelta(days=1): Snapshot({"a": Topic(10**9, 30)}, is_whole=True)}
    days = [DAY - timedelta(days=1), DAY]
    rows = costs(frame, days, Billing(Rates("EUR", prices, {}), OWNERS, snapshots))
    no_logs = "gold_usage_1s has no usage of this day"
    no_snapshot = "--log-dirs has no file of this day"
    assert [
        (19, "topics", "partitions", Decimal("0.30"), False, None),
        (19, "topics", "stored", Decimal("0.01"), False, None),
        (19, None, "fetched", None, None, no_logs),
        (19, None, "produced", None, None, no_logs),
        (19, None, "request time", None, None, no_logs),
        (20, NOBODY, "request time", Decimal("0.15"), True, None),
        (20, "data", "fetched", Decimal("0.30"), False, None),
        (20, "shop", "produced", Decimal("0.90"), False, None),
        (20, None, "partitions", None, None, no_snapshot),
        (20, None, "stored", None, None, no_snapshot),
    ] == [
        (row.dt.day, row.owner, row.kind, row.cost, row.lower_bound, row.left_out) for row in rows
    ]
