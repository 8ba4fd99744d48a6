"""The brokers that are down, or did not answer with all sizes, and the readers of this sidecar.

Example: of three brokers one is fenced: one row, and "3 brokers, 2 answered".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.api.views import broker_state
from sidecar.control.board import Snapshot
from sidecar.status.fitting import of_failed_polls, of_failure, of_reader
from sidecar.status.moments import Moment, Now
from sidecar.throttle.fold import is_low
from sidecar.throttle.memory import BrokerState
from sidecar.throttle.readers import Reader, RefusalRates
from sidecar.throttle.sizes import size

SHOWN: Final = 50
"""The most brokers that are down and named."""

REFUSED: Final = 10
"""The most refused clients that are named."""

_WITH_ERRORS: Final = (((4, 0, 0), (4, 2, 2)), ((4, 3, 0), (4, 3, 2)))
"""The versions with KAFKA-20746, each range without its end. 4.2.1 may have the fix."""


@dataclass(frozen=True, slots=True)
class Down:
    """A broker that is down, or did not answer with all sizes.

    Attributes:
        broker_id: the broker's node id.
        address: host:port; "" when the broker is no longer in the cluster's list.
        state: fenced, departed, not answering, or answering without all sizes.
        why: the failure in words; "" when none is known.
        since: when this failure began.
        last_seen: when the broker last answered.
        counts: whether its last reading throttles or slows producers until an operator forgets
            the broker.
        runbook: the runbook for its failure; "" if it has none.
    """

    broker_id: int
    address: str
    state: str
    why: str
    since: Moment | None
    last_seen: Moment | None
    counts: bool
    runbook: str


@dataclass(frozen=True, slots=True)
class Brokers:
    """The cluster's brokers.

    Attributes:
        active: the number of active brokers.
        listed: when the cluster last listed its brokers; None before the first poll.
        down: the brokers that are down, or did not answer with all sizes, ``SHOWN`` at most.
        more_down: the number of further such brokers.
        failed_polls: the number of failed polls in a row.
        why: why the last poll failed; "" when it succeeded.
        runbook: the runbook for failed polls; "" when polls succeed.
        with_errors: the readers that may log errors, since the cluster lists a fenced broker, and
            their version of Kafka may have KAFKA-20746: "1 (Kafka 4.3.1) and 2". "" if there are
            none. Kafka lists fenced brokers since 4.0.
    """

    active: int
    listed: Moment | None
    down: tuple[Down, ...]
    more_down: int
    failed_polls: int
    why: str
    runbook: str
    with_errors: str


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A broker whose quota callback reads this sidecar, by its own report."""

    broker_id: int
    does: str
    last_seen: Moment
    runbooks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A client whose requests these brokers have refused since the last throttle began.

    Attributes:
        principal: the client's user.
        client_id: the client-id.
        requests: the number of refused requests.
        per_s: the current refusals per second.
    """

    principal: str
    client_id: str
    requests: int
    per_s: float


@dataclass(frozen=True, slots=True)
class ScopedRow:
    """A client that a throttle of some topics applies to, as reported by one broker.

    Attributes:
        broker_id: the broker.
        principal: the client's user.
        client_id: the client-id.
        landed: its write rate, such as "12 kB/s".
    """

    broker_id: int
    principal: str
    client_id: str
    landed: str


def brokers(snapshot: Snapshot, readers: list[Reader], now: Now) -> Brokers:
    """Summarize the cluster's brokers, and list the brokers with a problem."""
    memory = snapshot.memory
    active = memory.active
    listed = {**memory.fenced, **active}
    down = [
        _down(broker_id, listed.get(broker_id, ""), snapshot, now)
        for broker_id in sorted({*listed, *memory.brokers})
        if broker_id not in active or not _answers(memory.brokers.get(broker_id))
    ]
    return Brokers(
        active=len(active),
        listed=now.maybe(memory.membership_at),
        down=tuple(down[:SHOWN]),
        more_down=max(0, len(down) - SHOWN),
        failed_polls=memory.failed_polls,
        why=memory.failure.message if memory.failure else "",
        runbook=of_failed_polls(memory),
        with_errors=_with_errors(readers) if memory.fenced else "",
    )


def _with_errors(readers: list[Reader]) -> str:
    named = []
    for report in (reader.report for reader in readers):
        version = report.kafka_version
        if version is None:
            named.append(str(report.broker_id))
        elif any(first <= _numbers(version) < mended for first, mended in _WITH_ERRORS):
            named.append(f"{report.broker_id} (Kafka {version})")
    return ", ".join(named)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", version)[:3]))


