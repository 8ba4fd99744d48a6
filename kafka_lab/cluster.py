"""A real local Kafka cluster: brokers in their own processes, on small volumes of their own.

One dedicated controller (node id 100) and N brokers (ids from 0), in KRaft mode, on free loopback
ports, everything in one temporary folder and, where the machine allows it, one mount and pid
namespace, where each volume is a tmpfs. The controller is a process of its own so that any broker,
or all of them, can be killed while something still fences them; with ``combined=True`` the one
broker is the controller too, in one JVM.

    async with Cluster(environ=os.environ, brokers=3, volumes=2, volume_bytes=64 << 20) as cluster:
        cluster.bootstrap                        # "127.0.0.1:4711,127.0.0.1:4712,127.0.0.1:4713"
        cluster.brokers[0].volumes[1].path       # the log dir as DescribeLogDirs names it
        cluster.brokers[0].pid, .address, .log   # values; look them up again after a restart
        cluster.bootstrap_of("SECURE")           # of an extra listener (listeners.py)
        cluster.volumes_are_real                 # False: plain folders, sizes are the host's
        await cluster.kill_broker(0)             # SIGKILL; it is fenced some 4 s later
        await cluster.wait_active({1, 2})        # every running broker sees exactly these active
        await cluster.start_broker(0)            # same data; returns when all see it active
        await cluster.stop_broker(0)             # clean
        cluster.configure({"num.io.threads": "8"})    # each node from its next start on
        await cluster.restart_controller()
        await cluster.pause_broker(0)            # SIGSTOP: accepts, never answers; fenced too
        await cluster.resume_broker(0)
        await cluster.fail_log_dir(0, 1)         # returns when the broker has taken it offline
        await cluster.restore_log_dir(0, 1)      # and restarts the broker, as Kafka needs
        await cluster.occupy(0, 1, 30 << 20)     # fills a volume by a file of its own; 0 frees it
        await cluster.usage(0, 1)                # (total bytes, available bytes)
        await cluster.heal()                     # undoes all of the above
        await cluster.run_beside("sidecar 0", ["throttle-sidecar", "run"], log)  # ends with it
        await cluster.signal_beside("sidecar 0", signal.SIGSTOP)
        cluster.ended("sidecar 0")               # None while it runs, else how it ended

Topics, users, ACLs: ``admin.py``. Traffic: ``traffic.py``. Every wait has a deadline, and every
failure is a ``ClusterError``. A cluster may be used from another event loop than the one it was
started in, as tests use a session's; the thread that started it must live as long as it does.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from kafka_lab import isolation
from kafka_lab.admin import Admin
from kafka_lab.broker_properties import SESSION_TIMEOUT_MS, authorizer_properties
from kafka_lab.cache import cache_folder
from kafka_lab.controller import Controller
from kafka_lab.folders import OwnedFolder
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from kafka_lab.layout import Layout, random_id
from kafka_lab.listeners import Listener, is_scram
from kafka_lab.member import Member
from kafka_lab.members import Members
from kafka_lab.nodes import Broker, version_tuple
from kafka_lab.ports import Ports
from kafka_lab.processes import Processes
from kafka_lab.supervisor import Supervisor
from kafka_lab.waiting import deadline
from kafka_lab.warmup import Warm, warm_up
from sidecar.errors import ClusterError

_SCRAM_SINCE = (3, 5)


class Cluster(Members):
    """The cluster, as an async context manager.

    Attributes:
        version: Kafka's version.
        isolation: what the brokers are shut into (``isolation.Isolation``).
        folder: the temporary folder; None while the cluster is not up.
        timings: seconds that the steps of the start took: "jars" and "warm-up", which do something
            at the first start of a version only, "volumes" and "ready".
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
        properties_of: Callable[[Broker], Mapping[str, str]] | None = None,
        broker_jars: Sequence[Path] = (),
        controller_too: bool = False,
        combined: bool = False,
        listeners: Sequence[Listener] = (),
        super_users: Sequence[str] | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heap_mb: int = 384,
        start_timeout_s: float = 60.0,
    ) -> None:
        """Nothing is started yet.

        Args:
            environ: where XDG_CACHE_HOME and JAVA_HOME are read.
            version: Kafka's version: 3.3.2 and newer.
            brokers: how many.
            volumes: how many each broker has.
            volume_bytes: the size of each.
            properties: extra broker properties, over those of ``properties.py``.
            properties_of: those that differ from broker to broker, over all others: a quota
                callback's, say, that is to query the sidecar at ``Broker.sidecar_url``. Called when
                ``brokers`` has all of them.
            broker_jars: on the brokers' class path behind Kafka's.
            controller_too: whether the controller has ``properties`` and ``broker_jars`` as well,
                as where a platform configures all nodes alike.
            combined: whether the one broker is the controller too.
            listeners: listeners besides the plain one.
            super_users: with a value, even an empty one, StandardAuthorizer is on and these may do
                everything (ANONYMOUS, on the plain listener, always may). None: no authorizer.
            session_timeout_ms: how long after its last heartbeat a broker is fenced, ms.
            heap_mb: each JVM's largest heap, MiB.
            start_timeout_s: from the volumes to the readiness of all, seconds.

        Raises:
            ClusterError: that version has no such thing, or several brokers are to be combined.
        """
        super().__init__()
        if combined and brokers != 1:
            raise ClusterError("a combined node is a cluster of one broker")
        if version_tuple(version) < _SCRAM_SINCE and any(is_scram(each) for each in listeners):
            raise ClusterError(f"Kafka {version} has no SCRAM in KRaft mode (3.5 has)")
        self.version = version
        self.isolation = isolation.Isolation("plain folders", (), has_mounts=False)
        self.folder: Path | None = None
        self.timings: dict[str, float] = {}
        self._environ = environ
        self._counts = (brokers, volumes, volume_bytes)
        self._properties = dict(properties or {})
        self._properties_of = properties_of or _nothing
        self._broker_jars = tuple(broker_jars)
        self._controller_too = controller_too
        self._combined = combined
        self._listeners = tuple(listeners)
        self._authorizer = {} if super_users is None else authorizer_properties(super_users)
        self._quorum = {"broker.session.timeout.ms": str(session_timeout_ms)}
        self._heap_mb = heap_mb
        self._start_timeout_s = start_timeout_s
        self._supervisor: Supervisor | None = None
        self._controller: Controller | None = None
        self._stack = ExitStack()

    @property
    def volumes_are_real(self) -> bool:
        """Whether each volume is a file system of its own with the configured size."""
        return self.isolation.has_mounts

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

    async def __aexit__(self, *_: object) -> None:
        """End everything and remove the folder."""
        # On purpose without an await, so that no cancellation can leave half of it behind.
        self._close()

    def _close(self) -> None:
        self._stack.close()
        self._members.clear()
        self._supervisor = None
        self._controller = None
        self.folder = None

    async def _start(self) -> None:
        now = asyncio.get_running_loop().time
        times = [now()]
        command = java(self._environ)
        found = await jars(self.version, cache_folder(self._environ))
        times.append(now())
        self.isolation = await asyncio.to_thread(isolation.probe)
        folder = self._stack.enter_context(OwnedFolder()).path
        ports = self._stack.enter_context(Ports())
        # Entered last, left first: the brokers end before their folder and their ports are freed.
        supervisor = self._stack.enter_context(Supervisor(self.isolation))
        self._supervisor = supervisor
        processes = Processes(supervisor, command, found, self._heap_mb)
        warm = await warm_up(processes, folder)
        processes.archive = warm.class_archive
        times.append(now())
        async with deadline(self._start_timeout_s, f"Kafka {self.version} was not ready"):
            layout = self._layout(folder, supervisor, ports)
            if not self._combined:
                self._controller = self._make_controller(layout, processes, warm)
                await self._controller.spawn()
            await self._add_members(layout, processes, warm)
            times.append(now())
            async with asyncio.TaskGroup() as group:
                for member in self._members.values():
                    group.create_task(self._spawn(member))
                if self._controller is not None:
                    group.create_task(self._controller.wait_started())
            everyone = frozenset(self._members)
            await self._wait_all_see(lambda active: active == everyone)
            await self._create_users()
        times.append(now())
        steps = zip(("jars", "warm-up", "volumes", "ready"), times, times[1:], strict=False)
        self.timings = {step: end - begin for step, begin, end in steps}
        self.folder = folder

    def _layout(self, folder: Path, supervisor: Supervisor, ports: Ports) -> Layout:
        return Layout(
            folder=folder,
            supervisor=supervisor,
            ports=ports,
            cluster_id=random_id(),
            version=version_tuple(self.version),
            has_mounts=self.volumes_are_real,
            listeners=self._listeners,
            controller_port=ports.reserve(),
        )

    def _make_controller(self, layout: Layout, processes: Processes, warm: Warm) -> Controller:
        properties = layout.controller(warm.controller_log_dir) | self._quorum | self._authorizer
        controller = Controller(layout.folder, properties, processes)
        self._configure_controller(controller)
        return controller

    async def _add_members(self, layout: Layout, processes: Processes, warm: Warm) -> None:
        brokers, volumes, volume_bytes = self._counts
        formatted = warm.controller_log_dir if self._combined else None
        for broker_id in range(brokers):
            broker = await layout.broker(broker_id, volumes, volume_bytes, formatted)
            properties = layout.properties(broker, brokers, combined=self._combined)
            properties |= self._quorum | self._authorizer
            self._members[broker_id] = Member(broker, properties, processes)
        for member in self._members.values():
            self._configure_member(member)

    def configure(
        self,
        properties: Mapping[str, str] | None = None,
        properties_of: Callable[[Broker], Mapping[str, str]] | None = None,
        broker_jars: Sequence[Path] = (),
    ) -> None:
        """Configure all nodes anew; each is so from its next start on.

        Args: as of a new cluster, and in place of what it was made with.
        """
        self._properties = dict(properties or {})
        self._properties_of = properties_of or _nothing
        self._broker_jars = tuple(broker_jars)
        for member in self._members.values():
            self._configure_member(member)
        if self._controller is not None:
            self._configure_controller(self._controller)

    def _configure_member(self, member: Member) -> None:
        more = {**self._properties, **self._properties_of(member.broker)}
        member.configure(more, self._broker_jars)

    def _configure_controller(self, controller: Controller) -> None:
        if self._controller_too:
            controller.configure(self._properties, self._broker_jars)

    async def restart_controller(self, timeout_s: float = 60.0) -> None:
        """Stop the dedicated controller cleanly and start it; returns when it is up.

        Raises:
            ClusterError: there is none, or it is not up in time.
        """
        if self._controller is None:
            raise ClusterError("there is no dedicated controller")
        await self._controller.restart(timeout_s)

    @staticmethod
    async def _spawn(member: Member) -> None:
        await member.spawn()
        await member.wait_started()

    async def _create_users(self) -> None:
        users = [
            (user, password, each.mechanism or "")
            for each in self._listeners
            if is_scram(each)
            for user, password in each.users.items()
        ]
        if users:
            async with Admin(self.bootstrap) as admin:
                for user, password, mechanism in users:
                    await admin.create_scram_user(user, password, mechanism)

    async def run_beside(self, name: str, argv: Sequence[str], log: Path) -> int:
        """Run any other process where the brokers are, so that it ends with them.

        Args:
            name: unlike any other; free again when that process has ended.
            argv: the command; it inherits this process's environment.
            log: its standard output and error are appended to it.

        Returns:
            Its pid, as this process sees it.

        Raises:
            ClusterError: the cluster is not up, or the name is taken.
        """
        if self._supervisor is None:
            raise ClusterError("the cluster is not up")
        return await self._supervisor.spawn(name, list(argv), log)

    async def signal_beside(self, name: str, signal: signal.Signals) -> None:
        """Send a signal to a process of ``run_beside``.

        Raises:
            ClusterError: the cluster is not up, or no such process runs.
        """
        if self._supervisor is None:
            raise ClusterError("the cluster is not up")
        await self._supervisor.ask("signal", name=name, signal=signal)

    def ended(self, name: str) -> int | None:
        """How a process of ``run_beside`` ended (negative: by that signal); None while it runs."""
        return None if self._supervisor is None else self._supervisor.exit_status(name)


def _nothing(_: Broker) -> Mapping[str, str]:
    return {}
