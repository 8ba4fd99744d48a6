"""How the quota callback makes Kafka pause clients: the jar's rules, as a function of time.

Kafka pauses a client by S / T - W: S bytes in the rate's window of W seconds, quota T. The callback
answers T = S / (W + P) once S has landed, so that the pause is P. At factor 0 a pacer computes P:
all clients together stay within the leak budget, and no pause is longer than ``pause_max_ms``. A
factor between 0 and 1 multiplies the client's own quota, or its rate before.

Example: 11 MB in a window of 10.5 s and a pause of 4 s: T = 758,620 B/s, and Kafka computes
11,000,000 / 758,620 - 10.5 = 4.0 s.

Left out: the ramp after a release, which is at once here (the jar's ``ramp.ms=0``); the emergency,
in which pauses become longer (its ``emergency.horizon.ms=1``); request threads that race.

Source: Enforcement, Bounds, Throttle, TagSet and Pacer in deploy/quota-callback.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.rate import QuotaWindow, Rate

WINDOW: Final = QuotaWindow()
"""Of produce quotas, by Kafka's defaults."""

NO_QUOTA: Final = float(2**63 - 1)
"""Kafka's quota of a client that has none, bytes per second."""

_RECENT_NANOS: Final = WINDOW.span_ms * 1_000_000
_SAFETY_FACTOR: Final = 0.9
"""Real brokers measure rates up to a tenth too high: the leak has to be under them."""
_FLOOR: Final = 1_000_000.0
"""What a factor multiplies where no rate is known, bytes per second."""
_ONE_BYTE: Final = 0.5
"""Less is rounding, since S is computed as rate x window."""
_PAUSES_OF_A_RATE: Final = 2


@dataclass(frozen=True, slots=True)
class Terms:
    """The callback's properties, and the quotas that operators set, by Kafka's names.

    Attributes:
        enabled: whether it follows the sidecar at all.
        fallback: the factor without a valid document, in [0, 1].
        pause_max_ms: the longest pause.
        leak_ratio: what may leak at factor 0, of the rate before.
        leak_bytes_per_second: the same, absolute; None: the ratio counts.
        excluded: users that are never throttled.
        quotas: of the cluster.
    """

    enabled: bool = True
    fallback: float = 1.0
    pause_max_ms: int = 4000
    leak_ratio: float = 0.01
    leak_bytes_per_second: float | None = None
    excluded: frozenset[str] = frozenset()
    quotas: ClientQuotas = field(default_factory=dict)


class Source(StrEnum):
    """Where factors come from."""

    SIDECAR = "SIDECAR"
    FALLBACK = "FALLBACK"
    DISABLED = "DISABLED"


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors in force on a broker; equal when they throttle alike.

    Attributes:
        factor: of all clients, in [0, 1].
        source: where they come from.
        users: single users' own; the stricter one applies.
        generation: the document's; 0 without one.
    """

    factor: float
    source: Source
    users: Mapping[str, float] = field(default_factory=dict)
    generation: int = field(default=0, compare=False)

    @property
    def are_throttling(self) -> bool:
        """Whether anybody is throttled."""
        return self.factor < 1.0 or any(factor < 1.0 for factor in self.users.values())


DISABLED: Final = Factors(1.0, Source.DISABLED)


class Moment(NamedTuple):
    """One moment on a broker's two clocks.

    Attributes:
        nanos: on the monotonic one, by which the callback goes.
        wall_ms: on the wall clock, by which Kafka's rates go.
    """

    nanos: int
    wall_ms: int


class Pacer:
    """Pauses of several clients, by which all of them together stay within a rate.

    There is one moment at which all that has landed would have passed at that rate. Each request
    moves it on, and its client pauses until then. Example: at 60,000 B/s three clients with
    requests of 20,000 B each pause for 1 s.
    """

    __slots__ = ("_passed_at",)

    def __init__(self, now_nanos: int) -> None:
        self._passed_at = now_nanos

    def pause_ms(
        self, nbytes: float, bytes_per_second: float, cap_ms: float, now_nanos: int
    ) -> float:
        """For a request that has landed, from 0 to the cap."""
        cost = nbytes / bytes_per_second * 1e9
        ahead = min(max(self._passed_at - now_nanos, 0) + cost, cap_ms * 1e6)
        self._passed_at = now_nanos + int(ahead)
        return ahead / 1e6


@dataclass(frozen=True, slots=True)
class Throttle:
    """How one group of clients is throttled: all of the broker's, or those of one user.

    Attributes:
        factor: 1: not at all.
        epoch: each beginning, change and release has its own.
        since_nanos: when it began to be so.
        pacer: of its pauses.
        rate_before: of the group when the throttle began, bytes per second.
        sets_before: how many tag sets had traffic then.
    """

    factor: float
    epoch: int
    since_nanos: int
    pacer: Pacer
    rate_before: float = 0.0
    sets_before: int = 0

    @property
    def is_free(self) -> bool:
        """Whether every client has its own quota."""
        return self.factor == 1.0

    def is_recent(self, now_nanos: int) -> bool:
        """Whether rates that are measured now were made by a throttle, in part at least."""
        return not self.is_free or now_nanos - self.since_nanos < _RECENT_NANOS

    @property
    def fair_share(self) -> float:
        """The assumed rate of a client that was not seen before, bytes per second."""
        return self.rate_before / self.sets_before if self.sets_before else 0.0

    def budget(self, terms: Terms) -> float:
        """What all clients together may leak at factor 0, bytes per second, 1 at least."""
        if terms.leak_bytes_per_second is not None:
            return max(1.0, terms.leak_bytes_per_second)
        return max(1.0, terms.leak_ratio * _SAFETY_FACTOR * self.rate_before)


class Landed(NamedTuple):
    """What a rate's window contains.

    Attributes:
        nbytes: all of it.
        window_s: over how long.
    """

    nbytes: float
    window_s: float

    def pausing(self, pause_ms: float) -> float:
        """The quota by which Kafka makes a pause, bytes per second."""
        return self.nbytes / (self.window_s + pause_ms / 1000.0)


class Account:
    """What was counted of a tag set in one throttle, and its last quota."""

    __slots__ = ("bound", "counted", "epoch")

    def __init__(self, epoch: int, landed: float) -> None:
        self.epoch = epoch
        self.counted = landed
        self.bound: float | None = None
        """None when that was the client's own."""


