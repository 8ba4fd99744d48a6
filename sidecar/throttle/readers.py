"""Who follows the factor: the brokers whose callbacks request it, and what they report.

A broker is remembered for 10 min after its last request, longer than any answer takes. Anyone who
reaches the API can claim to be any broker, so this is for people to read, no decision depends on it
(whom a follower feeds is read of the broker itself, ``sidecar.control.feed_watch``), and at most
1,000 are remembered: for one more, the one that was silent for longest is forgotten.

Example: broker 3's request came at 100 s and waits; it is remembered until 700 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.throttle.validity import is_valid

REMEMBERED_S: Final = 600.0
"""Twice the longest wait."""

MOMENT_S: Final = 10.0
"""How long one may take between two requests: a callback sends the next after half a second."""

MOST: Final = 1000
"""Some 200 bytes each, 5 kB more with refused clients; usually there is one, the broker beside
this sidecar."""


RATE_S: Final = 10.0
"""A rate of refusals is over so long, or until the report after that: 20 s at most where a broker
reports every 10 s; less after its first report."""


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client, and how many of its produce requests a broker has refused."""

    principal: str
    client_id: str
    requests: int


@dataclass(frozen=True, slots=True)
class ScopedClient:
    """A client that a throttle is for, and the bytes that it has landed in it."""

    principal: str
    client_id: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Refusals:
    """The produce requests that a broker's authorizer has refused since the broker's start.

    Attributes:
        new_connection: those of connections that are newer than the throttle.
        stop_line: those below the stop line.
        release: those after a release, of clients that had been refused before it.
        clients: who was refused most since the last throttle began, the most first.
        logged: whether each is an error in the broker's log, from which it can't be filtered.
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
        new_connection: as of ``Refusals``.
        stop_line: likewise.
        release: likewise.
        clients: (principal, client-id) -> those of a client, of the clients reported.
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
class Report:
    """What a callback reports.

    Attributes:
        broker_id: its broker's node id.
        emergency: whether its pauses are longer than usual, since a volume will soon be full.
        throttled_clients: how many of its clients (tag sets of quotas) it throttles.
        fault: why it may not throttle some of them, such as "not-asked"; None: it throttles all.
        refusals: its authorizer's; None without one.
        in_scope: the clients that the throttle is for, those that landed most first; none where it
            is for all.
    """

    broker_id: int
    emergency: bool
    throttled_clients: int
    fault: str | None = None
    refusals: Refusals | None = None
    in_scope: tuple[ScopedClient, ...] = ()


@dataclass(slots=True)
class Reader:
    """A broker that follows the factor.

    Attributes:
        report: its last one.
        seen_at: when that came, steady seconds.
        generation: the newest that it is known to have; None before that.
        waiting: how many of its requests wait for a change now.
        earlier: (when a report came from which its rates may begin, that report), two at most,
            ``RATE_S`` apart at least.
    """

    report: Report
    seen_at: float
    generation: int | None = None
    waiting: int = 0
    earlier: tuple[tuple[float, Report], ...] = ()

    def note(self) -> None:
        """Remembers the last report, if a later rate may begin there."""
        if not self.earlier or _restarted(self.earlier[-1][1], self.report):
            self.earlier = ((self.seen_at, self.report),)
        elif self.seen_at - self.earlier[-1][0] >= RATE_S:
            self.earlier = (self.earlier[-1], (self.seen_at, self.report))

    def refusal_rates(self) -> RefusalRates:
        """What it refuses a second, until its last report."""
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
        """Principal and client-id -> bytes/s that a client in scope lands."""
        began, before = self.earlier[0]
        return _rates(
            {(each.principal, each.client_id): each.nbytes for each in before.in_scope},
            {(each.principal, each.client_id): each.nbytes for each in self.report.in_scope},
            self.seen_at - began,
        )

    def is_up_to_date(self, generation: int, now: float) -> bool:
        """Whether it has the decision's generation, and waits for the next; ``now`` in steady s."""
        listens = self.waiting > 0 or is_valid(self.seen_at, MOMENT_S, now)
        return listens and self.generation == generation


def _restarted(before: Report, report: Report) -> bool:
    """Whether a broker counts anew."""
    if before.refusals is None or report.refusals is None:
        return before.refusals is not report.refusals
    return report.refusals.total < before.refusals.total


def _rates(
    before: Mapping[tuple[str, str], int], now: Mapping[tuple[str, str], int], seconds: float
) -> dict[tuple[str, str], float]:
    """Of each client a second; one that is counted anew since a throttle began has less now."""
    if seconds <= 0.0:
        return dict.fromkeys(now, 0.0)
    lasts = {key: before.get(key, 0) for key in now}
    return {
        key: (count - (lasts[key] if lasts[key] <= count else 0)) / seconds
        for key, count in now.items()
    }


class Readers:
    """The brokers that sent a report, by node id."""

    def __init__(self) -> None:
        self._known: dict[int, Reader] = {}

    def record(self, report: Report, generation: int | None, now: float) -> Reader:
        """Remembers a report, and returns its broker.

        Args:
            report: the newest.
            generation: the present one when the broker has it, else None.
            now: steady seconds.
        """
        reader = self._known.pop(report.broker_id, None) or Reader(report, now)
        reader.report = report
        reader.seen_at = now
        reader.note()
        if generation is not None:
            reader.generation = generation
        # In a dict's order the first is the one that was silent for longest.
        self._known[report.broker_id] = reader
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return reader

    def report_of(self, broker_id: int) -> Report | None:
        """The last report of a broker; None when there is none."""
        reader = self._known.get(broker_id)
        return None if reader is None else reader.report

    def recent(self, now: float) -> list[Reader]:
        """Those remembered at ``now`` (steady seconds), by broker id; the others are forgotten."""
        self._known = {
            broker_id: reader
            for broker_id, reader in self._known.items()
            if is_valid(reader.seen_at, REMEMBERED_S, now)
        }
        return [self._known[broker_id] for broker_id in sorted(self._known)]
