"""The content of the status page as a value, computed from a snapshot and the time.

Example: one volume at its limit makes a headline, one bad row, and the contents of that volume.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sidecar.control.board import Board, Snapshot
from sidecar.control.capability import Block
from sidecar.control.capability_failures import Failing
from sidecar.settings.keys import stop_line_key
from sidecar.status.broker_rows import (
    Brokers,
    ReaderRow,
    RefusedRow,
    ScopedRow,
    brokers,
    in_scope,
    reader_rows,
    refused,
)
from sidecar.status.growing import GrowingRow, growing_rows, not_stopped
from sidecar.status.headline import Headline, effect, headline, in_short, short_of, worst
from sidecar.status.inputs import StatusInputs
from sidecar.status.moments import Moment, Now, span
from sidecar.status.relief import OnVolume, on_volumes
from sidecar.status.volume_rows import WORST, Row, lines_in_bars, rate, volume_rows
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.fill import seconds_to
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.misfits import misfits, sentences
from sidecar.throttle.readers import ReaderCounts
from sidecar.throttle.recommended_stop_line import recommended_stop_line
from sidecar.throttle.throttled_fill import throttled_fills, throttled_since

CHANGES: Final = 10
USERS: Final = 50
FILLING: Final = 5


@dataclass(frozen=True, slots=True)
class Filling:
    """A volume that fills although producers are throttled."""

    broker_id: int
    log_dir: str
    by: str
    full: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of the decision."""

    at: Moment
    decided: str
    why: str
    operation: str


@dataclass(frozen=True, slots=True)
class ThrottledUser:
    """A user with a factor of their own.

    Attributes:
        name: the user's name.
        effect: the effect of the factor.
        reason: the reason.
        until: when the factor ends by itself.
        enforcer: the capability that throttles.
    """

    name: str
    effect: str
    reason: str
    until: Moment
    enforcer: str


@dataclass(frozen=True, slots=True)
class Overridden:
    """The current override."""

    effect: str
    reason: str
    set_at: Moment
    until: Moment
    hides: str


@dataclass(frozen=True, slots=True)
class StatusView:
    """The content of the page.

    Attributes:
        etag: the ETag of the decision, for the long poll.
        made: when the page was made.
        cluster_id: the Kafka cluster's id; "" before the first observation.
        head: the state and its cause.
        lines: the meaning of the lines in the volumes' bars; "" when disabled.
        stop_line: sentences about the stop line, about lines that do not fit a volume, and about a
            state file that is not read yet.
        filling: volumes that fill although producers are throttled.
        volumes: the worst volumes.
        volume_count: the number of all volumes.
        brokers: the cluster's brokers with a problem.
        former: sentences about former credentials in use.
        readers: the brokers whose callbacks read this sidecar.
        counts: how many they are, and what else enforces the decision.
        refused: the clients with the most refused requests.
        in_scope: the clients that a throttle of some topics applies to.
        changes: the last changes of the decision, the newest first.
        override: the current override.
        can_change: whether a token is configured.
        users: the users with a factor of their own.
        more_users: the number of further such users.
        blocks: the blocks of capabilities.
        failing: the optional parts that do not work now.
        growing: who fills the worst volumes near or past a limit.
        contents: the contents of the worst volumes that violate the limit.
    """

    etag: str
    made: Moment
    cluster_id: str
    head: Headline
    lines: str
    stop_line: tuple[str, ...]
    filling: tuple[Filling, ...]
    volumes: tuple[Row, ...]
    volume_count: int
    brokers: Brokers
    former: tuple[str, ...]
    readers: tuple[ReaderRow, ...]
    counts: ReaderCounts
    refused: tuple[RefusedRow, ...]
    in_scope: tuple[ScopedRow, ...]
    changes: tuple[Changed, ...]
    override: Overridden | None
    can_change: bool
    users: tuple[ThrottledUser, ...]
    more_users: int
    blocks: tuple[Block, ...]
    failing: tuple[Failing, ...]
    growing: tuple[GrowingRow, ...]
    contents: tuple[OnVolume, ...]

    @property
    def is_enabled(self) -> bool:
        """Whether the sidecar polls."""
        return self.head.source != Source.DISABLED.value

    @property
    def is_asking(self) -> bool:
        """Whether a broker is being asked for its topics."""
        return any(each.answered_at is None and not each.why_not for each in self.contents)

    @property
    def observes(self) -> bool:
        """Whether the sidecar is in observe mode."""
        return self.head.source == Source.SHADOW.value


def status_view(inputs: StatusInputs, now: Now) -> StatusView:
    """Return the content of the page at a moment."""
    board, snapshot = inputs.board, inputs.board.snapshot
    rows, count = volume_rows(snapshot, now, 0, WORST)
    readers = board.readers.recent(now.now)
    counts = board.readers.counts(now.now)
    decision = snapshot.decision.decided
    return StatusView(
        etag=board.etag,
        made=now.moment(now.now),
        cluster_id=snapshot.memory.cluster_id or "",
        head=headline(snapshot, counts, now, not_stopped(inputs, snapshot)),
        lines=lines_in_bars(snapshot.rules),
        stop_line=(*_unread(inputs.board), *_stop_line(inputs), *_misfits(inputs.board)),
        filling=tuple(_filling(snapshot, now)),
        volumes=tuple(rows),
        volume_count=count,
        brokers=brokers(snapshot, readers, now),
        former=tuple(_former(inputs)),
        readers=reader_rows(readers, snapshot, now),
        counts=counts,
        refused=refused(readers),
        in_scope=in_scope(readers),
        changes=tuple(_changes(board, now)),
        override=_override(snapshot, counts, now),
        can_change=inputs.tokens.is_set,
        users=tuple(_users(decision, counts, now)),
        more_users=max(0, len(decision.users) - USERS),
        blocks=tuple(_blocks(inputs)),
        failing=inputs.failures.failing,
        growing=tuple(growing_rows(inputs, now)),
        contents=tuple(on_volumes(snapshot, inputs.contents, now, inputs.tools)),
    )