class TagSet:
    """The clients that share one produce quota, and Kafka's rate of them."""

    __slots__ = ("account", "before", "last_record_ms", "rate", "since_nanos", "tags")

    def __init__(self, tags: tuple[str, str], now: Moment) -> None:
        self.tags = tags
        self.rate = Rate(WINDOW)
        self.since_nanos = now.nanos
        self.last_record_ms = now.wall_ms
        self.before = 0.0
        """When the throttle began, bytes per second."""
        self.account = Account(-1, 0.0)

    def account_of(self, epoch: int) -> Account | None:
        """That of a throttle; None when it has none yet."""
        return self.account if self.account.epoch == epoch else None

    def landed(self, now: Moment) -> Landed:
        """All that counts now."""
        rate, window_ms = self.rate.observe(now.wall_ms)
        return Landed(rate * (window_ms / 1000.0), window_ms / 1000.0)


def _free(now_nanos: int) -> Throttle:
    """Nothing is throttled, and never was."""
    return Throttle(1.0, 0, now_nanos - _RECENT_NANOS, Pacer(now_nanos))


class Enforcement:
    """Turns factors into the quotas that Kafka throttles by. Nothing is throttled at first.

    Args:
        tag_sets: the broker's, whenever they are walked over.
        own: the quota that operators set for tags, bytes per second, or NO_QUOTA.
        terms: in force.
        now: the broker's start.
    """

    def __init__(
        self,
        tag_sets: Callable[[], Iterable[TagSet]],
        own: Callable[[tuple[str, str]], float],
        terms: Terms,
        now: Moment,
    ) -> None:
        self._tag_sets = tag_sets
        self._own = own
        self._terms = terms
        self._all = _free(now.nanos)
        self._users: dict[str, Throttle] = {}
        self._is_free = True
        self._epochs = 0
        self.factors = DISABLED

    def apply(self, factors: Factors, now: Moment) -> None:
        """Puts factors in force."""
        self.factors = factors
        if factors.source is Source.DISABLED:
            self._all, self._users, self._is_free = _free(now.nanos), {}, True
            return
        throttle = self._next(self._all, None, factors.factor, now)
        released = {
            user: self._next(each, user, 1.0, now)
            for user, each in self._users.items()
            if user not in factors.users
        }
        users = {user: each for user, each in released.items() if each.is_recent(now.nanos)}
        for user, factor in factors.users.items():
            before = self._users.get(user) or _free(now.nanos)
            users[user] = self._next(before, user, factor, now)
        self._all, self._users = throttle, users
        self._is_free = throttle.is_free and all(each.is_free for each in users.values())

    def _next(self, old: Throttle, user: str | None, factor: float, now: Moment) -> Throttle:
        if factor == old.factor:
            return old
        if old.is_free:
            rate, sets = self._measure(user, now)
            old = replace(old, rate_before=rate, sets_before=sets)
        self._epochs += 1
        return Throttle(
            factor, self._epochs, now.nanos, Pacer(now.nanos), old.rate_before, old.sets_before
        )

    def _measure(self, user: str | None, now: Moment) -> tuple[float, int]:
        """Notes each tag set's rate: the group's sum, bytes per second, and how many are not 0."""
        group: list[float] = []
        everybody: list[float] = []
        for tag_set in self._tag_sets():
            if tag_set.tags[0] in self._terms.excluded:
                continue
            before = self._rate(tag_set, now)
            if user is None or user == tag_set.tags[0]:
                before = tag_set.before = self._before(tag_set, before, now)
                group.append(before)
            everybody.append(before)
        sets = sum(rate > 0.0 for rate in group)
        active = sum(rate > 0.0 for rate in everybody)
        # A user that had no traffic counts with the mean of all.
        return (sum(group), sets) if sets or not active else (sum(everybody) / active, 1)

    @staticmethod
    def _rate(tag_set: TagSet, now: Moment) -> float:
        """Kafka divides by all samples but one at least: too much for a young tag set."""
        age_ms = max(1000.0, (now.nanos - tag_set.since_nanos) / 1e6)
        least_ms = (WINDOW.samples - 1) * WINDOW.window_ms
        return tag_set.rate.measure(now.wall_ms) * max(1.0, least_ms / age_ms)

    def _before(self, tag_set: TagSet, measured: float, now: Moment) -> float:
        """The rate before a throttle that begins now, unless another throttle shaped it."""
        groups = [each for each in (self._all, self._users.get(tag_set.tags[0])) if each]
        if tag_set.before > 0.0 and not all(each.is_free for each in groups):
            return tag_set.before
        recent = any(each.is_recent(now.nanos) for each in groups)
        return max(tag_set.before, measured) if recent else measured

    def appeared(self, tag_set: TagSet) -> None:
        """A tag set has its first request, whose bytes are the first that count."""
        if not self._is_free:
            tag_set.account = Account(self._epoch(tag_set.tags[0]), 0.0)

    def before_record(self, tag_set: TagSet, now: Moment) -> None:
        """What has left the window since the last request no longer counts."""
        if self._is_free_for(tag_set.tags[0]):
            return
        epoch = self._epoch(tag_set.tags[0])
        landed = tag_set.landed(now).nbytes
        account = tag_set.account_of(epoch)
        if account is None:
            tag_set.account = Account(epoch, landed)
        else:
            account.counted = min(account.counted, landed)

    def quota(self, tag_set: TagSet, now: Moment) -> float:
        """Of a request that has landed, bytes per second. Once a request, since pacers count."""
        own = self._own(tag_set.tags)
        user = tag_set.tags[0]
        account = tag_set.account_of(self._epoch(user))
        if self._is_free_for(user) or account is None:
            return own
        landed = tag_set.landed(now)
        new, account.counted = landed.nbytes - account.counted, landed.nbytes
        if new < _ONE_BYTE:
            # As much has left the window as has landed: the last quota still fits.
            return own if account.bound is None else account.bound
        bound = own
        for throttle in (self._all, self._users.get(user)):
            if throttle is None or throttle.is_free:
                continue
            if throttle.factor == 0.0:
                bound = min(bound, self._stopped(throttle, new, landed, now))
            else:
                bound = min(bound, self._scaled(throttle, tag_set, own, landed))
        account.bound = bound if bound < own else None
        return bound

    def _stopped(self, throttle: Throttle, new: float, landed: Landed, now: Moment) -> float:
        budget = throttle.budget(self._terms)
        pause_ms = throttle.pacer.pause_ms(new, budget, self._terms.pause_max_ms, now.nanos)
        return landed.pausing(pause_ms) if pause_ms > 0.0 else NO_QUOTA

    def _scaled(self, throttle: Throttle, tag_set: TagSet, own: float, landed: Landed) -> float:
        unthrottled = own if own < NO_QUOTA else tag_set.before or throttle.fair_share or _FLOOR
        least = landed.pausing(self._terms.pause_max_ms)
        return max(throttle.factor * unthrottled, least)

    def throttled(self) -> int:
        """How many tag sets are paused in the throttle in force."""
        if self._is_free:
            return 0
        accounts = (each.account_of(self._epoch(each.tags[0])) for each in self._tag_sets())
        return sum(each is not None and each.bound is not None for each in accounts)

    def fill_window_ms(self) -> float:
        """Over how long the callback requests fill rates; 0: over any."""
        stopped = any(each.factor == 0.0 for each in (self._all, *self._users.values()))
        return _PAUSES_OF_A_RATE * self._terms.pause_max_ms if stopped else 0.0

    def _is_free_for(self, user: str) -> bool:
        own = self._users.get(user)
        throttled = not self._all.is_free or (own is not None and not own.is_free)
        return not throttled or user in self._terms.excluded

    def _epoch(self, user: str) -> int:
        own = self._users.get(user)
        return self._all.epoch if own is None else max(self._all.epoch, own.epoch)
