"""The test cluster starts as configured, says why it can't, and leaves nothing behind."""

import asyncio
import os
import signal
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.folders import PREFIX, sweep
from kafka_lab.jars import DEFAULT_VERSION, jars
from kafka_lab.traffic import Traffic
from sidecar.errors import ClusterError
from sidecar.formats.cache_folder import cache_folder
from tests.support.clusters import Clusters, Kind
from tests.support.java import bean, compiled
from tests.support.waiting import seen

pytestmark = pytest.mark.slow

_CHILD = """
import asyncio, os
from sidecar.formats.cache_folder import cache_folder
from kafka_lab.cluster import Cluster

async def main():
    async with Cluster(environ=os.environ, brokers=1, volumes=2, volume_bytes=32 << 20):
        print("up", flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


def _processes(mark: str) -> set[int]:
    """The processes whose command line has this text, zombies not counted."""
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


@asynccontextmanager
async def _child(tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that runs a cluster of one broker in a temporary folder of its own."""
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


async def test_brokers_can_have_jars_and_properties_of_their_own(tmp_path: Path) -> None:
    """A class of a jar of ours runs in the brokers, each configured with its own sidecar."""
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
        brokers=1,
        volumes=1,
        volume_bytes=32 << 20,
        properties={"num.io.threads": "none"},
    )
    why = r"(?s)broker \d ended with status 1 during its start:.*none"
    with pytest.raises(ClusterError, match=why):
        async with cluster:
            pass
    assert [] == _entries(tmp_path)
    assert set() == _processes(str(tmp_path))
    assert (None, {}) == (cluster.folder, dict(cluster.brokers))


async def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    """After kill -9 no process and no mount stays; the next start removes the folder."""
    mark = str(tmp_path / PREFIX)
    async with _child(tmp_path) as process:
        await _up(process)
        assert len(_processes(mark)) >= 2  # A broker and the controller.
        process.kill()
        await process.wait()
        await seen("nothing is left", lambda: not _processes(mark) and not _mounts(mark))
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
        async with asyncio.timeout(40):
            await process.wait()
    assert set() == _processes(mark)
    assert 0 == _mounts(mark)
    assert [] == _entries(tmp_path)


def _entries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_borrowed_cluster_that_cant_be_cleaned_is_ended_and_replaced() -> None:
    """A volume is full to its last byte: the failure says what its broker did; the next is new."""
    clusters, folders = Clusters(), []

    async def borrow() -> None:
        async with clusters.borrow(Kind()) as cluster:
            assert frozenset() == await topics_of(cluster)
            folders.append(cluster.folder)
            await fill_to_the_last_byte(cluster)

    said = r"(?s)the cluster was ended: .* offline.*broker-0\.log says:.*serving replicas"
    try:
        for _ in range(2):
            with pytest.raises(ClusterError, match=said):
                await borrow()
    finally:
        await clusters.close()
    assert 2 == len(set(folders))
    assert not any(folder is None or folder.exists() for folder in folders)


async def fill_to_the_last_byte(cluster: Cluster) -> None:
    """Produce until a broker takes its log dir offline."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic("full", assignment=[[0]])
    log = cluster.brokers[0].log
    async with Traffic(cluster.bootstrap, "full", bytes_per_s=30e6):
        await seen("a log dir offline", lambda: "serving replicas in dir" in log.read_text())


async def topics_of(cluster: Cluster) -> frozenset[str]:
    async with Admin(cluster.bootstrap) as admin:
        return await admin.topics()
