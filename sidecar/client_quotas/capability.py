"""The capability for a throttle by client quotas (SIDECAR_ENFORCEMENT=client-quotas).

With another enforcement it lowers nothing. It restores what an earlier run has lowered, which the
state file or the cluster tells.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.client_quotas.aiven import aiven_quotas
from sidecar.client_quotas.broker_metrics import BrokerMetrics
from sidecar.client_quotas.log_watch import DEADLINE_S, PATH, LogWatch
from sidecar.client_quotas.metrics import quota_metrics
from sidecar.client_quotas.plan import Ledger
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.client_quotas.retained import NAME, read_kept
from sidecar.client_quotas.routes import add_writers
from sidecar.client_quotas.service import QuotaThrottle
from sidecar.client_quotas.writers import BrokerWriters, LoggedRates, TopicWriters
from sidecar.client_quotas.written import Written
from sidecar.control.capability import Block, Build, Capability, Services, Task
from sidecar.control.known_cluster import ask_known_cluster, in_known_cluster
from sidecar.formats.quantities import format_size
from sidecar.kafka.topic_ids import names_of
from sidecar.peers.addresses import Address, Addresses
from sidecar.requestlog.reader import LogReader
from sidecar.requestlog.rejected import RejectedKind
from sidecar.settings import Settings
from sidecar.throttle.decision import Source
from sidecar.volumes import Failure

_NAMED: Final = 5
_LONGEST_ANSWER: Final = 4 << 20
_CAN_NOT: Final = (
    "Client quotas refuse nobody and fall in steps, to {floor} a second for each quota on each "
    "broker: volumes fill further meanwhile."
)
_UNSEEN: Final = (
    "The metrics of {brokers} show no client. Kafka measures clients once there is a produce "
    "quota, and the exporter may need a rule for that."
)


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability; it never prevents a start."""
    return lambda services: ClientQuotaCapability(settings, services)


class ClientQuotaCapability(Capability):
    """Lowers produce quotas while producers are throttled, and restores them."""

    name = NAME

    def __init__(self, settings: Settings, services: Services) -> None:
        """Start nothing yet; only read what an earlier run has noted."""
        board = services.board
        self._board = board
        self._admin = settings.kafka_admin
        lowers = settings.enforcement == "client-quotas"
        board.readers.enforcement = settings.enforcement
        self._throttle: QuotaThrottle | None = None
        if settings.check_interval_s > 0.0:
            self._throttle = QuotaThrottle(
                board,
                aiven_quotas(settings)
                or KafkaQuotas.of(lambda: self._admin and in_known_cluster(self._admin, board)),
                settings.client_quota_floor,
                services.persist,
                lowers,
                services.is_observer,
                Ledger(read_kept(board)),
                settings.broker_id,
            )
            if lowers and settings.broker_metrics_urls:
                urls = dict(settings.broker_metrics_urls)
                self._throttle.metrics = BrokerMetrics(urls, board.now)
            if lowers and services.request_log is not None:
                has_scope = settings.scope == "volume"
                writers = TopicWriters() if has_scope else None
                self._throttle.written = _written(services, services.request_log, writers)
                self._throttle.logs = self._logs(services, settings.peers, has_scope=has_scope)

    def _logs(self, services: Services, peers: Sequence[str], *, has_scope: bool) -> LogWatch:
        """Ask other sidecars what their brokers' request logs tell, during a throttle."""

        async def ask(address: Address) -> BrokerWriters:
            return await services.trust.get(
                address, PATH, BrokerWriters, deadline_s=DEADLINE_S, longest_answer=_LONGEST_ANSWER
            )

        async def names(broker_id: int, ids: Sequence[str]) -> Mapping[str, str] | Failure:
            return await ask_known_cluster(
                self._admin, self._board, names_of, broker_id, DEADLINE_S, ids
            )

        addresses = Addresses(peers, self._board.now) if peers else None
        return LogWatch(self._board, self._writers, addresses, ask, names, has_scope=has_scope)

    def _writers(self) -> BrokerWriters:
        """What this sidecar tells other sidecars."""
        throttle, memory, now = self._throttle, self._board.snapshot.memory, self._board.now()
        written = None if throttle is None else throttle.written
        if throttle is None or written is None:
            return BrokerWriters(None, memory.cluster_id, False, [])
        broker_id = throttle.broker_id
        if broker_id is None and len(memory.active) == 1:
            broker_id = next(iter(memory.active))
        found, writers = written.rates(now), written.writers
        rates = None
        if found is not None:
            rates = LoggedRates(found.user, found.client_id, found.both)
        # Without the scope of volumes nobody counts who writes where, so that is not known.
        is_whole = found is not None and writers is not None
        known = [] if writers is None else [*writers.known(now)]
        return BrokerWriters(broker_id, memory.cluster_id, is_whole, known, rates)

    def add_routes(self, app: FastAPI) -> None:
        """The route for other sidecars."""
        add_writers(app, self._writers)

    def tasks(self) -> Mapping[str, Task]:
        """The task that lowers and restores quotas."""
        return {} if self._throttle is None else {"client quotas": self._throttle.run}

    def metrics(self) -> Iterator[Metric]:
        """The metrics of lowered quotas."""
        return quota_metrics(self._board.readers.enforcement, self._throttle)

    def observed(self, observation: object) -> None:  # noqa: ARG002 - the protocol's
        """Note how fast brokers fill."""
        if self._throttle is not None:
            self._throttle.observe(self._board.snapshot.memory)

    def block(self) -> Block | None:
        """A notice of which quotas are lowered; None with another enforcement."""
        throttle = self._throttle
        if throttle is None or not (throttle.lowers or throttle.ledger.kept):
            return None
        return Block("Client quotas", tuple(_sentences(throttle)))

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:  # noqa: ARG002 - the protocol's
        """Use new addresses and credentials from the next request on."""

        def apply() -> None:
            self._admin = settings.kafka_admin

        return apply


