"""Sets a request_percentage in Kafka while a user is throttled (KIP-936).

A produce factor does not stop a client that opens a connection for every batch, because each new
connection appends one request before it is muted. A request quota stops it, because it mutes
INIT_PRODUCER_ID too. If the user's producer id quota has a request_percentage, the sidecar sets it
with AlterClientQuotas. It removes it when the throttle ends and when the sidecar stops.

- The sidecar never replaces or removes a quota that an operator set. If an operator set one for
  each client-id of the user, Kafka would ignore the user's, so the sidecar sets none.
- In observe mode the sidecar writes nothing to Kafka, and leaves the quotas of other sidecars.
- It notes its own quota in the state file before it sets it, so that it finds the quota again after
  a kill. A sidecar without a state file recognises it by the number: see
  ``quotas.producer_ids.throttle_signature``.
- A broker that had been frozen may make a change up to a minute late, or not show it yet. So the
  note stays for ``LATE_S`` after the throttle and the last request to set the quota. Then the
  sidecar removes the quota if it is there again. A start searches a second time after ``LATE_S``.

Several sidecars may throttle the same user. Each treats the others' quotas as its own, and the
stricter one stays. The first sidecar that releases the user removes the quota for all, and again
75 s later, or when it stops before that. A sidecar that starts also removes it twice. A sidecar
that still throttles the user sets it again some seconds later.

Example: bob is throttled, and his quota has 0.01. His request_percentage becomes 0.010000936. Ten
minutes later he is released, and the sidecar removes it.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from sidecar.control.board import Board
from sidecar.kafka.quota_messages import Alteration
from sidecar.producer_ids.retained import Retained
from sidecar.producer_ids.service import user_throttles_of
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity, QuotaKey
from sidecar.quotas.producer_ids.id_quotas import InForce
from sidecar.quotas.producer_ids.throttle_signature import is_signed, signed
from sidecar.throttle.decision import Source
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

_DIGITS: Final = 1e-12
_CHECK_S: Final = 5.0
"""How often the sidecar compares Kafka's quotas with the throttles, while a user is throttled."""
_SPACING_S: Final = 1.0
"""The shortest time between comparisons, so that short throttles do not load the controller."""
LATE_S: Final = 75.0
"""How long after a request to set a quota Kafka may still set it, or show the quotas before it."""
_RETRY_S: Final = 30.0
"""How often the sidecar looks for quotas of an earlier run, if there is nothing else to do."""
_PERSIST_S: Final = 5.0
"""How long a write of the state may take. A disk that hangs must not delay a removal in Kafka."""

