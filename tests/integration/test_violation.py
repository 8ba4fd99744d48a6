"""A violation by real messages on one of six volumes: what every sidecar of the cluster says."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sidecar.demo.admin import Admin
from sidecar.demo.cluster import Cluster
from sidecar.demo.traffic import Traffic
from tests.integration.conftest import Start
from tests.integration.daemon import LIMIT_BYTES, Daemon, Document, Metrics, settings
from tests.integration.waiting import seen

TOPIC = "violation"
BROKER = 2
BYTES_PER_S = 30e6

Free = Callable[[Admin], Awaitable[None]]
Usages = dict[tuple[int, str], tuple[int, int]]


async def by_deletion(admin: Admin) -> None:
    """Free the space: no topic, no segments."""
    await admin.delete_topic(TOPIC)


async def by_retention(admin: Admin) -> None:
    """Free the space: the topic stays, with its last segments alone."""
    await admin.set_topic_config(TOPIC, {"retention.bytes": str(2 << 20)})


async def usages(kafka: Cluster) -> Usages:
    """Total and available bytes of every volume, as the file systems tell them."""
    return {
        (broker.id, volume.path): await kafka.usage(broker.id, index)
        for broker in kafka.brokers.values()
        for index, volume in enumerate(broker.volumes)
    }


def violating(seen_usages: Usages) -> list[tuple[int, str]]:
    return [key for key, (_, available) in seen_usages.items() if available <= LIMIT_BYTES]


async def fill(kafka: Cluster) -> tuple[int, str]:
    """Produce to one partition until its volume is at the limit; which one that is."""
    async with Traffic(kafka.bootstrap, TOPIC, bytes_per_s=BYTES_PER_S) as traffic:
        full = await seen(
            "a volume at the limit", lambda: usages(kafka), lambda now: bool(violating(now))
        )
        assert 0 == traffic.failed_records
    (crossed,) = violating(full)
    return crossed


async def agreed(kafka: Cluster, daemon: Daemon) -> Document:
    """The factor's document, once API and metrics have the numbers of the file systems."""

    async def all_three() -> tuple[Document, Metrics, Usages]:
        return await daemon.factor(), await daemon.metrics(), await usages(kafka)

    def same(answers: tuple[Document, Metrics, Usages]) -> bool:
        document, metrics, now = answers
        free = {key: available for key, (_, available) in now.items()}
        full = {key: now[key] for key in violating(now)}
        return reported(document) == full and metrics.volumes("available_bytes") == free

    document, _, _ = await seen("the numbers of the file systems", all_three, same)
    return document


def reported(document: Document) -> Usages:
    return {
        (each["broker_id"], each["log_dir"]): (each["total_bytes"], each["available_bytes"])
        for each in document["violations"]
    }


@pytest.mark.parametrize("free", [by_deletion, by_retention])
async def test_all_sidecars_name_the_one_full_volume_and_release_it(
    kafka: Cluster, start: Start, free: Free
) -> None:
    """Real messages fill one volume: 0.0 everywhere until a deletion, or retention, frees it."""
    daemons = await asyncio.gather(
        *(start(kafka, settings(kafka.bootstrap)) for _ in kafka.brokers)
    )
    for daemon in daemons:
        await daemon.decides(1.0)
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic(TOPIC, assignment=[[BROKER]])
        crossed = await fill(kafka)
        assert BROKER == crossed[0]
        for daemon in daemons:
            await daemon.decides(0.0)
            document = await agreed(kafka, daemon)
            assert [crossed] == list(reported(document))
            await _metrics_say(daemon, await usages(kafka), crossed)
        await free(admin)
        for daemon in daemons:
            document = await daemon.decides(1.0)
            assert [] == document["violations"]
            metrics = await daemon.metrics()
            assert 1.0 == metrics.value("factor")
            assert {0.0} == set(metrics.volumes("limit_violated").values())
    assert [] == violating(await usages(kafka))


async def _metrics_say(daemon: Daemon, expected: Usages, crossed: tuple[int, str]) -> None:
    metrics = await daemon.metrics()
    assert 0.0 == metrics.value("factor")
    assert {key: float(key == crossed) for key in expected} == metrics.volumes("limit_violated")
    assert {key: total for key, (total, _) in expected.items()} == metrics.volumes("total_bytes")
    assert dict.fromkeys(expected, 1.0) == metrics.volumes("online")
    assert (3.0, 6.0) == (metrics.value("active_brokers"), metrics.value("active_log_dirs"))
    assert (metrics.value("limit_violated_total") or 0.0) > 0.0