def _written(services: Services, log: LogReader, writers: TopicWriters | None) -> Written:
    """Count what clients write. Fill rates do without the log, so it is not needed."""

    def unread() -> tuple[int, int]:
        counts = log.counts
        rejected = sum(log.usage.rejected.values()) - log.usage.rejected[RejectedKind.OTHER]
        dropped = counts.dropped_lines + counts.dropped_bytes + counts.dropped_files
        return dropped + rejected, log.behind

    written, now = Written(writers, unread), services.board.now
    services.subscribe(NAME, lambda line: written.count(line, now()), lambda: False)
    return written


def _sentences(throttle: QuotaThrottle) -> Iterator[str]:
    lowered = throttle.lowered
    if throttle.board.snapshot.decision.source is Source.SHADOW:
        count = throttle.would_lower
        if count:
            yield f"In enforce mode {_quotas(count)} would be lowered."
    if lowered:
        lowest = format_size(round(min(lowered.values())))
        are = "is" if len(lowered) == 1 else "are"
        yield (
            f"{_quotas(len(lowered)).capitalize()} {are} lowered; the lowest is {lowest} a second "
            'on each broker. "throttle-sidecar quotas status" shows them with the originals.'
        )
    else:
        yield "No produce quota is lowered now."
    if (scoped := throttle.in_scope) is not None:
        yield scoped.sentence
        if scoped.why and throttle.logs is not None and throttle.logs.failure:
            yield throttle.logs.failure
    if users := sorted(map(str, throttle.slowed)):
        more = ", ..." if len(users) > _NAMED else ""
        yield f"Storage budgets slow these users: {', '.join(users[:_NAMED])}{more}."
    if throttle.lowers:
        yield from _sources(throttle)
    if left := throttle.ledger.left:
        names = "; ".join(map(str, left[:_NAMED]))
        yield f"Left alone, because somebody else sets these quotas back: {names}."
    if throttle.failure:
        yield f"Quotas can't be read or set: {throttle.failure}."
    yield _CAN_NOT.format(floor=format_size(round(throttle.floor)))


def _sources(throttle: QuotaThrottle) -> Iterator[str]:
    """What tells how much clients write, and how coarse that is."""
    rates = throttle.shown_rates
    sources = []
    if None in rates.by_log:
        sources.append("the request log of the broker beside this sidecar")
    if known := [broker_id for broker_id in rates.by_log if broker_id is not None]:
        sources.append(f"the request log{'' if len(known) == 1 else 's'} of {_brokers(known)}")
    if rates.by_metrics:
        sources.append(f"the metrics of {_brokers(rates.by_metrics)}, averages of 11 s")
    if rates.by_fill:
        sources.append(
            f"the fill rates of {_brokers(rates.by_fill)}, with N equal clients N times too high"
        )
    yield f"What clients write is known from {'; '.join(sources) or 'no source yet'}."
    if throttle.metrics is None:
        return
    failures = throttle.metrics.failures
    for broker_id, failure in sorted(failures.items())[:_NAMED]:
        yield f"The metrics of broker {broker_id} can't be read: {failure}."
    if unseen := throttle.metrics.unseen:
        yield _UNSEEN.format(brokers=_brokers(unseen))


def _brokers(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:_NAMED])) + (", ..." if len(ids) > _NAMED else "")
    return f"broker{'' if len(ids) == 1 else 's'} {named}"


def _quotas(count: int) -> str:
    return "1 produce quota" if count == 1 else f"{count} produce quotas"
