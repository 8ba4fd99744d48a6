"""Creates and formats the files of a cluster: folders, volumes, ports and properties.

Example, in the cluster's folder: ``broker-0/volume-1`` is a mount with the log dir ``kafka-logs``.
``broker-0/metadata`` is the metadata log, outside the volumes, and ``broker-0.log`` the log file.
"""

import base64
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from kafka_lab.broker_properties import (
    CONTROLLER_ID,
    Endpoint,
    broker_properties,
    controller_properties,
    controller_too,
    meta_properties,
)
from kafka_lab.listeners import Listener, listener_properties
from kafka_lab.nodes import Broker, VolumeDir
from kafka_lab.ports import Ports
from kafka_lab.supervisor import Supervisor

PLAIN = "PLAIN"
"""The listener of every broker for other brokers and for the demo's helpers."""

_DIRECTORY_IDS_SINCE = (3, 7)
_META = "meta.properties"


@dataclass(frozen=True, slots=True)
class Layout:
    """Creates the files of one cluster."""

    folder: Path
    supervisor: Supervisor
    ports: Ports
    cluster_id: str
    version: tuple[int, ...]
    has_mounts: bool
    file_system: str
    listeners: tuple[Listener, ...]
    controller_port: int

    def controller(self, formatted: Path) -> dict[str, str]:
        """Lay out the controller on a copy of a formatted log dir, and return its properties."""
        log_dir = self.folder / "controller"
        shutil.copytree(formatted, log_dir)
        (log_dir / _META).write_text(self._meta(CONTROLLER_ID))
        return controller_properties(self.controller_port, str(log_dir))

    async def broker(
        self, broker_id: int, volumes: int, volume_bytes: int, formatted: Path | None = None
    ) -> Broker:
        """Lay out a broker; in combined mode, ``formatted`` is a controller's log dir."""
        home = self.folder / f"broker-{broker_id}"
        home.mkdir()
        if formatted is not None:
            shutil.copytree(formatted, home / "metadata")
        volume_dirs = []
        for index in range(volumes):
            mount = str(home / f"volume-{index}")
            if self.has_mounts:
                kind = self.file_system
                await self.supervisor.ask("mount", path=mount, bytes=volume_bytes, kind=kind)
            volume_dirs.append(VolumeDir(f"{mount}/kafka-logs", mount, volume_bytes))
        for log_dir in (*(volume.path for volume in volume_dirs), f"{home}/metadata"):
            # The storage tool does the same for a broker's log dir, but takes a second.
            await self.supervisor.ask("put", path=f"{log_dir}/{_META}", text=self._meta(broker_id))
        names = (PLAIN, *(listener.name for listener in self.listeners))
        addresses = {name: f"127.0.0.1:{self.ports.reserve()}" for name in names}
        return Broker(
            id=broker_id,
            address=addresses[PLAIN],
            volumes=tuple(volume_dirs),
            home=home,
            log=self.folder / f"broker-{broker_id}.log",
            pid=0,
            addresses=addresses,
            sidecar_port=self.ports.reserve(),
        )

    def properties(self, broker: Broker, brokers: int, *, combined: bool) -> dict[str, str]:
        """Return a broker's server.properties; if ``combined``, it is also the controller."""
        protocols = {PLAIN: "PLAINTEXT"} | {each.name: each.protocol for each in self.listeners}
        properties = broker_properties(
            broker.id,
            endpoints=[
                Endpoint(name, protocols[name], int(address.rpartition(":")[2]))
                for name, address in broker.addresses.items()
            ],
            log_dirs=[volume.path for volume in broker.volumes],
            metadata_log_dir=str(broker.home / "metadata"),
            controller_port=self.controller_port,
            brokers=brokers,
        )
        for listener in self.listeners:
            properties |= listener_properties(listener)
        return controller_too(properties, self.controller_port) if combined else properties

    def _meta(self, node_id: int) -> str:
        directory_id = random_id() if self.version >= _DIRECTORY_IDS_SINCE else None
        return meta_properties(self.cluster_id, node_id, directory_id)


def random_id() -> str:
    """Return a random id in Kafka's form: 16 bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
