"""Keeps Kafka's produce quotas in line with the throttle factor, and restores them.

While producers are throttled, quotas fall in steps; after the release they rise to the originals
(``sidecar.client_quotas.plan``). The same holds for the quotas of users whose owner is past its
storage budget. Before a quota is lowered for the first time, its original is in the cluster, and in
the state file if there is one. So after a kill the next start finds it in either place, and
restores it if nothing is throttled.

- Quotas, and the metrics of brokers before them, are read every 2 to 3 s while a quota is lowered
  or has to be, or a volume is near its limit. Otherwise they are read once a minute.
- Every observer acts. Two at once do no harm: both set the same rung, and each waits a step after
  it first saw a value (``sidecar.throttle.quota_steps``). A sidecar that sees nothing raises quotas
  slowly, and not at all for the validity after another one has lowered one.
- Other sidecars read the quotas once a minute, for their pages, while they would throttle. One that
  has found nothing lowered for a minute acts too, since it may be the only one that sees a volume.
- Quotas fall before a volume is at its limit, since they need minutes to take effect
  (``sidecar.throttle.approach``, ``sidecar.client_quotas.early_fall``).
- A sidecar that has just started lowers and raises nothing until it has seen the volumes, or until
  the validity is over.
- With the scope of volumes, only quotas of users that write to the full ones fall
  (``sidecar.client_quotas.scope``).
- With another enforcement, the sidecar only restores. It reads the quotas once after its start,
  since its state file may be lost or another sidecar's. If it can't, it tries again.
- At a stop the quotas stay as they are, like the last factor of a callback. The next start goes on.

Example: a kill -9 at 8.5 MB/s of originally 10 MB/s. The next start sees the volumes, which have
space, and restores 10 MB/s after 6 s.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.client_quotas.broker_metrics import FRESH_S, BrokerMetrics
from sidecar.client_quotas.budget_users import users_of_budgets
from sidecar.client_quotas.early_fall import EarlyFall
from sidecar.client_quotas.log_watch import LogWatch
from sidecar.client_quotas.plan import Found, Ledger, Planned, Wanted, beginning
from sidecar.client_quotas.platform import Outcomes, QuotaPlatform
from sidecar.client_quotas.rates import Rates, of_cluster
from sidecar.client_quotas.retained import retain
from sidecar.client_quotas.scope import MOST_QUOTAS, Scoped
from sidecar.client_quotas.written import Written
from sidecar.control.board import Board
from sidecar.quotas.entities import Entity, Name
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.memory import Memory
from sidecar.throttle.quota_steps import STEP_S
from sidecar.volumes import Failure

_log = logging.getLogger(__name__)

_BUSY_S: Final = 2.0
_REST_S: Final = 60.0
_LONGEST_REST_S: Final = 600.0
_SPACING_S: Final = 1.0
_PERSIST_S: Final = 5.0
_NAMED: Final = 3
_UNSLOWED: Final = (
    "storage budget of %s: its principals are not slowed, because they would need more than %d new "
    "quotas; give each of them a produce quota of its own"
)


@dataclass(slots=True)
class QuotaThrottle:
    """Lowers and restores produce quotas.

    Attributes:
        board: has the decision and the state.
        platform: reads and changes the quotas.
        floor: the lowest quota, bytes/s.
        persist: writes the state.
        lowers: whether quotas may be lowered; otherwise those of an earlier run are restored.
        is_wanted: whether this sidecar acts.
        ledger: what is known of the quotas.
        broker_id: the broker beside this sidecar, if its id is known.
        written: what clients write to that broker; None without a request log.
        metrics: what brokers measure of their clients; None without their addresses.
        logs: what the request logs of all brokers tell; None without a request log.
        found: what was read last; None before the first read, or while others act.
        failure: why quotas can't be read or set; "" if they can.
        changed: how often a quota was changed.
    """

    board: Board
    platform: QuotaPlatform
    floor: float
    persist: Callable[[], Awaitable[object]]
    lowers: bool
    is_wanted: Callable[[], bool]
    ledger: Ledger
    broker_id: int | None = None
    written: Written | None = None
    metrics: BrokerMetrics | None = None
    logs: LogWatch | None = None
    found: Found | None = field(default=None, init=False)
    failure: str = field(default="", init=False)
    changed: int = field(default=0, init=False)
    _early: EarlyFall = field(default_factory=EarlyFall, init=False)
    _acts: bool = field(default=False, init=False)
    _is_alone: bool = field(default=False, init=False)
    _looked_at: float = field(default=-math.inf, init=False)
    _own: int | None = field(default=None, init=False)
    _started_at: float = field(init=False)
    _look_at: float = field(default=-math.inf, init=False)
    _left: set[Entity] = field(default_factory=set, init=False)
    _unset: Failure | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started_at = self.board.now()

    @property
    def rates(self) -> Rates:
        """The most that clients write to one broker."""
        return self._rates(FRESH_S)

    @property
    def shown_rates(self) -> Rates:
        """The same by metrics as old as they get while nothing is lowered: for a person."""
        return self._rates(2 * _REST_S)

    def _rates(self, fresh_s: float) -> Rates:
        now = self.board.now()
        logs = {} if self.logs is None else self.logs.rates
        # Each broker has a request log of its own, and this sidecar reads one.
        logged = None if self.written is None else self.written.rates(now)
        logs.pop(self._own, None)
        if logged is not None:
            logs[self._own] = logged
        metrics = {} if self.metrics is None else self.metrics.rates(fresh_s)
        return of_cluster(self._early.fills.highest(now), logs, metrics)

    @property
    def lowered(self) -> dict[Entity, float]:
        """The quotas that are lowered, as last read."""
        return {} if self.found is None else self.ledger.lowered(self.found)

    @property
    def would_lower(self) -> int:
        """How many quotas a throttle would lower now, in observe mode."""
        if self.found is None or not self._throttles():
            return 0
        factor = 0.0 if self._is_for_volumes else 1.0
        return len(beginning(self.found, self._wanted(factor)).values)

    def _judge(self) -> None:
        if not self.lowers:
            return
        rates = self.rates
        is_known = bool(rates.by_log or rates.by_metrics) and not rates.by_fill
        has_scope = self.logs is not None and self.logs.has_scope
        self._early.judge(self.board, has_scope=has_scope, is_known=is_known)

    @property
    def _is_for_volumes(self) -> bool:
        """Whether clients are slowed because a volume is full, or soon will be."""
        return self._decided.factor < 1.0 or self._early.nearest.falls

    @property
    def _topics(self) -> tuple[str, ...] | None:
        """The topics on the volumes that clients are slowed for; None if they are not known."""
        if self._decided.factor < 1.0:
            return self._decided.topics
        return self._early.topics(self.board)

    @property
    def _more_topics(self) -> tuple[str, ...]:
        """The topics on volumes that will soon be full, while others are."""
        return (self._decided.factor < 1.0 and self._early.topics(self.board)) or ()

    @property
    def slowed(self) -> dict[Name, float]:
        """The users that storage budgets slow, with their factors."""
        return self._of_budgets[0]

    @property
    def _of_budgets(self) -> tuple[dict[Name, float], frozenset[str]]:
        found = self.found or Found({}, {})
        budgets = self._decided.budgets if self.lowers else {}
        return users_of_budgets(budgets, found.quotas.keys(), self.ledger.copies(found))

    @property
    def in_scope(self) -> Scoped | None:
        """The users in scope; None if all clients are by the settings, or if nobody is throttled.

        A sidecar that leaves acting to others does not ask who writes, and has None too.
        """
        if self.logs is None or not self._acts or not self._is_for_volumes:
            return None
        quotas = () if self.found is None else self.found.quotas
        return self.logs.scoped(self._topics, quotas)

    def observe(self, memory: Memory) -> None:
        """Note how fast volumes fill."""
        self._early.fills.note(memory, self.board.now())
        seen = [
            each.volumes[0].volume.broker_id for each in memory.active_brokers() if each.volumes
        ]
        self._own = seen[0] if len(seen) == 1 else self.broker_id

    async def run(self) -> None:
        """Act until the board is closed."""
        while not self.board.closed:
            generation = self.board.snapshot.generation
            self._is_alone = self._is_alone and (bool(self.ledger.kept) or self._throttles())
            # Not interrupted by a cancellation: what was set must be noted.
            does = self.settle() if self.is_wanted() or self._is_alone else self._look()
            await asyncio.shield(asyncio.create_task(does, name="client quotas"))
            await asyncio.sleep(_SPACING_S)
            rested_at = self.board.now()
            while not self.board.closed:
                await self.board.wait_for_change(generation, _BUSY_S)
                self._judge()
                is_due = self.board.now() >= rested_at + _REST_S
                is_changed = self.board.snapshot.generation != generation
                if is_due or is_changed or self.ledger.kept or self._throttles():
                    break

    async def _look(self) -> None:
        """Read what observers have lowered, and act from the next time on if they lower nothing."""
        self._acts, now = False, self.board.now()
        if not (self.lowers and self._throttles()):
            # What is not read can't fail.
            self.found, self._looked_at, self.failure = None, -math.inf, ""
        elif now >= self._looked_at + _REST_S:
            found = await self.platform.read()
            self._note(found if isinstance(found, Failure) else None)
            if isinstance(found, Failure):
                return
            is_second = self.found is not None and not self.lowered
            self.found, self._looked_at = found, now
            throttles = self.board.snapshot.decision.factor < 1.0
            self._is_alone = throttles and is_second and not self.lowered
        self._publish()

    async def settle(self) -> None:
        """Read the quotas, and make the changes that are due."""
        self._acts = True
        is_only_looking = not (self.lowers or self.ledger.kept)
        if is_only_looking and not self._may_look():
            return
        if self.metrics is not None:
            await self.metrics.refresh()
        self._judge()
        if self.logs is not None:
            await self.logs.refresh(
                self._topics,
                more=self._more_topics,
                throttles=self._throttles(),
                is_scope_needed=self._is_for_volumes,
            )
            self._judge()
        found = await self.platform.read()
        if isinstance(found, Failure):
            if not is_only_looking:
                self._note(found)
            return
        self.found, self._look_at = found, math.inf
        factor = self._factor()
        if factor is None:
            # Nothing is written, but the page and a later restore need what is lowered.
            self.ledger.see(found, self.board.now())
            self._note(None)
        else:
            kept = dict(self.ledger.kept)
            planned = self.ledger.plan(found, self._wanted(factor))
            if self.ledger.kept != kept:
                retain(self.board, self.ledger.kept)
            made = await self._make(planned)
            if not (planned.is_empty and self.ledger.kept):
                # A plan without a change does not show that quotas can be set again.
                self._unset = made
            self._note(self._unset)
            if self.ledger.kept != kept:
                retain(self.board, self.ledger.kept)
            self._early.note(self.board.now(), is_lowered=bool(self.ledger.kept))
            self._log_left()
        self._publish()

    def _may_look(self) -> bool:
        """Whether to read once what another run has lowered, although nothing tells of one.

        Most clusters have nothing of the kind, so nobody is told that quotas can't be read, and
        brokers are asked less and less often: an authorizer logs each refusal.
        """
        now = self.board.now()
        if now < self._look_at:
            return False
        self._look_at = now + min(max(_REST_S, now - self._started_at), _LONGEST_REST_S)
        return True

    async def _make(self, planned: Planned) -> Failure | None:
        if planned.keep:
            await self._persist()
        lowered: Outcomes | Failure = {}
        if planned.keep or planned.values:
            originals = {entity: self.ledger.kept[entity] for entity in planned.values}
            lowered = await self.platform.apply(planned.keep, planned.values, originals)
        if isinstance(lowered, Failure):
            return lowered
        self._note_lowered(planned, lowered)
        restored: Outcomes | Failure = {}
        if planned.restore or planned.release:
            self.ledger.note_restoring(planned.restore, self.board.now())
            originals = {entity: self.ledger.kept[entity] for entity in planned.restore}
            restored = await self.platform.restore(originals, planned.release)
        if isinstance(restored, Failure):
            return restored
        self._note_restored(planned, restored)
        outcomes = (*lowered.values(), *restored.values())
        return next((failure for failure in outcomes if failure is not None), None)

    def _note_lowered(self, planned: Planned, outcomes: Outcomes) -> None:
        begun = []
        for entity, value in planned.values.items():
            if outcomes.get(entity) is None:
                original = self.ledger.kept[entity].original
                if self.ledger.seen[entity][0] == original:
                    begun.append(f"{entity} from {_text(original)} to {value:.0f} B/s")
                self.ledger.note_set(entity, value, self.board.now())
                self.changed += 1
        if begun:
            _log.warning("lowering produce quotas on each broker: %s", _some(begun))

    def _note_restored(self, planned: Planned, outcomes: Outcomes) -> None:
        ended = []
        for entity in planned.restore:
            if outcomes.get(entity) is None:
                self.ledger.restored(entity, self.board.now())
                self.changed += 1
                ended.append(str(entity))
        if ended:
            _log.info("restored produce quotas: %s", _some(ended))

    async def _persist(self) -> None:
        try:
            async with asyncio.timeout(_PERSIST_S):
                await self.persist()
        except TimeoutError:
            pass

    def _wanted(self, factor: float) -> Wanted:
        users, decided, in_scope = self.slowed, self._decided.factor, self.in_scope
        if factor < 1.0 and in_scope is not None and self.logs is not None:
            more = self.logs.scoped(self._more_topics, holds=False) if self._more_topics else None
            of_decided = decided if decided < 1.0 else factor
            for scoped, lowest in ((in_scope, of_decided), (more, 0.0)):
                for user in (scoped and scoped.users) or ():
                    users[user] = min(lowest, users.get(user, 1.0))
            # Before a limit, nobody is slowed who may not write to the volume.
            factor = decided if in_scope.users is None else 1.0
        now = self.board.now()
        rise, restores = self._early.nearest.rise, self._early.is_far(now)
        if self._decided.source is Source.FALLBACK and now % (4 * STEP_S) >= STEP_S:
            # Another sidecar may see a full volume: give it the time to lower what was raised.
            rise, restores = 1.0, False
        return Wanted(factor, self.floor, now, self.rates, users, rise, restores)

    def _factor(self) -> float | None:
        """The factor to follow; None while nothing may be written."""
        board = self.board
        decision = board.snapshot.decision
        if decision.source in {Source.SHADOW, Source.DISABLED}:
            return None
        is_blind = decision.source is Source.FALLBACK and board.snapshot.memory.computed is None
        is_new = board.now() < self._started_at + board.rules.validity_s
        if board.unread or (is_blind and is_new):
            return None
        others_lower = board.now() < self.ledger.others_at + board.rules.validity_s
        if others_lower and (decision.source is Source.FALLBACK or not self.lowers):
            return None
        if not self.lowers:
            return 1.0
        return 0.0 if self._early.nearest.falls else decision.factor

    @property
    def _decided(self) -> Decision:
        return self.board.snapshot.decision.decided

    def _throttles(self) -> bool:
        # Owners that are not slowed count: they may be as soon as their users have own quotas.
        past = any(each.principals for each in self._decided.budgets.values()) and self.lowers
        return self._decided.factor < 1.0 or past or self._early.is_near

    def _publish(self) -> None:
        """Let sentences say that producers are throttled only while a quota is lowered."""
        readers = self.board.readers
        readers.lowered = len(self.lowered)
        unslowed = self._of_budgets[1] if self._acts else frozenset()
        for owner in sorted(unslowed - readers.unslowed):
            _log.warning(_UNSLOWED, owner, MOST_QUOTAS)
        readers.unslowed = unslowed
        readers.near, readers.steering = "", frozenset()
        if self._acts and (self._early.is_near or self.ledger.kept):
            readers.near = str(self._early.nearest) if self._early.is_on else ""
            readers.steering = self._early.nearest.brokers

    def _note(self, failure: Failure | None) -> None:
        text = "" if failure is None else failure.message
        if text and text != self.failure:
            _log.warning("client quotas can't be read or set: %s", text)
        elif self.failure and not text:
            _log.info("client quotas can be read and set again")
        self.failure = text

    def _log_left(self) -> None:
        if new := {*self.ledger.left} - self._left:
            _log.warning(
                "these produce quotas are left alone, as somebody else set them back several "
                "times: %s",
                _some(sorted(map(str, new))),
            )
            self._left |= new


def _some(texts: Sequence[str]) -> str:
    """Name a few of what may be thousands."""
    more = [f"and {len(texts) - _NAMED:,} more"] if len(texts) > _NAMED else []
    return "; ".join([*texts[:_NAMED], *more])


def _text(value: float | None) -> str:
    return "no quota" if value is None else f"{value:.0f} B/s"
