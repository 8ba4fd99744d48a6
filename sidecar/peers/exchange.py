"""Requests the producer ids of other sidecars' brokers from these sidecars.

A request waits for the next id, for up to ten seconds. The next request follows a second after the
answer. So sidecars of an idle cluster ask each other every ten seconds, and those of a busy cluster
once a second.

An idempotent producer gets its id from any broker, so each sidecar sees only some ids of a user.
Each sidecar offers the ids of its own broker's log to the others, and counts the ids that the
others offer. Ids that wrote follow in the same list after the ids that were allocated before. A
sidecar never passes on the ids of others.

The first request to a sidecar asks for the ids since this one began to ask, because the other may
have started later, or was not reached before. Ids that are older than a quota's window (at least a
minute) are not asked for: they would all be charged in one moment. After a time without a quota,
requests begin anew.

Example: three sidecars, and 30 ids of bob at each broker: after a second each has counted 90. When
one sidecar restarts, the others continue with its first id, and it counts new ids from then on.

Source: KIP-936, "Known Limitations": quotas are per broker; here a user's ids are the cluster's.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Annotated, Final

import msgspec

from sidecar.http import failure_of
from sidecar.peers.addresses import Address, Addresses, Requests
from sidecar.peers.trust import ASK_ERRORS, Trust
from sidecar.quotas.entities import LONGEST_USER

_log = logging.getLogger(__name__)

PATH: Final = "/v1/producer-ids/allocated"
MOST_ALLOCATED: Final = 20_000
"""The most ids that are kept for other sidecars: ten minutes of 30 ids a second."""
PIECE: Final = 2000
"""The most ids in one answer."""

_CHECK_S: Final = 1.0
_LOOK_S: Final = 5.0
_SPACING_S: Final = 0.02
"""The average time between two requests to a sidecar, however many sidecars there are."""
_WAIT_S: Final = 10
"""How long a request waits for an id."""
_MOST_WAITING: Final = 100
"""The most waiting requests, each of which is a connection at both ends. Further requests are
answered at once, and a sidecar with more peers does not wait."""
_DEADLINE_S: Final = 5.0
"""The deadline of an answer, beyond the wait."""
_LONGEST_PAUSE_S: Final = 30.0
_SHORTEST_GAP_S: Final = 60.0
"""How long a sidecar may not answer, also if the window is shorter: a wait and a pause."""
_LONGEST_ANSWER: Final = 4 << 20
_AT_ONCE: Final = 100
"""The most ids that are counted before other tasks run."""


class AllocatedId(msgspec.Struct, frozen=True, gc=False):
    """An id that a broker allocated to a user's producer, or an id that wrote."""

    user: str | None
    """The user; None if the id wrote, and that sidecar does not know its owner."""
    producer_id: int
    wrote: bool = False


class AllocatedIdPage(msgspec.Struct, frozen=True):
    """Some of the ids of a sidecar's broker."""

    next: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z-]{1,100}\Z")]
    """The place of the next page: the start id, "-", and a number. A URL contains it."""
    lost: Annotated[int, msgspec.Meta(ge=0)]
    """The number of ids that were requested too late."""
    ids: list[AllocatedId]


class AllocatedIdLog:
    """The ids of the broker beside this sidecar, for other sidecars; none at first."""

    def __init__(self, start_id: str, clock: Callable[[], float]) -> None:
        """Start without ids.

        Args:
            start_id: differs at every start.
            clock: returns steady seconds.
        """
        self._start_id = start_id
        self._clock = clock
        self._ids: deque[AllocatedId] = deque(maxlen=MOST_ALLOCATED)
        self._times: deque[float] = deque(maxlen=MOST_ALLOCATED)
        self._count = 0
        self._waiting = 0
        self._more = asyncio.Event()

    def add(self, user: str | None, producer_id: int, *, wrote: bool = False) -> None:
        """One more; an id that wrote, with its owner if known."""
        self._ids.append(AllocatedId(user, producer_id, wrote))
        self._times.append(self._clock())
        self._count += 1
        self._more.set()

    def page(self, after: str | None, last_s: float = 0.0) -> AllocatedIdPage:
        """Return the ids from a place on, or those of the last seconds.

        Args:
            after: ``next`` of the previous page. A place before a restart of this sidecar returns
                all ids since the restart. With None, ``last_s`` applies.
            last_s: of how many seconds the ids are wanted; with 0.0, the page only has a place.
        """
        if after is None:
            since = self._clock() - last_s
            recent = sum(1 for _ in takewhile(lambda at: at > since, reversed(self._times)))
            after = self._at(self._count - recent)
        start_id, _, number = after.rpartition("-")
        known = start_id == self._start_id and number.isascii() and number.isdigit()
        position = min(int(number), self._count) if known and len(number) < 19 else 0
        first = self._count - len(self._ids)
        lost = max(0, first - position)
        begin = max(position, first) - first
        ids = [self._ids[index] for index in range(begin, min(begin + PIECE, len(self._ids)))]
        return AllocatedIdPage(self._at(first + begin + len(ids)), lost, ids)

    async def wait_for_more(self, after: str | None) -> None:
        """Wait until ``page`` has ids after a place; return at once if many requests wait."""
        if self._waiting >= _MOST_WAITING:
            return
        self._waiting += 1
        try:
            while after == self._at(self._count):
                self._more.clear()
                await self._more.wait()
        finally:
            self._waiting -= 1

    def _at(self, number: int) -> str:
        return f"{self._start_id}-{number}"


