"""Learns during a throttle how much is written to all brokers, and who writes to its topics.

The sidecar asks all sidecars of ``SIDECAR_PEERS`` for what the request logs of their brokers tell.
It does so every ``EVERY_S``, and only during a throttle or shortly before. If that has topics, the
sidecar asks a broker for the names of those of which request logs have only the ids. Within one
throttle, users only come into scope. All are forgotten at the release.

Example: a volume is full at 0 s. The sidecar asks its two peers, which answer within a few ms. Then
the quotas of alice fall. bob begins to write to the same topic on broker 2 at 20 s, and is in scope
at 28 s at the latest.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from sidecar.client_quotas.rates import Rates
from sidecar.client_quotas.scope import MOST_QUOTAS, Scoped, Told, quotas_for, scoped
from sidecar.client_quotas.writers import BrokerWriters
from sidecar.control.board import Board
from sidecar.errors import SidecarError
from sidecar.http import HttpError, failure_of
from sidecar.peers.addresses import Address, Addresses
from sidecar.quotas.entities import Entity
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure

_log = logging.getLogger(__name__)

PATH: Final = "/v1/client-quotas/writers"
EVERY_S: Final = 5.0

RATES_FRESH_S: Final = 10.0
"""How long told rates count: a client may have begun to write much meanwhile."""

DEADLINE_S: Final = 3.0
"""For the answers of all sidecars together."""
_AT_ONCE: Final = 20
MOST_TOLD: Final = 100_000
"""The most users and topics of all brokers together. An answer past that does not count."""
_IDS_AT_ONCE: Final = 1000
_MOST_IDS: Final = 5000
"""The most ids that are resolved each time; others wait for the next time."""

_EXPECTED: Final = (OSError, SidecarError, HttpError, ValueError, RecursionError)
"""As ``Trust.get``; CA certificates that can't be read now are a SidecarError."""

Ask = Callable[[Address], Awaitable[BrokerWriters]]
"""Asks a sidecar; raises like ``Trust.get``."""

NamesOf = Callable[[int, Sequence[str]], Awaitable[Mapping[str, str] | Failure]]
"""Asks a broker, by id, for names as ``sidecar.kafka.topic_ids``, within its own deadline."""


