"""The readers: the brokers whose quota callbacks read this sidecar, with their reports.

A reader is remembered for 10 min after its last request, which is longer than any answer takes.
Anyone who reaches the API can claim to be any broker. So these reports are shown to people, and no
decision depends on them (``sidecar.control.feed_watch`` asks the broker itself).

Example: a request of broker 3 came at 100 s and waits. Broker 3 is remembered until 700 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from sidecar.throttle.validity import is_valid

REMEMBERED_S: Final = 600.0
"""Twice the longest wait of a request."""

MOMENT_S: Final = 10.0
"""The longest time between two requests of a reader. A callback needs half a second."""

MOST: Final = 1000
"""Each takes 200 bytes, 5 kB more with refused clients, and at most 100 kB with the longest report.
Usually there is one reader, the broker beside this sidecar."""


RATE_S: Final = 10.0
"""The window of a rate of refusals. It reaches to the next report, so it is 20 s at most where a
broker reports every 10 s. After the first report it is shorter."""


Enforcement = Literal["callback", "client-quotas", "none"]
"""What enforces the decision, as in SIDECAR_ENFORCEMENT."""


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client with the number of its produce requests that a broker has refused."""

    principal: str
    client_id: str
    requests: int


@dataclass(frozen=True, slots=True)
class ScopedClient:
    """A client that a throttle is for, with the bytes that it has written during the throttle."""

    principal: str
    client_id: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Refusals:
    """The produce requests that a broker's authorizer has refused since the broker's start.

    Attributes:
        new_connection: refused on connections that are newer than the throttle.
        stop_line: refused because the stop line was reached.
        release: refused after a release, of clients that had been refused before it.
        clients: the clients with the most refusals since the last throttle began, most first.
        logged: whether the broker logs each as an error, which can't be filtered there.
    """

    new_connection: int = 0
    stop_line: int = 0
    release: int = 0
    clients: tuple[RefusedClient, ...] = ()
    logged: bool = False

    @property
    def total(self) -> int:
        """All of them."""
        return self.new_connection + self.stop_line + self.release


@dataclass(frozen=True, slots=True)
class RefusalRates:
    """Produce requests that a broker refuses, a second.

    Attributes:
        new_connection: as in ``Refusals``.
        stop_line: as in ``Refusals``.
        release: as in ``Refusals``.
        clients: (principal, client-id) -> the rate of each reported client.
    """

    new_connection: float = 0.0
    stop_line: float = 0.0
    release: float = 0.0
    clients: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """All of them."""
        return self.new_connection + self.stop_line + self.release


