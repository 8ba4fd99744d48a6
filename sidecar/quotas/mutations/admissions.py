"""Admission of controller mutations: which quota limits a request, and its result (KIP-599).

Each (user, client-id) is limited by the quota that it is under; those who share one share its
bucket. Each operation of a request is judged by itself, in its order, as a controller does. The
request's own throttle time is that of the rejected operation that waits least; a permissive one has
none, so it is the wait after its last operation. A request that comes before the wait is over is
refused and not judged, as a broker would not read from a muted connection. What is only to be
validated is never charged. (A KRaft controller charges it, against the KIP.)

Example: 5 partitions a second, 11 windows of 1 s, so a bucket of 55. Topics of 40, 40 and 1
partitions in one strict request: the first two are accepted, 25 tokens short; the third is
rejected, and the request is throttled for 25 / 5 = 5 s.

Initially every bucket is full and nobody waits. At most ``most`` buckets and as many waits are
retained; the one that was unused longest makes room, and is counted if it was not yet full again.

Source: KIP-599, "Handling of new Clients", "Handling of old Clients", "Handling of ValidateOnly".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from sidecar.quotas.admission import AT_ONCE, Admission, MutationQuota
from sidecar.quotas.entities import ClientQuotas, QuotaKey, entities_of, resolve
from sidecar.quotas.mutations.burst_rate import BurstRate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket

Algorithm = Literal["token-bucket", "burst-spreading"]
"""KIP-599 as it was adopted, and as it was first proposed."""

_T = TypeVar("_T")

MOST_BUCKETS: Final = 10_000
"""Buckets of some 300 bytes."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request for controller mutations.

    Attributes:
        user: the principal's name without "User:", not sanitised.
        client_id: the client's.
        amounts: for each operation, the partitions that it creates or deletes.
        strict: reject what is over the quota; else accept it and throttle afterwards.
        validate_only: nothing will be done, so nothing is charged.
    """

    user: str
    client_id: str
    amounts: Sequence[int]
    strict: bool = True
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a request.

    Attributes:
        throttle_ms: how long its client must wait, milliseconds.
        admissions: one for each operation.
    """

    throttle_ms: int
    admissions: tuple[Admission, ...]


@dataclass(frozen=True, slots=True)
class Muted:
    """The client came back before its wait was over.

    Attributes:
        left_ms: what is left of it, milliseconds, > 0.
    """

    left_ms: int


@dataclass(slots=True)
class _Bucket:
    """A quota in use.

    Attributes:
        quota: what is counted.
        full_ms: when it will be as new, if nothing more comes.
    """

    quota: MutationQuota
    full_ms: int


class MutationAdmissions:
    """The buckets of a cluster's controller mutation quotas.

    Attributes:
        dropped: buckets and waits that made room for others before they were over.
    """

    def __init__(self, algorithm: Algorithm, window: QuotaWindow, most: int = MOST_BUCKETS) -> None:
        """Starts without quotas: everything is admitted.

        The window is Kafka's controller.quota.window.num and controller.quota.window.size.seconds.
        """
        self.dropped = 0
        self._make = _maker(algorithm, window)
        self._span_ms = window.span_ms
        self._most = most
        self._quotas: ClientQuotas = {}
        # Both by their last use, the longest unused first.
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._muted_until_ms: dict[tuple[str, str], int] = {}

    def __repr__(self) -> str:
        return f"MutationAdmissions({len(self._buckets)} buckets, {self.dropped} dropped)"

    def set_quotas(self, quotas: ClientQuotas) -> None:
        """All quotas of the cluster; who is under none any more has a full bucket if one returns.

        A rate that has changed counts from the bucket's last use on, as Kafka's.
        """
        key: str = QuotaKey.CONTROLLER_MUTATION
        ours = {entity: {key: of[key]} for entity, of in quotas.items() if key in of}
        if ours == self._quotas:
            return
        self._quotas = ours
        for tags in tuple(self._buckets):
            if not any(entity in ours for entity in entities_of(*tags)):
                del self._buckets[tags]

    def admit(self, request: AdmissionRequest, now_ms: int) -> Judged | Muted:
        """Judges a request.

        Args:
            request: with one operation at least.
            now_ms: milliseconds.
        """
        client = (request.user, request.client_id)
        left_ms = self._muted_until_ms.get(client, now_ms) - now_ms
        if left_ms > 0:
            return Muted(left_ms)
        self._muted_until_ms.pop(client, None)
        bucket = None if request.validate_only else self._bucket(*client, now_ms)
        if bucket is None:
            return Judged(0, (AT_ONCE,) * len(request.amounts))
        admissions = tuple(
            bucket.quota.admit(amount, now_ms, strict=request.strict) for amount in request.amounts
        )
        bucket.full_ms = now_ms + bucket.quota.throttle_ms(now_ms) + self._span_ms
        throttle_ms = _throttle_ms(admissions)
        if throttle_ms > 0:
            self._make_room(self._muted_until_ms, lambda until_ms: until_ms > now_ms)
            self._muted_until_ms[client] = now_ms + throttle_ms
        return Judged(throttle_ms, admissions)

    def _bucket(self, user: str, client_id: str, now_ms: int) -> _Bucket | None:
        """The bucket that limits this client; None when none does."""
        resolved = resolve(self._quotas, QuotaKey.CONTROLLER_MUTATION, user, client_id)
        # Brokers refuse other limits than those above 0, but not an infinite one.
        if resolved is None or not 0 < resolved.limit < math.inf:
            return None
        bucket = self._buckets.pop(resolved.tags, None)
        if bucket is None:
            self._make_room(self._buckets, lambda other: other.full_ms > now_ms)
            bucket = _Bucket(self._make(resolved.limit, now_ms), now_ms)
        else:
            bucket.quota.set_rate(resolved.limit)
        self._buckets[resolved.tags] = bucket
        return bucket

    def _make_room(self, used: dict[tuple[str, str], _T], counts: Callable[[_T], bool]) -> None:
        if len(used) >= self._most:
            self.dropped += counts(used.pop(next(iter(used))))


def _maker(algorithm: Algorithm, window: QuotaWindow) -> Callable[[float, int], MutationQuota]:
    if algorithm == "burst-spreading":
        return lambda rate, _now_ms: BurstRate(rate, window)
    return lambda rate, now_ms: TokenBucket.over(window, rate, now_ms)


def _throttle_ms(admissions: Sequence[Admission]) -> int:
    rejected = [admission.throttle_ms for admission in admissions if not admission.accepted]
    return min(rejected) if rejected else admissions[-1].throttle_ms
