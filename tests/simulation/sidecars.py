"""Sidecars of the simulated world: the real daemon, as its composition root builds it.

Each has an address, a disk that outlives it, and a wall clock that can be stepped. Its password and
its token are in files of the real file system, as in a volume of Kubernetes: it reads them again by
itself when the symlink of the volume is swapped. A start is a new
process; a kill ends it without a word; a stop is what SIGTERM does.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sidecar.api.connections import Connections
from sidecar.clock import SteadyClock
from sidecar.daemon.composition import Composition, compose
from sidecar.daemon.daemon import serve
from sidecar.daemon.machine import Machine
from sidecar.settings import HostPort, Settings, load
from tests.simulation.disk import SimulatedDisk
from tests.simulation.loop import Process
from tests.simulation.net import Network

EPOCH_S: Final = 1_700_000_000.0
FIRST_PORT: Final = 8080
_MOST_CONNECTIONS: Final = 512


class SimulatedSidecar:
    """The sidecar beside a broker.

    Attributes:
        number: the broker's node id.
        address: where it listens.
        disk: what its state lies on.
        password: what its password file has.
        token: what its token file has.
        process: what runs it; another one after each start.
        parts: the running daemon's; None before the first start.
        step_s: by how much its machine's wall clock was stepped.
        starts: how often it was started.
        anchor_s: what its steady clock read when the world began, had it run.
        ended: why its daemon ended by itself; None while it runs or was killed.
        left: how many connections were open when its daemon had stopped.
    """

    def __init__(
        self,
        number: int,
        environ: Mapping[str, str],
        network: Network,
        chance: random.Random,
        secrets: Path,
    ) -> None:
        self.number = number
        self.address = HostPort("127.0.0.1", FIRST_PORT + number)
        self._secrets = secrets / str(number)
        self.disk = SimulatedDisk(self._secrets / "relief")
        self._generation = 0
        self.rotate("first")
        self.process = Process(self.name)
        self.process.kill()
        self.parts: Composition | None = None
        self.step_s = 0.0
        self.starts = 0
        self.anchor_s = EPOCH_S
        self.ended: str | None = None
        self.left = 0
        self._environ = {
            **environ,
            "SIDECAR_HTTP_LISTEN": str(self.address),
            "SIDECAR_TOKEN_FILE": str(self._secrets / "token"),
            "SIDECAR_STATE_FILE": f"/tmp/sidecar-{number}.json",
            "SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "SIDECAR_KAFKA_ADMIN_SASL_MECHANISM": "PLAIN",
            "SIDECAR_KAFKA_ADMIN_SASL_USERNAME": self.user,
            "SIDECAR_KAFKA_ADMIN_SASL_PASSWORD_FILE": str(self._secrets / "password"),
        }
        if "SIDECAR_RELIEF_FILE" in environ:
            # The folder of its journal is a real one.
            self._environ["SIDECAR_STATE_FILE"] = str(self._secrets / "state.json")
        self._network = network
        self._chance = chance
        self._stop = asyncio.Event()

    @property
    def name(self) -> str:
        """As faults and messages call it."""
        return f"sidecar {self.number}"

    @property
    def user(self) -> str:
        """Who it is to the brokers."""
        return f"sidecar-{self.number}"

    @property
    def url(self) -> str:
        """Its API's."""
        return f"http://{self.address}"

    @property
    def is_running(self) -> bool:
        """Whether it can answer anybody now."""
        return self.process.runs

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop.is_set()

    def lists(self, broker_id: int) -> bool:
        """Whether the last list of brokers that it had, or the process before it, has a node id."""
        state = (
            None if self.parts is None else self.parts.board.snapshot.memory.brokers.get(broker_id)
        )
        return state is not None and state.missing_since is None

    def start(self, on_start: Callable[["SimulatedSidecar"], None]) -> None:
        """Starts it, as a new process.

        Args:
            on_start: is called when it is composed, before it runs.
        """
        self.process = Process(self.name)
        self.disk.is_cut = False
        self.starts += 1
        self.anchor_s = EPOCH_S + self.step_s
        self.process.start(self._run(on_start), self.name)

    def kill(self) -> None:
        """Ends it at once, as SIGKILL does."""
        self.process.kill()
        self._network.lose(self.process)

    def stop(self) -> None:
        """Ends it, as SIGTERM does."""
        self._stop.set()

    def _load(self) -> Settings:
        return load(environ=self._environ).settings

    def rotate(self, password: str) -> None:
        """Replaces the files of both secrets at once, as the kubelet does; nobody is told."""
        self._generation += 1
        self.password, self.token = password, f"a-token-of-the-simulation-{self._generation}"
        contents = self._secrets / f"..{self._generation}"
        contents.mkdir(parents=True)
        for name, secret in (("password", self.password), ("token", self.token)):
            (contents / name).write_text(secret)
            (contents / name).chmod(0o600)
            if self._generation == 1:
                (self._secrets / name).symlink_to(Path("..data", name))
        swapped = self._secrets / "..data_tmp"
        swapped.symlink_to(contents.name)
        swapped.replace(self._secrets / "..data")

    def reload(self) -> None:
        """What SIGHUP does; a frozen process does it later."""
        if self.parts is not None and self.process.is_alive:
            loop = asyncio.get_running_loop()
            loop.call_soon(self.parts.reload, context=self.process.context)

    async def _run(self, on_start: Callable[["SimulatedSidecar"], None]) -> None:
        process = self.process
        try:
            settings = self._load()
            self._stop = asyncio.Event()
            clock = asyncio.get_running_loop().time
            machine = Machine(
                SteadyClock(clock, lambda: EPOCH_S + self.step_s + clock()),
                self.disk,
                lambda: f"{self._chance.getrandbits(32):08x}",
                self._network.listen_for(process),
            )
            self.parts = await compose(
                settings, self._load, Connections(_MOST_CONNECTIONS), machine
            )
            on_start(self)
            await serve(self.parts, self._stop)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the claims are to see it
            self.ended = f"{type(error).__name__}: {error}"
        else:
            if not self._stop.is_set():
                self.ended = "it ended by itself"
        finally:
            if process.is_alive:
                self.left = len([*self._network.of(process)])
                process.kill()
                self._network.lose(process)
