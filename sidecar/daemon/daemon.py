"""The daemon: builds every part, runs them in one TaskGroup, and stops them.

The one place where parts are put together, and the owner of the real clock, the signals and the
tasks. SIGTERM and SIGINT stop it within 2 s with exit code 0, a second one at once; SIGHUP reads
TLS material, credentials and the token again.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from sidecar import __version__
from sidecar.api.connections import AcceptErrors, Connections, most_connections
from sidecar.api.readiness import Polling
from sidecar.api.server import HttpServer
from sidecar.clock import SteadyClock
from sidecar.control.board import Board, RestoredDecision
from sidecar.control.journal import log_publication
from sidecar.control.poller import Poller
from sidecar.daemon.application import build_app, build_metrics_app
from sidecar.daemon.start_files import read_start_files, token_of
from sidecar.errors import SidecarError
from sidecar.history import Folder, History, Recorded
from sidecar.history.metrics import HistoryCollector
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.active_producers import ActiveProducers
from sidecar.kafka.client_quotas import alter_each, describe_client_quotas
from sidecar.kafka.largest_topics import LogDirTopics, largest_topics
from sidecar.kafka.quota_messages import Alteration
from sidecar.metrics.board_collector import build_registry, poll_duration
from sidecar.metrics.broker_collector import BrokerCollector
from sidecar.mutations.service import ControllerMutations
from sidecar.peers.exchange import AllocatedIdLog, Peers
from sidecar.producer_ids.active_watch import ActiveIdWatch
from sidecar.producer_ids.metrics import ProducerIdCollector
from sidecar.producer_ids.request_quotas import RequestQuotaEnforcer
from sidecar.producer_ids.routes import IdParts
from sidecar.producer_ids.service import ProducerIdWatch
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.mutations.admissions import MutationAdmissions
from sidecar.quotas.producer_ids.active_ids import ActiveIds
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota, ProducerIdQuotas
from sidecar.requestlog.allocated_ids import ProducerIdAllocated
from sidecar.requestlog.reader import LogReader
from sidecar.settings import Settings
from sidecar.state import Damaged, PersistedState, StateFile
from sidecar.state.writer import StateWriter
from sidecar.status.contents import VolumeContents
from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, VolumeSource

_log = logging.getLogger(__name__)

_STOP_S: Final = 1.8
"""After a signal the process is gone in 2 s, even if a disk or a peer holds something up."""

_LEAVE_S: Final = 1.0
"""Of these, for taking back what was set in Kafka; what is left is for the state file."""

_LAST_LINE_S: Final = 0.3
"""Then for the last observation."""

_CONTENTS_S: Final = 10.0
"""For a broker to tell what lies on its volumes, for the status page."""

_OBJECTS_PER_COLLECTION: Final = 10_000
"""At Python's 700 the search for reference cycles is 40 % of the CPU of a poll of 12,000 volumes,
which makes 100,000 objects and keeps most until the next poll, none of them in a cycle."""

_STUCK_S: Final = 60.0
"""Beyond an interval and two deadlines: readiness is no alarm clock, and large clusters are polled
less often than the interval says."""


def run(settings: Settings, reload: Callable[[], Settings]) -> int:
    """Runs the daemon until a signal ends it.

    Args:
        settings: as loaded.
        reload: loads them again, for SIGHUP; raises SidecarError when they can't be used.

    Returns:
        The exit code.

    Raises:
        SidecarError: it can't start: an address is taken, a file can't be read.
    """
    # One connection for each broker: the usual soft limit of 1,024 files is soon reached.
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    collect_garbage_rarely()
    asyncio.run(_Daemon(settings, reload, Connections(most_connections(files))).run())
    _log.info("stopped")
    return 0


def collect_garbage_rarely() -> None:
    """Lets this process look for reference cycles less often, as suits large observations."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)


