"""The capability that writes the volume history."""

import os
import socket
from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric

from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.history.folder import Folder
from sidecar.history.metrics import history_metrics
from sidecar.history.recorder import History
from sidecar.settings import Settings
from sidecar.volumes import Observation


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability; it never prevents a start."""
    dir_, max_bytes = settings.history_dir, settings.history_max_bytes

    def build(services: Services) -> Capability:
        if dir_ is None:
            return HistoryCapability(None)
        # Several sidecars of a host may share the folder. Port 0 can't be part of a name.
        origin = f"{socket.gethostname()}-{settings.http_listen.port or os.getpid()}"
        folder = Folder(dir_, origin, max_bytes)
        return HistoryCapability(History(folder, services.wall))

    return build


class HistoryCapability(Capability):
    """Writes a history if a folder is set."""

    name = "history"
    leave_s = 0.3
    """The time to write the last observation at a stop."""

    def __init__(self, history: History | None) -> None:
        self._history = history

    def tasks(self) -> Mapping[str, Task]:
        """Writes observations."""
        return {} if self._history is None else {"volume history": self._history.run}

    def metrics(self) -> Iterator[Metric]:
        """The metrics of written and lost observations."""
        return history_metrics(self._history)

    def observed(self, observation: Observation) -> None:
        """Queue an observation."""
        if self._history is not None:
            self._history.record(observation)

    async def leave(self, timeout_s: float) -> None:
        """Write the queued observations."""
        if self._history is not None:
            await self._history.leave(timeout_s)
