"""The test cluster is real: brokers, volumes, failures, and an end that leaves nothing."""

import time
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Observation, Reading
from tests.support.waiting import listens, seen

FENCED_MS = 4000


def _read(path: str) -> str:
    return Path(path).read_text()


def _accepts(address: str) -> bool:
    return listens(int(address.rpartition(":")[2]))


async def _log_dirs(source: KafkaVolumeSource) -> tuple[set[str], set[str]]:
    """The log dirs of broker 0 with known sizes, and those offline."""
    observation = await source.observe(None, 10.0)
    assert isinstance(observation, Observation)
    answer = observation.answers[0]
    assert isinstance(answer, Reading)
    known = {volume.log_dir for volume in answer.volumes}
    return known, {offline.log_dir for offline in answer.offline}


async def test_volumes_are_file_systems_of_the_size_asked_for(kafka: Cluster) -> None:
    """Each is a tmpfs of its own, seen by the broker's process and not by this one."""
    if not kafka.volumes_are_real:
        pytest.skip(f"this machine allows no mounts: {kafka.isolation.why_not}")
    for broker in kafka.brokers.values():
        mounts = _read(f"/proc/{broker.pid}/mountinfo").splitlines()
        for index, volume in enumerate(broker.volumes):
            assert volume.size_bytes == (await kafka.usage(broker.id, index))[0]
            assert 1 == sum(volume.mount in line and " - tmpfs " in line for line in mounts)
            assert volume.mount not in _read("/proc/self/mountinfo")


async def test_a_killed_broker_is_fenced_and_comes_back_with_its_data(kafka: Cluster) -> None:
    """The others no longer see it; after its start on the same port they do."""
    before = kafka.brokers[1]
    others = set(kafka.brokers) - {1}
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic("stays", assignment=[[1]])
        await kafka.kill_broker(1)
        assert not kafka.is_running(1)
        assert not _accepts(before.address)
        await kafka.wait_active(others)
        await kafka.start_broker(1)
        await kafka.wait_active(kafka.brokers)
        assert "stays" in await admin.topics()
    after = kafka.brokers[1]
    assert (before.address, before.volumes) == (after.address, after.volumes)
    assert before.pid != after.pid


async def test_a_paused_broker_is_fenced_until_it_goes_on(kafka: Cluster) -> None:
    """It accepts connections and answers nothing; the cluster counts it out, then in again."""
    await kafka.pause_broker(1)
    await kafka.wait_active({0})
    assert _accepts(kafka.brokers[1].address)
    await kafka.resume_broker(1)
    await kafka.wait_active({0, 1})


async def test_a_failed_log_dir_goes_offline_and_comes_back(kafka: Cluster) -> None:
    """The broker says so of it, lives on with the other volume, and has both after a restart."""
    good, bad = (volume.path for volume in kafka.brokers[0].volumes)
    admin = KafkaAdmin(bootstrap_servers=addresses(kafka.brokers[0].address))
    async with KafkaVolumeSource(admin, clock=time.monotonic) as source:
        await kafka.fail_log_dir(0, 1)
        # The broker logs that it stops serving the log dir a moment before it does.
        await seen(
            "the log dir offline",
            lambda: _log_dirs(source),
            lambda log_dirs: log_dirs == ({good}, {bad}),
        )
        assert kafka.is_running(0)
        await kafka.restore_log_dir(0, 1)
        await kafka.wait_active({0, 1})
        assert ({good, bad}, set()) == await _log_dirs(source)


async def test_traffic_fills_the_volumes_that_it_is_meant_for(kafka: Cluster) -> None:
    """Two partitions on one broker lie on its two volumes and fill alike; deleting frees both."""
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic("fill", assignment=[[1], [1]])
        empty = [(await kafka.usage(1, index))[1] for index in (0, 1)]
        async with Traffic(kafka.bootstrap, "fill", bytes_per_s=20e6, partitions=(0, 1)) as traffic:
            await seen("16 MB", lambda: traffic.acknowledged_bytes >= 16_000_000)
        assert (0, None) == (traffic.failed_records, traffic.last_failure)
        for index in (0, 1):
            assert (await kafka.usage(1, index))[1] < empty[index] - 7_000_000
