"""Throttles users with more new producer ids than their quota (KIP-936), and nobody else.

Ids come in one by one, from the request log of the broker beside this sidecar and from other
sidecars; a user who is over the quota is throttled by a factor of their own, 0.0, for the KIP's
throttle time. Throttles are on the board; quotas that operators put are in ``Retained``.

Example: 50 ids an hour: bob's 551st new id throttles him for 72 s. His 552nd, opened meanwhile,
makes it 144 s from the first. His quota is raised to 100: what is left is halved.

Who is throttled already is throttled for longer within a second, all of them in one publication: a
decision costs as much as the cluster is large, and a client in a loop opens hundreds of ids a
second.

A restart forgets what was counted, not who is throttled: a throttle of before ends when it said,
after the longest one at the latest whatever the machine's clock did, or when the quota that made it
is raised or gone.

Source: KIP-936, sections "ProducerIdQuotaManager" and "New Quota Types".
"""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.control.board import Board
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
from sidecar.formats.quantities import format_duration
from sidecar.throttle.user_throttles import UserThrottle, throttles_of, unexpired

_CHECK_S: Final = 1.0
"""How late a throttle becomes longer, or shorter by a quota that was changed in the file."""


@dataclass(frozen=True, slots=True)
class _TakenOver:
    """A throttle of before a restart: when it ends, steady seconds, and the limit that made it."""

    ends_at: float
    limit: float | None


class ProducerIdWatch:
    """Counts ids and throttles users. Initially no id was seen.

    Attributes:
        settings: how ids are counted.
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
        """Nothing runs yet, and nobody is throttled but by the board's memory.

        Args:
            board: has the throttles.
            retained: has the quotas that operators put over HTTP.
            settings: how ids are counted.
            quota: of users that nobody said anything of.
            cleanup_s: how often users who are gone are forgotten, seconds, > 0.
            file: what the file says, if there is one.
        """
        self.settings = settings
        self._board = board
        self._quota = quota
        self._cleanup_s = cleanup_s
        self._ids = ProducerIds(settings)
        self._file = file or {}
        self._retained = retained
        self._quotas = self._force()
        longest_s = math.inf if settings.most_throttle_s is None else settings.most_throttle_s
        # Their users' buckets are full again.
        self._taken_over = {
            user: _TakenOver(
                min(each.ends_at, board.now() + longest_s),
                quota_of(self._quotas, user).quota.producer_ids_rate,
            )
            for user, each in user_throttles_of(board).items()
        }
        self._throttled = set(self._taken_over)

    @property
    def quotas(self) -> Mapping[str | Default, InForce]:
        """Those in force, by user; DEFAULT is always there."""
        return self._quotas

    @property
    def dropped(self) -> Dropped:
        """What there was no room to count."""
        return self._ids.dropped

    @property
    def filter_bytes(self) -> int:
        """What remembering ids takes."""
        return self._ids.filter_bytes

    def quota_of(self, user: str) -> InForce:
        """The quota that a user is under."""
        return quota_of(self.quotas, user)

    def statuses(self) -> tuple[ProducerIdStatus, ...]:
        """Of all users that are known, by name."""
        return self._ids.statuses(self._now_ms())

    def set_file(self, quotas: ProducerIdQuotas) -> None:
        """What the file says now."""
        self._file = quotas
        self._quotas = self._force()
        self.review()

    @property
    def put_quotas(self) -> ProducerIdQuotas:
        """Those that operators put over HTTP."""
        return self._retained.quotas

    def put(self, quotas: ProducerIdQuotas) -> None:
        """Puts in force, and retains, what operators say over HTTP now."""
        self._retained.set_quotas(quotas)
        self._quotas = self._force()
        self.review()

    def seen(self, user: str, producer_id: int) -> None:
        """An id was allocated to a user, or seen again."""
        noted = self._ids.record(user, producer_id, self._now_ms())
        if noted.throttle_ms > 0 and noted.is_new:
            self._throttled.add(user)
            now = self._board.now()
            before = self._own_throttle(user)
            if before is None or before.ends_at < now + 2 * _CHECK_S:
                self._publish([user], now)

    async def run(self) -> None:
        """Lets time pass, until cancelled."""
        clean_at = self._board.now() + self._cleanup_s
        while True:
            self.review()
            if self._board.now() >= clean_at:
                self._ids.tick(self._now_ms())
                clean_at = self._board.now() + self._cleanup_s
            await asyncio.sleep(_CHECK_S)

    def review(self) -> None:
        """Makes all throttles as long as what was counted and the present quotas say."""
        self._publish(self._throttled, self._board.now())

    def _force(self) -> Mapping[str | Default, InForce]:
        quotas = in_force(self._quota, self._file, self._retained.quotas)
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
        limit = quota_of(self._quotas, user).quota.producer_ids_rate
        if limit is None or left.limit is None or limit > left.limit or now > left.ends_at:
            del self._taken_over[user]
            return counted
        return max(counted, left.ends_at)

    def _reason(self, user: str) -> str:
        status = self._ids.status(user, self._now_ms())
        if status is None or status.limit is None or status.tokens is None or status.tokens >= 0:
            # Counted before a restart.
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
    # A millisecond's difference is how both were rounded.
    return before is None or abs(before.ends_at - ends_at) >= 0.002 or before.ends_at <= now


def user_throttles_of(board: Board) -> Mapping[str, UserThrottle]:
    """User -> this capability's throttle that has not ended; another's may be in force."""
    snapshot = board.snapshot
    left = unexpired(snapshot.memory.user_throttles, board.now())
    return {
        user: each
        for user, each in sorted(throttles_of(left, NAME).items())
        if user in snapshot.decision.users
    }