Describe = Callable[[], Awaitable[ClientQuotas | Failure]]
Alter = Callable[[list[Alteration]], Awaitable[list[Failure | None] | Failure]]
Persist = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class RequestQuotaEnforcer:
    """Sets and removes request quotas in Kafka.

    Attributes:
        board: has the throttles.
        retained: notes which quotas were set.
        quota_of: returns the producer id quota of a user.
        describe: returns all client quotas of the cluster.
        alter: sets and removes quotas, and returns each failure.
        persist: writes the state.
        absent: the users with a note whose quota Kafka does not have, as far as is known.
    """

    board: Board
    retained: Retained
    quota_of: Callable[[str], InForce]
    describe: Describe
    alter: Alter
    persist: Persist
    absent: set[str] = field(default_factory=set, init=False)
    _logged: tuple[FailureKind, int] | None = field(default=None, init=False)
    _left: set[str] = field(default_factory=set, init=False)
    _began: float = field(init=False)
    _search_at: float = field(init=False)
    """When to search for quotas of an earlier run; infinite after the last search."""
    _wanted_at: dict[str, float] = field(default_factory=dict, init=False)
    _requested: set[str] = field(default_factory=set, init=False)
    """The users whose quota Kafka may have set since the last comparison, whatever it answered."""
    _removed: set[str] = field(default_factory=set, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._began = self._search_at = self.board.now()

    @property
    def enforced(self) -> Set[str]:
        """The users whose quota Kafka has, as far as is known."""
        return self.retained.enforced_request_percentages.keys() - self.absent

    async def run(self) -> None:
        """Keep Kafka's quotas in line with the throttles, until the board is closed."""
        while not self.board.closed:
            snapshot = self.board.snapshot
            if self._only_observes():
                await self.board.wait_for_change(snapshot.generation, _RETRY_S)
                continue
            # Not interrupted by a cancellation, because ``leave`` must know which quotas were set.
            await asyncio.shield(asyncio.create_task(self.settle(), name="request quotas: settle"))
            await asyncio.sleep(_SPACING_S)
            await self._change(snapshot.generation)

    async def _change(self, generation: int) -> None:
        board = self.board
        if user_throttles_of(board) or self.retained.enforced_request_percentages:
            await board.wait_for_change(generation, _CHECK_S)
        elif self._search_at < math.inf:
            # Each search logs in at a broker, so only a throttle makes the sidecar search sooner.
            now = asyncio.get_running_loop().time
            until = now() + _RETRY_S
            while (left_s := until - now()) > 0.0 and not board.closed:
                generation = (await board.wait_for_change(generation, left_s)).generation
                if user_throttles_of(board):
                    return
        else:
            # No user is throttled, so wait for a change of the board.
            while board.snapshot.generation == generation and not board.closed:
                await board.wait_for_change(generation, 60.0)

    def _only_observes(self) -> bool:
        return self.board.snapshot.decision.source is Source.SHADOW

    async def settle(self) -> None:
        """Set and remove quotas once; nothing in observe mode."""
        if self._only_observes():
            return
        async with self._lock:
            # This may begin after ``leave`` has removed all quotas.
            targets = {} if self.board.closed else self._targets()
            self._left &= set(targets)
            noted = self.retained.enforced_request_percentages
            matters = bool(targets) or not all(map(self._waits, noted))
            if matters or self.board.now() >= self._search_at:
                failure = await self._compare(targets)
                # As long as only an earlier run's quotas can't be searched, nobody is woken.
                self._log_outcome(failure, logging.WARNING if matters else logging.INFO)

    async def leave(self, timeout_s: float) -> None:
        """Remove all quotas before the sidecar stops.

        Args:
            timeout_s: the deadline in seconds; the next start removes the remaining quotas.
        """
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s), self._lock:
                    # The others were found at the start. If one is there again, another sidecar
                    # set it.
                    self._removed -= self._wanted_at.keys()
                    if self.retained.enforced_request_percentages and not self._only_observes():
                        self._log_outcome(await self._compare({}), logging.WARNING)
        finally:
            # On a busy machine the caller may cancel this before the deadline is noticed.
            self._log_left()

    def _log_left(self) -> None:
        noted = self.retained.enforced_request_percentages.keys()
        left = noted - self._removed - (self.absent - self._requested)
        if left:
            _log.warning(
                "the request_percentage of %d throttled users is left in Kafka; the next start of "
                "a sidecar removes it: %s",
                len(left),
                ", ".join(sorted(left)[:10]),
            )

    def _targets(self) -> dict[str, float]:
        targets = {}
        for user in user_throttles_of(self.board):
            percentage = self.quota_of(user).quota.throttled_request_percentage
            if percentage is not None:
                targets[user] = signed(percentage)
        return targets

    async def _compare(self, targets: Mapping[str, float]) -> Failure | None:
        current = await self.describe()
        if isinstance(current, Failure):
            return current
        noted = dict(self.retained.enforced_request_percentages)
        if self.board.now() >= self._search_at:
            noted |= _left_by_others(current, noted)
            again_at = self._began + LATE_S
            self._search_at = again_at if self.board.now() < again_at else math.inf
        changes, noted = self._changes(current, targets, noted)
        self.absent = {user for user in noted if not is_signed(_percentage(current, user))}
        self._requested = {user for user, value in changes.items() if value is not None}
        self._note(noted)
        if not changes:
            return None
        if self._requested:
            # Note the quota before setting it, so that a sidecar that is killed in between removes
            # it.
            with suppress(TimeoutError):
                async with asyncio.timeout(_PERSIST_S):
                    await self.persist()
        return await self._change_all(changes)

    def _changes(
        self, current: ClientQuotas, targets: Mapping[str, float], noted: Mapping[str, float]
    ) -> tuple[dict[str, float | None], dict[str, float]]:
        """Return the quotas to set or remove (None) by user, and the quotas to note."""
        changes: dict[str, float | None] = {}
        retained: dict[str, float] = {}
        with_clients = {
            entity.user
            for entity, values in current.items()
            if entity.client_id is not None and QuotaKey.REQUEST in values
        }
        targets = {
            user: value
            for user, value in targets.items()
            if not self._is_left(current, user, has_clients=user in with_clients)
        }
        for user, value in noted.items():
            if user in targets:
                continue
            # Until the time is over, a quota that is there again may be that of another sidecar.
            if not self._waits(user) and is_signed(_percentage(current, user)):
                retained[user] = value
                changes[user] = None
            elif self._may_come(user):
                retained[user] = value
                self._removed.add(user)
        self._removed -= targets.keys()
        self._wanted_at |= dict.fromkeys(targets, self.board.now())
        for user, value in targets.items():
            now = _percentage(current, user)
            retained[user] = value
            is_own = _same(now, noted.get(user))
            is_stricter = now is not None and now < value and not is_own
            if not _same(now, value) and not is_stricter:
                changes[user] = value
        return changes, retained

    def _may_come(self, user: str) -> bool:
        """Whether Kafka may set the user's quota late; an earlier run may have requested it."""
        return self.board.now() <= self._wanted_at.get(user, self._began) + LATE_S

    def _waits(self, user: str) -> bool:
        return user in self._removed and self._may_come(user)

    def _is_left(self, current: ClientQuotas, user: str, *, has_clients: bool) -> bool:
        """Whether an operator's quota stays, or makes Kafka ignore a quota of the user."""
        now = _percentage(current, user)
        whose = ""
        if now is None or is_signed(now):
            now = current.get(Entity(user, DEFAULT), {}).get(QuotaKey.REQUEST)
            whose = " for each of the user's client-ids, which has precedence"
        if user not in self._left and now is not None:
            _log.warning(
                "user %s gets no request_percentage for the throttle: an operator set one of %g%s",
                user,
                now,
                whose,
            )
        elif user not in self._left and has_clients:
            _log.warning(
                "user %s is throttled only in part: an operator set a request_percentage for "
                "some of the user's client-ids, which has precedence",
                user,
            )
        if now is not None or has_clients:
            self._left.add(user)
        return now is not None

    async def _change_all(self, changes: Mapping[str, float | None]) -> Failure | None:
        alterations: list[Alteration] = [
            ({"user": user}, {QuotaKey.REQUEST.value: value}) for user, value in changes.items()
        ]
        outcomes = await self.alter(alterations)
        self._wanted_at |= dict.fromkeys(self._requested, self.board.now())
        if isinstance(outcomes, Failure):
            return outcomes
        noted = dict(self.retained.enforced_request_percentages)
        for (user, value), failure in zip(changes.items(), outcomes, strict=True):
            if failure is not None:
                if failure.kind is FailureKind.AUTHORIZATION:
                    self._requested.discard(user)
                continue
            if value is None:
                self.absent.add(user)
                if self._may_come(user):
                    self._removed.add(user)
                else:
                    noted.pop(user, None)
                _log.info("removed the request_percentage of user %s", user)
            else:
                self.absent.discard(user)
                _log.info("set request_percentage %.9g for user %s while throttled", value, user)
        self._note(noted)
        return next((failure for failure in outcomes if failure is not None), None)

    def _note(self, noted: Mapping[str, float]) -> None:
        self._wanted_at = {user: at for user, at in self._wanted_at.items() if user in noted}
        self._removed &= noted.keys()
        if noted != self.retained.enforced_request_percentages:
            self.retained.set_enforced_request_percentages(noted)

    def _log_outcome(self, failure: Failure | None, level: int) -> None:
        before, self._logged = self._logged, None if failure is None else (failure.kind, level)
        if failure is None:
            if before is not None:
                _log.info("the request_percentage of throttled users can be set in Kafka again")
        elif self._logged != before:
            _log.log(
                level,
                "the request_percentage of throttled users can't be set in Kafka: %s",
                failure.message,
            )


def _left_by_others(current: ClientQuotas, noted: Mapping[str, float]) -> dict[str, float]:
    """Find quotas of an earlier run without a state file, by their signature."""
    left = {}
    for entity in current:
        user = entity.user
        if not isinstance(user, str) or entity.client_id is not None or user in noted:
            continue
        value = _percentage(current, user)
        if value is not None and is_signed(value):
            _log.info("found the request_percentage that an earlier run set for %s", user)
            left[user] = value
    return left


def _percentage(quotas: ClientQuotas, user: str) -> float | None:
    return quotas.get(Entity(user=user), {}).get(QuotaKey.REQUEST)


def _same(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and abs(first - second) < _DIGITS
