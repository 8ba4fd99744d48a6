"""The test cluster is real: brokers, volumes, failures, and an end that leaves nothing."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sidecar.demo.admin import Admin
from sidecar.demo.cache import cache_folder
from sidecar.demo.cluster import Cluster
from sidecar.demo.folders import PREFIX, sweep
from sidecar.demo.jars import DEFAULT_VERSION, jars
from sidecar.demo.traffic import Traffic
from sidecar.demo.waiting import deadline, until
from sidecar.errors import ClusterError
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Observation, Reading
from tests.support.java import bean, compiled

_CHILD = """
import asyncio, os
from sidecar.demo.cache import cache_folder
from sidecar.demo.cluster import Cluster

async def main():
    async with Cluster(environ=os.environ, brokers=2, volumes=2, volume_bytes=32 << 20):
        print("up", flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


def _processes(mark: str) -> set[int]:
    """The processes whose command line holds this text, zombies not counted."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue  # It ended meanwhile.
    return found


def _mounts(mark: str) -> int:
    """How many mounts of that path any process sees."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            count += mark in entry.read_text()
        except OSError:
            continue  # It ended meanwhile.
    return count


def _read(path: str) -> str:
    return Path(path).read_text()


def _refuses(address: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", _port(address)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


async def _log_dirs(source: KafkaVolumeSource) -> tuple[set[str], set[str]]:
    """The log dirs of broker 0 with known sizes, and those offline."""
    observation = await source.observe(None, 10.0)
    assert isinstance(observation, Observation)
    answer = observation.answers[0]
    assert isinstance(answer, Reading)
    known = {volume.log_dir for volume in answer.volumes}
    return known, {offline.log_dir for offline in answer.offline}


@asynccontextmanager
async def _child(tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that runs a cluster of two brokers in a temporary folder of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _CHILD,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _up(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(90):
        assert await process.stdout.readline() == b"up\n"


async def test_every_broker_answers_on_its_port(any_kafka: Cluster) -> None:
    """On each Kafka version: the processes live and their ports accept."""
    for broker in any_kafka.brokers.values():
        assert any_kafka.is_running(broker.id)
        assert not _refuses(broker.address)
        assert broker.pid in _processes(str(broker.home))
    await any_kafka.wait_active(any_kafka.brokers)


async def test_volumes_are_file_systems_of_the_size_asked_for(any_kafka: Cluster) -> None:
    """Each is a tmpfs of its own, seen by the broker's process and not by this one."""
    if not any_kafka.volumes_are_real:
        pytest.skip(f"this machine allows no mounts: {any_kafka.isolation.why_not}")
    for broker in any_kafka.brokers.values():
        seen = _read(f"/proc/{broker.pid}/mountinfo").splitlines()
        for index, volume in enumerate(broker.volumes):
            assert volume.size_bytes == (await any_kafka.usage(broker.id, index))[0]
            assert 1 == sum(volume.mount in line and " - tmpfs " in line for line in seen)
            assert volume.mount not in _read("/proc/self/mountinfo")


async def test_the_next_kafka_starts_too() -> None:
    """4.4.0, whose formatted log dir is another one."""
    async with Cluster(
        environ=os.environ, version="4.4.0", brokers=1, volumes=1, volume_bytes=32 << 20
    ) as cluster:
        await cluster.wait_active({0})


async def test_a_killed_broker_is_fenced_and_comes_back_with_its_data(any_kafka: Cluster) -> None:
    """The others no longer see it; after its start on the same port they do."""
    before = any_kafka.brokers[1]
    others = set(any_kafka.brokers) - {1}
    async with Admin(any_kafka.bootstrap) as admin:
        await admin.create_topic("kept", assignment=[[1]])
        await any_kafka.kill_broker(1)
        assert not any_kafka.is_running(1)
        assert _refuses(before.address)
        await any_kafka.wait_active(others)
        await any_kafka.start_broker(1)
        await any_kafka.wait_active(any_kafka.brokers)
        assert "kept" in await admin.topics()
    after = any_kafka.brokers[1]
    assert (before.address, before.volumes) == (after.address, after.volumes)
    assert before.pid != after.pid


async def test_a_paused_broker_is_fenced_until_it_goes_on(kafka: Cluster) -> None:
    """It accepts connections and answers nothing; the cluster counts it out, then in again."""
    await kafka.pause_broker(2)
    await kafka.wait_active({0, 1})
    assert not _refuses(kafka.brokers[2].address)
    await kafka.resume_broker(2)
    await kafka.wait_active({0, 1, 2})


async def test_a_failed_log_dir_goes_offline_and_comes_back(kafka: Cluster) -> None:
    """The broker says so of it, lives on with the other volume, and has both after a restart."""
    good, bad = (volume.path for volume in kafka.brokers[0].volumes)
    admin = KafkaAdmin(bootstrap_servers=(HostPort("127.0.0.1", _port(kafka.brokers[0].address)),))
    async with KafkaVolumeSource(admin, clock=time.monotonic) as source:
        await kafka.fail_log_dir(0, 1)
        assert ({good}, {bad}) == await _log_dirs(source)
        assert kafka.is_running(0)
        await kafka.restore_log_dir(0, 1)
        await kafka.wait_active({0, 1, 2})
        assert ({good, bad}, set()) == await _log_dirs(source)


async def test_a_volume_is_filled_and_freed(kafka: Cluster) -> None:
    """By a file of the cluster's own, to the byte (of a page)."""
    total, empty = await kafka.usage(1, 0)
    await kafka.occupy(1, 0, 16 << 20)
    assert pytest.approx(empty - (16 << 20), abs=1 << 18) == (await kafka.usage(1, 0))[1]
    with pytest.raises(ClusterError, match="No space left"):
        await kafka.occupy(1, 0, total + 1)
    await kafka.occupy(1, 0, 0)
    assert pytest.approx(empty, abs=1 << 18) == (await kafka.usage(1, 0))[1]


async def test_traffic_fills_the_volumes_that_it_is_meant_for(kafka: Cluster) -> None:
    """Two partitions on one broker lie on its two volumes and fill alike; deleting frees both."""
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic("fill", assignment=[[2], [2]])
        empty = [(await kafka.usage(2, index))[1] for index in (0, 1)]
        async with (
            Traffic(kafka.bootstrap, "fill", bytes_per_s=20e6, partitions=(0, 1)) as traffic,
            deadline(60.0, "16 MB were not acknowledged"),
        ):
            await until(lambda: traffic.acknowledged_bytes >= 16_000_000)
        assert (0, None) == (traffic.failed_records, traffic.last_failure)
        for index in (0, 1):
            assert (await kafka.usage(2, index))[1] < empty[index] - 7_000_000


async def test_a_broker_starts_with_the_properties_it_is_given(kafka: Cluster) -> None:
    """From its next start on, until it is healed."""
    file = kafka.brokers[0].home / "server.properties"
    await kafka.set_broker_properties(0, {"num.io.threads": "7"})
    assert "num.io.threads=7\n" not in file.read_text()
    await kafka.stop_broker(0)
    await kafka.start_broker(0)
    assert "num.io.threads=7\n" in file.read_text()
    await kafka.heal()
    assert "num.io.threads=7\n" not in file.read_text()


async def test_brokers_can_be_given_jars_and_properties_of_their_own(tmp_path: Path) -> None:
    """A class of a jar of ours runs in the brokers, each told of its own sidecar."""
    jar = tmp_path / "witness.jar"
    classes = await compiled("Witness", await jars(DEFAULT_VERSION, cache_folder(os.environ)))
    with zipfile.ZipFile(jar, "w") as packed:
        for file in classes.iterdir():
            packed.write(file, file.name)
    cluster = Cluster(
        environ=os.environ,
        brokers=2,
        volumes=1,
        volume_bytes=32 << 20,
        broker_jars=[jar],
        properties={"metric.reporters": "Witness", "witness.of": "overridden"},
        properties_of=lambda broker: {"witness.of": broker.sidecar_url},
    )
    async with cluster:
        for broker in cluster.brokers.values():
            assert {"Of": broker.sidecar_url} == await bean(cluster, broker.id, "test:type=Witness")
            assert f"http://127.0.0.1:{broker.sidecar_port}" == broker.sidecar_url
        assert 2 == len(_processes(str(jar))), "the controller has none of it"
        assert 2 == len({broker.sidecar_url for broker in cluster.brokers.values()})


async def test_a_broker_that_can_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last lines of its log are the error, soon, and nothing of the cluster is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cluster = Cluster(
        environ=os.environ,
        brokers=2,
        volumes=1,
        volume_bytes=32 << 20,
        properties={"num.io.threads": "none"},
    )
    with pytest.raises(ClusterError, match=r"(?s)broker \d ended with 1 at its start:.*none"):
        async with cluster:
            pass
    assert [] == _entries(tmp_path)
    assert set() == _processes(str(tmp_path))
    assert (None, {}) == (cluster.folder, dict(cluster.brokers))


async def test_two_clusters_do_not_disturb_each_other(kafka: Cluster) -> None:
    """One that comes and goes beside another leaves it its ports, volumes and folder."""
    assert kafka.folder is not None
    async with Cluster(environ=os.environ, brokers=1, volumes=1, volume_bytes=32 << 20) as other:
        assert other.folder not in {None, kafka.folder}
        assert set(other.bootstrap.split(",")).isdisjoint(kafka.bootstrap.split(","))
        await kafka.wait_active({0, 1, 2})
    assert kafka.folder.is_dir()
    await kafka.wait_active({0, 1, 2})


async def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    """After kill -9 no process and no mount stays; the next start removes the folder."""
    mark = str(tmp_path / PREFIX)
    async with _child(tmp_path) as process:
        await _up(process)
        assert len(_processes(mark)) >= 3  # Two brokers and the controller.
        process.kill()
        await process.wait()
        async with deadline(20.0, "processes or mounts stayed"):
            await until(lambda: not _processes(mark) and not _mounts(mark))
    assert 1 == len(sweep(tmp_path))
    assert [] == _entries(tmp_path)


@pytest.mark.parametrize("after_s", [0.2, 0.6, 1.2, None])
async def test_an_interrupt_leaves_nothing_at_any_time(
    tmp_path: Path, after_s: float | None
) -> None:
    """Ctrl-C in the middle of the start or later: processes, mounts and the folder are gone."""
    mark = str(tmp_path / PREFIX)
    async with _child(tmp_path) as process:
        if after_s is None:
            await _up(process)
        else:
            await asyncio.sleep(after_s)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(15):
            await process.wait()
    assert set() == _processes(mark)
    assert 0 == _mounts(mark)
    assert [] == _entries(tmp_path)


def _entries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
