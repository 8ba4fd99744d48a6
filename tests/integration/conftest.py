"""Real clusters for the integration tests: one for each Kafka version, for the whole run.

A cluster starts when the first test asks for it and ends with the run, also when pytest is killed.
A test asks for ``kafka`` (4.3.1, three brokers with two volumes each) or, to run on several
versions, for ``any_kafka``; whatever it does to brokers, volumes and topics is undone after it.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster

VOLUME_BYTES = 64 << 20
VERSIONS = {
    # version: brokers, volumes of each (Kafka 3.3 has one in KRaft mode)
    "3.3.2": (1, 1),
    "3.9.1": (2, 2),
    "4.3.1": (3, 2),
}


class Clusters:
    """The run's clusters, started on demand."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}
        self._stack = AsyncExitStack()

    async def get(self, version: str) -> Cluster:
        if version not in self._running:
            brokers, volumes = VERSIONS[version]
            cluster = Cluster(
                environ=os.environ,
                version=version,
                brokers=brokers,
                volumes=volumes,
                volume_bytes=VOLUME_BYTES,
            )
            self._running[version] = await self._stack.enter_async_context(cluster)
        return self._running[version]

    async def close(self) -> None:
        await self._stack.aclose()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a real cluster, and give it the time that starting one takes."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.integration)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(180))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clusters() -> AsyncIterator[Clusters]:
    running = Clusters()
    try:
        yield running
    finally:
        await running.close()


@pytest_asyncio.fixture
async def kafka(clusters: Clusters) -> AsyncIterator[Cluster]:
    """The cluster of 4.3.1: three brokers with two volumes each."""
    async for cluster in _healed(clusters, "4.3.1"):
        yield cluster


@pytest_asyncio.fixture(params=list(VERSIONS))
async def any_kafka(clusters: Clusters, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A cluster of each version in turn."""
    async for cluster in _healed(clusters, request.param):
        yield cluster


async def _healed(clusters: Clusters, version: str) -> AsyncIterator[Cluster]:
    cluster = await clusters.get(version)
    try:
        yield cluster
    finally:
        await cluster.heal()
        async with Admin(cluster.bootstrap) as admin:
            await admin.delete_topic(
                *(name for name in await admin.topics() if not name.startswith("__"))
            )
