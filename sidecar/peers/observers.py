"""Follows observers, the few sidecars that ask all brokers.

Each sidecar follows the first k sidecars of ``SIDECAR_PEERS`` that answer, in an order that is the
same everywhere and goes from zone to zone (``rendezvous``). A sidecar is an observer, and asks the
brokers, when it finds itself among these k, or when another sidecar follows it. The observations of
an observer are folded in as if this sidecar had made them.

A sidecar also asks all brokers itself when no observation came for two renewals. A renewal is the
time that the observer announced for its next observation. Until it knows its cluster, it asks only
the brokers: the peers may include sidecars of another cluster.

An observation that makes no sense, comes from another cluster, or is older than an hour is dropped
and counted. Of a whole observation that is older than the last one, the readings still count: one
observer may have read a broker that did not answer another.

Example: of 30 sidecars with k = 3, three ask 30 brokers and 27 follow them. Each broker is asked
three times an interval. When one of the three dies, all follow the next one within two seconds.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import msgspec

from sidecar.http import failure_of
from sidecar.peers.addresses import Address, Addresses, Requests
from sidecar.peers.observations import (
    PATH,
    AgedObservation,
    ObservationLog,
    ObservationPage,
    received,
)
from sidecar.peers.rendezvous import in_order
from sidecar.peers.trust import ASK_ERRORS, Trust
from sidecar.volumes import Observation, Reading

_log = logging.getLogger(__name__)

_WAIT_S: Final = 10
"""How long a request waits for the next observation."""
_DEADLINE_S: Final = 3.0
"""The deadline of an answer, beyond the wait."""
_LOOK_S: Final = 0.5
_RETRY_S: Final = 15.0
"""How long an observer that failed is not asked again. Until it answers, the next in the order has
its place."""
_SPACING_S: Final = 0.05
"""The shortest time between two requests to one observer."""
_UNHELD_S: Final = 1.0
"""The same after an answer that came at once and without an observation. An observer holds 1,000
requests, and answers further followers so."""
_SELF_S: Final = 30.0
"""The time between two requests to a name that leads to this sidecar, whose address may change."""
_MIXED_S: Final = 600.0
"""How long after a name led to this sidecar and to another one it does not make this one the first.
A Service with a cluster IP leads to each in turn, and several sidecars would act."""
_FOLLOWED_S: Final = 2 * _WAIT_S + 5.0
"""A sidecar that was followed so recently is an observer: a follower asks again within the wait."""
_GRACE_S: Final = 5.0
"""How long after the start followers wait for an observer's first answer."""
_RENEWALS: Final = 2.0
_HAIR_S: Final = 1.0
"""How much later than announced an observation may come."""
_LONGEST_ANSWER: Final = 64 << 20
_MOST_FIRSTS: Final = 16
_OLDEST_MS: Final = 3_600_000
"""Older observations change nothing."""


@dataclass(slots=True)
class Observer:
    """A sidecar that may be followed.

    Attributes:
        address: its address.
        is_self: whether this sidecar itself answers there.
        failure: why its last request failed; None when it succeeded.
        retry_at: when it may be asked again after a failure, steady seconds.
        mixed_until: until when the name counts as leading to several sidecars, steady seconds.
    """

    address: Address
    is_self: bool = False
    failure: str | None = None
    retry_at: float = 0.0
    mixed_until: float = -math.inf
    after: int | None = field(default=None, repr=False)
    origin: str = field(default="", repr=False)
    is_mixed: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sight:
    """The observations that this sidecar has and takes.

    Attributes:
        log: its own observations, for its followers.
        take: publishes an observation of another sidecar.
        cluster_id: the id of the cluster; None before it is known.
        whole_at: when the last known whole observation was complete, whoever made it, steady
            seconds; None before the first.
        longest_s: the longest time to the next observation, seconds, whatever is announced.
        read_at: the time of the last answer of a broker, whoever asked it, steady seconds; None
            before the first.
    """

    log: ObservationLog
    take: Callable[[Observation], None]
    cluster_id: Callable[[], str | None]
    whole_at: Callable[[], float | None]
    longest_s: float
    read_at: Callable[[int], float | None]


