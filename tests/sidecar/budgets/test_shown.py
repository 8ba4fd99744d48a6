"""What the API, the metrics and the status page show of storage budgets."""

from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from sidecar.budgets.capability import BudgetCapability
from sidecar.budgets.file import BudgetFile
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.budgets.build import Scene
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
    for each in shown.collectors():
        registry.register(each)
    text = generate_latest(registry).decode()
    assert 'kafka_throttle_budget_used_bytes{owner="etl"} 1e+08' in text
    assert 'kafka_throttle_budget_seconds_to_hard{owner="web"}' not in text
    page = (await sidecar.get("/")).text
    assert 0 < page.index("100.0\xa0MB (50\xa0%)") < page.index("10.0\xa0MB (5\xa0%)")


async def test_without_budgets_nothing_is_shown() -> None:
    """An empty list, and no part of the page."""
    sidecar = FakeSidecar()
    assert {"budgets": []} == (await sidecar.get("/v1/budgets")).json()
    assert "Storage budgets" not in (await sidecar.get("/")).text
