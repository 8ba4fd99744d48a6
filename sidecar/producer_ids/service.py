"""Throttles users with more new producer ids than their quota (KIP-936).

Ids come one by one, from the request log of the broker beside this sidecar and from other sidecars.
A user above the quota gets a factor of 0.0 for the KIP's throttle time. The board has the
throttles, and ``Retained`` the quotas that operators set.

Example: with 50 ids an hour, bob's new id 551 throttles him for 72 s. Id 552, which he opens during
that time, extends this to 144 s from the first. If his quota is raised to 100, the rest is halved.

A throttle is extended within a second, and one publication extends all of them. The cost of a
decision grows with the cluster, and a client in a loop opens hundreds of ids a second.

A restart forgets the counts but not the throttles. An earlier throttle ends at its planned time, or
when the quota that caused it is raised or removed. It never lasts longer than the longest throttle,
whatever the machine's clock did.

Source: KIP-936, sections "ProducerIdQuotaManager" and "New Quota Types".
"""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sidecar.control.board import Board
from sidecar.control.operation import Operation
from sidecar.formats.quantities import format_duration
from sidecar.producer_ids.retained import NAME, Retained
from sidecar.quotas.entities import Default
from sidecar.quotas.producer_ids.id_counts import Dropped, ProducerIds, ProducerIdSettings
from sidecar.quotas.producer_ids.id_quotas import (
    InForce,
    ProducerIdQuota,
    ProducerIdQuotas,
    in_force,
    quota_of,
)
from sidecar.quotas.producer_ids.user_ids import ProducerIdStatus
from sidecar.throttle.user_throttles import UserThrottle, throttles_of, unexpired

_CHECK_S: Final = 1.0
"""The delay with which a throttle is extended, or shortened after a change of the file."""


@dataclass(frozen=True, slots=True)
class _TakenOver:
    """A throttle from before a restart: its end in steady seconds, and the limit that caused it."""

    ends_at: float
    limit: float | None


