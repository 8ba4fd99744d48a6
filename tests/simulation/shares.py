"""How a throttle's leak budget is divided among clients whose connections are new in it.

A bucket admits a request while nothing is owed, however large it is. What has landed is owed then,
and repaid at the bucket's rate. Between the admission and the landing the bucket is reserved. Each
tag set has a bucket, whose rate is a part of the budget by its rate before; all that had none then
have one together, which counts with the mean of the others.

Example: at 20 kB/s a request of 1 MB passes, and the next one 50 s after it has landed.

Source: LeakBucket and LeakShares in deploy/quota-callback.
"""

from typing import Final

RESERVED_NANOS: Final = 5_000_000_000
"""For a request that never lands."""


class LeakBucket:
    """A token bucket of bytes; nothing is owed at first."""

    __slots__ = ("_at_nanos", "_owed", "_reserved_at_nanos")

    def __init__(self, now_nanos: int) -> None:
        self._owed = 0.0
        self._at_nanos = now_nanos
        self._reserved_at_nanos: int | None = None

    def reserve(self, bytes_per_s: float, now_nanos: int) -> bool:
        """Whether a request is admitted."""
        self._repay(bytes_per_s, now_nanos)
        at_nanos = self._reserved_at_nanos
        if self._owed > 0.0 or (at_nanos is not None and now_nanos - at_nanos < RESERVED_NANOS):
            return False
        self._reserved_at_nanos = now_nanos
        return True

    def cancel(self) -> None:
        """The request that was admitted is not sent on."""
        self._reserved_at_nanos = None

    def take(self, nbytes: float, bytes_per_s: float, now_nanos: int) -> None:
        """So much has landed, whoever sent it."""
        self._repay(bytes_per_s, now_nanos)
        self._owed += nbytes
        self._reserved_at_nanos = None

    def _repay(self, bytes_per_s: float, now_nanos: int) -> None:
        repaid = bytes_per_s * max(0, now_nanos - self._at_nanos) / 1e9
        self._owed = max(0.0, self._owed - repaid)
        self._at_nanos = now_nanos


class LeakShares:
    """The buckets of one throttle, which began at ``now_nanos``."""

    __slots__ = ("_buckets", "_others", "_since_nanos")

    def __init__(self, now_nanos: int) -> None:
        self._buckets: dict[tuple[str, str], LeakBucket] = {}
        self._others = LeakBucket(now_nanos)
        self._since_nanos = now_nanos

    def bucket(self, tags: tuple[str, str], before: float) -> LeakBucket:
        """Of a tag set, by its rate before; 0: it had none, or there is no such tag set."""
        if before <= 0.0:
            return self._others
        bucket = self._buckets.get(tags)
        if bucket is None:
            bucket = self._buckets[tags] = LeakBucket(self._since_nanos)
        return bucket

    @staticmethod
    def part(before: float, rate_before: float, fair_share: float) -> float:
        """Of the budget, from 0 to 1: that of a tag set, or of all that had no rate before."""
        if rate_before <= 0.0:
            return 1.0
        return (before if before > 0.0 else fair_share) / (rate_before + fair_share)
