"""Follows the few sidecars that ask all brokers, so that N sidecars do not ask N brokers each.

Of the sidecars in ``SIDECAR_PEERS`` each follows the first k that answer, in an order that is the
same everywhere (``rendezvous``). Whoever finds itself among them asks the brokers, and so does
whoever is followed: a sidecar that others take for the next one need not know why. What an observer
saw is folded in as if it had been seen here.

A sidecar asks all brokers itself too when no observation came for two renewals, each as long as the
observer said that the next one would take: it is never blinder than without observers for longer.

What makes no sense, is of another cluster or older than an hour is dropped and counted. Of a whole
observation that is older than the last one its readings count: one observer may have read a broker
that did not answer another.

Example: of 30 sidecars with k = 3 three ask 30 brokers, and 27 follow them; each broker is asked
three times an interval. One of the three dies: within two seconds all follow the next.
"""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from sidecar.http import HttpError, failure_of, request
from sidecar.peers.addresses import Address, Addresses, Requests
from sidecar.peers.observations import (
    PATH,
    AgedObservation,
    ObservationLog,
    ObservationPage,
    received,
)
from sidecar.peers.rendezvous import in_order
from sidecar.volumes import Observation, Reading

_log = logging.getLogger(__name__)

_WAIT_S: Final = 10
"""So long a request waits for the next observation."""
_DEADLINE_S: Final = 3.0
"""Of an answer, beyond the wait."""
_LOOK_S: Final = 0.5
_RETRY_S: Final = 15.0
"""For so long one that failed is not asked again, and the next one in the order takes its place."""
_SPACING_S: Final = 0.05
"""Between two requests to one at least."""
_FOLLOWED_S: Final = 2 * _WAIT_S + 5.0
"""Who was followed so lately is an observer: a follower asks again within the wait."""
_GRACE_S: Final = 5.0
"""After the start: until then followers wait for an observer's first answer."""
_RENEWALS: Final = 2.0
_HAIR_S: Final = 1.0
"""What an answer may take beyond what an observer said."""
_LONGEST_ANSWER: Final = 64 << 20
_OLDEST_MS: Final = 3_600_000
"""Older news changes nothing."""


@dataclass(slots=True)
class Observer:
    """A sidecar that may be followed.

    Attributes:
        address: where.
        is_self: whether this sidecar itself answered there.
        failure: why its last request failed; None when it did not.
        retry_at: when it may be asked again after that, steady seconds.
    """

    address: Address
    is_self: bool = False
    failure: str | None = None
    retry_at: float = 0.0
    after: int | None = field(default=None, repr=False)
    origin: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Sight:
    """What this sidecar sees and knows.

    Attributes:
        log: what it has seen itself, for its followers.
        take: publishes what another has seen.
        clock: steady seconds.
        cluster_id: of the cluster; None before it is known.
        whole_at: when the last whole observation was complete that is known, whoever made it,
            steady seconds; None: none is.
        longest_s: the longest time to the next observation, seconds, whatever an observer says.
    """

    log: ObservationLog
    take: Callable[[Observation], None]
    clock: Callable[[], float]
    cluster_id: Callable[[], str | None]
    whole_at: Callable[[], float | None]
    longest_s: float


Ask = Callable[[Observer], Awaitable[ObservationPage]]
"""Asks an observer for what is new since its ``origin`` and ``after``; raises as ``request``."""