@dataclass(frozen=True, slots=True)
class Reserve:
    """The file in a log dir whose bytes a broker gets back when it starts on a full volume.

    Attributes:
        log_dir: the log dir's path.
        nbytes: its bytes; 0 after the broker started from it, until a new one is made.
    """

    log_dir: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a quota callback.

    Attributes:
        broker_id: the node id of its broker.
        emergency: whether its pauses are longer than usual, because a volume will soon be full.
        throttled_clients: how many of its clients (tag sets of quotas) it throttles.
        fault: why it may fail to throttle some clients, such as "not-asked"; None without a fault.
        refusals: the refusals of its authorizer; None without an authorizer.
        in_scope: the clients that the throttle is for, those that wrote most first; empty where the
            throttle is for all clients.
        kafka_version: the broker's version of Kafka; None if it did not report one.
        jar_version: the version of the callback's jar; None if it did not report one.
        reserves: the reserves of its log dirs; empty without any.
    """

    broker_id: int
    emergency: bool
    throttled_clients: int
    fault: str | None = None
    refusals: Refusals | None = None
    in_scope: tuple[ScopedClient, ...] = ()
    kafka_version: str | None = None
    jar_version: str | None = None
    reserves: tuple[Reserve, ...] = ()

    @property
    def released(self) -> tuple[str, ...]:
        """The log dirs where the broker started from its reserve and has no new one."""
        return tuple(each.log_dir for each in self.reserves if each.nbytes == 0)

    def reserve_bytes(self, log_dir: str) -> int:
        """The bytes of the reserve in a log dir; 0 without one."""
        return sum(each.nbytes for each in self.reserves if each.log_dir == log_dir)


@dataclass(slots=True)
class Reader:
    """A broker whose quota callback reads this sidecar.

    Attributes:
        report: its last report.
        seen_at: when that report came, steady seconds.
        generation: the newest generation that it is known to have; None while none is known.
        waiting: how many of its requests wait for a change now.
        earlier: up to two earlier reports from which rates may begin, at least ``RATE_S`` apart,
            each with the time when it came.
    """

    report: Report
    seen_at: float
    generation: int | None = None
    waiting: int = 0
    earlier: tuple[tuple[float, Report], ...] = ()

    def note(self) -> None:
        """Keeps the last report if a rate may begin there, without what no rate needs."""
        report = replace(self.report, reserves=())
        # A rate over a restart of the broker would be negative, so it begins after the restart.
        if not self.earlier or _restarted(self.earlier[-1][1], self.report):
            self.earlier = ((self.seen_at, report),)
        elif self.seen_at - self.earlier[-1][0] >= RATE_S:
            # Two are kept: a rate from the older one covers at least ``RATE_S``, also just after a
            # new one came.
            self.earlier = (self.earlier[-1], (self.seen_at, report))

    def refusal_rates(self) -> RefusalRates:
        """The refusals per second until the last report."""
        began, report = self.earlier[0]
        before, now, seconds = report.refusals, self.report.refusals, self.seen_at - began
        if before is None or now is None or seconds <= 0.0:
            return RefusalRates()
        return RefusalRates(
            (now.new_connection - before.new_connection) / seconds,
            (now.stop_line - before.stop_line) / seconds,
            (now.release - before.release) / seconds,
            _rates(
                {(each.principal, each.client_id): each.requests for each in before.clients},
                {(each.principal, each.client_id): each.requests for each in now.clients},
                seconds,
            ),
        )

    def scope_rates(self) -> Mapping[tuple[str, str], float]:
        """(principal, client-id) -> the bytes/s that a client in scope writes."""
        began, before = self.earlier[0]
        return _rates(
            {(each.principal, each.client_id): each.nbytes for each in before.in_scope},
            {(each.principal, each.client_id): each.nbytes for each in self.report.in_scope},
            self.seen_at - began,
        )

    def is_up_to_date(self, generation: int, now: float) -> bool:
        """Whether the reader has this generation and waits for the next, at ``now`` (steady s)."""
        # Between two of its requests a reader does not wait, although nothing is wrong with it.
        listens = self.waiting > 0 or is_valid(self.seen_at, MOMENT_S, now)
        return listens and self.generation == generation


def _restarted(before: Report, report: Report) -> bool:
    """Whether the broker's counters began again at 0."""
    if before.refusals is None or report.refusals is None:
        return before.refusals is not report.refusals
    return report.refusals.total < before.refusals.total


def _rates(
    before: Mapping[tuple[str, str], int], now: Mapping[tuple[str, str], int], seconds: float
) -> dict[tuple[str, str], float]:
    """The rate of each client. A count that is smaller than before began again at 0."""
    if seconds <= 0.0:
        return dict.fromkeys(now, 0.0)
    lasts = {key: before.get(key, 0) for key in now}
    return {
        key: (count - (lasts[key] if lasts[key] <= count else 0)) / seconds
        for key, count in now.items()
    }