class ProducerIdWatch:
    """Counts ids and throttles users. At the start no id is known.

    Attributes:
        settings: the terms of counting.
        quotas: the current quotas by user; DEFAULT is always present.
    """

    def __init__(
        self,
        board: Board,
        retained: Retained,
        settings: ProducerIdSettings,
        quota: ProducerIdQuota,
        cleanup_s: float,
        *,
        file: ProducerIdQuotas | None = None,
    ) -> None:
        """Start nothing yet; only the throttles in the board's memory apply.

        Args:
            board: has the throttles.
            retained: has the quotas that operators set over HTTP.
            settings: the terms of counting.
            quota: the quota of users without any other.
            cleanup_s: how often inactive users are forgotten, in seconds, above 0.
            file: the quotas of the file, if there is one.
        """
        self.settings = settings
        self._board = board
        self._quota = quota
        self._cleanup_s = cleanup_s
        self._ids = ProducerIds(settings)
        self._file = file or {}
        self._retained = retained
        self.quotas = self._force()
        self._taken_over: dict[str, _TakenOver] = {}
        self._throttled: set[str] = set()
        self._take_over()

    @property
    def dropped(self) -> Dropped:
        """The ids that were dropped for lack of room."""
        return self._ids.dropped

    @property
    def filter_bytes(self) -> int:
        """The memory of all filters, in bytes."""
        return self._ids.filter_bytes

    def quota_of(self, user: str) -> InForce:
        """Return the quota of a user."""
        return quota_of(self.quotas, user)

    def statuses(self) -> tuple[ProducerIdStatus, ...]:
        """Return the ids of all known users, sorted by name.

        After a restart the tokens of a throttled user are those that its remaining time takes.
        """
        now = self._board.now()
        known = {status.user: status for status in self._ids.statuses(self._now_ms())}
        for user in tuple(self._taken_over):
            wait_s = self._ends_at(user, now) - now
            limit = self.quota_of(user).quota.producer_ids_rate
            if wait_s > 0 and limit is not None:
                status = known.get(user) or ProducerIdStatus(user, limit, 0.0, None, 0, 0)
                tokens = -wait_s * limit / self.settings.window_size_s
                known[user] = replace(status, tokens=tokens, throttle_ms=round(wait_s * 1000))
        return tuple(known[user] for user in sorted(known))

    def set_file(self, quotas: ProducerIdQuotas) -> None:
        """Use the new contents of the file."""
        self._file = quotas
        self.quotas = self._force()
        self.review()

    @property
    def put_quotas(self) -> ProducerIdQuotas:
        """The quotas that operators set over HTTP."""
        return self._retained.quotas

    def put(self, quotas: ProducerIdQuotas, operation: Operation | None = None) -> None:
        """Use and record the quotas that operators set over HTTP."""
        self._retained.set_quotas(quotas, operation)
        self.review()

    def seen(self, user: str, producer_id: int) -> None:
        """Count an id that was allocated to a user or seen again."""
        noted = self._ids.record(user, producer_id, self._now_ms())
        if noted.throttle_ms > 0 and noted.is_new:
            self._throttled.add(user)
            now = self._board.now()
            before = self._own_throttle(user)
            if before is None or before.ends_at < now + 2 * _CHECK_S:
                self._publish([user], now)

    async def run(self) -> None:
        """Update throttles and forget inactive users, until cancelled."""
        clean_at = self._board.now() + self._cleanup_s
        while True:
            self.review()
            if self._board.now() >= clean_at:
                self._ids.tick(self._now_ms())
                clean_at = self._board.now() + self._cleanup_s
            await asyncio.sleep(_CHECK_S)

    def review(self) -> None:
        """Set all throttles to the length that the counts and the current quotas require."""
        if self._put is not self._retained.quotas:
            # They were set, or the state file was read late.
            self.quotas = self._force()
        self._take_over()
        self._publish(self._throttled, self._board.now())

    def _take_over(self) -> None:
        """Take over throttles from before a restart; the state file may be read late."""
        for user, each in user_throttles_of(self._board).items():
            if user not in self._throttled:
                # The user's bucket is full again.
                ends_at = min(each.ends_at, self._board.now() + self.settings.most_throttle_s)
                limit = self.quota_of(user).quota.producer_ids_rate
                self._taken_over[user] = _TakenOver(ends_at, limit)
                self._throttled.add(user)

    def _force(self) -> Mapping[str | Default, InForce]:
        self._put = self._retained.quotas
        quotas = in_force(self._quota, self._file, self._put)
        self._ids.set_limits({user: each.quota.producer_ids_rate for user, each in quotas.items()})
        return quotas

    def _publish(self, users: Iterable[str], now: float) -> None:
        before = throttles_of(self._board.snapshot.memory.user_throttles, NAME)
        ends = {user: self._ends_at(user, now) for user in users}
        over = {user for user, ends_at in ends.items() if ends_at <= now}
        self._throttled -= over
        longer = {
            user: (ends_at, self._reason(user))
            for user, ends_at in ends.items()
            if user not in over and _differs(before.get(user), ends_at, now)
        }
        over &= set(before)
        if longer or over:
            self._board.throttle_users(NAME, longer, over)

    def _ends_at(self, user: str, now: float) -> float:
        counted = now + self._ids.throttle_ms(user, self._now_ms()) / 1000
        left = self._taken_over.get(user)
        if left is None:
            return counted
        limit = self.quota_of(user).quota.producer_ids_rate
        if limit is None or left.limit is None or limit > left.limit or now > left.ends_at:
            del self._taken_over[user]
            return counted
        return max(counted, left.ends_at)

    def _reason(self, user: str) -> str:
        status = self._ids.status(user, self._now_ms())
        if status is None or status.limit is None or status.tokens is None or status.tokens >= 0:
            # The ids were counted before a restart.
            before = self._own_throttle(user)
            return "too many new producer ids" if before is None else before.reason
        window = format_duration(float(self.settings.window_size_s))
        return (
            f"{math.ceil(-status.tokens):,} new producer ids too many: "
            f"{status.limit:g} per {window} are allowed, "
            f"{status.limit * self.settings.window_num:g} at once (KIP-936)"
        )

    def _own_throttle(self, user: str) -> UserThrottle | None:
        return self._board.snapshot.memory.user_throttles.get((user, NAME))

    def _now_ms(self) -> int:
        return int(self._board.now() * 1000)


def _differs(before: UserThrottle | None, ends_at: float, now: float) -> bool:
    # A difference of a millisecond comes from rounding.
    return before is None or abs(before.ends_at - ends_at) >= 0.002 or before.ends_at <= now


def user_throttles_of(board: Board) -> Mapping[str, UserThrottle]:
    """Return this capability's current throttles by user; another capability's may end later."""
    snapshot = board.snapshot
    left = unexpired(snapshot.memory.user_throttles, board.now())
    return {
        user: each
        for user, each in sorted(throttles_of(left, NAME).items())
        if user in snapshot.decision.user_throttles
    }
