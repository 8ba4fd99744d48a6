"""Admission of controller mutations: the quota that limits a request, and the result (KIP-599).

Clients that share a quota share its token bucket. Each operation of a request is judged by itself,
in the order of the request, as in a controller. The throttle time of a strict request is the
shortest one of its rejected operations. A permissive request has no rejected operation, so its
throttle time is the wait after its last operation. A request that comes before the wait is over is
refused without being judged, because a broker does not read from a muted connection. If the quota
was raised or removed since, the request is judged by the new one. A validate_only request is never
charged. (A KRaft controller charges it, against the KIP.)

Example: 5 partitions a second and 11 windows of 1 s make a bucket of 55 tokens. A strict request
creates topics of 40, 40 and 1 partitions. The first two are accepted and leave -25 tokens. The
third is rejected, and the request is throttled for 25 / 5 = 5 s.

At the start every bucket is full and no client waits. At most ``most`` buckets and as many waits
are kept. The least recently used one makes room for a new one.

Source: KIP-599, "Handling of new Clients", "Handling of old Clients", "Handling of ValidateOnly".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sidecar.quotas.admission import AT_ONCE, Admission, MutationQuota
from sidecar.quotas.entities import ClientQuotas, QuotaKey, Resolved, entities_of, resolve
from sidecar.quotas.mutations.burst_rate import BurstRate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket

Algorithm = Literal["token-bucket", "burst-spreading"]
"""KIP-599 as it was adopted, and as it was first proposed."""

MOST_BUCKETS: Final = 10_000
"""How many buckets are kept; each takes about 300 bytes."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request for controller mutations.

    Attributes:
        user: the principal's name without "User:", not sanitised.
        client_id: the client's id.
        amounts: for each operation, the partitions that it creates or deletes.
        strict: whether to reject what exceeds the quota; if not, accept it and throttle afterwards.
        validate_only: whether the request changes nothing; then it is not charged.
    """

    user: str
    client_id: str
    amounts: Sequence[int]
    strict: bool = True
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a request.

    Attributes:
        throttle_ms: how long the client must wait, in milliseconds.
        admissions: one for each operation.
    """

    throttle_ms: int
    admissions: tuple[Admission, ...]


@dataclass(frozen=True, slots=True)
class Muted:
    """The client came back before its wait was over.

    Attributes:
        left_ms: the rest of the wait, in milliseconds, above 0.
    """

    left_ms: int


@dataclass(frozen=True, slots=True)
class _Wait:
    """A client's wait: its end, and the quota that caused it."""

    until_ms: int
    quota: Resolved

    def applies_to(self, quota: Resolved | None) -> bool:
        """Whether the client still has this quota, or a lower one of the same bucket."""
        if quota is None or quota.tags != self.quota.tags:
            return False
        return quota.limit <= self.quota.limit


class MutationAdmissions:
    """The buckets of a cluster's controller mutation quotas."""

    def __init__(self, algorithm: Algorithm, window: QuotaWindow, most: int = MOST_BUCKETS) -> None:
        """Start without quotas: every request is admitted.

        ``window`` is Kafka's controller.quota.window.num and controller.quota.window.size.seconds.
        """
        self._make = _maker(algorithm, window)
        self._most = most
        self._quotas: ClientQuotas = {}
        # Both are in the order of their last use, the least recently used first.
        self._buckets: dict[tuple[str, str], MutationQuota] = {}
        self._waits: dict[tuple[str, str], _Wait] = {}

    def __repr__(self) -> str:
        return f"MutationAdmissions({len(self._buckets)} buckets)"

    def set_quotas(self, quotas: ClientQuotas) -> None:
        """Replace all quotas of the cluster.

        A client that lost its quota starts with a full bucket if the quota comes back. A changed
        rate applies from the bucket's last use on, as in Kafka.
        """
        key: str = QuotaKey.CONTROLLER_MUTATION
        ours = {entity: {key: values[key]} for entity, values in quotas.items() if key in values}
        if ours == self._quotas:
            return
        self._quotas = ours
        for tags in tuple(self._buckets):
            if not any(entity in ours for entity in entities_of(*tags)):
                del self._buckets[tags]

    def admit(self, request: AdmissionRequest, now_ms: int) -> Judged | Muted:
        """Judge a request.

        Args:
            request: it has at least one operation.
            now_ms: the time, in milliseconds.
        """
        client = (request.user, request.client_id)
        resolved = self._resolved(*client)
        wait = self._waits.get(client)
        if wait is not None and wait.until_ms > now_ms and wait.applies_to(resolved):
            return Muted(wait.until_ms - now_ms)
        self._waits.pop(client, None)
        if request.validate_only or resolved is None:
            return Judged(0, (AT_ONCE,) * len(request.amounts))
        bucket = self._bucket(resolved, now_ms)
        admissions = tuple(
            bucket.admit(amount, now_ms, strict=request.strict) for amount in request.amounts
        )
        # After a rejected amount, all others are rejected with the same wait.
        throttle_ms = admissions[-1].throttle_ms
        if throttle_ms > 0:
            if len(self._waits) >= self._most:
                del self._waits[next(iter(self._waits))]
            self._waits[client] = _Wait(now_ms + throttle_ms, resolved)
        return Judged(throttle_ms, admissions)

    def _resolved(self, user: str, client_id: str) -> Resolved | None:
        """Return the quota that limits this client, or None."""
        resolved = resolve(self._quotas, QuotaKey.CONTROLLER_MUTATION, user, client_id)
        # Brokers reject a limit that is not above 0, but they accept an infinite one.
        if resolved is None or not 0 < resolved.limit < math.inf:
            return None
        return resolved

    def _bucket(self, resolved: Resolved, now_ms: int) -> MutationQuota:
        bucket = self._buckets.pop(resolved.tags, None)
        if bucket is None:
            if len(self._buckets) >= self._most:
                del self._buckets[next(iter(self._buckets))]
            bucket = self._make(resolved.limit, now_ms)
        else:
            bucket.set_rate(resolved.limit)
        self._buckets[resolved.tags] = bucket
        return bucket


def _maker(algorithm: Algorithm, window: QuotaWindow) -> Callable[[float, int], MutationQuota]:
    if algorithm == "burst-spreading":
        return lambda rate, _now_ms: BurstRate(rate, window)
    return lambda rate, now_ms: TokenBucket(rate, window, now_ms)
