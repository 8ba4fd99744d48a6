"""The JMX exporter on a broker, with the rule that docs/managed-kafka.md has."""

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Final

from kafka_lab.cluster import Cluster
from kafka_lab.jars import jars, java
from kafka_lab.ports import Ports
from sidecar.formats.cache_folder import cache_folder
from tests.support.java import compiled
from tests.support.maven import jars_of

_POM: Final = Path(__file__).with_name("jmx_exporter") / "pom.xml"
_PAGE: Final = Path(__file__).parents[2] / "docs" / "managed-kafka.md"
_TIMEOUT_S: Final = 120.0


async def export_metrics(cluster: Cluster, broker_id: int) -> str:
    """Load the exporter into a broker that runs, and return the address of its metrics."""
    (agent,) = (await jars_of(_POM)).glob("*.jar")
    classes = await compiled("LoadAgent", await jars(cluster.version, cache_folder(os.environ)))
    broker = cluster.brokers[broker_id]
    rules = broker.home / "exporter.yaml"
    found = re.search(r"^```yaml\n(rules:.*?)^```", _PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    rules.write_text(found[1])
    with Ports() as ports:
        port = ports.reserve()
    options = f"127.0.0.1:{port}:{rules}"
    words = [java(os.environ), "-cp", str(classes), "LoadAgent", str(broker.pid), str(agent)]
    await asyncio.to_thread(
        subprocess.run, [*words, options], check=True, timeout=_TIMEOUT_S, capture_output=True
    )
    return f"http://127.0.0.1:{port}/metrics"