def reader_rows(readers: list[Reader], snapshot: Snapshot, now: Now) -> tuple[ReaderRow, ...]:
    """Return the brokers whose callbacks read this sidecar."""
    return tuple(
        ReaderRow(
            reader.report.broker_id,
            _does(reader, snapshot),
            now.moment(reader.seen_at),
            tuple(of_reader(reader.report)),
        )
        for reader in readers
    )


def refused(readers: list[Reader]) -> tuple[RefusedRow, ...]:
    """Return the clients with the most refused requests over all readers."""
    requests: Counter[tuple[str, str]] = Counter()
    per_s: defaultdict[tuple[str, str], float] = defaultdict(float)
    for reader in readers:
        for client, rate in reader.refusal_rates().clients.items():
            per_s[client] += rate
        for each in reader.report.refusals.clients if reader.report.refusals else ():
            requests[each.principal, each.client_id] += each.requests
    most = requests.most_common(REFUSED)
    return tuple(RefusedRow(*client, count, per_s[client]) for client, count in most)


def in_scope(readers: list[Reader]) -> tuple[ScopedRow, ...]:
    """Return the clients in scope of the throttle by broker, the fastest writers first."""
    rows = []
    for reader in readers:
        rates = reader.scope_rates()
        for client, rate in sorted(rates.items(), key=lambda each: -each[1])[:SHOWN]:
            rows.append(ScopedRow(reader.report.broker_id, *client, f"{size(rate)}/s"))
    return tuple(rows)


def _does(reader: Reader, snapshot: Snapshot) -> str:
    clients = (
        "1 client"
        if reader.report.throttled_clients == 1
        else f"{reader.report.throttled_clients:,} clients"
    )
    sentences = [f"throttles {clients}" if reader.report.throttled_clients else "throttles nobody"]
    if reader.report.emergency:
        sentences.append("with longer pauses, since a volume will soon be full")
    if reader.report.fault:
        sentences.append(f"may not throttle all clients ({reader.report.fault}), see its log")
    if released := reader.report.released:
        sentences.append(f"started from its reserve on {', '.join(released)}: make room now")
    if reader.report.refusals and reader.report.refusals.total:
        sentences.append(f"has refused {reader.report.refusals.total:,} requests since its start")
    sentences.extend(_refuses(reader.refusal_rates()))
    if reader.report.refusals and reader.report.refusals.logged:
        sentences.append("logs an error for each request that it refuses")
    if snapshot.decision.is_of_volumes and reader.report.refusals is None:
        sentences.append(
            "would throttle all clients for a full volume, since it has no authorizer that sees"
            " their topics"
        )
    if reader.generation != snapshot.generation:
        sentences.append("has not applied the current decision yet")
    elif not reader.waiting:
        sentences.append("does not wait for changes now")
    return ", ".join(sentences)


def _refuses(rates: RefusalRates) -> Iterator[str]:
    reasons = (
        (rates.new_connection, "of new connections"),
        (rates.stop_line, "at the stop line"),
        (rates.release, "after the release"),
    )
    for rate, reason in reasons:
        if rate > 0.0:
            yield f"refuses {rate:,.1f} a second {reason}"


def _answers(broker: BrokerState | None) -> bool:
    return broker is not None and broker.failure is None and broker.read_at is not None


def _down(broker_id: int, address: str, snapshot: Snapshot, now: Now) -> Down:
    memory = snapshot.memory
    remembered = memory.brokers.get(broker_id)
    broker = memory.fenced_seen.get(broker_id) or remembered or BrokerState()
    name = broker_state(memory, broker_id)
    state = {"active": "does not answer", "fenced": "fenced", "departed": "has left the cluster"}[
        name
    ]
    if name == "active" and not broker.is_silent:
        state = "answers without all sizes" if broker.failure else "not polled yet"
    return Down(
        broker_id=broker_id,
        address=address,
        state=state,
        why=broker.failure.message if broker.failure else "",
        since=now.maybe(broker.failed_since if broker.failure else None),
        last_seen=now.maybe(broker.read_at),
        counts=name != "active"
        and remembered is not None
        and any(is_low(state, snapshot.rules) for state in remembered.volumes),
        runbook=of_failure(broker.failure),
    )
