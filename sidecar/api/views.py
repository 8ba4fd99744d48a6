"""Makes the documents of the API from a snapshot and the time.

The seconds to the limit were computed when a volume was read. Here they are counted from now.

Example: a volume read 4 s ago with 20 s to its limit then has 16 s left now.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sidecar.api.answers import Wall, rounded, timestamp
from sidecar.api.documents import (
    BrokerDocument,
    BrokerStateName,
    ChangeDocument,
    FailureDocument,
    LeakDocument,
    LimitDocument,
    LogDirState,
    OperationDocument,
    OverrideDocument,
    ReaderDocument,
    RefusalsDocument,
    RefusedByReason,
    RefusedClientDocument,
    RefusedPerSecond,
    ReserveDocument,
    ScopedClientDocument,
    ShadowDocument,
    ViolationDocument,
    VolumeDocument,
)
from sidecar.control.board import Change, Snapshot
from sidecar.throttle.decision import Decision
from sidecar.throttle.leak import LeakRules, Leaks
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import BrokerState, Memory, Override, VolumeState
from sidecar.throttle.readers import Reader, RefusalRates, Refusals
from sidecar.throttle.rules import Rules
from sidecar.volumes import OfflineLogDir


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot and the moment at which it is read.

    Attributes:
        snapshot: the published snapshot.
        now: steady seconds.
        wall: steady seconds -> epoch seconds of the machine's clock.
    """

    snapshot: Snapshot
    now: float
    wall: Wall

    def volumes(self) -> Iterator[VolumeDocument]:
        """Yield every remembered volume, and the log dirs that were never read."""
        memory = self.snapshot.memory
        for broker_id in sorted(memory.brokers):
            broker = memory.brokers[broker_id]
            state = broker_state(memory, broker_id)
            unread = {each.log_dir: each for each in broker.offline}
            for known in broker.volumes:
                yield self._volume(known, state, unread.pop(known.volume.log_dir, None))
            for each in unread.values():
                yield _never_read(broker_id, state, each)

    def brokers(self) -> Iterator[BrokerDocument]:
        """Return the cluster's brokers, and departed brokers whose readings still count."""
        memory = self.snapshot.memory
        listed = {**memory.fenced, **memory.active}
        for broker_id in sorted({*listed, *memory.brokers}):
            broker = memory.fenced_seen.get(broker_id) or memory.brokers.get(broker_id)
            broker = broker or BrokerState()
            failure = broker.failure
            yield BrokerDocument(
                broker_id=broker_id,
                address=listed.get(broker_id),
                state=broker_state(memory, broker_id),
                last_seen=timestamp(self.wall, broker.read_at),
                last_failure=None
                if failure is None
                else FailureDocument(
                    failure.kind.value, failure.message, timestamp(self.wall, broker.failed_since)
                ),
            )

    def _volume(
        self, known: VolumeState, state: BrokerStateName, unread: OfflineLogDir | None
    ) -> VolumeDocument:
        volume = known.volume
        fill = known.fill.bytes_per_second if known.online else None
        return VolumeDocument(
            broker_id=volume.broker_id,
            broker_state=state,
            log_dir=volume.log_dir,
            state="online" if known.online else log_dir_state(unread),
            unread_reason=unread.reason if unread else None,
            total_bytes=volume.total_bytes,
            used_bytes=volume.used_bytes,
            available_bytes=volume.available_bytes,
            available_ratio=rounded(volume.available_ratio, 6),
            limit_violated=known.violates,
            stop_line_violated=None if known.stop_line_verdict is None else known.is_at_stop_line,
            read_at=timestamp(self.wall, known.read_at),
            fill_bytes_per_second=rounded(fill, 3),
            seconds_to_limit=_seconds_left(known, self.now),
        )


def broker_state(memory: Memory, broker_id: int) -> BrokerStateName:
    """Whether a broker is active, fenced, or no longer in the cluster's list."""
    if broker_id in memory.active:
        return "active"
    return "fenced" if broker_id in memory.fenced else "departed"


def observed_at(snapshot: Snapshot) -> float | None:
    """Return the time of the oldest reading behind the computed factor, steady seconds.

    Returns:
        None when there is no valid factor.
    """
    computed_at = snapshot.decision.computed_at
    if computed_at is None:
        return None
    readings = (broker.read_at for broker in snapshot.memory.active_brokers())
    return min([computed_at, *(at for at in readings if at is not None)])


def limit_reached_at(snapshot: Snapshot) -> float | None:
    """Return when the first online volume of an active broker reaches its limit, steady seconds.

    Returns:
        A time, which may be past; None when no volume fills.
    """
    times = [
        known.read_at + known.seconds_left
        for broker in snapshot.memory.active_brokers()
        for known in broker.volumes
        if known.online and known.seconds_left is not None
    ]
    times += [known.read_at for known in snapshot.decision.violations]
    return min(times, default=None)


def violations(states: Sequence[VolumeState], limit: Limit | None) -> Iterator[ViolationDocument]:
    """The violating volumes, of the limit or of the stop line."""
    document = limit_document(limit)
    for known in states:
        volume = known.volume
        yield ViolationDocument(
            broker_id=volume.broker_id,
            log_dir=volume.log_dir,
            total_bytes=volume.total_bytes,
            available_bytes=volume.available_bytes,
            available_ratio=round(volume.available_ratio, 6),
            limit=document,
        )


