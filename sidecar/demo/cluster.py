"""A real local Kafka cluster: brokers in their own processes, on small volumes of their own.

One dedicated controller (node id 100) and N brokers (ids from 0), in KRaft mode, on free loopback
ports, everything in one temporary folder and, where the machine allows it, one mount and pid
namespace, where each volume is a tmpfs. The controller is a process of its own so that any broker,
or all of them, can be killed while something still fences them.

    async with Cluster(environ=os.environ, brokers=3, volumes=2, volume_bytes=64 << 20) as cluster:
        cluster.bootstrap                        # "127.0.0.1:4711,127.0.0.1:4712,127.0.0.1:4713"
        cluster.brokers[0].volumes[1].path       # the log dir as DescribeLogDirs names it
        cluster.brokers[0].pid, .address, .log   # values; look them up again after a restart
        cluster.bootstrap_of("SECURE")           # of an extra listener (listeners.py)
        cluster.volumes_are_real                 # False: plain folders, sizes are the host's
        await cluster.kill_broker(0)             # SIGKILL; it is fenced some 4 s later
        await cluster.wait_active({1, 2})        # every running broker sees exactly these active
        await cluster.start_broker(0)            # same data; returns when it is active again
        await cluster.stop_broker(0)             # clean
        await cluster.pause_broker(0)            # SIGSTOP: connects, never answers; fenced too
        await cluster.resume_broker(0)
        await cluster.set_broker_properties(0, {"num.io.threads": "8"})  # at its next start
        await cluster.fail_log_dir(0, 1)         # returns when the broker has taken it offline
        await cluster.restore_log_dir(0, 1)      # and restarts the broker, as Kafka needs
        await cluster.occupy(0, 1, 30 << 20)     # fills a volume by a file of its own; 0 frees it
        await cluster.usage(0, 1)                # (total bytes, available bytes)
        await cluster.heal()                     # undoes all of the above

Topics, users, ACLs: ``admin.py``. Traffic: ``traffic.py``. Every wait has a deadline, and every
failure is a ``ClusterError``. A cluster may be used from another event loop than the one it was
started in, as tests use a session's; the thread that started it must live as long as it does.
"""

import asyncio
import base64
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from sidecar.demo import isolation
from sidecar.demo.admin import Admin
from sidecar.demo.folders import OwnedFolder
from sidecar.demo.jars import DEFAULT_VERSION, cache_folder, jars, java
from sidecar.demo.listeners import Listener, listener_properties
from sidecar.demo.nodes import Broker, VolumeDir, java_command, tail, version_tuple
from sidecar.demo.ports import Ports
from sidecar.demo.properties import (
    Endpoint,
    authorizer_properties,
    broker_properties,
    controller_properties,
    meta_properties,
    render,
)
from sidecar.demo.warden import Warden
from sidecar.errors import ClusterError

PLAIN = "PLAIN"
"""The name of the listener that every broker has."""

_STARTED = b"Kafka Server started"
_CONTROLLER = "controller"
_FORMAT = "format"
_POLL_S = 0.05
_ASK_S = 1.0
_JBOD_SINCE = (3, 7)
_SCRAM_SINCE = (3, 5)