Ask = Callable[[Observer], Awaitable[ObservationPage]]
"""Asks an observer for its observations after ``origin`` and ``after``; raises like ``request``."""


class Observers:
    """Follows observers, and decides whether this sidecar has to be one.

    Attributes:
        dropped: reason -> the number of dropped observations.
        followed: the observers as this sidecar sees them: the first that answer, perhaps itself.
    """

    def __init__(
        self,
        addresses: Addresses,
        count: int,
        sight: Sight,
        *,
        zones: Callable[[], Mapping[str, str]] = dict,
        ask: Ask | None = None,
        trust: Trust | None = None,
    ) -> None:
        """Start without following.

        Args:
            addresses: the addresses of all sidecars, including this one; its clock is used here.
            count: the number of observers.
            sight: the observations of this sidecar.
            zones: the text of an address -> its sidecar's zone, if it is known.
            ask: requests observations; None uses HTTP.
            trust: sends the requests; None trusts the machine's CA certificates.
        """
        self.dropped: Counter[str] = Counter()
        self.followed: list[Observer] = []
        self._addresses = addresses
        self._count = count
        self._sight = sight
        self._clock = addresses.clock
        self._ask = ask or self._ask_by_http
        self._zones = zones
        self._known: dict[str, Observer] = {}
        # The names without which the order was computed -> the first k.
        self._firsts: dict[frozenset[str], list[Observer]] = {}
        self._firsts_zones: Mapping[str, str] = {}
        self._requests = Requests()
        self._trust = trust or Trust()
        self._fresh_until = self._clock() + _GRACE_S

    @property
    def is_observer(self) -> bool:
        """Whether this sidecar has to ask all brokers."""
        now = self._clock()
        at = self._sight.log.followed_at
        is_followed = at is not None and now - at <= _FOLLOWED_S
        return (
            is_followed
            or now > self._fresh_until
            or self._sight.cluster_id() is None
            or any(each.is_self for each in self.followed)
        )

    @property
    def is_first(self) -> bool:
        """Whether this sidecar is the first that answers; False while it does not know."""
        return any(each.is_self and self._clock() > each.mixed_until for each in self.followed[:1])

    async def run(self) -> None:
        """Follow observers, until cancelled."""
        try:
            while True:
                if await self._addresses.look_up():
                    known = {str(each): each for each in self._addresses.known}
                    self._known = {
                        name: self._known.get(name) or Observer(address)
                        for name, address in known.items()
                    }
                    self._firsts.clear()
                self._requests.retain(
                    {
                        each.address: partial(self._follow, each)
                        for each in self._asked()
                        if self._sight.cluster_id() is not None
                    }
                )
                await asyncio.sleep(_LOOK_S)
        finally:
            await self._requests.end()

    def _asked(self) -> list[Observer]:
        """Choose the observers, and return them with those that may be back.

        An observer that failed is asked beside the one in its place. A request into a network that
        drops packets takes its whole deadline, and would leave fewer observers meanwhile.
        """
        now = self._clock()
        failed = [each for each in self._known.values() if each.failure is not None]
        self.followed = self._first(failed)
        waiting = [each for each in failed if each.retry_at > now]
        back = [] if len(waiting) == len(failed) else self._first(waiting)
        return [*self.followed, *(each for each in back if each not in self.followed)]

    def _first(self, without: Sequence[Observer]) -> list[Observer]:
        zones = self._zones()
        if zones != self._firsts_zones or len(self._firsts) > _MOST_FIRSTS:
            self._firsts.clear()
            self._firsts_zones = zones
        left_out = frozenset(str(each.address) for each in without)
        if left_out not in self._firsts:
            order = in_order(self._known.keys() - left_out, zones)
            self._firsts[left_out] = [self._known[name] for name in order[: self._count]]
        return self._firsts[left_out]

    async def _follow(self, observer: Observer) -> None:
        """Ask one sidecar repeatedly, until it fails."""
        while True:
            failure, spacing_s = None, _SPACING_S
            asked_at = self._clock()
            try:
                page = await self._ask(observer)
                self._read(observer, page, asked_at)
                if observer.is_self:
                    spacing_s = _SELF_S
                elif not page.observations and page.held_ms < 1000 * _UNHELD_S:
                    spacing_s = _UNHELD_S
            except ASK_ERRORS as error:
                self.dropped["malformed"] += isinstance(error, msgspec.DecodeError)
                failure = failure_of(error, _WAIT_S + _DEADLINE_S)
            except Exception as error:  # noqa: BLE001 - reported, and in the log
                # A bug of the sidecar must be logged, and must not end the other tasks.
                _log.exception("the observations of %s could not be used", observer.address)
                failure = f"unexpected: {type(error).__name__}"
            if failure is not None:
                if observer.failure is None:
                    _log.warning("the observer %s can't be followed: %s", observer.address, failure)
                observer.failure = failure
                observer.retry_at = self._clock() + _RETRY_S
                self._asked()
                return
            if observer.failure is not None:
                _log.info("the observer %s can be followed again", observer.address)
                observer.failure = None
            await asyncio.sleep(spacing_s)

    async def _ask_by_http(self, observer: Observer) -> ObservationPage:
        query = ""
        if observer.after is not None:
            query = f"?origin={observer.origin}&after={observer.after}"
        return await self._trust.get(
            observer.address,
            f"{PATH}{query}",
            ObservationPage,
            deadline_s=_DEADLINE_S,
            wait_s=_WAIT_S,
            longest_answer=_LONGEST_ANSWER,
        )

    def _read(self, observer: Observer, page: ObservationPage, asked_at: float) -> None:
        now = self._clock()
        made_at = min(now, asked_at + page.held_ms / 1000)
        is_self = page.origin == self._sight.log.start_id
        if observer.origin and is_self != observer.is_self:
            if is_self and now <= observer.mixed_until and not observer.is_mixed:
                observer.is_mixed = True
                _log.warning(
                    "%s leads to several sidecars in turn, so this sidecar does not act as the"
                    " first of its peers: name each sidecar, or a headless Service, in"
                    " SIDECAR_PEERS",
                    observer.address,
                )
            observer.mixed_until = now + _MIXED_S
        observer.is_self, observer.origin, observer.after = is_self, page.origin, page.next
        if is_self:
            return
        for each in page.observations:
            if why := self._unusable(each, page.cluster_id):
                self.dropped[why] += 1
                continue
            self._sight.take(self._usable(received(each, page.origin, made_at)))
            due_s = min(page.due_ms / 1000, self._sight.longest_s)
            self._fresh_until = max(self._fresh_until, now + _RENEWALS * due_s + _HAIR_S)

    def _usable(self, observation: Observation) -> Observation:
        """Return the useful part. Of one older than the last whole one, only the readings count.

        A failure does not count either while the broker has answered somebody else, so that a
        network that keeps an observer from a broker hides nothing.
        """
        last, membership = self._sight.whole_at(), observation.membership
        is_old = membership is not None and last is not None and observation.observed_at <= last
        oldest = observation.observed_at - _RENEWALS * self._sight.longest_s
        answers = {
            broker_id: answer
            for broker_id, answer in observation.answers.items()
            if isinstance(answer, Reading)
            or not (is_old or (self._sight.read_at(broker_id) or -math.inf) > oldest)
        }
        return replace(observation, membership=None if is_old else membership, answers=answers)

    def _unusable(self, sent: AgedObservation, cluster_id: str | None) -> str:
        """Return why an observation is dropped; "" if it is not."""
        if sent.age_ms > _OLDEST_MS:
            return "old"
        known = self._sight.cluster_id()
        is_own = known is not None and cluster_id in {known, None}
        return "" if is_own else "contradicting"
