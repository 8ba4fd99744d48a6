"""The capability for quotas on producer ids (KIP-936).

Ids come from the request log and from other sidecars. The capability throttles users above their
quota, under its own name. It does not run if the check interval is PT0S, because nobody can be
throttled then. It asks brokers and other sidecars only while there is a quota.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.control.board import Board
from sidecar.control.capability import Block, Build, Capability, Services, Task
from sidecar.control.known_cluster import ask_known_cluster
from sidecar.kafka.active_producers import ActiveProducers
from sidecar.kafka.client_quotas import alter_each, describe_client_quotas
from sidecar.peers.addresses import Addresses
from sidecar.peers.exchange import AllocatedIdLog, Peers
from sidecar.producer_ids.active_watch import ActiveIdWatch
from sidecar.producer_ids.metrics import id_metrics
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.producer_ids.request_quotas import Alter, Describe, RequestQuotaEnforcer
from sidecar.producer_ids.retained import NAME, Retained
from sidecar.producer_ids.routes import IdParts, add_producer_ids
from sidecar.producer_ids.service import ProducerIdWatch, user_throttles_of
from sidecar.quotas.producer_ids.active_ids import ActiveIds
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota, ProducerIdQuotas
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.line import Line
from sidecar.settings import KafkaAdmin, Settings

_log = logging.getLogger(__name__)


def prepare(settings: Settings) -> Build:
    """Read the file of quotas, and return the function that builds the capability.

    Raises:
        SettingsError: the file can't be read, or its contents are invalid.
    """
    path = settings.producer_id_quota_file
    file = None if path is None else IdQuotaFile(path)
    quotas = None if file is None else file.load()
    return lambda services: ProducerIdCapability(settings, services, file, quotas)


class ProducerIdCapability(Capability):
    """Counts the producer ids of each user, and throttles users above their quota."""

    name = NAME
    leave_s = 1.0
    """The time to remove the quotas that were set in Kafka, at a stop."""

    def __init__(
        self,
        settings: Settings,
        services: Services,
        file: IdQuotaFile | None,
        quotas: ProducerIdQuotas | None,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: the daemon's settings.
            services: the daemon's services.
            file: the file of users' quotas, which is followed; None if there is none.
            quotas: the file's current contents.

        Raises:
            SettingsError: certificates or credentials can't be read.
        """
        board = services.board
        is_enabled = settings.check_interval_s > 0.0
        self._services = services
        self._file = file
        self._retained = Retained(board)
        self._watch = ProducerIdWatch(
            board,
            self._retained,
            settings.id_counting,
            ProducerIdQuota(settings.producer_ids_rate),
            settings.producer_id_quota_cache_cleanup_scheduler_interval_ms / 1000,
            file=quotas,
        )
        self._allocated = AllocatedIdLog(board.start_id, board.now)
        self._producers = _producers(settings, board)
        self._active = self._active_watch(settings)
        self._peers = self._ask_peers(settings.peers)
        self._enforcer = self._request_quotas(settings) if is_enabled else None
        self._parts = IdParts(
            self._watch,
            self._allocated,
            self._peers,
            is_enabled=is_enabled,
            active=self._active,
            counts=settings.producer_id_quota_counts,
            user_header=settings.http_user_header,
        )
        has_log = services.subscribe(NAME, self._on_line, self._is_limited)
        if not has_log and is_enabled and self._is_limited():
            _log.warning(
                "there are producer id quotas, but no SIDECAR_REQUEST_LOG_FILE: the ids that the "
                "broker beside this sidecar allocates are not seen, and nobody is throttled for "
                "them"
            )

    def tasks(self) -> Mapping[str, Task]:
        """The tasks that count ids, and the one that sets request quotas."""
        if not self._parts.is_enabled:
            return {}
        tasks: dict[str, Task] = {"producer ids": self._watch.run}
        if self._active is not None:
            tasks["active producer ids"] = self._active.run
        if self._peers is not None:
            tasks["peers"] = self._peers.run
        if self._file is not None:
            tasks["producer id quota file"] = partial(self._file.run, self._watch.set_file)
        if self._enforcer is not None:
            tasks["request quotas"] = self._enforcer.run
        return tasks

    def add_routes(self, app: FastAPI) -> None:
        """The routes for ids and quotas, and for the ids that other sidecars read."""
        add_producer_ids(app, self._services, self._parts)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of users, ids and other sidecars."""
        return id_metrics(self._watch, self._peers, self._active)

    def block(self) -> Block | None:
        """A notice with the number of throttled users, if there are any."""
        board = self._services.board
        throttled = user_throttles_of(board)
        if not throttled:
            return None
        # Kafka enforces a request_percentage that it has, also if no broker reads the factor.
        enforced = self._enforcer is not None and throttled.keys() <= self._enforcer.enforced
        counts = board.readers.counts(board.now())
        one = len(throttled) == 1
        are = ("is" if one else "are") if enforced or counts.readers else "would be"
        users = "1 user" if one else f"{len(throttled)} users"
        sentence = f"{users} {are} throttled for opening too many producer ids."
        return Block("Producer ids", (sentence,), "/v1/producer-ids")

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:
        """Use new addresses and credentials."""
        admin, producers, enforcer = settings.kafka_admin, self._producers, self._enforcer
        change = None
        if producers is not None and admin is not None:
            change = producers.reload(admin, redial=redial)

        def apply() -> None:
            if change is not None:
                change()
            if enforcer is not None and admin is not None:
                enforcer.describe, enforcer.alter = _quota_calls(admin, self._services.board)

        return apply

    async def leave(self, timeout_s: float) -> None:
        """Remove the quotas that were set in Kafka, and close connections."""
        leaving = [] if self._enforcer is None else [self._enforcer.leave(timeout_s)]
        closing = [] if self._producers is None else [self._producers.close()]
        await asyncio.gather(*leaving, *closing)

    def _is_limited(self) -> bool:
        return any(each.quota.producer_ids_rate is not None for each in self._watch.quotas.values())

    def _on_line(self, line: Line) -> None:
        allocated = producer_id(line)
        if allocated is None:
            return
        self._allocated.add(line.user, allocated)
        count = self._watch.seen if self._active is None else self._active.allocated
        count(line.user, allocated)

    def _active_watch(self, settings: Settings) -> ActiveIdWatch | None:
        if self._producers is None:
            return None
        services = self._services
        of_all_brokers = settings.broker_id is None
        window_s = settings.id_counting.window_size_s
        interval_s = settings.producer_id_quota_active_interval
        return ActiveIdWatch(
            self._producers,
            ActiveIds(window_s * 1000, int(interval_s * 1000)),
            self._watch.seen,
            partial(self._allocated.add, wrote=True),
            services.board.now,
            interval_s=interval_s,
            is_wanted=lambda: self._is_limited() and (not of_all_brokers or services.is_observer()),
        )

    def _ask_peers(self, urls: tuple[str, ...]) -> Peers | None:
        if not urls:
            return None
        addresses = Addresses(urls, self._services.board.now)
        wanted, trust, active = self._is_limited, self._services.trust, self._active
        window_s = self._watch.settings.window_size_s
        if active is None:
            return Peers(addresses, self._watch.seen, None, wanted, trust, window_s)
        return Peers(addresses, active.allocated, active.wrote, wanted, trust, window_s)

    def _request_quotas(self, settings: Settings) -> RequestQuotaEnforcer | None:
        has_source = self._services.request_log is not None or self._peers is not None
        # Without a source nobody is throttled, but an earlier run may have left quotas in Kafka.
        is_needed = has_source or self._retained.enforced_request_percentages
        if settings.kafka_admin is None or not is_needed:
            return None
        return RequestQuotaEnforcer(
            self._services.board,
            self._retained,
            self._watch.quota_of,
            *_quota_calls(settings.kafka_admin, self._services.board),
            self._services.persist,
        )


def _producers(settings: Settings, board: Board) -> ActiveProducers | None:
    # Without known owners, a scan would count nothing.
    has_owners = settings.request_log_file is not None or bool(settings.peers)
    is_asked = (
        settings.producer_id_quota_counts == "active"
        and settings.check_interval_s > 0.0
        and has_owners
    )
    if not is_asked or settings.kafka_admin is None:
        return None
    return ActiveProducers(
        settings.kafka_admin,
        settings.broker_id,
        board.now,
        cluster_id=lambda: board.snapshot.memory.cluster_id,
    )


def _quota_calls(admin: KafkaAdmin, board: Board) -> tuple[Describe, Alter]:
    return (
        lambda: ask_known_cluster(admin, board, describe_client_quotas),
        lambda alterations: ask_known_cluster(admin, board, alter_each, alterations),
    )