class Cluster:
    """The cluster, as an async context manager.

    Attributes:
        version: Kafka's version.
        isolation: what the brokers are shut into (``isolation.Isolation``).
        folder: the temporary folder; None while the cluster is not up.
        timings: seconds that the steps of the start took: "jars", "volumes", "ready".
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        version: str = DEFAULT_VERSION,
        brokers: int = 3,
        volumes: int = 2,
        volume_bytes: int = 256 << 20,
        properties: Mapping[str, str] | None = None,
        listeners: Sequence[Listener] = (),
        super_users: Sequence[str] | None = None,
        heap_mb: int = 384,
        start_timeout_s: float = 60.0,
    ) -> None:
        """Nothing is started yet.

        Args:
            environ: where XDG_CACHE_HOME and JAVA_HOME are looked up.
            version: Kafka's version: 3.3.2 and newer.
            brokers: how many.
            volumes: how many each broker has; more than one from Kafka 3.7.
            volume_bytes: the size of each.
            properties: extra broker properties, over those of ``properties.py``.
            listeners: listeners besides the plain one.
            super_users: with a value, even an empty one, StandardAuthorizer is on and these may do
                everything (ANONYMOUS, on the plain listener, always may). None: no authorizer.
            heap_mb: each JVM's largest heap, MiB.
            start_timeout_s: for everything but Maven's downloads, seconds.

        Raises:
            ClusterError: that version has no such thing.
        """
        numbers = version_tuple(version)
        if volumes > 1 and numbers < _JBOD_SINCE:
            raise ClusterError(f"Kafka {version} has one log dir at most in KRaft mode (3.7: more)")
        if numbers < _SCRAM_SINCE and any(_is_scram(listener) for listener in listeners):
            raise ClusterError(f"Kafka {version} has no SCRAM in KRaft mode (3.5 has)")
        self.version = version
        self.isolation = isolation.Isolation("plain folders", (), has_mounts=False)
        self.folder: Path | None = None
        self.timings: dict[str, float] = {}
        self._environ = environ
        self._counts = (brokers, volumes, volume_bytes)
        self._extra = dict(properties or {})
        self._listeners = tuple(listeners)
        self._authorizer = {} if super_users is None else authorizer_properties(super_users)
        self._heap_mb = heap_mb
        self._start_timeout_s = start_timeout_s
        self._brokers: dict[int, Broker] = {}
        self._own: dict[int, dict[str, str]] = {}
        self._paused: set[int] = set()
        self._failed: set[tuple[int, int]] = set()
        self._stack = ExitStack()

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """The brokers by id, running or not."""
        return MappingProxyType(self._brokers)

    @property
    def bootstrap(self) -> str:
        """The plain listener's addresses, "host:port,host:port"."""
        return self.bootstrap_of(PLAIN)

    @property
    def volumes_are_real(self) -> bool:
        """Whether each volume is a file system of its own with the size asked for."""
        return self.isolation.has_mounts

    def bootstrap_of(self, listener: str) -> str:
        """One listener's addresses, "host:port,host:port"."""
        return ",".join(broker.addresses[listener] for broker in self._brokers.values())

    async def __aenter__(self) -> Self:
        """Start everything; returns when every broker is active in the eyes of every other.

        Raises:
            ClusterError: it can't be started; nothing of it is left.
        """
        try:
            await self._start()
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything and remove the folder."""
        # On purpose without an await, so that no cancellation can leave half of it behind.
        self._close()

    def _close(self) -> None:
        self._stack.close()
        self.folder = None

    async def _start(self) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        self._java = java(self._environ)
        self._jars = await jars(self.version, cache_folder(self._environ))
        self.timings["jars"] = now() - began
        began = now()
        self.isolation = await asyncio.to_thread(isolation.probe)
        folder = self._stack.enter_context(OwnedFolder())
        self.folder = folder.path
        ports = Ports()
        self._stack.callback(ports.close)
        self._warden = Warden(self.isolation)
        # Last in, first out: the brokers end before their folder goes.
        self._stack.callback(self._warden.close)
        self._cluster_id = _kafka_uuid()
        self._controller_port = ports.reserve()
        for broker_id in range(self._counts[0]):
            self._brokers[broker_id] = await self._lay_out(broker_id, folder.path, ports)
        self.timings["volumes"] = now() - began
        began = now()
        async with _deadline(self._start_timeout_s, "the cluster was not ready"):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._start_controller(folder.path))
                for broker_id in self._brokers:
                    group.create_task(self._spawn(broker_id))
            await self._wait_started(self._brokers)
            await self._wait_all_see(frozenset(self._brokers))
            await self._create_users()
        self.timings["ready"] = now() - began

    # Laying out

    async def _lay_out(self, broker_id: int, folder: Path, ports: Ports) -> Broker:
        """Make a broker's folders and volumes, formatted."""
        home = folder / f"broker-{broker_id}"
        home.mkdir()
        _, volumes, size = self._counts
        found = []
        for index in range(volumes):
            mount = home / f"volume-{index}"
            volume = VolumeDir(str(mount / "kafka-logs"), str(mount), size)
            if self.volumes_are_real:
                await self._warden.ask("mount", path=volume.mount, bytes=size)
            await self._format(volume.path, broker_id)
            found.append(volume)
        await self._format(str(home / "metadata"), broker_id)
        names = [PLAIN, *(listener.name for listener in self._listeners)]
        addresses = {name: f"127.0.0.1:{ports.reserve()}" for name in names}
        return Broker(
            id=broker_id,
            address=addresses[PLAIN],
            volumes=tuple(found),
            log=folder / f"broker-{broker_id}.log",
            pid=0,
            addresses=addresses,
        )

    async def _format(self, log_dir: str, node_id: int) -> None:
        """What the storage tool does for a broker's log dir, without a second of Java."""
        text = meta_properties(self._cluster_id, node_id, _kafka_uuid())
        await self._warden.ask("put", path=f"{log_dir}/meta.properties", text=text)

    async def _start_controller(self, folder: Path) -> None:
        """Format and start the controller.

        By the storage tool itself: a controller's log dir also holds the first metadata records,
        such as the feature levels, and those differ from version to version.
        """
        file = folder / "controller.properties"
        log_dir = str(folder / "controller" / "metadata")
        file.write_text(
            render(controller_properties(self._controller_port, log_dir, self._authorizer))
        )
        log = folder / "format.log"
        arguments = ["format", "--config", str(file), "--cluster-id", self._cluster_id]
        await self._run_java(_FORMAT, "kafka.tools.StorageTool", arguments, log)
        while (status := self._warden.exit_status(_FORMAT)) is None:
            await asyncio.sleep(_POLL_S)
        if status != 0:
            raise ClusterError(f"the storage tool ended with {status}:\n{tail(log)}")
        log = folder / "controller.log"
        await self._run_java(_CONTROLLER, "kafka.Kafka", [str(file)], log)

    async def _run_java(self, name: str, main: str, arguments: list[str], log: Path) -> int:
        command = java_command(
            self._java, self._jars, main, arguments, heap_mb=self._heap_mb, log=log
        )
        return await self._warden.spawn(name, command, log)

    async def _spawn(self, broker_id: int) -> None:
        """Write a broker's properties and start its process."""
        broker = self._brokers[broker_id]
        home = Path(broker.volumes[0].mount).parent
        protocols = {PLAIN: "PLAINTEXT"} | {each.name: each.protocol for each in self._listeners}
        properties = broker_properties(
            broker_id,
            endpoints=[
                Endpoint(name, protocols[name], int(address.rpartition(":")[2]))
                for name, address in broker.addresses.items()
            ],
            log_dirs=[volume.path for volume in broker.volumes],
            metadata_log_dir=str(home / "metadata"),
            controller_port=self._controller_port,
            brokers=len(self._brokers),
        )
        for listener in self._listeners:
            properties |= listener_properties(listener)
        properties |= self._authorizer | self._extra | self._own.get(broker_id, {})
        file = home / "server.properties"
        file.write_text(render(properties))
        # What an earlier run logged must not pass for news.
        if broker.log.exists():
            broker.log.rename(broker.log.with_suffix(f".{broker.pid}.log"))
        pid = await self._run_java(_name(broker_id), "kafka.Kafka", [str(file)], broker.log)
        self._brokers[broker_id] = replace(broker, pid=pid)

    async def _create_users(self) -> None:
        scram = [listener for listener in self._listeners if _is_scram(listener)]
        if scram:
            async with Admin(self.bootstrap) as admin:
                for listener in scram:
                    for user, password in listener.users.items():
                        await admin.create_scram_user(user, password, listener.mechanism or "")

    # Waiting

    def is_running(self, broker_id: int) -> bool:
        """Whether the broker's process lives, paused or not."""
        return self._brokers[broker_id].pid > 0 and (
            self._warden.exit_status(_name(broker_id)) is None
        )

    async def wait_active(self, ids: Collection[int], timeout_s: float = 30.0) -> None:
        """Wait until every running, not paused broker sees exactly these brokers active.

        Raises:
            ClusterError: they don't in time.
        """
        expected = frozenset(ids)
        async with _deadline(timeout_s, f"brokers {sorted(expected)} were not the active ones"):
            await self._wait_all_see(expected)

    async def _wait_all_see(self, expected: frozenset[int]) -> None:
        async with asyncio.TaskGroup() as group:
            for broker_id in self._brokers:
                if self.is_running(broker_id) and broker_id not in self._paused:
                    group.create_task(self._wait_sees(broker_id, expected))

    async def _wait_sees(self, broker_id: int, expected: frozenset[int]) -> None:
        async with Admin(self._brokers[broker_id].address, timeout_s=_ASK_S) as admin:
            while True:
                try:
                    if await admin.active_brokers() == expected:
                        return
                except ClusterError:
                    pass  # Not listening yet, or no longer: the caller has the deadline.
                await asyncio.sleep(_POLL_S)

    async def _wait_started(self, ids: Iterable[int]) -> None:
        """Until these brokers' logs say that they are up; a dead one ends the wait."""
        waiting = set(ids)
        while waiting:
            self._check_alive(_CONTROLLER, self._brokers[0].log.with_name("controller.log"))
            for broker_id in sorted(waiting):
                log = self._brokers[broker_id].log
                self._check_alive(_name(broker_id), log)
                if log.exists() and _STARTED in log.read_bytes():
                    waiting.discard(broker_id)
            await asyncio.sleep(_POLL_S)

    def _check_alive(self, name: str, log: Path) -> None:
        status = self._warden.exit_status(name)
        if status is not None:
            raise ClusterError(f"{name} ended with {status} at its start:\n{tail(log)}")

    async def _wait_ended(self, broker_id: int, timeout_s: float) -> None:
        async with _deadline(timeout_s, f"broker {broker_id} did not end"):
            await _until(lambda: not self.is_running(broker_id))
        self._paused.discard(broker_id)

    # What can be done to a broker

    async def kill_broker(
        self, broker_id: int, signal: signal.Signals = signal.SIGKILL, timeout_s: float = 30.0
    ) -> None:
        """Send a signal that ends the broker and wait for its end."""
        await self._warden.ask("signal", name=_name(broker_id), signal=int(signal))
        await self._wait_ended(broker_id, timeout_s)

    async def stop_broker(self, broker_id: int, timeout_s: float = 30.0) -> None:
        """Stop the broker cleanly: leadership moves first, data is flushed."""
        await self.kill_broker(broker_id, signal.SIGTERM, timeout_s)

    async def start_broker(self, broker_id: int, timeout_s: float = 60.0) -> None:
        """Start a broker that was killed or stopped; returns when the others see it active.

        After a kill that takes until the controller has fenced the dead one, some 4 s.
        """
        async with _deadline(timeout_s, f"broker {broker_id} was not ready"):
            await self._spawn(broker_id)
            await self._wait_started([broker_id])
            async with Admin(self._brokers[broker_id].address, timeout_s=_ASK_S) as admin:
                while broker_id not in await admin.active_brokers():
                    await asyncio.sleep(_POLL_S)

    async def pause_broker(self, broker_id: int) -> None:
        """Stop the broker's process in its tracks (SIGSTOP): it accepts and never answers."""
        await self._warden.ask("signal", name=_name(broker_id), signal=int(signal.SIGSTOP))
        self._paused.add(broker_id)

    async def resume_broker(self, broker_id: int) -> None:
        """Let a paused broker go on (SIGCONT)."""
        await self._warden.ask("signal", name=_name(broker_id), signal=int(signal.SIGCONT))
        self._paused.discard(broker_id)

    async def set_broker_properties(self, broker_id: int, properties: Mapping[str, str]) -> None:
        """Set static properties of one broker, in force from its next start."""
        self._own.setdefault(broker_id, {}).update(properties)

    # What can be done to a volume

    async def fail_log_dir(self, broker_id: int, index: int, timeout_s: float = 30.0) -> None:
        """Make a log dir fail for real; returns when the broker has taken it offline.

        The folder is moved aside and a file put in its place, so the broker's next checkpoint in it
        (they are written every second here) fails as it would on a dead disk. A read-only remount
        would be refused while the broker has files open there. A broker whose last log dir fails
        ends itself.
        """
        broker = self._brokers[broker_id]
        path = broker.volumes[index].path
        said = f"in dir {path}".encode()
        before = broker.log.read_bytes().count(said)
        await self._warden.ask("rename", path=path, to=f"{path}.failed")
        self._failed.add((broker_id, index))
        await self._warden.ask("put", path=path, text="A failed disk.\n")
        async with _deadline(timeout_s, f"broker {broker_id} did not take {path} offline"):
            await _until(
                lambda: (
                    not self.is_running(broker_id) or broker.log.read_bytes().count(said) > before
                )
            )

    async def restore_log_dir(self, broker_id: int, index: int) -> None:
        """Make a failed log dir whole again, and restart the broker, as Kafka needs for it."""
        path = self._brokers[broker_id].volumes[index].path
        if self.is_running(broker_id):
            await self.stop_broker(broker_id)
        await self._warden.ask("remove", path=path)
        await self._warden.ask("rename", path=f"{path}.failed", to=path)
        self._failed.discard((broker_id, index))
        await self.start_broker(broker_id)

    async def occupy(self, broker_id: int, index: int, size_bytes: int) -> None:
        """Take so many bytes of a volume with a file of the cluster's own; 0 frees them.

        Raises:
            ClusterError: there are not so many.
        """
        ballast = f"{self._brokers[broker_id].volumes[index].mount}/ballast"
        await self._warden.ask("occupy", path=ballast, bytes=size_bytes)

    async def usage(self, broker_id: int, index: int) -> tuple[int, int]:
        """Total and available bytes of a volume, as its file system tells."""
        mount = self._brokers[broker_id].volumes[index].mount
        total, available = await self._warden.ask("usage", path=mount)
        return total, available

    async def heal(self) -> None:
        """Undo what was done to brokers and volumes; every broker is active afterwards."""
        for broker_id in sorted(self._paused):
            await self.resume_broker(broker_id)
        for broker_id, broker in self._brokers.items():
            for index in range(len(broker.volumes)):
                await self.occupy(broker_id, index, 0)
        for broker_id, index in sorted(self._failed):
            await self.restore_log_dir(broker_id, index)
        for broker_id in self._brokers:
            if not self.is_running(broker_id):
                self._own.pop(broker_id, None)
                await self.start_broker(broker_id)
        await self.wait_active(self._brokers)


def _name(broker_id: int) -> str:
    return f"broker {broker_id}"


def _is_scram(listener: Listener) -> bool:
    return listener.mechanism is not None and listener.mechanism.startswith("SCRAM")


def _kafka_uuid() -> str:
    """A random id in Kafka's form: 16 bytes in URL-safe base64; the tools dislike a leading "-"."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith(
        "-"
    ):
        pass
    return text


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def _deadline(timeout_s: float, what: str) -> AsyncIterator[None]:
    """A time-out whose expiry says what was waited for."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise ClusterError(f"{what} within {timeout_s:.0f} s") from error
    except ExceptionGroup as group:
        refused, others = group.split(ClusterError)
        if refused is None or others is not None:
            raise
        # Several brokers fail of one cause; the first says it.
        raise _first(refused) from group


def _first(group: ExceptionGroup[ClusterError]) -> ClusterError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
