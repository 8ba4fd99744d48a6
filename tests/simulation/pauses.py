"""How the quota callback makes Kafka pause clients: the jar's rules, as a function of time.

Kafka pauses a client by S / T - W: S bytes in the rate's window of W seconds, quota T. The callback
answers T = S / (W + P) once S has landed, so that the pause is P. At factor 0 a pacer computes P:
all clients together stay within the leak budget, and no pause is longer than ``pause_max_ms``; the
sidecar may make the budget smaller and pauses longer, where a volume fills all the same. A factor
between 0 and 1 multiplies the client's own quota, or its rate before. After a release a client is
paced: at 1.25 times its rate before at first, 2.25 times after ``ramp_ms``, free after four times.
One that had none begins near the average of the others, and its pace doubles every twelfth of
``ramp_ms``.

Example: 11 MB in a window of 10.5 s and a pause of 4 s: T = 758,620 B/s, and Kafka computes
11,000,000 / 758,620 - 10.5 = 4.0 s.

Left out: request threads that race.

Source: Enforcement, LandedRequest, Ramp and Leak in deploy/quota-callback.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from tests.simulation.shares import LeakShares
from tests.simulation.throttles import (
    DISABLED,
    FLOOR,
    NO_QUOTA,
    ONE_BYTE,
    WHOLE,
    WINDOW,
    Account,
    Factors,
    Landed,
    Leak,
    Moment,
    Pacer,
    Share,
    Source,
    TagSet,
    Terms,
    Throttle,
)

_LEAST_MS: Final = (WINDOW.samples - 1) * WINDOW.window_ms
"""Kafka divides by so much at least; the rate of a newer client is not known yet."""
_RAMP_TOLERANCE_MS: Final = 20.0
"""How far a client may be ahead of its ramp: requests come in lumps."""


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
        self._all = Throttle.none(now.nanos)
        self._users: dict[str, Throttle] = {}
        self._is_free = True
        self._epochs = 0
        self._ahead_ms = now.wall_ms - now.nanos // 1_000_000
        self._set_back_from_ms = -(1 << 62)
        self.factors = DISABLED

    def note_clock(self, now: Moment) -> None:
        """Notes whether the wall clock was set back since the last call."""
        steady_ms = now.nanos // 1_000_000
        ahead_ms = now.wall_ms - steady_ms
        if ahead_ms < self._ahead_ms - 1000:
            self._set_back_from_ms = max(self._set_back_from_ms, self._ahead_ms + steady_ms)
        self._ahead_ms = ahead_ms

    def apply(self, factors: Factors, now: Moment) -> None:
        """Puts factors in force."""
        self.factors = factors
        self.note_clock(now)
        if factors.source is Source.DISABLED:
            self._all, self._users, self._is_free = Throttle.none(now.nanos), {}, True
            return
        throttle = self._next(self._all, None, factors.factor, now)
        released = {
            user: self._next(each, user, 1.0, now)
            for user, each in self._users.items()
            if user not in factors.users
        }
        users = {user: each for user, each in released.items() if each.is_recent(now.nanos)}
        for user, factor in factors.users.items():
            before = self._users.get(user) or Throttle.none(now.nanos)
            users[user] = self._next(before, user, factor, now)
        self._all, self._users = throttle, users
        self._is_free = throttle.is_free and all(each.is_free for each in users.values())

    def _next(self, old: Throttle, user: str | None, factor: float, now: Moment) -> Throttle:
        lasts_nanos = self._terms.ramp_lasts_ms * 1_000_000
        ends = old.ramps and now.nanos - old.since_nanos >= lasts_nanos
        if factor == old.factor and not ends:
            return old
        if factor < 1.0 == old.factor:
            rate, sets = self._measure(user, now)
            old = replace(old, rate_before=rate, sets_before=sets)
        self._epochs += 1
        ramps = factor == 1.0 and not ends and lasts_nanos > 0
        parts = Pacer(now.nanos), LeakShares(now.nanos)
        before = old.rate_before, old.sets_before
        return Throttle(factor, self._epochs, now.nanos, *parts, *before, ramps)

    def _measure(self, user: str | None, now: Moment) -> tuple[float, int]:
        """Notes each tag set's rate: the group's sum, bytes per second, and how many are not 0."""
        group: list[float] = []
        # None is read that does not count: Kafka's rates forget old samples whenever they are read.
        for tag_set in self._counting():
            if user is None or user == tag_set.tags[0]:
                self._note_before(tag_set, self._rate(tag_set, now), now)
                group.append(tag_set.before)
        sets = sum(rate > 0.0 for rate in group)
        if sets or user is None:
            return sum(group), sets
        # A user that had no traffic counts with the mean of all.
        everybody = [self._rate(tag_set, now) for tag_set in self._counting()]
        active = sum(rate > 0.0 for rate in everybody)
        return (sum(everybody) / active, 1) if active else (sum(group), 0)

    def _counting(self) -> list[TagSet]:
        """Those whose users are not excluded."""
        return [each for each in self._tag_sets() if each.tags[0] not in self._terms.excluded]

    def _rate(self, tag_set: TagSet, now: Moment) -> float:
        """Kafka divides by all samples but one at least: too much for a young tag set.

        While the wall clock is behind what it was, its windows don't end, and the sample that was
        open then has all bytes until it caught up: no rate is known until that is dropped.
        """
        if now.wall_ms < self._set_back_from_ms + WINDOW.span_ms + WINDOW.window_ms:
            return 0.0
        age_ms = max(1000.0, (now.nanos - tag_set.since_nanos) / 1e6)
        return tag_set.rate.measure(now.wall_ms) * max(1.0, _LEAST_MS / age_ms)

    def _note_before(self, tag_set: TagSet, measured: float, now: Moment) -> None:
        """The rate before a throttle that begins now, unless another throttle shaped it."""
        groups = [each for each in (self._all, self._users.get(tag_set.tags[0])) if each]
        is_free = all(each.is_free for each in groups)
        if tag_set.before > 0.0 and not is_free:
            return
        recent = any(each.is_recent(now.nanos) for each in groups)
        tag_set.before = max(tag_set.before, measured) if recent else measured
        is_new = now.nanos - tag_set.since_nanos < _LEAST_MS * 1_000_000
        tag_set.is_before_least = not is_free or is_new

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
        new = account.count(landed)
        if new < ONE_BYTE:
            return own
        share = Share(tag_set.tags, tag_set.before)
        for stopping, leak in self._stopping(user):
            stopping.take(share, new, self._terms, leak, now.nanos)
        bound = own
        # A user is throttled for what it does: no disk makes its own leak smaller.
        for throttle, leak, is_sloped in (
            (self._all, self.factors.leak, self.factors.is_sloped),
            (self._users.get(user), WHOLE, False),
        ):
            if throttle is None or throttle.factor == 1.0:
                continue
            if throttle.factor == 0.0:
                bound = min(bound, self._stopped(throttle, leak, new, landed, now))
            else:
                bound = min(bound, self._scaled(throttle, tag_set, own, landed, is_sloped))
        ramp = self._ramp(user)
        if ramp is not None:
            pause_ms = self._ramp_pause_ms(ramp, tag_set, own, new, now)
            bound = min(bound, landed.pausing(pause_ms)) if pause_ms > 0.0 else bound
        account.bound = bound if bound < own else None
        return bound

    def _ramp(self, user: str) -> Throttle | None:
        """By which a user's clients are paced, that of the later release; None: they are not."""
        groups = (self._all, self._users.get(user))
        ramps = [each for each in groups if each is not None and each.ramps]
        return max(ramps, key=lambda each: each.epoch, default=None)

    def _ramp_pause_ms(
        self, ramp: Throttle, tag_set: TagSet, own: float, new: float, now: Moment
    ) -> float:
        is_known = not tag_set.is_before_least
        pace = ramp.pace(self._terms, tag_set.before, now.nanos, is_known=is_known)
        if tag_set.pacer is None:
            tag_set.pacer = Pacer(now.nanos)
        return tag_set.pacer.pause_ms(
            new, min(own, pace), self._terms.pause_max_ms, now.nanos, _RAMP_TOLERANCE_MS
        )

    def _stopped(
        self, throttle: Throttle, leak: Leak, new: float, landed: Landed, now: Moment
    ) -> float:
        budget, cap_ms = throttle.budget(self._terms, leak), leak.cap_ms(self._terms)
        pause_ms = throttle.pacer.pause_ms(new, budget, cap_ms, now.nanos)
        return landed.pausing(pause_ms) if pause_ms > 0.0 else NO_QUOTA

    def _scaled(
        self, throttle: Throttle, tag_set: TagSet, own: float, landed: Landed, is_sloped: bool
    ) -> float:
        unthrottled = own
        if own >= NO_QUOTA or is_sloped:
            unthrottled = min(own, tag_set.before or throttle.fair_share or FLOOR)
        least = landed.pausing(self._terms.pause_max_ms)
        return max(throttle.factor * unthrottled, least)

    def admits(self, share: Share, user: str, now_nanos: int) -> bool:
        """Whether a new connection's request may land, by its share of each leak budget."""
        reserved: list[Throttle] = []
        for throttle, leak in self._stopping(user):
            if not throttle.reserve(share, self._terms, leak, now_nanos):
                for each in reserved:
                    each.cancel(share)
                return False
            reserved.append(throttle)
        return True

    def stops(self, user: str) -> bool:
        """Whether a user's factor is 0."""
        return user not in self._terms.excluded and any(self._stopping(user))

    @property
    def stops_anybody(self) -> bool:
        """Whether that of anybody is."""
        return any(each.factor == 0.0 for each in (self._all, *self._users.values()))

    @property
    def epoch(self) -> int:
        """Of the throttle of all, or of its release."""
        return self._all.epoch

    def _stopping(self, user: str) -> Iterator[tuple[Throttle, Leak]]:
        """The throttles that stop a user, with the leak of each."""
        for throttle, leak in (self._all, self.factors.leak), (self._users.get(user), WHOLE):
            if throttle is not None and throttle.factor == 0.0:
                yield throttle, leak

    @property
    def throttled_users(self) -> frozenset[str]:
        """Those that have a throttle of their own, or its ramp."""
        return frozenset(user for user, each in self._users.items() if not each.is_free)

    def throttled(self) -> int:
        """How many tag sets are paused in the throttle in force."""
        if self._is_free:
            return 0
        accounts = (each.account_of(self._epoch(each.tags[0])) for each in self._tag_sets())
        return sum(each is not None and each.bound is not None for each in accounts)

    @property
    def is_emergency(self) -> bool:
        """Whether the disk is put before the clients."""
        return self._all.factor == 0.0 and self.factors.leak.share < 1.0

    def _is_free_for(self, user: str) -> bool:
        own = self._users.get(user)
        throttled = not self._all.is_free or (own is not None and not own.is_free)
        return not throttled or user in self._terms.excluded

    def _epoch(self, user: str) -> int:
        own = self._users.get(user)
        return self._all.epoch if own is None else max(self._all.epoch, own.epoch)
