"""Kafka's command line tools on a shell's search path, to type what a page says."""

import os
from pathlib import Path

from kafka_lab.cluster import Cluster
from kafka_lab.jars import jars, java
from sidecar.formats.cache_folder import cache_folder
from tests.support.command import run
from tests.support.maven import jars_of

TOOLS = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records.sh": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}
_POM = Path(__file__).parents[1] / "integration/kafka_tools/pom.xml"


async def tools_path(kafka: Cluster, folder: Path) -> str:
    """The search path of a shell that has them.

    Args:
        kafka: whose version they have.
        folder: for their scripts.
    """
    own = await jars(kafka.version, cache_folder(os.environ))
    tools = await jars_of(_POM)
    for name, main in TOOLS.items():
        script = folder / name
        words = f"{java(os.environ)} -XX:TieredStopAtLevel=1 -cp '{own}/*:{tools}/*' {main}"
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


async def type_in(line: str, path: str, folder: Path) -> None:
    """Runs a line in a shell with that search path, in a folder; it must succeed."""
    done = await run(["/bin/sh", "-c", line], {**os.environ, "PATH": path}, folder=folder)
    assert 0 == done.code, (line, done.said)
