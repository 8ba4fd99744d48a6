"""What a cluster consists of, as values: volumes and brokers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class VolumeDir:
    """One volume of one broker.

    Attributes:
        path: the log dir on it, as the broker names it: a folder in the file system's root, so that
            the log dir can fail while the volume stays.
        mount: the file system's root; inside the cluster's namespace only, where there is one.
        size_bytes: the configured size; what it really has if ``Cluster.volumes_are_real``.
    """

    path: str
    mount: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker.

    Attributes:
        id: its node id.
        address: host:port of its plain listener.
        volumes: one log dir each.
        home: the folder with its server.properties and metadata log.
        log: its log file, standard error included; the request log is the file ``<log>.requests``.
        pid: as this process sees it, of the last start.
        addresses: listener name -> host:port.
        sidecar_port: reserved for the sidecar beside it, so that the broker can be configured with
            it before either starts.
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
        """Where the sidecar beside it serves its API."""
        return f"http://127.0.0.1:{self.sidecar_port}"


def version_tuple(version: str) -> tuple[int, ...]:
    """The numbers of a version: (4, 3, 1) for "4.3.1" and for "4.3.1-rc1"."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))
