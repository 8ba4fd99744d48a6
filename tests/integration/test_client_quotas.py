"""SIDECAR_ENFORCEMENT=client-quotas on a stock broker: no jar of ours, and no authorizer."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from sidecar.throttle.quota_steps import LONGEST_PAUSE_S, is_rung
from tests.support.client_quotas import admin_of, quotas_of, remove_quotas, under
from tests.support.clusters import Clusters, Kind
from tests.support.command import command
from tests.support.daemon import FULL_BYTES, Daemon, Start, settings
from tests.support.exporter import export_metrics
from tests.support.rates import flows, rates
from tests.support.waiting import seen

KEY = "producer_byte_rate"
ETL, REST = Entity(client_id="etl"), Entity(client_id=DEFAULT)
BEFORE: ClientQuotas = {ETL: {KEY: 4e6, "consumer_byte_rate": 9e6}, Entity("bob"): {KEY: 1e7}}
RATE = 1e6
FLOOR = 64 << 10
SMALL = {"retention.bytes": str(4 << 20), "segment.bytes": str(1 << 20)}

VOLUME_BYTES = 1 << 30
"""So much that no volume is near its limit until it is filled on purpose."""
FOREIGN_BYTES = VOLUME_BYTES - FULL_BYTES
"""So many more bytes violate the limit."""
RESTORED_S = 180.0
"""A file that was copied to a volume looks like writing clients, so quotas rise more slowly."""

REQUESTS = {"batch.size": 50_000, "message.max.bytes": 60_000}
"""No request has more bytes than the floor has in a second."""


def of_quotas(cluster: Cluster, folder: Path, **more: str) -> dict[str, str]:
    """Settings of a sidecar that throttles by client quotas."""
    own = {
        "ENFORCEMENT": "client-quotas",
        "CLIENT_QUOTA_FLOOR": str(FLOOR),
        "STATE_FILE": str(folder / "state.json"),
    }
    return settings(cluster.bootstrap, **{**own, **more})


async def lowered(cluster: Cluster, *entities: Entity) -> Mapping[Entity, Mapping[str, float]]:
    """Wait until these quotas are lowered; all quotas."""
    return await seen(
        "lowered quotas",
        lambda: quotas_of(cluster),
        lambda quotas: all(is_rung(quotas.get(each, {}).get(KEY)) for each in entities),
    )


async def restored(cluster: Cluster) -> None:
    """Wait until all quotas are exactly as before."""
    await seen("restored", lambda: quotas_of(cluster), lambda quotas: quotas == BEFORE, RESTORED_S)


async def fill(cluster: Cluster) -> None:
    """Fill a volume within a minute.

    All at once, the file would look like clients that write 200 MB/s, and quotas begin at twice
    that.
    """
    for part in range(1, 13):
        await cluster.occupy(0, 0, FOREIGN_BYTES * part // 12)
        await asyncio.sleep(5.0)


@pytest_asyncio.fixture
async def node(clusters: Clusters) -> AsyncIterator[Cluster]:
    """One combined node of 4.3.1 with larger volumes."""
    async with clusters.borrow(Kind(volume_bytes=VOLUME_BYTES)) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
async def quotas(node: Cluster) -> AsyncIterator[None]:
    """The quotas before each test; afterwards none."""
    async with under(node, BEFORE):
        yield
    await remove_quotas(node)


@asynccontextmanager
async def producers(cluster: Cluster, *more: str) -> AsyncIterator[list[Traffic]]:
    """Producers: etl, which has a quota of its own, one without a quota, and more such ones."""
    client_ids = ("etl", "rest", *more)
    async with Admin(cluster.bootstrap) as admin:
        for client_id in client_ids:
            await admin.create_topic(f"of-{client_id}", config=SMALL)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                Traffic(
                    cluster.bootstrap,
                    f"of-{client_id}",
                    bytes_per_s=RATE,
                    config={"client.id": client_id, **REQUESTS},
                )
            )
            for client_id in client_ids
        ]


async def test_a_kill_leaves_nothing_behind(node: Cluster, start: Start, tmp_path: Path) -> None:
    """The next start restores every quota; until then a person sees the originals in Kafka."""
    first = await start(node, of_quotas(node, tmp_path))
    await first.decides(1.0)
    await node.occupy(0, 0, FOREIGN_BYTES)
    await first.decides(0.0)
    quotas = await lowered(node, ETL, REST, Entity("bob"))
    assert quotas[ETL]["consumer_byte_rate"] == 9e6
    assert {KEY: 4e6} == quotas[Entity(client_id="throttle-sidecar.before:etl")]
    await first.end(signal.SIGKILL)
    status = await command("quotas", "status", "--bootstrap-server", node.bootstrap, environ={})
    assert 0 == status.code, status.said
    assert "4000000" in status.out
    await node.occupy(0, 0, 0)
    second = await start(node, of_quotas(node, tmp_path))
    await second.decides(1.0)
    await restored(node)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_thousands_of_quotas(node: Cluster, start: Start, tmp_path: Path) -> None:
    """Each has its original in the cluster, falls, and is restored."""
    many: ClientQuotas = {
        Entity(client_id=f"client-{number}"): {KEY: 1e6} for number in range(10_500)
    }
    async with under(node, many):
        daemon = await start(node, of_quotas(node, tmp_path))
        await daemon.decides(1.0)
        await node.occupy(0, 0, FOREIGN_BYTES)
        await lowered(node, *many)
        await node.occupy(0, 0, 0)
        await seen(
            "restored", lambda: quotas_of(node), lambda quotas: quotas == {**BEFORE, **many}, 120.0
        )
        await daemon.end()


@pytest.mark.slow
async def test_a_person_restores(node: Cluster, start: Start, tmp_path: Path) -> None:
    """By the command, with no sidecar running."""
    daemon = await start(node, of_quotas(node, tmp_path))
    await daemon.decides(1.0)
    await node.occupy(0, 0, FOREIGN_BYTES)
    await lowered(node, ETL)
    await daemon.end()
    done = await command("quotas", "restore", "--bootstrap-server", node.bootstrap, environ={})
    assert 0 == done.code, done.said
    assert "client-id 'etl': restored to 4000000" in done.out
    await restored(node)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_producers_are_throttled_without_a_long_pause(
    node: Cluster, start: Start, tmp_path: Path
) -> None:
    """They fall near the floor within minutes, and no throttle time is above the bound."""
    async with producers(node) as traffics:
        await flows(*traffics)
        daemon = await start(node, of_quotas(node, tmp_path))
        await daemon.decides(1.0)
        await asyncio.sleep(8.0)
        await fill(node)
        await daemon.decides(0.0)
        found = await _falls(daemon, traffics, 0.1 * RATE)
        assert all(each.longest_throttle_s > 0.0 for each in traffics)
        assert LONGEST_PAUSE_S >= max(each.longest_throttle_s for each in traffics), found
        document = await daemon.factor()
        assert ("client-quotas", 3) == (document["enforcement"], document["lowered_quotas"])
        page = (await daemon.ask("/")).text
        assert "3 produce quotas, which are lowered" in page
        await node.occupy(0, 0, 0)
        await daemon.decides(1.0)
        await restored(node)
        await flows(*traffics)
        assert LONGEST_PAUSE_S >= max(each.longest_throttle_s for each in traffics)
        assert 0 == sum(each.failed_records for each in traffics)


async def _falls(daemon: Daemon, traffics: list[Traffic], most: float) -> list[list[float]]:
    """Wait until all producers land less than ``most`` bytes/s; their rates until then."""
    found: list[list[float]] = []
    for _ in range(25):
        found.append(await rates(traffics, 12.0))
        if max(found[-1]) < most:
            return found
    raise AssertionError(f"{found}\n{daemon.output}")


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_metrics_of_brokers_tell_what_clients_write(
    node: Cluster, start: Start, tmp_path: Path
) -> None:
    """By the documented rule of the JMX exporter; quotas begin at twice that.

    The quotas of before let Kafka measure etl by its client-id. The exporter ends with the node.
    """
    urls = f"0={await export_metrics(node, 0)}"
    async with producers(node, "more") as traffics:
        await flows(*traffics)
        daemon = await start(node, of_quotas(node, tmp_path, BROKER_METRICS_URLS=urls))
        await daemon.decides(1.0)
        known = "What clients write is known from the metrics of broker 0, averages of 11 s."
        await seen(known, lambda: page_of(daemon), lambda text: known in text, 400.0)
        before = await rates(traffics, 12.0)
        async with asyncio.TaskGroup() as group:
            group.create_task(fill(node))
            first = (await lowered(node, REST))[REST][KEY]
        await daemon.decides(0.0)
        # By fill rates, it would begin at twice what the volume fills with.
        assert 1.5 * sum(before) >= first, (before, first)
        found = await _falls(daemon, traffics, 0.1 * RATE)
        await node.occupy(0, 0, 0)
        await daemon.decides(1.0)
        await restored(node)
        await flows(*traffics)
        assert LONGEST_PAUSE_S >= max(each.longest_throttle_s for each in traffics), found


async def page_of(daemon: Daemon) -> str:
    """The status page."""
    return (await daemon.ask("/")).text


async def test_observe_mode_sets_nothing(node: Cluster, start: Start, tmp_path: Path) -> None:
    """It shows how many quotas it would lower."""
    daemon = await start(node, of_quotas(node, tmp_path, MODE="observe"))
    await daemon.decides(1.0, "shadow")
    await node.occupy(0, 0, FOREIGN_BYTES)

    expected = "In enforce mode 3 produce quotas would be lowered."
    await seen(expected, lambda: page_of(daemon), lambda text: expected in text)
    assert await quotas_of(node) == BEFORE


@pytest.mark.slow
async def test_a_change_by_somebody_else_is_kept(
    node: Cluster, start: Start, tmp_path: Path
) -> None:
    """It is lowered from there, and restored to that."""
    daemon = await start(node, of_quotas(node, tmp_path))
    await daemon.decides(1.0)
    await node.occupy(0, 0, FOREIGN_BYTES)
    await lowered(node, ETL)
    changed = [(ETL.parts(), {KEY: 2e6})]
    assert await alter_client_quotas(admin_of(node), changed) is None
    record = Entity(client_id="throttle-sidecar.before:etl")
    await seen(
        "the new original",
        lambda: quotas_of(node),
        lambda quotas: {KEY: 2e6} == quotas.get(record) and is_rung(quotas[ETL][KEY]),
    )
    await node.occupy(0, 0, 0)
    expected = {**BEFORE, ETL: {**BEFORE[ETL], KEY: 2e6}}
    await seen("restored", lambda: quotas_of(node), lambda quotas: quotas == expected)
