"""The brokers that are down or did not answer, and the readers of this sidecar.

Example: of three brokers one is fenced: one row, and "3 brokers, 2 answered".
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.api.views import broker_state
from sidecar.control.board import Snapshot
from sidecar.status.moments import Moment, Now
from sidecar.throttle.memory import BrokerState
from sidecar.throttle.readers import Reader, RefusalRates
from sidecar.throttle.sizes import size

SHOWN: Final = 50
"""So many brokers that are down are named."""

REFUSED: Final = 10
"""So many refused clients are named."""


@dataclass(frozen=True, slots=True)
class Down:
    """A broker that is not seen.

    Attributes:
        broker_id: its node id.
        address: host:port, "" when it is no longer in the cluster's list.
        state: fenced, departed, or that it does not answer.
        why: its failure in words, "" when none is known.
        since: since when it fails so.
        last_seen: when it last answered.
        counts: whether its last reading throttles producers until it is forgotten.
    """

    broker_id: int
    address: str
    state: str
    why: str
    since: Moment | None
    last_seen: Moment | None
    counts: bool


@dataclass(frozen=True, slots=True)
class Brokers:
    """The cluster's brokers.

    Attributes:
        active: how many there are.
        listed: when the cluster last listed them; None before the first poll.
        down: those not seen, ``SHOWN`` at most.
        more_down: how many more.
        failed_polls: how many polls in a row have failed.
        why: why the last one failed, "" when it did not.
    """

    active: int
    listed: Moment | None
    down: tuple[Down, ...]
    more_down: int
    failed_polls: int
    why: str


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A broker whose quota callback reads this sidecar, by its own report."""

    broker_id: int
    does: str
    last_seen: Moment


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A client of which these brokers have refused requests since the last throttle began.

    Attributes:
        principal: its user.
        client_id: its client-id.
        requests: how many were refused.
        per_s: how many a second now.
    """

    principal: str
    client_id: str
    requests: int
    per_s: float


@dataclass(frozen=True, slots=True)
class ScopedRow:
    """A client that a throttle of some topics is for, as one broker tells.

    Attributes:
        broker_id: the broker.
        principal: its user.
        client_id: its client-id.
        landed: what it lands, such as "12 kB/s".
    """

    broker_id: int
    principal: str
    client_id: str
    landed: str


def brokers(snapshot: Snapshot, now: Now) -> Brokers:
    """The cluster's brokers, as far as something is wrong with them."""
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
    )


def reader_rows(known: list[Reader], snapshot: Snapshot, now: Now) -> tuple[ReaderRow, ...]:
    """The brokers whose callbacks read this sidecar."""
    return tuple(
        ReaderRow(reader.report.broker_id, _does(reader, snapshot), now.moment(reader.seen_at))
        for reader in known
    )


def refused(known: list[Reader]) -> tuple[RefusedRow, ...]:
    """The clients of which most was refused, over all readers."""
    requests: Counter[tuple[str, str]] = Counter()
    per_s: defaultdict[tuple[str, str], float] = defaultdict(float)
    for reader in known:
        for client, rate in reader.refusal_rates().clients.items():
            per_s[client] += rate
        for each in reader.report.refusals.clients if reader.report.refusals else ():
            requests[each.principal, each.client_id] += each.requests
    most = requests.most_common(REFUSED)
    return tuple(RefusedRow(*client, count, per_s[client]) for client, count in most)


def in_scope(known: list[Reader]) -> tuple[ScopedRow, ...]:
    """The clients that the throttle is for, those that land most first, by broker."""
    rows = []
    for reader in known:
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
        sentences.append("has not taken the present decision yet")
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
    if name == "active" and broker.failure is None:
        state = "not polled yet"
    return Down(
        broker_id=broker_id,
        address=address,
        state=state,
        why=broker.failure.message if broker.failure else "",
        since=now.maybe(broker.failed_since if broker.failure else None),
        last_seen=now.maybe(broker.read_at),
        counts=name != "active" and remembered is not None and bool(remembered.violating),
    )
