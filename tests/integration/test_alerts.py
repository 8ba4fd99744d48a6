"""A real Prometheus scrapes real sidecars: an alert fires and resolves, the dashboard has data."""

import json
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kafka_lab.cluster import Cluster
from tests.integration.prometheus import Prometheus, Result, prometheus
from tests.support.daemon import FULL_BYTES, Start, settings
from tests.support.waiting import seen
from tools.dashboard.document import FILE
from tools.dashboard.rows import ROWS

BROKER = 1
"""Whose volume is filled."""

WITHIN_HOUR = "KafkaVolumeLimitWithinHour"


@pytest_asyncio.fixture
async def scraping(obeying: Cluster, start: Start, tmp_path: Path) -> AsyncIterator[Prometheus]:
    """Prometheus, and a sidecar beside each broker of a cluster whose callbacks obey."""
    sidecars = [
        await start(
            obeying, settings(obeying.bootstrap, HTTP_LISTEN=f"127.0.0.1:{broker.sidecar_port}")
        )
        for broker in obeying.brokers.values()
    ]
    for sidecar in sidecars:
        await sidecar.decides(1.0)
    async with prometheus(obeying, sidecars, tmp_path) as started:
        await seen(
            "each sidecar has been scraped, and the brokers follow",
            lambda: started.instant("sum(kafka_throttle_reader_up_to_date)"),
            lambda series: value(series) == 2.0,
        )
        yield started


def value(series: Result) -> float | None:
    """The value of the one series of an answer; None when there is none."""
    return float(series[0]["value"][1]) if series else None


async def fires(scraping: Prometheus) -> dict[str, Any]:
    """Wait until producers throttled fires; the alert."""
    (alert,) = await seen(
        "the alert fires",
        lambda: scraping.alerts("KafkaProducersThrottled"),
        lambda alerts: ["firing"] == [each["state"] for each in alerts],
    )
    found: dict[str, Any] = alert
    return found


async def fill(cluster: Cluster) -> str:
    """Fill a volume; its log dir."""
    await cluster.occupy(BROKER, 0, FULL_BYTES)
    return cluster.brokers[BROKER].volumes[0].path


@pytest.mark.slow
async def test_producers_throttled_fires_and_resolves(
    obeying: Cluster, scraping: Prometheus
) -> None:
    """No alert fires; a real volume fills: the alert names it; it is freed: none fires again."""

    async def pending() -> set[str]:
        alerts = (await scraping.get("alerts"))["alerts"]
        return {each["labels"]["alertname"] for each in alerts}

    # On volumes of 64 MiB even the brokers' own small files are a forecast.
    await seen("no alert is even pending", pending, lambda names: names <= {WITHIN_HOUR})
    log_dir = await fill(obeying)
    alert = await fires(scraping)
    assert ("blue", "critical") == (alert["labels"]["cluster"], alert["labels"]["severity"])
    assert log_dir in alert["annotations"]["description"]
    await obeying.occupy(BROKER, 0, 0)
    await seen(
        "the alert is resolved",
        lambda: scraping.alerts("KafkaProducersThrottled"),
        lambda alerts: alerts == [],
    )


@pytest.mark.slow
async def test_every_query_of_the_dashboard_is_answered(
    obeying: Cluster, scraping: Prometheus
) -> None:
    """None is an error while a volume is full, and all have data but those of other troubles."""
    await fill(obeying)
    await fires(scraping)
    dashboard = json.loads(FILE.read_text(encoding="utf-8"))
    empty = set()
    targets = [target for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for target in targets:
        expr = target["expr"].replace("$__rate_interval", "5s").replace("$cluster", ".*")
        ask = scraping.instant if target["instant"] else scraping.range
        if not has_numbers(await ask(expr)):
            empty.add(target["expr"])
    panels = [panel for row in ROWS for panel in row.panels if panel.if_empty]
    may_be_empty = {query.expr for panel in panels for query in panel.queries}
    assert set() == empty - may_be_empty
    troubled = [expr for expr in may_be_empty if "ALERTS" in expr or "limit_violated" in expr]
    assert 2 == len(troubled)
    assert set() == empty & set(troubled)
    _, clusters = dashboard["templating"]["list"]
    assert "label_values(kafka_throttle_factor, cluster)" == clusters["query"]
    path = "label/cluster/values"
    assert ["blue"] == await scraping.get(path, **{"match[]": "kafka_throttle_factor"})


def has_numbers(series: Result) -> bool:
    """Whether some value is one."""
    points = [point for each in series for point in [each.get("value"), *each.get("values", [])]]
    return any(point is not None and not math.isnan(float(point[1])) for point in points)
