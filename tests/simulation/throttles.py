"""What the quota callback's rules go by: factors, throttles and their pacers, tag sets.

A throttle is of one group of clients, all of the broker's or those of one user; a tag set is the
clients that share one quota, and has Kafka's rate of them. ``pauses`` has the rules.

Source: Factors, Throttle, Pacer and TagSet in deploy/quota-callback.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Self

from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.rate import QuotaWindow, Rate
from tests.simulation.shares import LeakBucket, LeakShares

WINDOW: Final = QuotaWindow()
"""Of produce quotas, by Kafka's defaults."""

NO_QUOTA: Final = float(2**63 - 1)
"""Kafka's quota of a client that has none, bytes per second."""

FLOOR: Final = 1_000_000.0
"""What counts where no rate is known, bytes per second."""

ONE_BYTE: Final = 0.5
"""Less is rounding, since what has landed is computed as rate x window."""

_RECENT_NANOS: Final = WINDOW.span_ms * 1_000_000
_SAFETY_FACTOR: Final = 0.9
"""Real brokers measure rates up to a tenth too high: the leak has to be under them."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The callback's properties, and the quotas that operators set, by Kafka's names.

    Attributes:
        enabled: whether it follows the sidecar at all.
        fallback: the factor without a valid document, in [0, 1].
        pause_max_ms: the longest pause.
        emergency_pause_max_ms: the longest one that a leak may ask for.
        leak_ratio: what may leak at factor 0, of the rate before.
        leak_bytes_per_second: the same, absolute; None: the ratio counts.
        ramp_ms: in which a client's pace grows by its rate before after a release; 0: at once.
        excluded: users that are never throttled.
        quotas: of the cluster.
    """

    enabled: bool = True
    fallback: float = 1.0
    pause_max_ms: int = 4000
    emergency_pause_max_ms: int = 300_000
    leak_ratio: float = 0.01
    leak_bytes_per_second: float | None = None
    ramp_ms: int = 60_000
    excluded: frozenset[str] = frozenset()
    quotas: ClientQuotas = field(default_factory=dict)

    @property
    def ramp_lasts_ms(self) -> int:
        """From a release until everybody is free."""
        return 4 * self.ramp_ms


class Source(StrEnum):
    """Where factors come from."""

    SIDECAR = "SIDECAR"
    LOCAL = "LOCAL"
    FORECAST = "FORECAST"
    FALLBACK = "FALLBACK"
    DISABLED = "DISABLED"


@dataclass(frozen=True, slots=True)
class Leak:
    """What a broker may let through at factor 0, and how long its pauses may be.

    Attributes:
        share: of its leak budget.
        pause_max_ms: no shorter than the broker's own.
    """

    share: float = 1.0
    pause_max_ms: int = 0

    def cap_ms(self, terms: Terms) -> int:
        """The longest pause."""
        longest = max(terms.pause_max_ms, self.pause_max_ms)
        return min(max(terms.pause_max_ms, terms.emergency_pause_max_ms), longest)