def _stop_line(inputs: StatusInputs) -> Iterator[str]:
    rules, memory = inputs.board.rules, inputs.board.snapshot.memory
    limit, line = rules.limit, rules.stop_line
    if limit is None:
        return
    if line is None:
        recommended = recommended_stop_line(limit, memory.volumes(), inputs.reaction_s)
        if recommended is not None and (setting := stop_line_key(type(recommended.line))):
            yield from recommended.sentences(setting)
        return
    yield (
        f"At the stop line, {line.describe()}, brokers refuse producers until every volume has a "
        "tenth more. A broker without the authorizer can only pause producers for longer."
    )


def _unread(board: Board) -> Iterator[str]:
    if board.unread:
        yield (
            f"{board.unread[0].upper()}{board.unread[1:]}. Until it is read, nothing is stored, "
            "and readers get no answer that might end a throttle."
        )


def _misfits(board: Board) -> Iterator[str]:
    if board.rules.limit is not None:
        for sentence in sentences(misfits(board.snapshot.memory.volumes(), board.rules)):
            yield f"{sentence[0].upper()}{sentence[1:]}."


def _former(inputs: StatusInputs) -> Iterator[str]:
    if refusal := inputs.refusal():
        yield (
            f"{refusal}. The broker still accepts the former password, certificate and key, which "
            "a restart of this sidecar forgets."
        )
    if inputs.tokens.is_former_used:
        yield "A client used the former token, which soon ends."


def _blocks(inputs: StatusInputs) -> Iterator[Block]:
    for each in inputs.capabilities:
        block = inputs.failures.call(each.name, "block of the status page", each.block, None)
        if block is not None:
            yield block


def hidden(snapshot: Snapshot, counts: ReaderCounts, factor: float) -> str:
    """Describe the volumes that an override ignores; "" if there are none."""
    violations = snapshot.decision.violations
    if factor == 0.0 or not violations:
        return ""
    state = worst(violations)
    others = len(violations) - 1
    others_too = f" {others} more {'violates' if others == 1 else 'violate'} it." if others else ""
    return f"{short_of(snapshot)}{_course(snapshot, counts, state)}.{others_too}"


def _course(snapshot: Snapshot, counts: ReaderCounts, state: VolumeState) -> str:
    if snapshot.decision.factor == 0.0 and counts.enforces:
        return ", while producers are throttled. Released producers will fill it"
    by = state.fill.bytes_per_second if state.online else None
    full = full_in(state, by, state.read_at)
    parts = [text for text in (rate(by), full and f"is full {full}") if text]
    return f", and {' and '.join(parts)} by the last reading" if parts else ""


def full_in(state: VolumeState, bytes_per_second: float | None, now: float) -> str:
    """Describe when a volume is full at a rate; "" when it is not within ten years."""
    left_s = seconds_to(state.volume.available_bytes, bytes_per_second)
    return "" if left_s is None else f"in {span(max(0.0, state.read_at + left_s - now))}"


def _filling(snapshot: Snapshot, now: Now) -> list[Filling]:
    since = throttled_since(snapshot.decision.factor, snapshot.since)
    found = throttled_fills(snapshot.memory, since, snapshot.rules.validity_s, now.now)
    found.sort(key=lambda each: each.state.volume.available_bytes)
    return [
        Filling(
            each.state.volume.broker_id,
            each.state.volume.log_dir,
            rate(each.bytes_per_second),
            full_in(each.state, each.bytes_per_second, now.now),
        )
        for each in found[:FILLING]
    ]


def _changes(board: Board, now: Now) -> list[Changed]:
    newest = islice(reversed(board.changes), CHANGES)
    return [
        Changed(
            now.moment(each.changed_at),
            in_short(each.decision),
            each.decision.decided.reason,
            "" if each.operation is None else str(each.operation),
        )
        for each in newest
    ]


def _users(decision: Decision, counts: ReaderCounts, now: Now) -> Iterator[ThrottledUser]:
    for name, factor in islice(sorted(decision.users.items()), USERS):
        throttle = decision.user_throttles[name]
        does, until = effect(factor, counts.of_users), now.moment(throttle.ends_at)
        yield ThrottledUser(name, does, throttle.reason, until, throttle.enforcer)


def _override(snapshot: Snapshot, counts: ReaderCounts, now: Now) -> Overridden | None:
    override = snapshot.decision.override
    if override is None:
        return None
    return Overridden(
        effect=effect(override.factor, counts),
        reason=override.reason,
        set_at=now.moment(override.set_at),
        until=now.moment(override.ends_at),
        hides=hidden(snapshot, counts, override.factor),
    )
