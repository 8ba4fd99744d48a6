"""What the tests with real programs need, and the clusters and daemons that they borrow.

A cluster starts when the first test asks for it and ends with the last test of the process, or when
another one needs its place, also when pytest is killed (``tests/support/clusters.py``). After each
test it is cleaned. A test asks for

- ``node``: Kafka 4.3.1, one combined node (id 0) in one JVM, with two volumes of 64 MiB;
- ``kafka``: two brokers (0, 1) with two such volumes each, and a controller of its own;
- ``obeying``: as ``kafka``, its brokers with the quota callback;
- ``secure_kafka``: one node with listeners for TLS, SASL and mTLS, and an authorizer;
- ``start``: starts the real daemon beside a cluster's brokers, and ends it after the test.

A module whose tests wait for a broker to be fenced sets ``FENCED_MS`` lower.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from kafka_lab.cluster import Cluster
from kafka_lab.jars import DEFAULT_VERSION, jars
from sidecar.formats.cache_folder import cache_folder
from tests.integration.chromium import CHROMIUM
from tests.support.clusters import FENCED_MS, Clusters, Kind
from tests.support.daemon import Beside, Daemon, Start
from tests.support.secured import SecureKafka, secured

_NEEDS: Final = {
    # Fixtures.
    "clusters": "broker",
    "secure_kafka": "broker",
    "browser": "browser",
    # Files whose tests start what they need themselves, or need a program alone.
    "test_api_tls": "broker",
    "test_authorizer_upgrade": "broker",
    "test_blocks": "demo",
    "test_budgets": "broker",
    "test_callback_model": "broker",
    "test_chaos": "demo",
    "test_client_quota_scope": "broker",
    "test_cluster_life": "broker",
    "test_compose": "package",
    "test_container": "package",
    "test_dead_letters": "broker",
    "test_enforcement": "broker",
    "test_install": "package",
    "test_java_traffic": "broker",
    "test_killed_runs": "spark",
    "test_kubernetes_acls": "broker",
    "test_logins": "broker",
    "test_moving_from_strimzi": "broker",
    "test_object_storage": "spark",
    "test_packages": "package",
    "test_pipeline_demo": "demo",
    "test_quota_arithmetic": "broker",
    "test_quota_entities": "broker",
    "test_refusal": "broker",
    "test_refusal_order": "broker",
    "test_release": "package",
    "test_request_log_appenders": "broker",
    "test_reserve": "broker",
    "test_rotation": "broker",
    "test_scope": "broker",
    "test_shipper": "spark",
    "test_spark_cluster": "spark",
    "test_status_page": "browser",
    "test_stream": "spark",
    "test_stream_secured": "spark",
    "test_systemd": "package",
}
"""Fixture or file -> the mark of what it needs; ``pyproject.toml`` says what each means."""

_BORROWED: Final = ("version", "secure_kafka", "obeying", "kafka", "node")
_LONGEST: Final = (
    "test_enforcement",
    "test_throttle_times",
    "test_request_log",
    "test_client_quotas",
)
"""Files that come first of their kind, so that no process waits for another's last one."""


# Before xdist's own.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it needs, and put files side by side that borrow the same cluster.

    Files that start clusters of their own come first, while no borrowed one runs beside those.
    """
    borrowed: dict[Path, int] = {}
    for item in items:
        rank = _rank(item)
        borrowed[item.path] = min(rank, borrowed.get(item.path, rank))
    items.sort(key=lambda item: (borrowed[item.path], item.path.stem not in _LONGEST))
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        fixtures = set(getattr(item, "fixturenames", ()))
        for name in sorted({*fixtures, item.path.stem} & set(_NEEDS)):
            item.add_marker(_NEEDS[name])


def _rank(item: pytest.Item) -> int:
    """The place of a test's cluster among the borrowed ones; -1 without one."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if not fixtures & {"clusters", "secure_kafka"}:
        return -1
    return min((at for at, name in enumerate(_BORROWED) if name in fixtures), default=-1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Download what the chosen tests need before any test's time runs."""
    items = [
        item
        for item in session.items
        if item.get_closest_marker("broker") or item.get_closest_marker("demo")
    ]
    if not items or session.config.option.collectonly:
        return
    versions = {DEFAULT_VERSION}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            versions |= {str(item.callspec.params.get("version", DEFAULT_VERSION))}
    for version in sorted(versions):
        asyncio.run(jars(version, cache_folder(os.environ)))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium; without a sandbox, which root can't have."""
    assert CHROMIUM, "Chromium is missing: apt-get install -y chromium"
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clusters() -> AsyncIterator[Clusters]:
    """The clusters of this process."""
    running = Clusters()
    try:
        yield running
    finally:
        await running.close()


@pytest.fixture
def fenced_ms(request: pytest.FixtureRequest) -> int:
    """How long after its last heartbeat a broker is fenced, ms."""
    return int(getattr(request.module, "FENCED_MS", FENCED_MS))


@pytest_asyncio.fixture
async def node(clusters: Clusters) -> AsyncIterator[Cluster]:
    """One combined node of 4.3.1 with two volumes."""
    async with clusters.borrow(Kind()) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def kafka(clusters: Clusters, fenced_ms: int) -> AsyncIterator[Cluster]:
    """Two brokers of 4.3.1 with two volumes each."""
    async with clusters.borrow(Kind(brokers=2, fenced_ms=fenced_ms)) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def obeying(clusters: Clusters, fenced_ms: int) -> AsyncIterator[Cluster]:
    """Two brokers of 4.3.1 with the quota callback."""
    kind = Kind(brokers=2, has_callback=True, fenced_ms=fenced_ms)
    async with clusters.borrow(kind) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecureKafka]:
    """One combined node with every kind of listener and an authorizer."""
    async with secured(tmp_path_factory.mktemp("certificates")) as secure:
        yield secure


@pytest_asyncio.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts daemons, each with a log in the test's folder; all that still run must end well."""
    daemons: list[Daemon] = []

    async def start_one(cluster: Beside, environ: Mapping[str, str]) -> Daemon:
        daemon = Daemon(cluster, environ, tmp_path / f"sidecar-{len(daemons)}.log")
        daemons.append(daemon)
        await daemon.start()
        assert daemon.is_running, daemon.output
        return daemon

    yield start_one
    ends = await asyncio.gather(*(daemon.end() for daemon in daemons))
    for daemon, ended in zip(daemons, ends, strict=True):
        # It is None when the test has ended it by itself.
        assert ended in {0, None}, f"a daemon ended with {ended}:\n{daemon.output}"