WHOLE: Final = Leak()


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors in force on a broker; equal when they throttle alike, but for the leak.

    Attributes:
        factor: of all clients, in [0, 1].
        source: where they come from.
        users: single users' own; the stricter one applies.
        generation: the document's; 0 without one.
        stop: whether nothing is to be admitted.
        leak: of the broker; it moves without a new document.
        is_sloped: whether the factor is on its slope: it moves without a new document too.
    """

    factor: float
    source: Source
    users: Mapping[str, float] = field(default_factory=dict)
    generation: int = field(default=0, compare=False)
    stop: bool = False
    leak: Leak = field(default=WHOLE, compare=False)
    is_sloped: bool = False

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
        self,
        nbytes: float,
        bytes_per_second: float,
        cap_ms: float,
        now_nanos: int,
        tolerance_ms: float = 0.0,
    ) -> float:
        """For a request that has landed, from 0 to the cap; none within the tolerance."""
        cost = nbytes / bytes_per_second * 1e9
        furthest = (cap_ms + tolerance_ms) * 1e6
        ahead = min(max(self._passed_at - now_nanos, 0) + cost, furthest)
        self._passed_at = now_nanos + int(ahead)
        return max(0.0, ahead / 1e6 - tolerance_ms)


@dataclass(frozen=True, slots=True)
class Throttle:
    """How one group of clients is throttled: all of the broker's, or those of one user.

    Attributes:
        factor: 1: not at all.
        epoch: each beginning, change and release has its own.
        since_nanos: when it began to be so.
        pacer: of its pauses.
        shares: of its leak budget, for connections that are new in it.
        rate_before: of the group when the throttle began, bytes per second.
        sets_before: how many tag sets had traffic then.
        ramps: whether it was released, and clients are paced.
    """

    factor: float
    epoch: int
    since_nanos: int
    pacer: Pacer
    shares: LeakShares
    rate_before: float = 0.0
    sets_before: int = 0
    ramps: bool = False

    @classmethod
    def none(cls, now_nanos: int) -> Self:
        """Nothing is throttled, and never was."""
        return cls(1.0, 0, now_nanos - _RECENT_NANOS, Pacer(now_nanos), LeakShares(now_nanos))

    @property
    def is_free(self) -> bool:
        """Whether every client has its own quota."""
        return self.factor == 1.0 and not self.ramps

    def is_recent(self, now_nanos: int) -> bool:
        """Whether rates that are measured now were made by a throttle, in part at least."""
        return not self.is_free or now_nanos - self.since_nanos < _RECENT_NANOS

    def pace(self, terms: Terms, before: float, now_nanos: int, *, is_known: bool) -> float:
        """Of a client after the release, by its rate before (0.0: none), bytes per second."""
        since_ms = (now_nanos - self.since_nanos) / 1e6
        at_least = max(before, self.fair_share)
        if at_least == 0.0:
            return FLOOR * math.exp2(since_ms / 1000.0)
        ramps = since_ms / max(1, terms.ramp_ms)
        line = at_least * (1.25 + ramps)
        is_known = is_known and before > 0.0
        return line if is_known else line * math.exp2(12.0 * max(0.0, ramps - 1.0 / 6.0))

    @property
    def fair_share(self) -> float:
        """The assumed rate of a client that was not seen before, bytes per second."""
        return self.rate_before / self.sets_before if self.sets_before else 0.0

    def budget(self, terms: Terms, leak: Leak) -> float:
        """What all clients together may leak at factor 0, bytes per second, 1 at least."""
        absolute = terms.leak_bytes_per_second
        whole = terms.leak_ratio * _SAFETY_FACTOR * self.rate_before
        return max(1.0, (whole if absolute is None else absolute) * leak.share)

    def reserve(self, share: "Share", terms: Terms, leak: Leak, now_nanos: int) -> bool:
        """Whether a share of the budget lets a new connection's request pass."""
        return self._bucket(share).reserve(self._rate(share, terms, leak), now_nanos)

    def cancel(self, share: "Share") -> None:
        """What was reserved is not used."""
        self._bucket(share).cancel()

    def take(self, share: "Share", nbytes: float, terms: Terms, leak: Leak, now_nanos: int) -> None:
        """Takes what has landed from a share."""
        self._bucket(share).take(nbytes, self._rate(share, terms, leak), now_nanos)

    def _bucket(self, share: "Share") -> LeakBucket:
        return self.shares.bucket(share.tags, share.before)

    def _rate(self, share: "Share", terms: Terms, leak: Leak) -> float:
        part = LeakShares.part(share.before, self.rate_before, self.fair_share)
        return self.budget(terms, leak) * part


class Share(NamedTuple):
    """Whose share of a leak budget: a tag set's.

    Attributes:
        tags: of it.
        before: its rate before, bytes per second; 0.0: none, or there is no such tag set yet.
    """

    tags: tuple[str, str]
    before: float


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

    __slots__ = ("bound", "counted", "epoch", "last")

    def __init__(self, epoch: int, landed: float) -> None:
        self.epoch = epoch
        self.counted = landed
        self.last = 0.0
        """The bytes of the last request that was seen."""
        self.bound: float | None = None
        """None when that was the client's own."""

    def count(self, landed: Landed) -> float:
        """Counts all that has landed, and says how many bytes of it are new.

        After the wall clock was set back Kafka's rate overwrites samples that still count when it
        opens others, which hides as much of a request: that counts as the last one, or as a
        second's bytes if it is the first.
        """
        new, self.counted = landed.nbytes - self.counted, landed.nbytes
        if new >= ONE_BYTE:
            self.last = new
        elif self.last == 0.0:
            self.last = landed.nbytes / landed.window_s
        return self.last


class TagSet:
    """The clients that share one produce quota, and Kafka's rate of them."""

    __slots__ = (
        "account",
        "before",
        "is_before_least",
        "last_record_ms",
        "pacer",
        "rate",
        "since_nanos",
        "tags",
    )

    def __init__(self, tags: tuple[str, str], now: Moment) -> None:
        self.tags = tags
        self.rate = Rate(WINDOW)
        self.since_nanos = now.nanos
        self.last_record_ms = now.wall_ms
        self.before = 0.0
        """When the throttle began, bytes per second."""
        self.is_before_least = False
        """Whether that was measured in a ramp, and no earlier rate is known."""
        self.account = Account(-1, 0.0)
        self.pacer: Pacer | None = None
        """Of the ramp; None before the first one."""

    def account_of(self, epoch: int) -> Account | None:
        """That of a throttle; None when it has none yet."""
        return self.account if self.account.epoch == epoch else None

    def landed(self, now: Moment) -> Landed:
        """All that counts now."""
        rate, window_ms = self.rate.observe(now.wall_ms)
        return Landed(rate * (window_ms / 1000.0), window_ms / 1000.0)
