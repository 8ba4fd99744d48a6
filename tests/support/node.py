"""One Kafka node in combined mode; ``sidecar.demo.cluster`` has brokers and a controller apart.

``async with node(CALLBACK_PROPERTIES, [callback_jar()]) as started`` is a cluster of one node.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.demo import isolation
from sidecar.demo.broker_properties import combined_properties, render
from sidecar.demo.cache import cache_folder
from sidecar.demo.folders import OwnedFolder
from sidecar.demo.jars import DEFAULT_VERSION, jars, java
from sidecar.demo.layout import random_id
from sidecar.demo.ports import Ports
from sidecar.demo.processes import Processes
from sidecar.demo.supervisor import Supervisor
from sidecar.demo.waiting import deadline

_HEAP_MB: Final = 384
_TIMEOUT_S: Final = 60.0
_NAME: Final = "the node"


@dataclass(frozen=True, slots=True)
class Node:
    """One that runs; other processes can be run beside it, and end with it.

    Attributes:
        bootstrap: host:port of its plain listener.
        pid: as this process sees it.
        log: its log file.
        sidecar_port: reserved for a sidecar.
        supervisor: what holds it.
    """

    bootstrap: str
    pid: int
    log: Path
    sidecar_port: int
    supervisor: Supervisor

    async def run_beside(self, name: str, argv: Sequence[str], log: Path) -> int:
        """As ``Cluster.run_beside``."""
        return await self.supervisor.spawn(name, list(argv), log)

    def ended(self, name: str) -> int | None:
        """As ``Cluster.ended``."""
        return self.supervisor.exit_status(name)


@asynccontextmanager
async def node(
    properties: Mapping[str, str],
    more_jars: Sequence[Path],
    version: str = DEFAULT_VERSION,
) -> AsyncIterator[Node]:
    """Format and start a node; with callback properties it asks the sidecar at ``sidecar_port``.

    Args:
        properties: over those of the demo's brokers.
        more_jars: on its class path behind Kafka's.
        version: Kafka's.

    Raises:
        ClusterError: it ended at its start; with the last lines of its log.
    """
    libraries = await jars(version, cache_folder(os.environ))
    with ExitStack() as stack:
        folder = stack.enter_context(OwnedFolder()).path
        ports = stack.enter_context(Ports())
        supervisor = stack.enter_context(Supervisor(isolation.probe()))
        processes = Processes(supervisor, java(os.environ), libraries, _HEAP_MB)
        port, controller_port, sidecar_port = ports.reserve(), ports.reserve(), ports.reserve()
        file, log = folder / "server.properties", folder / "node.log"
        data = str(folder / "data")
        own = combined_properties(port, controller_port, data)
        file.write_text(render(own))
        words = ["format", "--config", str(file), "--cluster-id", random_id()]
        async with deadline(_TIMEOUT_S, "a node in combined mode was not ready"):
            await processes.run("the storage tool", "kafka.tools.StorageTool", words, log)
            asked = {"client.quota.callback.sidecar.url": f"http://127.0.0.1:{sidecar_port}"}
            file.write_text(render(own | asked | dict(properties)))
            pid = await processes.start(_NAME, [str(file)], log, more_jars=more_jars)
            await processes.wait_started(_NAME)
        yield Node(f"127.0.0.1:{port}", pid, log, sidecar_port, supervisor)
