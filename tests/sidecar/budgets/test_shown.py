"""What the API, the metrics and the status page show of storage budgets."""

from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from sidecar.budgets.capability import BudgetCapability
from sidecar.budgets.file import BudgetFile
from sidecar.control.metric_source import MetricSource
from sidecar.throttle.budgets import Owners
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.budgets.build import BUDGETS, Scene
from tests.sidecar.growth.build import MB


async def test_an_owner_that_grows_is_full_at_a_time() -> None:
    """It grows by 1.5 MB/s for a minute, so 100 MB of 200 MB are full 66.7 s later."""
    scene = Scene()
    await scene.at(0.0)
    scene.sizes[1]["etl.a"] = 100 * MB
    await scene.at(60.0)
    shown = BudgetCapability(BudgetFile(Path("budgets.toml")), scene.watch, lambda at: at)
    sidecar = FakeSidecar(board=scene.board, budgets=shown)
    etl, web = (await sidecar.get("/v1/budgets")).json()["budgets"]
    assert {
        "owner": "etl",
        "used_bytes": 100 * MB,
        "soft_bytes": 190 * MB,
        "hard_bytes": 200 * MB,
        "replicas": False,
        "state": "free",
        "factor": 1.0,
        "principals": [],
        "is_enforced": True,
        "topics": 1,
        "bytes_per_second": 1.5 * MB,
        "full_at": "1970-01-01T00:02:06.666Z",
        "unseen_brokers": [],
        "is_left_out": False,
        "read_at": "1970-01-01T00:01:00.000Z",
        "sentence": "50 % of 200.0 MB",
    } == etl
    assert ("web", 10 * MB, None) == (web["owner"], web["used_bytes"], web["full_at"])
    registry = CollectorRegistry()
    registry.register(MetricSource(shown.metrics))
    text = generate_latest(registry).decode()
    assert 'kafka_throttle_budget_used_bytes{owner="etl"} 1e+08' in text
    assert 'kafka_throttle_budget_seconds_to_hard{owner="web"}' not in text
    page = (await sidecar.get("/")).text
    assert 0 < page.index("100.0\xa0MB (50\xa0%)") < page.index("10.0\xa0MB (5\xa0%)")


async def test_client_quotas_slow_only_owners_with_principals() -> None:
    """The others are named."""
    scene = Scene()
    etl, web = BUDGETS
    scene.watch.rules = replace(scene.watch.rules, by_quotas=True)
    scene.watch.owners = Owners([replace(etl, principals=("loader",)), web])
    scene.sizes = {1: {"etl.a": 200 * MB}, 2: {"clicks": 200 * MB}}
    await scene.at(0.0)
    shown = BudgetCapability(BudgetFile(Path("budgets.toml")), scene.watch, lambda at: at)
    sidecar = FakeSidecar(board=scene.board, budgets=shown)
    found = (await sidecar.get("/v1/budgets")).json()["budgets"]
    said = [(each["owner"], each["principals"], each["is_enforced"]) for each in found]
    assert [("etl", ["loader"], True), ("web", [], False)] == said
    page = (await sidecar.get("/")).text
    assert "Client quotas slow the principals of owners past their soft size." in page
    assert "no owner without principals in the file of budgets: web." in page
    throttled = scene.board.snapshot.decision.budgets
    assert {"etl": ("loader",), "web": ()} == {
        owner: each.principals for owner, each in throttled.items()
    }
    scene.board.readers.unslowed = frozenset({"etl"})
    await scene.at(60.0)
    assert not (await sidecar.get("/v1/budgets")).json()["budgets"][0]["is_enforced"]
    page = (await sidecar.get("/")).text
    assert "only shown: nobody is slowed by them." in page
    assert "their principals would need too many client quotas: etl." in page
    scene.board.readers.unslowed = frozenset()
    scene.watch.owners = Owners([web])
    assert "only shown: nobody is slowed by them." in (await sidecar.get("/")).text


async def test_without_budgets_nothing_is_shown() -> None:
    """An empty list, and no part of the page."""
    sidecar = FakeSidecar()
    assert {"budgets": []} == (await sidecar.get("/v1/budgets")).json()
    assert "Storage budgets" not in (await sidecar.get("/")).text