@dataclass(slots=True)
class LogWatch:
    """What request logs tell; initially nothing is known.

    Attributes:
        board: has the decision and the brokers.
        own: returns what this sidecar tells others.
        addresses: the addresses of all sidecars; None if there is only this one.
        ask: asks one of them.
        names_of: resolves ids.
        has_scope: whether a throttle may be for some topics only.
        failure: why a sidecar did not tell when it was asked last, one sentence; "" if all did.
    """

    board: Board
    own: Callable[[], BrokerWriters]
    addresses: Addresses | None
    ask: Ask
    names_of: NamesOf
    has_scope: bool = True
    failure: str = field(default="", init=False)
    _asked_at: float | None = field(default=None, init=False)
    _topics: tuple[str, ...] = field(default=(), init=False)
    _told: dict[Address | None, Told] = field(default_factory=dict, init=False)
    _names: dict[str, str] = field(default_factory=dict, init=False)
    _held: frozenset[str] = field(default=frozenset(), init=False)

    async def refresh(
        self,
        topics: tuple[str, ...] | None,
        *,
        more: tuple[str, ...] = (),
        throttles: bool,
        is_scope_needed: bool,
    ) -> None:
        """Ask if that is due, and forget everything after a throttle.

        Args:
            topics: those whose writers are throttled; None if they are not known.
            more: topics whose writers will be throttled soon.
            throttles: whether somebody is throttled or soon will be, by a volume or by a storage
                budget.
            is_scope_needed: whether that is by a volume.
        """
        now, wanted = self.board.now(), tuple(sorted({*(topics or ()), *more}))
        if not is_scope_needed:
            self._names, self._held = {}, frozenset()
        if not throttles:
            self._topics, self._asked_at, self._told, self.failure = (), None, {}, ""
            return
        if wanted != self._topics:
            # What was told has only the writers to the topics of before.
            self._topics, self._asked_at, self._told = wanted, None, {}
        if self._asked_at is not None and now < self._asked_at + EVERY_S:
            return
        self._asked_at = now
        # One that is no topic's may be a new topic's, of which the asked broker did not know yet.
        self._names = {topic_id: name for topic_id, name in self._names.items() if name}
        if self.addresses is not None:
            await self._ask_all(self.addresses)
        self._told[None] = Told(self.own(), now)
        if wanted:
            await self._resolve()
        self._told = {key: self._reduced(each) for key, each in self._told.items()}
        self._held |= self._scoped(topics).sure

    @property
    def rates(self) -> dict[int | None, Rates]:
        """Broker id -> how much clients write to it by its log, as other sidecars told lately."""
        now = self.board.now()
        told = self._told.values()
        fresh = [each.writers for each in told if is_valid(each.at, RATES_FRESH_S, now)]
        return {
            each.broker_id: Rates(each.rates.user, each.rates.client_id, each.rates.both)
            for each in fresh
            if each.broker_id is not None and each.rates is not None
        }

    def scoped(
        self,
        topics: tuple[str, ...] | None,
        quotas: Collection[Entity] = (),
        *,
        holds: bool = True,
    ) -> Scoped | None:
        """Return who is in scope now; None if all clients are by the settings.

        Args:
            topics: as for ``refresh``.
            quotas: the entities that have a produce quota.
            holds: whether users stay in scope until the release.
        """
        if not self.has_scope:
            return None
        found = self._scoped(topics, holds=holds)
        users = found.users
        if users is not None and quotas_for(users, quotas) > MOST_QUOTAS:
            return Scoped(f"more than {MOST_QUOTAS:,} quotas are needed for {len(users):,} users")
        return found

    def _scoped(self, topics: tuple[str, ...] | None, *, holds: bool = True) -> Scoped:
        if topics is None:
            return Scoped("the topics on the volumes are not known")
        active, told = self.board.snapshot.memory.active, self._told.values()
        found = scoped(frozenset(topics), active, told, self._names, self.board.now())
        return replace(found, sure=found.sure | self._held) if holds and not found.why else found

    async def _ask_all(self, addresses: Addresses) -> None:
        failures: dict[Address, str] = {}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_S):
                await addresses.look_up()
                known = addresses.known
                self._told = {key: each for key, each in self._told.items() if key in known}
                failures = dict.fromkeys(known, f"no answer within {DEADLINE_S:g} s")
                limit = asyncio.Semaphore(_AT_ONCE)
                await asyncio.gather(*(self._ask(each, limit, failures) for each in known))
        first = next(iter(failures.items()), None)
        self.failure = (
            "" if first is None else f"The sidecar {first[0]} does not tell who writes: {first[1]}."
        )

    async def _ask(
        self, address: Address, limit: asyncio.Semaphore, failures: dict[Address, str]
    ) -> None:
        async with limit:
            asked_at = self.board.now()
            try:
                answer = await self.ask(address)
            except _EXPECTED as error:
                failures[address] = failure_of(error, DEADLINE_S)
                return
        cluster_id = self.board.snapshot.memory.cluster_id
        told = self._reduced(Told(answer, asked_at))
        count = sum(len(each.writers.writers) for each in (told, *self._told.values()))
        if None not in {cluster_id, answer.cluster_id} and cluster_id != answer.cluster_id:
            failures[address] = "it is of another cluster"
        elif count > MOST_TOLD:
            failures[address] = f"all sidecars have more than {MOST_TOLD:,} users and topics"
        else:
            self._told[address] = told
            del failures[address]

    def _reduced(self, told: Told) -> Told:
        """Leave out the writers that are surely out of scope."""
        writers = [
            each
            for each in told.writers.writers
            if (name := each.topic or self._names.get(each.topic_id)) is None
            or name in self._topics
        ]
        return replace(told, writers=msgspec.structs.replace(told.writers, writers=writers))

    async def _resolve(self) -> None:
        """Resolve the ids that are not known yet."""
        writers = (each for told in self._told.values() for each in told.writers.writers)
        ids = {each.topic_id for each in writers if not each.topic}
        active = self.board.snapshot.memory.active
        own_id = self.own().broker_id
        broker_id = own_id if own_id in active else min(active, default=None)
        missing = sorted(ids - self._names.keys())[:_MOST_IDS]
        for first in range(0, len(missing), _IDS_AT_ONCE):
            if broker_id is None:
                return
            names = await self.names_of(broker_id, missing[first : first + _IDS_AT_ONCE])
            if isinstance(names, Failure):
                _log.debug("the ids of topics can't be resolved: %s", names.message)
                return
            self._names |= names
