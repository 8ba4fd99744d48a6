"""The composition root: the one place where the parts of a daemon are put together.

The spine is built here by name: source, poller, board, state, page, API. The capabilities are a
list, and all of them are built, supervised and served in the same way.

Example: ``compose(settings, load, connections)`` of a sidecar that is disabled has no source and no
poller, the same routes and metrics, and the tasks that its capabilities have then.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar import __version__
from sidecar.api.connections import Connections
from sidecar.api.readiness import Polling
from sidecar.api.server import HttpServer, Tls
from sidecar.control.board import Board
from sidecar.control.capability import Capability, Services, Task
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.contents_watch import ContentsWatch
from sidecar.control.feed_watch import FeedWatch
from sidecar.control.journal import log_publication
from sidecar.control.known_cluster import ask_known_cluster
from sidecar.control.metric_source import MetricSource
from sidecar.control.misfit_log import MisfitLog
from sidecar.control.persistence import Persistence
from sidecar.control.poller import Poller
from sidecar.control.reader_watch import ReaderWatch
from sidecar.control.tokens import Tokens
from sidecar.control.volume_contents import FetchSizes, VolumeContents
from sidecar.daemon.application import build_app, build_metrics_app
from sidecar.daemon.capabilities import (
    CAPABILITIES,
    announce_to,
    build_all,
    register_metrics,
    tasks_of,
)
from sidecar.daemon.factor_poller import FactorPoller
from sidecar.daemon.machine import Machine
from sidecar.daemon.quota_writer import QuotaWriter
from sidecar.daemon.reload import Credentials, Reload
from sidecar.daemon.remembered import remembered
from sidecar.daemon.secret_files import SecretFiles, Stamps, stamps_of
from sidecar.daemon.start_files import StartFiles, read_start_files
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.client.certificates import expiries_of
from sidecar.kafka.fed_brokers import fed_brokers
from sidecar.kafka.largest_topics import largest_topics, sizes_of, topics_by_log_dir
from sidecar.kafka.placements import placement, receiving
from sidecar.metrics.board_collector import SidecarRegistry, build_registry
from sidecar.metrics.broker_metrics import broker_metrics
from sidecar.metrics.credential_metrics import credential_metrics
from sidecar.metrics.observer_metrics import observer_metrics
from sidecar.metrics.request_throttle_metrics import request_throttle_metrics
from sidecar.peers.addresses import Addresses
from sidecar.peers.observations import ObservationLog
from sidecar.peers.observers import Observers, Sight
from sidecar.peers.trust import Trust
from sidecar.peers.zones import Zones
from sidecar.requestlog.reader import LogReader
from sidecar.settings import KafkaAdmin, Settings, read_again, secret_files
from sidecar.state import StateFile
from sidecar.state.disk import Disk
from sidecar.state.writer import StateWriter
from sidecar.status.inputs import ToolSettings
from sidecar.threads import OwnThreads
from sidecar.throttle.decision import Decider, Disabled, VolumeLimit
from sidecar.throttle.growth import Replicas
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, Observation

_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")

_CONTENTS_S: Final = 10.0
"""The deadline for a broker to list the contents of its volumes."""

_SIZES_S: Final = 2.0
"""The deadline for brokers to report some partitions; a late one is asked again at once."""

_PLACEMENT_S: Final = 5.0
"""The deadline for a broker to report where partitions are."""

_STUCK_S: Final = 60.0
"""Polling counts as stuck after an interval, two deadlines and this time. Large clusters are polled
less often than the interval says."""

_FED_S: Final = 10.0
"""The deadline of each of the two requests about the partitions that a broker leads."""

_FEEDS: Final = "feeds"
_OBSERVERS: Final = "observers"
_QUOTA_SOURCE: Final = "quota_source"
_READERS: Final = "readers"
_REQUEST_LOG: Final = "request_log"
_SCOPE: Final = "scope"
_SECRETS: Final = "secrets"
_STATE: Final = "state"
_STATUS: Final = "status"
_SPINE: Final = (
    _FEEDS,
    _OBSERVERS,
    _QUOTA_SOURCE,
    _READERS,
    _REQUEST_LOG,
    _SCOPE,
    _SECRETS,
    _STATE,
    _STATUS,
)
"""Parts of the spine that the throttle does not need; their tasks are supervised too."""


@dataclass(frozen=True, slots=True)
class Composition:
    """A daemon before it runs.

    Attributes:
        board: the board.
        source: the source of observations, a context manager to enter; None when disabled.
        leave: writes the last state, and waits for the disk.
        vital: name -> a task whose end ends the daemon.
        supervised: part and name -> a task that is restarted.
        capabilities: the optional parts.
        failures: the failures of optional parts.
        reload: handles SIGHUP.
        servers: the servers, which are bound already.
    """

    board: Board
    source: KafkaVolumeSource | None
    leave: Callable[[], Awaitable[object]]
    vital: Mapping[str, Task]
    supervised: Sequence[tuple[str, str, Task]]
    capabilities: Sequence[Capability]
    failures: CapabilityFailures
    reload: Reload
    servers: Sequence[HttpServer]


async def compose(
    settings: Settings,
    load: Callable[[], Settings],
    connections: Connections,
    machine: Machine | None = None,
) -> Composition:
    """Build every part, in a running loop, and bind the addresses; a disk may hang.

    Args:
        settings: the loaded settings.
        load: loads the settings again, for SIGHUP; raises SidecarError if they can't be used.
        connections: limits the number of clients.
        machine: the machine of the daemon; None for this one.

    Raises:
        SidecarError: the daemon can't start, because an address is taken or a file can't be read.
    """
    # In a thread, because a disk may hang, and a signal has to end the daemon all the same.
    stamps, settings, files = await OwnThreads("files of the start").call(_read, settings, load)
    machine = machine or Machine()
    clock = machine.clock
    tokens = Tokens(files.token, clock.now, lambda: secrets.look(settled=False))
    credentials = Credentials(
        tokens, settings.kafka_admin, expiries_of(settings.kafka_admin), files.tls
    )
    factors = _factors(settings)
    board, writer = await _board(settings, factors, machine)
    failures = CapabilityFailures((*CAPABILITIES, *_SPINE))
    request_log = (
        LogReader(file, settings.request_log_layout)
        if (file := settings.request_log_file)
        else None
    )
    observers: Observers | None = None
    polls = factors is not None and files.factor_source is None and bool(settings.kafka_admin)
    contents = _contents(board, credentials) if polls else None
    services = Services(
        board=board,
        wall=clock.wall,
        tokens=tokens,
        persist=_persist_nowhere if writer is None else writer.persist,
        request_log=request_log,
        failures=failures,
        is_observer=lambda: observers is None or observers.is_observer,
        is_first=lambda: observers is None or observers.is_first,
        trust=files.tls.trust,
        contents=contents,
        fetch_sizes=_fetch_sizes(credentials, board) if polls else None,
        followed=lambda: [
            each.address
            for each in (() if observers is None else observers.followed)
            if not each.is_self and each.failure is None
        ],
    )
    capabilities = build_all(files.capabilities, services)
    registry = build_registry(board, clock.wall, settings.runbooks_url)
    supervised = tasks_of(capabilities, failures)
    supervised += _quota_writer(files, board, credentials, services)
    supervised += [] if writer is None else [(_STATE, "state writer", writer.run)]
    if request_log is not None and factors is not None:
        supervised.append((_REQUEST_LOG, "request log", request_log.run))
    source: KafkaVolumeSource | None = None
    seen: ObservationLog | None = None
    timing = _timing(settings)
    vital = _factor_poller(files, board, timing, registry)
    if vital:
        supervised.append((_READERS, "readers of the factor", ReaderWatch(board).run))
    elif factors is not None and settings.kafka_admin is not None:
        source = KafkaVolumeSource(
            settings.kafka_admin,
            clock=clock.now,
            cluster_id=lambda: board.snapshot.memory.cluster_id,
            own_broker=settings.broker_id,
            refused=tokens.read,
        )
        supervised += _watches(board, credentials, settings, contents)
        announce = announce_to(capabilities, failures)
        poller = Poller(
            source,
            board,
            timing,
            registry.poll_duration.observe,
            announce,
            own_broker=settings.broker_id,
        )
        if settings.observers is not None:
            seen = ObservationLog(board.start_id, clock.now)
            observers, zones = _observers(settings, board, seen, announce, files.tls.trust)
            supervised += (
                (_OBSERVERS, "observers", observers.run),
                (_OBSERVERS, "zones", zones.run),
            )
            poller = _observed(poller, observers, seen)
        vital["poller"] = poller.run
    registry.register(MetricSource(partial(_metrics, board, observers, source, credentials)))
    register_metrics(registry, capabilities, failures)
    polling = Polling(
        enabled=factors is not None,
        stuck_after_s=timing.interval_s + 2 * timing.deadline_s + _STUCK_S,
        reaction_s=timing.reaction_s,
    )
    app = build_app(
        services,
        polling,
        capabilities=capabilities,
        peers=settings.peers,
        observations=seen,
        zone=_zone(settings, source),
        refusal=lambda: "" if source is None else source.refusal,
        registry=registry if settings.metrics_listen is None else None,
        user_header=settings.http_user_header,
        tools=ToolSettings.of(settings),
    )
    servers = _servers(
        (app, build_metrics_app(board, polling, registry)),
        settings,
        connections,
        machine,
        files.tls.context,
    )
    reload = Reload(load, credentials, source, capabilities, failures, settings)
    secrets = SecretFiles(reload, stamps)
    supervised.append((_SECRETS, "files with secrets", secrets.run))
    vital["expiry"] = board.publish_expiries
    vital |= {f"http {server.address}": server.serve for server in servers}
    return Composition(
        board=board,
        source=source,
        leave=services.persist if writer is None else writer.write,
        vital=vital,
        supervised=supervised,
        capabilities=capabilities,
        failures=failures,
        reload=reload,
        servers=servers,
    )


def _read(settings: Settings, load: Callable[[], Settings]) -> tuple[Stamps, Settings, StartFiles]:
    # In this order, so that no change of a file is missed.
    stamps = stamps_of(secret_files(settings))
    settings = read_again(settings, load)
    return stamps, settings, read_start_files(settings)


def _metrics(
    board: Board,
    observers: Observers | None,
    source: KafkaVolumeSource | None,
    credentials: Credentials,
) -> Iterator[Metric]:
    is_refused = source is not None and bool(source.refusal)
    former_uses = {"broker": is_refused, "token": credentials.tokens.is_former_used}
    yield from broker_metrics(board)
    yield from credential_metrics({**credentials.expiries, **credentials.tls.expiries}, former_uses)
    yield from observer_metrics(observers)
    yield from request_throttle_metrics(0.0 if source is None else source.throttled_s)


def _timing(settings: Settings) -> Timing:
    return Timing(settings.check_interval_s, settings.check_interval_minimum_s, settings.observers)


def _factors(settings: Settings) -> VolumeLimit | None:
    decides = settings.limit is not None or settings.factor_source is not None
    if settings.check_interval_s == 0.0 or not decides:
        return None
    return VolumeLimit(settings.rules, settings.fallback, is_of_volumes=settings.scope == "volume")


def _factor_poller(
    files: StartFiles, board: Board, timing: Timing, registry: SidecarRegistry
) -> dict[str, Task]:
    """Return the task that calls the factor source; empty if the volumes decide."""
    if files.factor_source is None or timing.interval_s == 0.0:
        return {}
    observe = registry.poll_duration.observe
    return {"poller": FactorPoller(files.factor_source, board, timing, observe).run}


def _quota_writer(
    files: StartFiles, board: Board, credentials: Credentials, services: Services
) -> Iterator[tuple[str, str, Task]]:
    """Return the task that sets the quotas of a quota source."""
    if files.quota_source is not None:
        wanted, admin = services.is_observer, lambda: credentials.kafka_admin
        writer = QuotaWriter(files.quota_source, board, admin, wanted)
        yield _QUOTA_SOURCE, "quotas of the quota source", writer.run


async def _board(
    settings: Settings, factors: VolumeLimit | None, machine: Machine
) -> tuple[Board, StateWriter | None]:
    """Build the board with the state of an earlier run, and the writer of the state."""
    clock = machine.clock
    state = _state_file(settings.state_file, factors, machine.disk)
    restored, late, unread = None, None, ""
    if state is not None:
        restored, late, unread = await remembered(state, clock.now())
    board = Board(
        _factor_source(factors, settings),
        clock.now,
        leak_rules=settings.leak_rules,
        restored=restored,
        unread=unread,
        listeners=(log_publication, MisfitLog()),
        start_id=machine.start_id(),
    )
    if state is None:
        return board, None
    return board, StateWriter(board, state, clock.wall, late)


def _factor_source(factors: VolumeLimit | None, settings: Settings) -> Decider:
    if factors is None:
        return Disabled(settings.rules)
    if settings.mode == "observe":
        _log.warning(
            "SIDECAR_MODE=observe: the sidecar publishes its decisions, and throttles nobody"
        )
        return replace(factors, is_enforced=False)
    return factors


def _state_file(path: Path | None, factors: VolumeLimit | None, disk: Disk) -> StateFile | None:
    if factors is None:
        return None
    if path is None:
        _log.info(
            "SIDECAR_STATE_FILE is not set: a restart forgets the decision, the override, and the "
            "last volumes of brokers that are down. So a full broker that restarts together with "
            "the sidecar releases the throttle"
        )
        return None
    return StateFile(path, factors.rules, disk)


def _contents(board: Board, credentials: Credentials) -> VolumeContents:
    """Build the only reader of what lies on volumes near a limit, and on those that pages show."""
    ask = _ask_one_broker(credentials, board, largest_topics, _CONTENTS_S)
    place = _ask_one_broker(credentials, board, placement, _PLACEMENT_S)
    moves = _ask_one_broker(credentials, board, receiving, _PLACEMENT_S)
    return VolumeContents(ask, board.now, place, receiving=moves)


def _fetch_sizes(credentials: Credentials, board: Board) -> FetchSizes:
    async def fetch(
        topics: Mapping[int, Mapping[str, Sequence[int]]],
    ) -> Mapping[int, Sequence[Replicas] | Failure] | Failure:
        return await ask_known_cluster(credentials.kafka_admin, board, sizes_of, _SIZES_S, topics)

    return fetch


def _watches(
    board: Board, credentials: Credentials, settings: Settings, contents: VolumeContents | None
) -> Iterator[tuple[str, str, Task]]:
    """Return the tasks that read leaders and topics, which a throttle needs, and its readers."""
    if contents is not None:
        yield _STATUS, "contents of volumes", contents.run
    feeds = FeedWatch(board, _ask_one_broker(credentials, board, fed_brokers, _FED_S))
    yield _FEEDS, "whom brokers feed", feeds.run
    yield _READERS, "readers of the factor", ReaderWatch(board).run
    if settings.scope == "volume":
        fetch = _ask_one_broker(credentials, board, topics_by_log_dir, _CONTENTS_S)
        scope = ContentsWatch(board, fetch, settings.check_interval_s)
        yield _SCOPE, "topics on full volumes", scope.run


def _servers(
    both: tuple[FastAPI, FastAPI],
    settings: Settings,
    connections: Connections,
    machine: Machine,
    tls: Tls | None,
) -> list[HttpServer]:
    """Bind a server for each app that has an address: the whole API, and the metrics alone."""
    app, metrics = both
    apps = [(app, settings.http_listen)]
    if settings.metrics_listen is not None:
        apps.append((metrics, settings.metrics_listen))
    servers = [HttpServer(app, at, connections, machine.listen, tls) for app, at in apps]
    addresses = " and ".join(f"{server.scheme}://{server.address}" for server in servers)
    _log.info("throttle-sidecar %s listens on %s", __version__, addresses)
    return servers


async def _persist_nowhere() -> Persistence:
    return Persistence.NONE


def _observers(
    settings: Settings,
    board: Board,
    seen: ObservationLog,
    announce: Callable[[Observation], None],
    trust: Trust,
) -> tuple[Observers, Zones]:
    """Build the part that follows observers and publishes their observations here."""

    def take(observation: Observation) -> None:
        board.observe(observation)
        announce(observation)

    def known_cluster_id() -> str | None:
        return board.snapshot.memory.cluster_id

    def whole_at() -> float | None:
        return board.snapshot.memory.membership_at

    def read_at(broker_id: int) -> float | None:
        state = board.snapshot.memory.brokers.get(broker_id)
        return None if state is None else state.read_at

    count = settings.observers or len(settings.peers)
    timing = _timing(settings)
    longest_s = timing.interval_s + timing.deadline_s
    sight = Sight(seen, take, known_cluster_id, whole_at, longest_s, read_at)
    addresses = Addresses(settings.peers, board.now)
    zones = Zones(addresses, trust=trust)
    return Observers(addresses, count, sight, zones=lambda: zones.known, trust=trust), zones


def _zone(settings: Settings, source: KafkaVolumeSource | None) -> Callable[[], str | None]:
    """Return a function for this sidecar's zone, which may be the rack of its own broker."""

    def zone() -> str | None:
        own = settings.broker_id
        if settings.zone is not None or source is None or own is None:
            return settings.zone
        return source.racks.get(own)

    return zone


def _observed(poller: Poller, observers: Observers, seen: ObservationLog) -> Poller:
    """Build the poller, which polls while this sidecar is an observer, also for its followers."""

    def observed(observation: Observation) -> None:
        poller.observed(observation)
        seen.add(observation)

    def is_wanted() -> bool:
        return observers.is_observer

    return replace(poller, observed=observed, is_wanted=is_wanted, planned=seen.plan)


def _ask_one_broker(
    credentials: Credentials,
    board: Board,
    ask: Callable[Concatenate[KafkaAdmin, int, float, _P], Awaitable[_T]],
    deadline_s: float,
) -> Callable[Concatenate[int, _P], Awaitable[_T | Failure]]:
    """Return a function that asks one broker of the known cluster, as credentials are then."""

    async def fetch(broker_id: int, /, *args: _P.args, **kwargs: _P.kwargs) -> _T | Failure:
        # Without credentials it fails. Polls still use the password that was read before.
        return await ask_known_cluster(
            credentials.kafka_admin, board, ask, broker_id, deadline_s, *args, **kwargs
        )

    return fetch