@dataclass(frozen=True, slots=True)
class ReaderCounts:
    """How many brokers read the decision here, so that it has an effect.

    Attributes:
        readers: the brokers that sent a report in the last 10 minutes.
        authorizers: those of them whose authorizer can refuse produce requests.
        enforcement: what is to enforce the decision, as in SIDECAR_ENFORCEMENT.
        lowered: how many produce quotas the sidecar has lowered in Kafka.
        near: for which volume they are lowered before its limit, in words; "" for none.
    """

    readers: int
    authorizers: int
    enforcement: Enforcement = "callback"
    lowered: int = 0
    near: str = ""

    @property
    def enforces(self) -> bool:
        """Whether somebody is throttled when the decision throttles producers."""
        return self.readers > 0 or self.lowered > 0

    @property
    def are(self) -> str:
        """The verb of an effect: without a reader or a lowered quota, nobody is throttled."""
        return "are" if self.enforces else "would be"

    @property
    def can_refuse(self) -> bool:
        """Whether the stop line refuses, or would with the quota callback and its authorizer."""
        may = self.enforcement == "callback" and not self.enforces
        return self.authorizers > 0 or may

    @property
    def stopped(self) -> str:
        """The effect of the stop line; only an authorizer can refuse."""
        does = "refused" if self.can_refuse else "throttled, not refused"
        return f"producers {self.are} {does}"

    @property
    def of_users(self) -> "ReaderCounts":
        """The counts for throttles of single users, which client quotas do not enforce."""
        return replace(self, lowered=0)

    @property
    def unenforced(self) -> tuple[str, str]:
        """Why nobody is throttled, and the words before what would happen otherwise."""
        return _UNENFORCED[self.enforcement]


_UNENFORCED: Final[Mapping[Enforcement, tuple[str, str]]] = {
    "callback": ("No broker reads this sidecar, so it throttles nobody.", "With a reader,"),
    "client-quotas": (
        "No client quota is lowered now, so nobody is throttled.",
        "Once quotas are lowered,",
    ),
    "none": ("SIDECAR_ENFORCEMENT=none: this sidecar throttles nobody.", "With an enforcement,"),
}


NO_READERS: Final = ReaderCounts(0, 0)


class Readers:
    """The brokers that sent a report, by node id.

    Attributes:
        enforcement: what is to enforce the decision, as in SIDECAR_ENFORCEMENT.
        lowered: how many produce quotas the sidecar has lowered in Kafka.
        near: for which volume they are lowered before its limit, in words; "" for none.
        steering: the brokers whose volumes decide how far they are lowered.
        unslowed: the owners past their soft bytes whose principals would need too many quotas.
    """

    def __init__(self) -> None:
        self._known: dict[int, Reader] = {}
        self.enforcement: Enforcement = "callback"
        self.lowered = 0
        self.near = ""
        self.steering: frozenset[int] = frozenset()
        self.unslowed: frozenset[str] = frozenset()

    def record(self, report: Report, generation: int | None, now: float) -> Reader:
        """Remembers a report, and returns its reader.

        Args:
            report: the newest report.
            generation: the current generation when the broker has it, else None.
            now: steady seconds.
        """
        reader = self._known.pop(report.broker_id, None) or Reader(report, now)
        reader.report = report
        reader.seen_at = now
        reader.note()
        if generation is not None:
            reader.generation = generation
        # Anyone can claim to be a thousand brokers, so the readers are bounded. Each report moves
        # its reader to the end, so the first was silent for longest.
        self._known[report.broker_id] = reader
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return reader

    def report_of(self, broker_id: int) -> Report | None:
        """The last report of a broker; None without one."""
        reader = self._known.get(broker_id)
        return None if reader is None else reader.report

    def recent(self, now: float) -> list[Reader]:
        """The readers remembered at ``now`` (steady seconds), by broker id; forgets the others."""
        self._known = {
            broker_id: reader
            for broker_id, reader in self._known.items()
            if is_valid(reader.seen_at, REMEMBERED_S, now)
        }
        return [self._known[broker_id] for broker_id in sorted(self._known)]

    def counts(self, now: float) -> ReaderCounts:
        """Count the readers remembered at ``now`` (steady seconds)."""
        recent = self.recent(now)
        authorizers = sum(each.report.refusals is not None for each in recent)
        return ReaderCounts(len(recent), authorizers, self.enforcement, self.lowered, self.near)
