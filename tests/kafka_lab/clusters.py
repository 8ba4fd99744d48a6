"""A cluster for tests of what is built on one: nothing runs, and a test sets its answers."""

import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kafka_lab.cluster import Cluster
from kafka_lab.nodes import Broker, VolumeDir

Run = Callable[[str, Sequence[str], Path], None]
"""What running a process comes to, by its name, its command line and its log."""


def broker(broker_id: int) -> Broker:
    """A broker that does not run, with two volumes."""
    return Broker(
        id=broker_id,
        address=f"127.0.0.1:{9092 + broker_id}",
        volumes=tuple(VolumeDir(f"/d{index}/kafka-logs", f"/d{index}", 1000) for index in (0, 1)),
        home=Path("/nowhere"),
        log=Path("/nowhere/log"),
        pid=0,
        addresses={},
        sidecar_port=7000 + broker_id,
    )


class FakeCluster(Cluster):
    """A cluster of which nothing runs.

    Attributes:
        free: (broker id, volume index) -> available bytes.
        ends: name of a process -> how it has ended.
        signals: (name of a process, signal) that were sent.
        obeys: whether a process ends when it gets one.
    """

    def __init__(
        self, folder: Path | None, *, brokers: int = 3, real: bool = True, run: Run | None = None
    ) -> None:
        super().__init__(environ={})
        self.folder = folder
        self.free: dict[tuple[int, int], int] = {}
        self.ends: dict[str, int] = {}
        self.signals: list[tuple[str, signal.Signals]] = []
        self.obeys = True
        self._fakes = {broker_id: broker(broker_id) for broker_id in range(brokers)}
        self._real = real
        self._run = run

    @property
    def brokers(self) -> Mapping[int, Broker]:
        return self._fakes

    @property
    def bootstrap(self) -> str:
        return ",".join(each.address for each in self._fakes.values())

    @property
    def volumes_are_real(self) -> bool:
        return self._real

    async def usage(self, broker_id: int, index: int) -> tuple[int, int]:
        return 1000, self.free[broker_id, index]

    async def run_beside(self, name: str, argv: Sequence[str], log: Path) -> int:
        if self._run is not None:
            self._run(name, argv, log)
        return 1

    async def signal_beside(self, name: str, signal: signal.Signals) -> None:
        self.signals.append((name, signal))
        if self.obeys:
            self.ends[name] = 0

    def ended(self, name: str) -> int | None:
        return self.ends.get(name)
