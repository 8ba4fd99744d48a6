"""The parts of a cluster as values: volumes and brokers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class VolumeDir:
    """One volume of one broker.

    Attributes:
        path: the log dir as the broker names it. It is a folder in the file system's root, so that
            the log dir can fail while the volume remains.
        mount: the file system's root; if there is a namespace, it exists only inside.
        size_bytes: the configured size; it is the real size if ``Cluster.volumes_are_real``.
    """

    path: str
    mount: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker.

    Attributes:
        id: the broker's node id.
        address: host:port of the plain listener.
        volumes: the volumes, with a log dir each.
        home: the folder with server.properties and the metadata log.
        log: the log file, with standard error; the request log is the file ``<log>.requests``.
        pid: the process id of the last start, as this process sees it.
        addresses: host:port by listener name.
        sidecar_port: the port reserved for the broker's sidecar, so that the broker can be
            configured with it before either of them starts.
    """

    id: int
    address: str
    volumes: tuple[VolumeDir, ...]
    home: Path
    log: Path
    pid: int
    addresses: Mapping[str, str]
    sidecar_port: int

    @property
    def sidecar_url(self) -> str:
        """Return the address of the API of the broker's sidecar."""
        return f"http://127.0.0.1:{self.sidecar_port}"


def version_tuple(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: (4, 3, 1) for "4.3.1" and for "4.3.1-rc1"."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))