class _Daemon:
    """Every part of a running daemon."""

    def __init__(
        self, settings: Settings, reload: Callable[[], Settings], connections: Connections
    ) -> None:
        self._settings = settings
        self._connections = connections
        self._reload_settings = reload
        files = read_start_files(settings)
        self._token = files.token
        self._admin = settings.kafka_admin
        self._stop = asyncio.Event()
        self._clock = SteadyClock()
        self._timing = Timing(settings.check_interval_s, settings.check_interval_minimum_s)
        self._factors = _factors(settings)
        state = _state_file(files.state_file, self._factors)
        persisted = _load(state, self._clock.now())
        self._board = Board(
            self._factors or Disabled(),
            self._clock.now,
            memory=persisted.memory if persisted else None,
            restored=RestoredDecision(persisted.factor, persisted.source, persisted.since)
            if persisted
            else None,
            listeners=(log_publication,),
        )
        self._state_writer: StateWriter | None = None
        if state is not None:
            self._state_writer = StateWriter(
                self._board, state, self._clock.wall, settings.validity_s
            )
        self._request_quota_enforcer: RequestQuotaEnforcer | None = None
        self._id_file = files.id_file
        self._producers = _producers(settings, self._clock.now)
        self._ids = _id_parts(
            settings, self._board, self._on_allocated, files.id_quotas, self._producers
        )
        self._mutations = _mutations(settings, self._clock.now)
        self._registry = build_registry(
            self._board,
            self._clock.wall,
            settings.validity_s,
        )
        self._registry.register(BrokerCollector(self._board))
        self._registry.register(
            ProducerIdCollector(self._ids.watch, self._ids.log, self._ids.peers, self._ids.active)
        )
        self._history = _history(settings, self._clock.wall)
        self._registry.register(HistoryCollector(self._history))
        self._source: KafkaVolumeSource | None = None
        self._contents: VolumeContents | None = None
        if self._factors is not None and settings.kafka_admin is not None:
            self._source = KafkaVolumeSource(settings.kafka_admin, clock=self._clock.now)
            self._contents = VolumeContents(self._log_dir_topics, self._clock.now)

    async def run(self) -> None:
        """Runs until a signal, or until a part ends that should not."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(AcceptErrors())
        self._handle_signals(loop)
        servers = self._bind()
        log_publication(None, self._board.snapshot)
        async with AsyncExitStack() as stack:
            if self._source is not None:
                await stack.enter_async_context(self._source)
            if self._producers is not None:
                stack.push_async_callback(self._producers.close)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            endless = [
                group.create_task(self._endless(part), name=name)
                for name, part in self._parts().items()
            ]
            for server in servers:
                group.create_task(self._endless(server.serve()), name=f"http {server.address}")
            await self._stop.wait()
            for task in endless:
                task.cancel()
            self._board.close()
            for server in servers:
                server.stop()
            if self._request_quota_enforcer is not None:
                await self._request_quota_enforcer.leave(_LEAVE_S)
            await self._persist()
            if self._history is not None:
                await self._history.leave(_LAST_LINE_S)

    def _parts(self) -> dict[str, Coroutine[object, object, None]]:
        parts = {"expiry": self._board.publish_expiries()}
        if self._state_writer is not None:
            parts["keeper"] = self._state_writer.run()
        if self._source is not None:
            polled = poll_duration(self._registry).observe
            source: VolumeSource = self._source
            if self._history is not None:
                source = Recorded(source, self._history.record)
                parts["volume history"] = self._history.run()
            poller = Poller(source, self._board, self._timing, polled)
            parts["poller"] = poller.run()
            parts |= self._id_tasks()
        if self._contents is not None:
            parts["contents of volumes"] = self._contents.run()
        if self._mutations is not None:
            parts["controller mutation quotas"] = self._mutations.run()
        return parts

    def _id_tasks(self) -> dict[str, Coroutine[object, object, None]]:
        """What watches producer ids; nothing when nobody can be held."""
        ids = self._ids
        parts = {"producer ids": ids.watch.run()}
        if ids.active is not None:
            parts["active producer ids"] = ids.active.run()
        if ids.log is not None:
            parts["request log"] = ids.log.run()
        if ids.peers is not None:
            parts["peers"] = ids.peers.run()
        if self._id_file is not None:
            parts["producer id quota file"] = self._id_file.run(ids.watch.set_file)
        if self._admin is not None and (ids.log is not None or ids.peers is not None):
            self._request_quota_enforcer = RequestQuotaEnforcer(
                self._board,
                ids.watch.quota_of,
                self._describe_quotas,
                self._alter_quotas,
                self._persist,
            )
            parts["request holds"] = self._request_quota_enforcer.run()
        return parts

    async def _log_dir_topics(self, broker_id: int) -> Mapping[str, LogDirTopics] | Failure:
        assert self._admin is not None  # noqa: S101 - else nobody asks, see __init__
        return await largest_topics(self._admin, broker_id, _CONTENTS_S)

    async def _describe_quotas(self) -> ClientQuotas | Failure:
        assert self._admin is not None  # noqa: S101 - else nobody asks, see _id_tasks
        return await describe_client_quotas(self._admin)

    async def _alter_quotas(self, alterations: list[Alteration]) -> list[Failure | None] | Failure:
        assert self._admin is not None  # noqa: S101 - else nobody asks, see _id_tasks
        return await alter_each(self._admin, alterations)

    def _on_allocated(self, allocated: ProducerIdAllocated) -> None:
        ids = self._ids
        ids.allocated.add(allocated.user, allocated.producer_id)
        (ids.watch.seen if ids.active is None else ids.active.allocated)(
            allocated.user, allocated.producer_id
        )

    def _bind(self) -> list[HttpServer]:
        settings, wall = self._settings, self._clock.wall
        polling = Polling(
            enabled=self._factors is not None,
            stuck_after_s=self._timing.interval_s + 2 * self._timing.deadline_s + _STUCK_S,
        )
        apart = settings.metrics_listen is not None
        app = build_app(
            self._board,
            wall=wall,
            validity_s=settings.validity_s,
            limit=settings.limit,
            polling=polling,
            registry=None if apart else self._registry,
            token=lambda: self._token,
            persist=self._persist,
            ids=self._ids,
            admit=self._mutations.admit if self._mutations is not None else None,
            contents=self._contents,
        )
        servers = [HttpServer(app, settings.http_listen, self._connections)]
        if settings.metrics_listen is not None:
            metrics = build_metrics_app(self._board, registry=self._registry, polling=polling)
            servers.append(HttpServer(metrics, settings.metrics_listen, self._connections))
        addresses = " and ".join(f"http://{server.address}" for server in servers)
        _log.info("throttle-sidecar %s listens on %s", __version__, addresses)
        return servers

    async def _persist(self) -> bool:
        return await self._state_writer.write() if self._state_writer is not None else False

    async def _endless(self, part: Coroutine[object, object, None]) -> None:
        await part
        if not self._stop.is_set():
            task = asyncio.current_task()
            raise RuntimeError(f"the task {task.get_name() if task else part} ended by itself")

    def _handle_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._on_reload)

    def _on_stop(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            os._exit(128 + number)
        _log.info("stopping on %s", number.name)
        self._stop.set()
        watchdog = threading.Timer(_STOP_S, _leave)
        watchdog.daemon = True
        watchdog.start()

    def _on_reload(self) -> None:
        try:
            settings = self._reload_settings()
            token = token_of(settings)
            if self._source is not None and settings.kafka_admin is not None:
                self._source.reload(settings.kafka_admin)
            if self._producers is not None and settings.kafka_admin is not None:
                self._producers.reload(settings.kafka_admin)
            if self._mutations is not None and settings.kafka_admin is not None:
                self._mutations.reload(settings.kafka_admin)
        except SidecarError as error:
            _log.error("SIGHUP: nothing was changed: %s", "; ".join(str(error).splitlines()))
            return
        self._token = token
        self._admin = settings.kafka_admin
        _log.info("SIGHUP: read TLS material, credentials and the token again")


def _leave() -> None:
    _log.warning("something did not stop in time; leaving without it")
    logging.shutdown()
    os._exit(0)


def _factors(settings: Settings) -> VolumeLimit | None:
    if settings.check_interval_s == 0.0 or settings.limit is None:
        return None
    return VolumeLimit(settings.limit, settings.validity_s, settings.fallback)


def _id_parts(
    settings: Settings,
    board: Board,
    on_id: Callable[[ProducerIdAllocated], None],
    quotas: ProducerIdQuotas | None,
    producers: ActiveProducers | None,
) -> IdParts:
    watch = ProducerIdWatch(
        board,
        settings.producer_ids,
        ProducerIdQuota(settings.producer_ids_rate),
        settings.producer_id_cleanup_s,
        quotas,
    )

    def is_limited() -> bool:
        return any(each.quota.producer_ids_rate is not None for each in watch.quotas.values())

    allocated = AllocatedIdLog(board.start_id)
    active = _active(settings, watch, allocated, board.now, producers)
    callbacks = (watch.seen, None) if active is None else (active.allocated, active.wrote)
    parts = IdParts(
        watch,
        allocated,
        LogReader(settings.request_log_file, on_id, is_limited)
        if settings.request_log_file
        else None,
        Peers(settings.peers, *callbacks) if settings.peers else None,
        is_enabled=settings.check_interval_s > 0.0,
        active=active,
        counts=settings.ids_count,
    )
    if is_limited() and parts.is_enabled and parts.log is None:
        _log.warning(
            "there are producer id quotas, but no SIDECAR_REQUEST_LOG_FILE: the ids that the "
            "broker beside this sidecar gives are not seen, and nobody is held for them"
        )
    return parts


def _producers(settings: Settings, clock: Callable[[], float]) -> ActiveProducers | None:
    # Without owners nothing would come of it.
    has_owners = settings.request_log_file is not None or bool(settings.peers)
    is_asked = settings.ids_count == "active" and settings.check_interval_s > 0.0 and has_owners
    if not is_asked or settings.kafka_admin is None:
        return None
    return ActiveProducers(settings.kafka_admin, settings.broker_id, clock)


def _active(
    settings: Settings,
    watch: ProducerIdWatch,
    allocated: AllocatedIdLog,
    clock: Callable[[], float],
    producers: ActiveProducers | None,
) -> ActiveIdWatch | None:
    if producers is None:
        return None
    ids = ActiveIds(settings.producer_ids.window_size_s * 1000)
    return ActiveIdWatch(
        producers,
        ids,
        watch.seen,
        allocated.add_written,
        clock,
        interval_s=settings.active_interval_s,
    )


def _mutations(settings: Settings, clock: Callable[[], float]) -> ControllerMutations | None:
    if settings.kafka_admin is None:
        return None
    return ControllerMutations(
        MutationAdmissions(
            settings.controller_mutations_algorithm, settings.controller_quota_window
        ),
        settings.kafka_admin,
        read=describe_client_quotas,
        clock=clock,
        validity_s=settings.validity_s,
    )


def _history(settings: Settings, wall: Callable[[float], float]) -> History | None:
    if settings.history_dir is None:
        return None
    # Several sidecars of one host may share the folder, and port 0 is no name.
    origin = f"{socket.gethostname()}-{settings.http_listen.port or os.getpid()}"
    return History(Folder(settings.history_dir, origin, settings.history_max_bytes), wall)


def _state_file(path: Path | None, factors: VolumeLimit | None) -> StateFile | None:
    if factors is None:
        return None
    if path is None:
        _log.info(
            "no SIDECAR_STATE_FILE: a restart forgets the decision, the last volumes of brokers "
            "that are down (so a full broker that restarts with the sidecar releases the throttle) "
            "and the override"
        )
        return None
    return StateFile(path, factors.limit)


def _load(state: StateFile | None, now: float) -> PersistedState | None:
    loaded = state.load(now) if state is not None else None
    if isinstance(loaded, Damaged):
        _log.error("%s; starting without it", loaded.problem)
        return None
    return loaded
