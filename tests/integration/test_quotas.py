"""``quotas``: capacity, plan, apply, show, diff and watch on real brokers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.users import acl_users, scram_users
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.request_time.fair_shares import equal_share
from tests.support.client_quotas import admin_of, in_force, quotas_of, remove_quotas
from tests.support.command import Done, command
from tests.support.secured import SecureKafka
from tests.support.waiting import seen

IO_THREADS, NETWORK_THREADS = 5, 4
"""Of the brokers, set here: 900 %."""


async def quotas(cluster: Cluster, *words: str) -> Done:
    """Run ``throttle-sidecar quotas WORDS`` on a cluster."""
    return await command(
        "quotas", *words, "--bootstrap-server", cluster.bootstrap, environ={"COLUMNS": "100"}
    )


@pytest.fixture
async def cluster(secure_kafka: SecureKafka) -> AsyncIterator[Cluster]:
    """One broker of 900 %, with SCRAM users alice and bob, and without quotas before and after."""
    cluster = secure_kafka.cluster
    threads = {"num.io.threads": str(IO_THREADS), "num.network.threads": str(NETWORK_THREADS)}
    async with Admin(cluster.bootstrap) as client:
        await client.set_broker_config(0, threads)
    asked = admin_of(cluster)
    await seen(
        "these threads",
        lambda: describe_broker_configs(asked, [0], list(threads)),
        lambda result: result == {0: threads},
    )
    yield cluster
    await remove_quotas(cluster)


async def test_a_plan_is_applied_shown_compared_and_taken_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    """SCRAM's alice and bob get equal shares beside a reserve; a file brings back what was."""
    before = tmp_path / "before.json"
    before.write_text((await quotas(cluster, "show", "--json")).out)
    plan = ["--tenants-from", "scram", "--reserve", "100", "--internal", "mirror"]
    differs = await quotas(cluster, "diff", *plan)
    assert 1 == differs.code
    assert "mirror" in differs.err

    done = await quotas(cluster, "apply", *plan, "--default", "5", "--yes")
    assert 0 == done.code, done.said
    users = await scram_users(admin_of(cluster))
    assert isinstance(users, frozenset)
    # Other tests may have made more of them.
    assert {"alice", "bob"} <= users
    assert f" {len(users) + 2} quotas " in done.out
    share = {"request_percentage": equal_share(800, len(users))}
    expected = {
        **{Entity(user): share for user in users},
        Entity("mirror"): {"request_percentage": 100.0},
        Entity(DEFAULT): {"request_percentage": 5.0},
    }
    await in_force(cluster, expected)
    same = await quotas(cluster, "diff", *plan, "--default", "5")
    assert 0 == same.code, same.said
    shown = (await quotas(cluster, "show")).out
    assert "user 'alice'" in shown
    assert "user the default" in shown

    back = await quotas(cluster, "apply", "--plan", str(before), "--exact", "--yes")
    assert 0 == back.code, back.said
    await in_force(cluster, {})


async def test_a_refusal_of_the_brokers_sets_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """A quota that Kafka does not know is refused when it is validated; the good one is not set."""
    plan = tmp_path / "plan.json"
    good: dict[str, Any] = {"entity": {"user": "ann"}, "quotas": {"request_percentage": 50}}
    odd = {"entity": {"user": "bob"}, "quotas": {"request_percent": 50}}
    plan.write_text(json.dumps({"quotas": [good, odd]}))
    done = await quotas(cluster, "apply", "--plan", str(plan), "--yes")
    assert 2 == done.code
    assert "request_percent" in done.err
    assert {} == await quotas_of(cluster)


async def test_many_entities_are_set(cluster: Cluster, tmp_path: Path) -> None:
    """A handful of requests set 1,000 client-ids of odd names, and nothing is left to do."""
    tenants = tmp_path / "tenants"
    names = [f"Größe {n:04} <a&b>" for n in range(1000)]
    tenants.write_text("\n".join(names))
    plan = ["--tenants-from", str(tenants), "--entity-type", "clients"]
    done = await quotas(cluster, "apply", *plan, "--yes", "--json")
    assert 0 == done.code, done.said
    assert 1000 == len(done.document()["done"])
    await in_force(cluster, {Entity(client_id=name): {"request_percentage": 0.9} for name in names})


async def test_acls_and_watch(cluster: Cluster) -> None:
    """Who has an ACL is a tenant; a run sets, the next finds nothing; a dry run sets nothing."""
    users = await acl_users(admin_of(cluster))
    assert isinstance(users, frozenset)
    assert "alice" in users
    share = equal_share(900, len(users))
    dry = await quotas(cluster, "watch", "--tenants-from", "acls", "--once", "--dry-run")
    assert 0 == dry.code, dry.said
    assert f"would be set: user 'alice': none -> {share:g}" in dry.out
    assert {} == await quotas_of(cluster)
    done = await quotas(cluster, "watch", "--tenants-from", "acls", "--once")
    assert 0 == done.code, done.said
    await in_force(cluster, {Entity(user): {"request_percentage": share} for user in users})
    again = await quotas(cluster, "watch", "--tenants-from", "acls", "--once", "--json")
    assert [] == again.document()["done"]
