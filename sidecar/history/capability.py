"""The volume history as a capability: it writes observations to files."""

import os
import socket
from collections.abc import Iterable, Mapping

from prometheus_client.registry import Collector

from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.history.folder import Folder
from sidecar.history.metrics import HistoryCollector
from sidecar.history.recorder import History
from sidecar.settings import Settings
from sidecar.volumes import Observation


def prepare(settings: Settings) -> Build:
    """Returns what builds it; nothing here can prevent a start."""
    dir_, max_bytes = settings.history_dir, settings.history_max_bytes

    def build(services: Services) -> Capability:
        if dir_ is None:
            return HistoryCapability(None)
        # Several sidecars of one host may share the folder, and port 0 is no name.
        origin = f"{socket.gethostname()}-{settings.http_listen.port or os.getpid()}"
        folder = Folder(dir_, origin, max_bytes)
        return HistoryCapability(History(folder, services.wall))

    return build


class HistoryCapability(Capability):
    """Writes a history where a folder is set."""

    name = "history"
    leave_s = 0.3
    """For the last observation."""

    def __init__(self, history: History | None) -> None:
        self._history = history

    def tasks(self) -> Mapping[str, Task]:
        """Writes observations."""
        return {} if self._history is None else {"volume history": self._history.run}

    def collectors(self) -> Iterable[Collector]:
        """What was written and lost."""
        return (HistoryCollector(self._history),)

    def observed(self, observation: Observation) -> None:
        """Queues an observation."""
        if self._history is not None:
            self._history.record(observation)

    async def leave(self, timeout_s: float) -> None:
        """Writes what waits."""
        if self._history is not None:
            await self._history.leave(timeout_s)
