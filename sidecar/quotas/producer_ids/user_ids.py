"""One user's producer ids: the known ids, their rate, and the token bucket.

Kafka's rate and KIP-599's bucket count per second, but ``producer_ids_rate`` is per window: a limit
of 50 per 3,600 s is 0.0139 per second. A full bucket has the tokens of ``samples`` windows.

Example: with 50 ids per hour and 11 windows, the bucket starts with 550 tokens. It has 0 after 550
new ids, and 50 an hour later.

Source: KIP-936, "New Broker Metrics" (rate, tokens, throttle-time) and "Tools".
"""

from dataclasses import dataclass
from typing import Final

from sidecar.quotas.producer_ids.seen_ids import SeenIds
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.token_bucket import TokenBucket

_MS: Final = 1000
_FULL: Final = 1 - 1e-9
"""Of a burst: refilling rounds."""


@dataclass(frozen=True, slots=True)
class ProducerIdStatus:
    """A user's ids.

    Attributes:
        user: the principal's name.
        limit: ids per window; None means no limit.
        rate: new ids per window, over all windows (Kafka's Rate).
        tokens: the tokens in the bucket, below 0 while the user is throttled; None without a limit.
        throttle_ms: how long the user must wait, in milliseconds; 0 means no wait.
        filter_bytes: the memory of the user's filters.
    """

    user: str
    limit: float | None
    rate: float
    tokens: float | None
    throttle_ms: int
    filter_bytes: int


class UserIds:
    """The state of one user. At the start no id is known and no limit applies."""

    __slots__ = ("_bucket", "_limit", "_most_throttle_s", "_rate", "_window", "seen")

    def __init__(self, window: QuotaWindow, seen: SeenIds, most_throttle_s: float) -> None:
        self.seen = seen
        self._window = window
        self._most_throttle_s = most_throttle_s
        self._rate = Rate(window)
        self._limit: float | None = None
        self._bucket: TokenBucket | None = None

    def limit_to(self, limit: float | None, now_ms: int) -> None:
        """Set the limit. A lower one lengthens the wait to its bound at most."""
        before, self._limit = self._limit, limit
        if limit is None:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = TokenBucket(self._per_second(limit), self._window, now_ms)
        elif limit != before:
            self._bucket.set_rate(self._per_second(limit))
            self._bucket.take(min(0.0, self._until_bound(self._bucket, limit, now_ms)), now_ms)

    def charge(self, now_ms: int) -> None:
        """Count one id. It takes at most the part of a token that brings the wait to its bound."""
        self._rate.record(1, now_ms)
        if self._bucket is None or self._limit is None:
            return
        amount = min(1.0, self._until_bound(self._bucket, self._limit, now_ms))
        if amount > 0:
            self._bucket.take(amount, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long the user must wait, in milliseconds."""
        return 0 if self._bucket is None else self._bucket.throttle_ms(now_ms)

    def is_full(self, now_ms: int) -> bool:
        """Whether there is no bucket, or it is full."""
        if self._bucket is None or self._limit is None:
            return True
        return self._bucket.tokens(now_ms) >= _FULL * self._limit * self._window.samples

    def status(self, user: str, now_ms: int) -> ProducerIdStatus:
        """Return the state at ``now_ms``."""
        return ProducerIdStatus(
            user=user,
            limit=self._limit,
            rate=self._rate.measure(now_ms) * (self._window.window_ms / _MS),
            tokens=None if self._bucket is None else self._bucket.tokens(now_ms),
            throttle_ms=self.throttle_ms(now_ms),
            filter_bytes=self.seen.bytes,
        )

    def _until_bound(self, bucket: TokenBucket, limit: float, now_ms: int) -> float:
        """How many tokens can be taken until the wait is at its bound; below 0 if it is longer."""
        return bucket.tokens(now_ms) + self._most_throttle_s * self._per_second(limit)

    def _per_second(self, ids_per_window: float) -> float:
        return ids_per_window / (self._window.window_ms / _MS)
