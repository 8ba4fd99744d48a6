"""A real local Kafka cluster: brokers in their own processes, on small volumes of their own.

The cluster has a dedicated controller (node id 100) and N brokers (ids from 0), in KRaft mode, on
free loopback ports. Its files are in one temporary folder. If the machine allows it, all processes
are in one mount and pid namespace, where each volume is a tmpfs. The controller is a separate
process, so that it still fences brokers when any of them, or all, are killed. With
``combined=True`` the only broker is also the controller, in one JVM.

    async with Cluster(environ=os.environ, brokers=3, volumes=2, volume_bytes=64 << 20) as cluster:
        cluster.bootstrap                        # "127.0.0.1:4711,127.0.0.1:4712,127.0.0.1:4713"
        cluster.brokers[0].volumes[1].path       # the log dir as DescribeLogDirs names it
        cluster.brokers[0].pid, .address, .log   # values; read them again after a restart
        cluster.bootstrap_of("SECURE")           # addresses of an extra listener (listeners.py)
        cluster.volumes_are_real                 # False: plain folders with the host's sizes
        await cluster.kill_broker(0)             # SIGKILL; the broker is fenced after about 4 s
        await cluster.wait_active({1, 2})        # every running broker sees exactly these active
        await cluster.start_broker(0)            # same data; returns when all see it active
        await cluster.stop_broker(0)             # stops it cleanly
        cluster.configure({"num.io.threads": "8"})    # each node from its next start on
        await cluster.restart_controller()
        await cluster.pause_broker(0)            # SIGSTOP: accepts, never answers; fenced too
        await cluster.resume_broker(0)
        await cluster.fail_log_dir(0, 1)         # returns when the broker has taken it offline
        await cluster.restore_log_dir(0, 1)      # and restarts the broker, as Kafka requires
        await cluster.occupy(0, 1, 30 << 20)     # fills a volume with a file; 0 removes the file
        await cluster.usage(0, 1)                # (total bytes, available bytes)
        await cluster.heal()                     # undoes all of the above
        await cluster.run_beside("sidecar 0", ["throttle-sidecar", "run"], log)  # until the end
        await cluster.signal_beside("sidecar 0", signal.SIGSTOP)
        cluster.ended("sidecar 0")               # None while it runs, then its exit status

Topics, users and ACLs are in ``admin.py``, and traffic is in ``traffic.py``. Every wait has a
deadline, and every failure is a ``ClusterError``. A cluster may be used from another event loop
than the one that started it, as tests do with a session's cluster. The thread that started it must
live as long as the cluster.
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
from sidecar.formats.cache_folder import cache_folder

_SCRAM_SINCE = (3, 5)


class Cluster(Members):
    """The cluster, as an async context manager.

    Attributes:
        version: Kafka's version.
        isolation: how the brokers are isolated (``isolation.Isolation``).
        folder: the temporary folder; None while the cluster is not up.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        version: str = DEFAULT_VERSION,
        brokers: int = 3,
        volumes: int = 2,
        volume_bytes: int = 256 << 20,
        file_system: str = "tmpfs",
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
        """Make a cluster without starting it.

        Args:
            environ: an environment with XDG_CACHE_HOME and JAVA_HOME.
            version: Kafka's version, 3.3.2 or newer.
            brokers: the number of brokers.
            volumes: the number of volumes of each broker.
            volume_bytes: the size of each volume.
            file_system: of each volume: tmpfs, or ext4 or xfs, which need root and loop devices.
            properties: extra broker properties, which override those of ``broker_properties.py``.
            properties_of: properties that differ between brokers and override all others, such as
                the quota callback's address of the sidecar, ``Broker.sidecar_url``. It is called
                when ``brokers`` is complete.
            broker_jars: jars behind Kafka's on the brokers' class path.
            controller_too: whether the controller gets ``properties`` and ``broker_jars`` too, as
                on a platform that configures all nodes equally.
            combined: whether the only broker is also the controller.
            listeners: listeners besides the plain one.
            super_users: users that may do everything, besides ANONYMOUS on the plain listener. With
                any value, even an empty one, StandardAuthorizer is used; None for no authorizer.
            session_timeout_ms: the time from a broker's last heartbeat until it is fenced, in ms.
            heap_mb: the largest heap of each JVM, in MiB.
            start_timeout_s: the deadline from the volumes until all are ready, in seconds.

        Raises:
            ClusterError: the version lacks SCRAM, or several brokers are to be combined.
        """
        super().__init__()
        if combined and brokers != 1:
            raise ClusterError("a combined node is a cluster of one broker")
        if version_tuple(version) < _SCRAM_SINCE and any(is_scram(each) for each in listeners):
            raise ClusterError(f"Kafka {version} has no SCRAM in KRaft mode: use 3.5 or newer")
        self.version = version
        self.isolation = isolation.Isolation("plain folders", (), has_mounts=False)
        self.folder: Path | None = None
        self._environ = environ
        self._counts = (brokers, volumes, volume_bytes)
        self._file_system = file_system
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
        """Return whether each volume is a file system of its own with the configured size."""
        return self.isolation.has_mounts

    async def __aenter__(self) -> Self:
        """Start everything; returns when every broker sees every other as active.

        Raises:
            ClusterError: the cluster can't be started; everything is removed.
        """
        try:
            await self._start()
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End everything and remove the folder."""
        # Without an await, so that a cancellation can't interrupt it.
        self._close()

    def _close(self) -> None:
        self._stack.close()
        self._members.clear()
        self._supervisor = None
        self._controller = None
        self.folder = None

    async def _start(self) -> None:
        command = java(self._environ)
        jar_folder = await jars(self.version, cache_folder(self._environ))
        self.isolation = await asyncio.to_thread(isolation.probe)
        folder = self._stack.enter_context(OwnedFolder()).path
        ports = self._stack.enter_context(Ports())
        # Entered last and left first, so that brokers end before their folder and ports are freed.
        supervisor = self._stack.enter_context(Supervisor(self.isolation))
        self._supervisor = supervisor
        processes = Processes(supervisor, command, jar_folder, self._heap_mb)
        warm = await warm_up(processes, folder)
        processes.archive = warm.class_archive
        async with deadline(self._start_timeout_s, f"Kafka {self.version} was not ready"):
            layout = self._layout(folder, supervisor, ports)
            if not self._combined:
                self._controller = self._make_controller(layout, processes, warm)
                await self._controller.spawn()
            await self._add_members(layout, processes, warm)
            async with asyncio.TaskGroup() as group:
                for member in self._members.values():
                    group.create_task(self._spawn(member))
                if self._controller is not None:
                    group.create_task(self._controller.wait_started())
            everyone = frozenset(self._members)
            await self._wait_all_see(lambda active: active == everyone)
            await self._create_users()
        self.folder = folder

    def _layout(self, folder: Path, supervisor: Supervisor, ports: Ports) -> Layout:
        return Layout(
            folder=folder,
            supervisor=supervisor,
            ports=ports,
            cluster_id=random_id(),
            version=version_tuple(self.version),
            has_mounts=self.volumes_are_real,
            file_system=self._file_system,
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
        """Replace the configuration of all nodes; it applies from each node's next start on.

        The arguments are those of a new cluster, and replace them.
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
            ClusterError: there is no dedicated controller, or it is not up in time.
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
        """Run another process where the brokers are, so that it ends with them.

        Args:
            name: a name that no running process has.
            argv: the command; it inherits this process's environment.
            log: a file, to which standard output and error are appended.

        Returns:
            The process id, as this process sees it.

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
        """Return the status of a ``run_beside`` process (negative: signal); None while it runs."""
        return None if self._supervisor is None else self._supervisor.exit_status(name)


def _nothing(_: Broker) -> Mapping[str, str]:
    return {}