@dataclass(slots=True)
class Peer:
    """Another sidecar.

    Attributes:
        address: its address.
        ids: the number of ids that it reported.
        lost: the number of ids that it no longer had.
        failure: why the last request failed; None if it succeeded, or there was none.
    """

    address: Address
    ids: int = 0
    lost: int = 0
    failure: str | None = None
    after: str | None = field(default=None, repr=False)
    answered_at: float = field(default=-math.inf, repr=False)


@dataclass(slots=True)
class Peers:
    """Asks the other sidecars for ids.

    Attributes:
        addresses: the addresses of the other sidecars.
        seen: called with each user and id.
        wrote: called with each id that wrote; None ignores them.
        is_wanted: returns whether to ask now.
        trust: sends the requests; by default it trusts the machine's CA certificates.
        window_s: the quota's window in seconds; older ids are skipped.
        peers: the known sidecars; those that are found later are asked for the same ids.
        lost: the number of ids that other sidecars no longer had, also those that are gone.
    """

    addresses: Addresses
    seen: Callable[[str, int], None]
    wrote: Callable[[int], None] | None = None
    is_wanted: Callable[[], bool] = lambda: True
    trust: Trust = field(default_factory=Trust)
    window_s: float = 3600.0
    peers: list[Peer] = field(init=False)
    lost: int = field(default=0, init=False)
    _began_at: float = field(init=False)
    """When this sidecar began to ask, or last had no reason to."""

    def __post_init__(self) -> None:
        self.peers = [Peer(address) for address in self.addresses.known]
        self._began_at = self.addresses.clock()

    async def run(self) -> None:
        """Ask all sidecars, until cancelled."""
        requests = Requests()
        try:
            while True:
                if await self.addresses.look_up():
                    known = {peer.address: peer for peer in self.peers}
                    self.peers = [
                        known.get(address) or Peer(address) for address in self.addresses.known
                    ]
                if self.is_wanted():
                    followed = {peer.address: partial(self._follow, peer) for peer in self.peers}
                    requests.retain(followed)
                else:
                    requests.retain({})
                    self._began_at = self.addresses.clock()
                    for peer in self.peers:
                        peer.after, peer.answered_at = None, -math.inf
                await asyncio.sleep(_LOOK_S)
        finally:
            await requests.end()

    @property
    def _wait_s(self) -> int:
        return _WAIT_S if len(self.peers) <= _MOST_WAITING else 0

    @property
    def _interval_s(self) -> float:
        return max(_CHECK_S, _SPACING_S * len(self.peers))

    async def _follow(self, peer: Peer) -> None:
        pause_s = self._interval_s
        while True:
            failure, more = None, False
            try:
                more = await self.ask(peer)
            except ASK_ERRORS as error:
                failure = failure_of(error, self._wait_s + _DEADLINE_S)
            if failure != peer.failure:
                _log_change(peer, failure)
            peer.failure = failure
            pause_s = self._interval_s if failure is None else min(2 * pause_s, _LONGEST_PAUSE_S)
            await asyncio.sleep(_SPACING_S if more else pause_s)

    async def ask(self, peer: Peer) -> bool:
        """Ask one sidecar once, and wait for an id; return whether to ask it again at once.

        Errors as ``Trust.get``.
        """
        now = self.addresses.clock
        longest_s = max(self.window_s, _SHORTEST_GAP_S)
        missed_s = now() - max(peer.answered_at, self._began_at)
        if peer.after is not None and missed_s <= longest_s:
            query = f"after={peer.after}"
        else:
            last_s = missed_s if missed_s <= longest_s else self.window_s
            query = f"last_s={last_s:.3f}"
        page = await self.trust.get(
            peer.address,
            f"{PATH}?{query}",
            AllocatedIdPage,
            deadline_s=_DEADLINE_S,
            wait_s=self._wait_s,
            longest_answer=_LONGEST_ANSWER,
        )
        peer.after, peer.answered_at = page.next, now()
        peer.ids += len(page.ids)
        peer.lost += page.lost
        self.lost += page.lost
        for number, each in enumerate(page.ids):
            self._take(each)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return len(page.ids) == PIECE

    def _take(self, reported: AllocatedId) -> None:
        if reported.wrote and self.wrote is None:
            return
        if reported.user is not None and len(reported.user) <= LONGEST_USER:
            self.seen(reported.user, reported.producer_id)
        if reported.wrote and self.wrote is not None:
            self.wrote(reported.producer_id)


def _log_change(peer: Peer, failure: str | None) -> None:
    if failure is None:
        _log.info("the sidecar %s can be asked again", peer.address)
    elif peer.failure is None:
        _log.warning("the sidecar %s can't be asked for producer ids: %s", peer.address, failure)
