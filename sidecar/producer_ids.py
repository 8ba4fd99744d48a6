"""Users with more new producer ids than their quota are held (KIP-936), and nobody else.

Ids come in one by one, from the request log of the broker beside this sidecar and from other
sidecars; a user who is over the quota is held by a factor of their own, 0.0, for the KIP's throttle
time. What holds lives on the board: quotas that operators put, and the holds.

Example: 50 ids an hour: bob's 551st new id holds him for 72 s. His 552nd, opened meanwhile, makes
it 144 s from the first. His quota is raised to 100: what he is over is waited for twice as fast.

A restart forgets what was counted, not who is held: a hold that was taken over ends when it said.

Source: KIP-936, sections "ProducerIdQuotaManager" and "New Quota Types".
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from sidecar.board import Board
from sidecar.quotas.entities import Default
from sidecar.quotas.id_quotas import InForce, ProducerIdQuota, ProducerIdQuotas, in_force, quota_of
from sidecar.quotas.producer_ids import Dropped, ProducerIds, ProducerIdSettings
from sidecar.quotas.user_ids import ProducerIdStatus
from sidecar.settings.durations import format_duration
from sidecar.throttle.holds import UserHold, hold, release
from sidecar.throttle.memory import Memory

_LOOK_S: Final = 1.0
"""How late a quota that was changed may shorten a hold."""


class ProducerIdWatch:
    """Counts ids and holds users. Initially no id was seen.

    Attributes:
        settings: how ids are counted.
    """

    def __init__(
        self,
        board: Board,
        settings: ProducerIdSettings,
        quota: ProducerIdQuota,
        cleanup_s: float,
    ) -> None:
        """Nothing runs yet.

        Args:
            board: where holds are published and put quotas are kept.
            settings: how ids are counted.
            quota: of users that nobody said anything of.
            cleanup_s: how often users who are gone are looked for, seconds, > 0.
        """
        self.settings = settings
        self._board = board
        self._quota = quota
        self._cleanup_s = cleanup_s
        self._ids = ProducerIds(settings)
        self._file: ProducerIdQuotas = {}
        self._put: ProducerIdQuotas | None = None
        self._quotas: Mapping[str | Default, InForce] = {}
        # Holds of before a restart are not among them: their users' buckets are full again.
        self._held: set[str] = set()
        self._renew()

    @property
    def quotas(self) -> Mapping[str | Default, InForce]:
        """Those in force, by user; DEFAULT is always there."""
        self._renew()
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
        self._renew()
        return self._ids.statuses(self._now_ms())

    def status(self, user: str) -> ProducerIdStatus | None:
        """Of one user; None: no ids of theirs are known."""
        self._renew()
        return self._ids.status(user, self._now_ms())

    def set_file(self, quotas: ProducerIdQuotas) -> None:
        """What the file says now."""
        self._file = quotas
        self._put = None
        self._renew()

    def seen(self, user: str, producer_id: int) -> None:
        """An id was given to a user, or given again."""
        self._renew()
        noted = self._ids.record(user, producer_id, self._now_ms())
        if noted.throttle_ms > 0 and noted.is_new:
            self._held.add(user)
            self._hold(user, noted.throttle_ms)

    async def run(self) -> None:
        """Lets time pass, until cancelled."""
        clean_at = self._board.now() + self._cleanup_s
        while True:
            await asyncio.sleep(_LOOK_S)
            self._renew()
            self._review()
            if self._board.now() >= clean_at:
                self._ids.tick(self._now_ms())
                clean_at = self._board.now() + self._cleanup_s

    def _renew(self) -> None:
        """Puts quotas in force that operators have changed."""
        put = self._board.snapshot.memory.id_quotas
        if put is self._put:
            return
        self._put = put
        self._quotas = in_force(self._quota, self._file, put)
        self._ids.set_limits(
            {user: each.quota.producer_ids_rate for user, each in self._quotas.items()}
        )
        self._review()

    def _review(self) -> None:
        """Holds are as long as the quotas of now make them."""
        for user in tuple(self._held):
            throttle_ms = self._ids.throttle_ms(user, self._now_ms())
            if throttle_ms > 0:
                self._hold(user, throttle_ms)
            else:
                self._held.discard(user)
                self._board.update(partial(_released, user=user))

    def _hold(self, user: str, throttle_ms: int) -> None:
        now = self._board.now()
        ends_at = now + throttle_ms / 1000
        before = self._board.snapshot.memory.holds.get(user)
        # A millisecond's difference is how both were rounded.
        if before is not None and abs(before.ends_at - ends_at) < 0.002 and before.ends_at > now:
            return
        reason = self._reason(user)
        self._board.update(
            lambda memory: replace(memory, holds=hold(memory.holds, user, ends_at, reason, now))
        )

    def _reason(self, user: str) -> str:
        status = self._ids.status(user, self._now_ms())
        if status is None or status.limit is None or status.tokens is None:
            return "too many new producer ids"
        window = format_duration(float(self.settings.window_size_s))
        return (
            f"{-status.tokens:,.0f} new producer ids too many: {status.limit:g} per {window} are "
            f"allowed, {status.limit * self.settings.window_num:g} at once (KIP-936)"
        )

    def _now_ms(self) -> int:
        return int(self._board.now() * 1000)


def _released(memory: Memory, user: str) -> Memory:
    return replace(memory, holds=release(memory.holds, user)) if user in memory.holds else memory


def holds_of(board: Board) -> Mapping[str, UserHold]:
    """The holds in force."""
    snapshot = board.snapshot
    return {user: snapshot.memory.holds[user] for user in sorted(snapshot.decision.users)}