def shadow_document(would: Decision | None) -> ShadowDocument | None:
    """Return the decision of enforce mode; None if it applies."""
    if would is None:
        return None
    return ShadowDocument(
        would.factor, would.source.value, would.stop_line_reached, len(would.users)
    )


def limit_document(limit: Limit | None) -> LimitDocument | None:
    """The limit with its type's name."""
    return None if limit is None else LimitDocument(limit.name, limit.value)


def change_document(change: Change, rules: Rules, wall: Wall) -> ChangeDocument:
    """A change of the decision."""
    decision, made = change.decision, change.operation
    return ChangeDocument(
        changed_at=timestamp(wall, change.changed_at) or "",
        generation=change.generation,
        factor=decision.factor,
        source=decision.source.value,
        reason=decision.reason,
        violation_count=change.violation_count,
        violations=list(violations(decision.violations, rules.limit)),
        stop_line_reached=decision.stop_line_reached,
        stop_line_violations=list(violations(decision.at_stop_line, rules.stop_line)),
        computed_at=timestamp(wall, decision.computed_at),
        valid_until=timestamp(wall, decision.valid_until),
        operation=None
        if made is None
        else OperationDocument(made.what, made.by, made.address, made.reason),
    )


def override_document(override: Override, wall: Wall) -> OverrideDocument:
    """An operator's factor."""
    return OverrideDocument(
        factor=override.factor,
        reason=override.reason,
        by=override.by,
        set_at=timestamp(wall, override.set_at) or "",
        until=timestamp(wall, override.ends_at) or "",
    )


def reader_document(reader: Reader, wall: Wall) -> ReaderDocument:
    """A broker that follows the factor."""
    return ReaderDocument(
        broker_id=reader.report.broker_id,
        last_seen=timestamp(wall, reader.seen_at) or "",
        waiting=reader.waiting > 0,
        generation=reader.generation,
        emergency=reader.report.emergency,
        throttled_clients=reader.report.throttled_clients,
        fault=reader.report.fault,
        refused=_refusals_document(reader.report.refusals, reader.refusal_rates()),
        in_scope=_in_scope(reader),
        kafka_version=reader.report.kafka_version,
        jar_version=reader.report.jar_version,
        reserves=[ReserveDocument(each.log_dir, each.nbytes) for each in reader.report.reserves],
    )


def _in_scope(reader: Reader) -> list[ScopedClientDocument]:
    rates = reader.scope_rates()
    return [
        ScopedClientDocument(
            principal=each.principal,
            client_id=each.client_id,
            landed_bytes=each.nbytes,
            bytes_per_second=round(rates[each.principal, each.client_id], 3),
        )
        for each in reader.report.in_scope
    ]


def _refusals_document(refusals: Refusals | None, rates: RefusalRates) -> RefusalsDocument | None:
    if refusals is None:
        return None
    return RefusalsDocument(
        total=refusals.total,
        by_reason=RefusedByReason(
            new_connection=refusals.new_connection,
            stop_line=refusals.stop_line,
            release=refusals.release,
        ),
        per_second=RefusedPerSecond(
            new_connection=round(rates.new_connection, 3),
            stop_line=round(rates.stop_line, 3),
            release=round(rates.release, 3),
        ),
        clients=[
            RefusedClientDocument(
                principal=each.principal,
                client_id=each.client_id,
                requests=each.requests,
                per_second=round(rates.clients.get((each.principal, each.client_id), 0.0), 3),
            )
            for each in refusals.clients
        ],
        logged=refusals.logged,
    )


def _seconds_left(known: VolumeState, now: float) -> float | None:
    if known.violates:
        return 0.0
    seconds_left = known.seconds_left
    if seconds_left is None or not known.online:
        return None
    return round(max(0.0, seconds_left - (now - known.read_at)), 3)


def log_dir_state(unread: OfflineLogDir | None) -> LogDirState:
    """Whether a log dir without sizes is offline. After a restart, the next answer has to say."""
    return "offline" if unread is not None and not unread.is_written else "unreadable"


def _never_read(broker_id: int, state: BrokerStateName, unread: OfflineLogDir) -> VolumeDocument:
    return VolumeDocument(
        broker_id=broker_id,
        broker_state=state,
        log_dir=unread.log_dir,
        state=log_dir_state(unread),
        unread_reason=unread.reason,
        total_bytes=None,
        used_bytes=None,
        available_bytes=None,
        available_ratio=None,
        limit_violated=None,
        stop_line_violated=None,
        read_at=None,
        fill_bytes_per_second=None,
        seconds_to_limit=None,
    )


def leak_documents(leaks: Leaks, rules: LeakRules) -> dict[int, LeakDocument]:
    """Return broker id -> its leak, for brokers that may not use their whole leak budget."""
    return {
        broker: LeakDocument(broker, share, round(rules.pause_s(share) * 1000))
        for broker, share in sorted(leaks.shares.items())
    }
