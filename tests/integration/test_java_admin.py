"""Kafka's own client as the witness: its Admin.describeLogDirs reads the same figures."""

import asyncio
import os
import subprocess
from pathlib import Path

from sidecar.demo.cache import cache_folder
from sidecar.demo.cluster import Cluster
from sidecar.demo.jars import jars, java
from tests.integration.daemon import command, settings

MIB = 1 << 20

Figures = dict[tuple[int, str], tuple[int, int]]


async def by_java(kafka: Cluster) -> Figures:
    folder = await jars(kafka.version, cache_folder(os.environ))
    done = await asyncio.to_thread(
        subprocess.run,
        [
            java(os.environ),
            "-cp",
            f"{folder}/*",
            str(Path(__file__).with_name("DescribeLogDirs.java")),
            kafka.bootstrap,
        ],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {(int(key), path): (int(total), int(usable)) for key, path, total, usable in rows}


async def by_check(kafka: Cluster) -> Figures:
    done = await command("check", "--json", environ=settings(kafka.bootstrap))
    return {
        (each["broker_id"], each["log_dir"]): (each["total_bytes"], each["available_bytes"])
        for each in done.document()["volumes"]
    }


async def test_the_java_admin_reads_the_same_figures(kafka: Cluster) -> None:
    """Total and usable bytes of six volumes, each filled differently, are equal to the byte."""
    for broker in kafka.brokers.values():
        for index in range(len(broker.volumes)):
            await kafka.occupy(broker.id, index, (1 + 2 * broker.id + index) * MIB)

    async def both() -> tuple[Figures, Figures]:
        return await by_check(kafka), await by_java(kafka)

    # A broker writes checkpoints of a page each second, to a new file before it removes the old
    # one: figures read in that instant differ by that page, so they are read again.
    ours, theirs = await both()
    if ours != theirs:
        ours, theirs = await both()
    assert 6 == len({available for _, available in ours.values()})
    assert theirs == ours
