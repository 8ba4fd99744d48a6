"""The second part of a hold: a request_percentage in Kafka while a user is held (KIP-936).

A produce factor does not stop a client that opens a connection for every batch: each new connection
lands one request before it is muted. A request quota does, since it mutes INIT_PRODUCER_ID too. It
is set for the user by AlterClientQuotas, where the user's quota asks for it, and taken back when
the hold ends:

- never over a request_percentage that the user has by an operator's hand, nor taken away when an
  operator changed it meanwhile;
- noted in the state file before it is set, so that a sidecar that was killed finds it again; and a
  sidecar without a state file knows its own by the number, see ``SIGNATURE``.

Example: bob is held and his quota says 0.01: his request_percentage becomes 0.010000936. Ten
minutes later he is not held, the value is still that, and it is removed.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.board import Board
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import ClientQuotas, Entity, QuotaKey
from sidecar.quotas.id_quotas import InForce
from sidecar.throttle.memory import Memory
from sidecar.volumes import Failure

_log = logging.getLogger(__name__)

SIGNATURE: Final = 9.36e-7
"""Added to the percentage that is asked for: no operator types that. Kafka keeps all its digits."""

_DIGITS: Final = 1e-12
_LOOK_S: Final = 5.0
"""How often what is set in Kafka is compared with what should be, while anything is."""

Describe = Callable[[], Awaitable[ClientQuotas | Failure]]
Alter = Callable[[list[Alteration]], Awaitable[Failure | None]]
Persist = Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class RequestHolds:
    """Sets and takes back.

    Attributes:
        board: whose holds they are, and where it is noted what was set.
        quota_of: the producer id quota of a user.
        describe: all client quotas of the cluster.
        alter: sets and removes some.
        persist: writes the state; whether it is on disk.
    """

    board: Board
    quota_of: Callable[[str], InForce]
    describe: Describe
    alter: Alter
    persist: Persist
    _failure: str | None = field(default=None, init=False)
    _left: set[str] = field(default_factory=set, init=False)
    _adopted: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Keeps Kafka's quotas as the holds are, until the board is closed."""
        while not self.board.closed:
            generation = self.board.snapshot.generation
            await self.settle()
            busy = bool(self.board.snapshot.memory.request_holds) or self._failure is not None
            wait_s = _LOOK_S if busy or not self._adopted else None
            await self._change(generation, wait_s)

    async def _change(self, generation: int, wait_s: float | None) -> None:
        if wait_s is None:
            # Nothing is set: what comes next is a change of the board's.
            while self.board.snapshot.generation == generation and not self.board.closed:
                await self.board.wait_for_change(generation, 60.0)
        else:
            await self.board.wait_for_change(generation, wait_s)

    async def settle(self) -> None:
        """Does once what is to be done now."""
        wanted = self._wanted()
        noted = self.board.snapshot.memory.request_holds
        if self._adopted and not wanted and not noted:
            return
        found = await self.describe()
        if isinstance(found, Failure):
            self._tell(found)
            return
        self._tell(None)
        if not self._adopted:
            self._adopt(found)
        await self._take_back(found, wanted)
        await self._set(found, wanted)

    def _wanted(self) -> dict[str, float]:
        wanted = {}
        for user in self.board.snapshot.decision.users:
            percentage = self.quota_of(user).quota.held_request_percentage
            if percentage is not None:
                wanted[user] = percentage + SIGNATURE
        return wanted

    def _adopt(self, found: ClientQuotas) -> None:
        """What an earlier run left, which had no state file or lost it."""
        self._adopted = True
        noted = self.board.snapshot.memory.request_holds
        for entity, values in found.items():
            value = values.get(QuotaKey.REQUEST)
            user = entity.user
            if entity.client_id is None and isinstance(user, str) and value is not None:
                ours = _is_signed(value) and user not in noted
                if ours:
                    _log.info("found the request_percentage that an earlier run set for %s", user)
                    self._note(user, value)

    async def _take_back(self, found: ClientQuotas, wanted: Mapping[str, float]) -> None:
        noted = self.board.snapshot.memory.request_holds
        for user, value in tuple(noted.items()):
            if wanted.get(user) == value:
                continue
            if _same(_percentage(found, user), value):
                failure = await self.alter([({"user": user}, {QuotaKey.REQUEST.value: None})])
                if failure is not None:
                    self._tell(failure)
                    return
                _log.info("took back the request_percentage of user %s", user)
            self._note(user, None)
        self._left &= set(self.board.snapshot.decision.users)

    async def _set(self, found: ClientQuotas, wanted: Mapping[str, float]) -> None:
        for user, value in wanted.items():
            now = _percentage(found, user)
            if _same(now, value):
                continue
            if now is not None and not _is_signed(now):
                if user not in self._left:
                    _log.warning(
                        "user %s is held by the factor alone: an operator gave them a "
                        "request_percentage of %g",
                        user,
                        now,
                    )
                self._left.add(user)
                continue
            # Before it is set: what is killed in between takes back what it may have set.
            self._note(user, value)
            await self.persist()
            failure = await self.alter([({"user": user}, {QuotaKey.REQUEST.value: value})])
            if failure is not None:
                self._tell(failure)
                return
            _log.info("set request_percentage %.9g for user %s while they are held", value, user)

    def _note(self, user: str, value: float | None) -> None:
        def fold(memory: Memory) -> Memory:
            others = {name: each for name, each in memory.request_holds.items() if name != user}
            return replace(
                memory, request_holds=others if value is None else {**others, user: value}
            )

        self.board.update(fold)

    def _tell(self, failure: Failure | None) -> None:
        text = None if failure is None else failure.message
        if text != self._failure and text is not None:
            _log.warning("the request_percentage of held users can't be kept in Kafka: %s", text)
        elif text is None and self._failure is not None:
            _log.info("the request_percentage of held users can be kept in Kafka again")
        self._failure = text


def _percentage(quotas: ClientQuotas, user: str) -> float | None:
    return quotas.get(Entity(user=user), {}).get(QuotaKey.REQUEST)


def _same(found: float | None, value: float) -> bool:
    return found is not None and abs(found - value) < _DIGITS


def _is_signed(value: float) -> bool:
    """Whether the last digits are ours: a multiple of 0.00001 and the signature."""
    rest = (value - SIGNATURE) * 1e5
    return abs(rest - round(rest)) < 1e-4 and round(rest) > 0
