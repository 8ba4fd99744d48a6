"""The sidecars of a demo cluster: a process of the real daemon beside each broker.

They have an environment of their own, so that SIDECAR_* variables of the caller's shell do not
affect them. They end with the cluster. Their API is used over HTTP, like that of any sidecar.
"""

import asyncio
import http.client
import json
import os
import re
import secrets
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafka_lab.cluster import Cluster
from kafka_lab.nodes import Broker
from kafka_lab.processes import tail
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError

_START_TIMEOUT_S: Final = 30.0
"""Generous, because sidecars that start again share the machine with producers at full speed."""

_STOP_TIMEOUT_S: Final = 15.0
_REQUEST_TIMEOUT_S: Final = 5.0
_LISTENS: Final = re.compile(r"listens on http://([0-9.]+):(\d+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    etag: str | None
    body: bytes

    def document(self) -> dict[str, Any]:
        """Return the JSON object in the body."""
        document: dict[str, Any] = json.loads(self.body)
        return document

    def lines(self) -> list[str]:
        """Return the lines of text in the body."""
        return self.body.decode().splitlines()


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A running daemon."""

    broker_id: int
    host: str
    port: int
    log: Path

    @property
    def url(self) -> str:
        """Return the base of the sidecar's addresses."""
        return f"http://{self.host}:{self.port}"

    async def get(
        self, path: str, headers: dict[str, str] | None = None, wait_s: float = 0.0
    ) -> Answer:
        """Request a document.

        Raises:
            ClusterError: the sidecar did not answer.
        """
        return await asyncio.to_thread(self._get, path, headers or {}, wait_s)

    def _get(self, path: str, headers: dict[str, str], wait_s: float) -> Answer:
        connection = http.client.HTTPConnection(
            self.host, self.port, timeout=wait_s + _REQUEST_TIMEOUT_S
        )
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.getheader("ETag"), response.read())
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"the sidecar at {self.url} did not answer: {error}") from error
        finally:
            connection.close()


def write_token(cluster: Cluster) -> Path:
    """Write a new bearer token for a cluster's sidecars to a file that only its owner can read.

    Raises:
        ClusterError: the cluster is not up.
    """
    file = _folder(cluster) / "token"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{secrets.token_hex(32)}\n")
    return file


async def start_sidecars(
    cluster: Cluster,
    settings: dict[str, str],
    settings_of: Callable[[Broker], Mapping[str, str]] | None = None,
) -> tuple[Sidecar, ...]:
    """Start a daemon beside each broker.

    Args:
        cluster: a cluster that is up.
        settings: SIDECAR_* variables, besides the cluster's addresses and the address to listen on,
            which is the broker's ``sidecar_url``.
        settings_of: variables that differ between brokers and override all others.

    Returns:
        The listening sidecars; ``cluster.ended(f"sidecar {id}")`` is the exit status of one.

    Raises:
        ClusterError: a daemon did not start; the message has the end of its log.
    """
    async with (
        # Each start has a deadline of its own; this one reports the first error of the group.
        deadline(2 * _START_TIMEOUT_S, "the sidecars did not start"),
        asyncio.TaskGroup() as group,
    ):
        tasks = [
            group.create_task(
                start_sidecar(
                    cluster, broker.id, {**settings, **(settings_of(broker) if settings_of else {})}
                )
            )
            for broker in cluster.brokers.values()
        ]
    return tuple(task.result() for task in tasks)


async def stop_sidecars(cluster: Cluster) -> None:
    """End the daemon beside each broker, so that another can start there.

    Raises:
        ClusterError: a daemon does not run, or does not end.
    """
    names = [f"sidecar {broker_id}" for broker_id in cluster.brokers]
    for name in names:
        await cluster.signal_beside(name, signal.SIGTERM)
    async with deadline(_STOP_TIMEOUT_S, "the sidecars did not end"):
        await until(lambda: all(cluster.ended(name) is not None for name in names))


async def start_sidecar(cluster: Cluster, broker_id: int, settings: Mapping[str, str]) -> Sidecar:
    """Start or restart the daemon beside one broker, as ``start_sidecars`` does.

    Raises:
        ClusterError: the daemon did not start; the message has the end of its log.
    """
    folder = _folder(cluster) / f"sidecar-{broker_id}"
    folder.mkdir(exist_ok=True)
    log = folder / "sidecar.log"
    # Rename the log, because an earlier run's messages would be taken for this run's.
    if log.exists():
        log.rename(folder / f"sidecar.{len([*folder.glob('*.log')])}.log")
    environment = {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": cluster.bootstrap,
        "SIDECAR_HTTP_LISTEN": f"127.0.0.1:{cluster.brokers[broker_id].sidecar_port}",
        "SIDECAR_STATE_FILE": str(folder / "state.json"),
        **settings,
    }
    variables = [f"{name}={value}" for name, value in environment.items()]
    name = f"sidecar {broker_id}"
    argv = ["env", "-i", *variables, sys.executable, "-m", "sidecar", "run"]
    await cluster.run_beside(name, argv, log)
    give_up_at = asyncio.get_running_loop().time() + _START_TIMEOUT_S
    while True:
        text = log.read_text(errors="replace") if log.exists() else ""
        if (address := _LISTENS.search(text)) is not None:
            return Sidecar(broker_id, address[1], int(address[2]), log)
        if cluster.ended(name) is not None or asyncio.get_running_loop().time() > give_up_at:
            raise ClusterError(f"the {name} did not start:\n{tail(log)}")
        await asyncio.sleep(0.02)


def _folder(cluster: Cluster) -> Path:
    if cluster.folder is None:
        raise ClusterError("the cluster is not up")
    return cluster.folder