class Observers:
    """Follows observers, and says whether this sidecar is to be one.

    Attributes:
        dropped: why news was dropped -> how much of it.
    """

    def __init__(
        self,
        addresses: Addresses,
        count: int,
        sight: Sight,
        *,
        ask: Ask | None = None,
    ) -> None:
        """Nobody is followed yet.

        Args:
            addresses: of all sidecars, this one among them.
            count: so many of them are observers.
            sight: this one's own.
            ask: None: over HTTP.
        """
        self.dropped: Counter[str] = Counter()
        self._addresses = addresses
        self._count = count
        self._own = sight.log
        self._take = sight.take
        self._clock = clock = sight.clock
        self._cluster_id = sight.cluster_id
        self._whole_at = sight.whole_at
        self._longest_s = sight.longest_s
        self._ask = ask or self._ask_by_http
        self._known: dict[str, Observer] = {}
        self._requests = Requests()
        self._ssl = ssl.create_default_context()
        self._fresh_until = clock() + _GRACE_S

    @property
    def followed(self) -> list[Observer]:
        """The observers by this sidecar's sight: the first that answer, itself perhaps."""
        now = self._clock()
        answering = (each for each in self._known.values() if each.is_self or each.retry_at <= now)
        return list(islice(answering, self._count))

    @property
    def is_observer(self) -> bool:
        """Whether this sidecar asks all brokers."""
        now = self._clock()
        at = self._own.followed_at
        is_followed = at is not None and now - at <= _FOLLOWED_S
        return is_followed or now > self._fresh_until or any(one.is_self for one in self.followed)

    async def run(self) -> None:
        """Follows, until cancelled."""
        try:
            while True:
                if await self._addresses.look_up():
                    known = {str(each): each for each in self._addresses.known}
                    self._known = {
                        name: self._known.get(name) or Observer(known[name])
                        for name in in_order(known)
                    }
                self._requests.retain(
                    {
                        each.address: partial(self._follow, each)
                        for each in self.followed
                        if not each.is_self
                    }
                )
                await asyncio.sleep(_LOOK_S)
        finally:
            await self._requests.end()

    async def _follow(self, observer: Observer) -> None:
        """Asks one again and again, until it fails or is this sidecar itself."""
        while not observer.is_self:
            failure = None
            asked_at = self._clock()
            try:
                page = await self._ask(observer)
                self._read(observer, page, asked_at)
            except (OSError, HttpError, ValueError, RecursionError) as error:
                self.dropped["malformed"] += isinstance(error, msgspec.DecodeError)
                failure = failure_of(error, _WAIT_S + _DEADLINE_S)
            except Exception as error:  # noqa: BLE001 - reported, and in the log
                # A bug of ours: it must not be lost, nor end the others.
                _log.exception("what %s has seen could not be used", observer.address)
                failure = f"unexpected: {type(error).__name__}"
            if failure is not None:
                if observer.failure is None:
                    _log.warning("the observer %s can't be followed: %s", observer.address, failure)
                observer.failure = failure
                observer.retry_at = self._clock() + _RETRY_S
                return
            if observer.failure is not None:
                _log.info("the observer %s can be followed again", observer.address)
                observer.failure = None
            await asyncio.sleep(_SPACING_S)

    async def _ask_by_http(self, observer: Observer) -> ObservationPage:
        query = ""
        if observer.after is not None:
            query = f"?origin={observer.origin}&after={observer.after}"
        async with asyncio.timeout(_WAIT_S + _DEADLINE_S):
            response = await request(
                "GET",
                f"{observer.address.url}{PATH}{query}",
                headers={"Accept": "application/json", "Prefer": f"wait={_WAIT_S}"},
                ssl_context=self._ssl,
                longest_answer=_LONGEST_ANSWER,
                address=observer.address.ip,
            )
        if response.status != 200:
            raise HttpError(f"it answers {response.status}")
        return msgspec.json.decode(response.body, type=ObservationPage)

    def _read(self, observer: Observer, page: ObservationPage, asked_at: float) -> None:
        now = self._clock()
        made_at = min(now, asked_at + page.held_ms / 1000)
        observer.origin, observer.after = page.origin, page.next
        if page.origin == self._own.start_id:
            observer.is_self = True
            return
        for each in page.observations:
            if why := self._unusable(each):
                self.dropped[why] += 1
                continue
            self._take(self._usable(received(each, page.origin, made_at)))
            due_s = min(page.due_ms / 1000, self._longest_s)
            self._fresh_until = max(self._fresh_until, now + _RENEWALS * due_s + _HAIR_S)

    def _usable(self, observation: Observation) -> Observation:
        """What of it counts: of one that is older than the last whole one its readings alone."""
        last = self._whole_at()
        if observation.membership is None or last is None or observation.observed_at > last:
            return observation
        readings = {
            broker_id: answer
            for broker_id, answer in observation.answers.items()
            if isinstance(answer, Reading)
        }
        return replace(observation, membership=None, answers=readings)

    def _unusable(self, sent: AgedObservation) -> str:
        """Why news is dropped; "" when it is not."""
        if sent.age_ms > _OLDEST_MS:
            return "old"
        members = sent.seen.members
        known, told = self._cluster_id(), members and members.cluster_id
        is_another = known is not None and told is not None and known != told
        return "contradicting" if is_another else ""
