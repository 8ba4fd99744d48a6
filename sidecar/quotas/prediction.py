"""The throttle times that one node answers, predicted from what its requests were charged with.

Feed it the charges of one broker or controller in the order of their time: quotas are enforced by
each node for itself. A charge counts for all who share the quota's tags, as of the time that it was
made. The throttle time of a request is the greatest of those of its charges.

Produce and fetch wait without a bound, request time one window at most. A fetch that is throttled
is taken back, since its answer is sent empty. Mutations have a token bucket, or the spread rate of
KIP-599 as first proposed; what a strict one refuses is not counted. The answer to mutations has the
wait that is left when it is sent.

Example, 11 samples of 1 s and 100 bytes a second for client-id etl: 1,500 bytes at once are 150 a
second over 10 s, so 5,000 ms. 500 more a second later are 2,000 in 10 s still, so 10,000 ms.

As on a broker, nothing is recorded while nobody has a quota of that kind; once somebody has, all
who have none are recorded too, by their user, client-id or both while all quotas of the kind are
for one of these, else by their client-id. So who gets a quota later may find it used up already.

Initially there are no quotas and nothing was recorded. At most ``most`` tags are retained; those
unused longest make room. Kafka forgets tags that were unused for an hour, which only a bucket that
takes longer to refill can show.

Source: KIP-13, KIP-124, KIP-599; Kafka's ClientQuotaManager, ClientRequestQuotaManager and
ControllerMutationQuotaManager.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sidecar.quotas.admission import MutationQuota
from sidecar.quotas.entities import ClientQuotas, QuotaKey, Resolved, resolve
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.throttle_time import bounded_ms, unbounded_ms
from sidecar.quotas.token_bucket import TokenBucket

MOST_TAGS: Final = 10_000
"""Tags of some 2 kB each, with all samples of a rate."""

MakeQuota = Callable[[float, int], MutationQuota]
"""A limit per second and the time, ms -> a mutation quota that nothing was counted against."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What a request, or one of its operations, is charged with.

    Attributes:
        at_ms: when, milliseconds since any fixed time.
        key: of which quota.
        user: the principal's name without "User:", not sanitised.
        client_id: the client's.
        amount: bytes; percent of a second (``request_time.percent``); partitions.
        strict: of mutations: refuse what comes while the quota is used up.
        checked: False only counts it, as a broker does with network threads' time.
        waited_ms: from the charge of a mutation to its answer, whose wait is so much shorter; a
            controller answers when the change is committed.
    """

    at_ms: int
    key: QuotaKey
    user: str
    client_id: str
    amount: float
    strict: bool = False
    checked: bool = True
    waited_ms: int = 0


@dataclass(frozen=True, slots=True)
class Prediction:
    """What becomes of a charge.

    Attributes:
        quota: the quota that its client is under; None when it is under none.
        accepted: False: a strict mutation that was refused, and not counted.
        throttle_ms: the answer's throttle time, milliseconds.
        rate: per second with this charge in it, as it is compared with the limit; None for
            mutations, whose bucket has no rate.
    """

    quota: Resolved | None = None
    accepted: bool = True
    throttle_ms: int = 0
    rate: float | None = None


_FREE: Final = Prediction()

_LONGEST_IS_A_WINDOW: Final = {
    QuotaKey.PRODUCE: False,
    QuotaKey.FETCH: False,
    QuotaKey.REQUEST: True,
}
"""The kinds that are limited by a rate, and whether their throttle time has a bound."""

_Tags = tuple[QuotaKey, str, str]


class Predictor:
    """The quotas of one node.

    Attributes:
        dropped: how many tags made room for others; what they had recorded is forgotten.
    """

    def __init__(
        self,
        window: QuotaWindow,
        *,
        mutations: MakeQuota | None = None,
        most: int = MOST_TAGS,
    ) -> None:
        """Starts without quotas.

        Args:
            window: Kafka's quota.window.num and quota.window.size.seconds.
            mutations: how mutations are counted; None: by a token bucket over the same window.
            most: how many tags are retained, > 0.

        Raises:
            ValueError: ``most`` is not positive.
        """
        if most <= 0:
            raise ValueError("at least one tag must be named")
        self.dropped = 0
        self._window = window
        self._make = mutations or (lambda limit, now_ms: TokenBucket.over(window, limit, now_ms))
        self._most = most
        self._quotas: ClientQuotas = {}
        self._shapes: dict[str, frozenset[tuple[bool, bool]]] = {}
        # By their last use, the longest unused first.
        self._used: dict[_Tags, Rate | MutationQuota] = {}

    def __repr__(self) -> str:
        return f"Predictor({len(self._used)} tags, {self.dropped} dropped)"

    def set_quotas(self, quotas: ClientQuotas) -> None:
        """All quotas of the cluster from the next charge on; what was recorded stays."""
        self._quotas = {entity: dict(limits) for entity, limits in quotas.items()}
        self._shapes = {key: _shapes(self._quotas, key) for key in QuotaKey}

    def charge(self, charge: Charge) -> Prediction:
        """Counts a charge: not before the last one, unless the node's own clock went backwards.

        Raises:
            ValueError: there is no rule for quotas of its kind.
        """
        is_mutation = charge.key is QuotaKey.CONTROLLER_MUTATION
        if not is_mutation and charge.key not in _LONGEST_IS_A_WINDOW:
            raise ValueError(f"the throttle times of {charge.key} are not predicted")
        shapes = self._shapes.get(charge.key)
        if not shapes:
            return _FREE
        quota = resolve(self._quotas, charge.key, charge.user, charge.client_id)
        # Brokers refuse a limit that is not above 0; an infinite one limits nobody.
        if quota is not None and not 0 < quota.limit < math.inf:
            quota = None
        tags = _shaped(shapes, charge.user, charge.client_id) if quota is None else quota.tags
        if is_mutation:
            return self._mutate(charge, quota, tags)
        return self._record(charge, quota, tags)

    def _record(self, charge: Charge, quota: Resolved | None, tags: tuple[str, str]) -> Prediction:
        rate = self._used.pop((charge.key, *tags), None)
        if not isinstance(rate, Rate):
            rate = Rate(self._window)
        self._retain((charge.key, *tags), rate)
        rate.record(charge.amount, charge.at_ms)
        if quota is None or not charge.checked:
            return _FREE if quota is None else Prediction(quota)
        observed, window_ms = rate.observe(charge.at_ms)
        if _LONGEST_IS_A_WINDOW[charge.key]:
            most_ms = self._window.window_ms
            throttle_ms = bounded_ms(observed, quota.limit, window_ms, most_ms)
        else:
            throttle_ms = unbounded_ms(observed, quota.limit, window_ms)
        if charge.key is QuotaKey.FETCH and observed > quota.limit:
            rate.record(-charge.amount, charge.at_ms)
        return Prediction(quota, throttle_ms=throttle_ms, rate=observed)

    def _mutate(self, charge: Charge, quota: Resolved | None, tags: tuple[str, str]) -> Prediction:
        key = (charge.key, *tags)
        used = self._used.pop(key, None)
        if quota is None:
            # A bucket without a limit is full at once: it need not be retained.
            return _FREE
        if used is None or isinstance(used, Rate):
            used = self._make(quota.limit, charge.at_ms)
        else:
            used.set_rate(quota.limit)
        self._retain(key, used)
        admission = used.admit(charge.amount, charge.at_ms, strict=charge.strict)
        left_ms = max(0, admission.throttle_ms - charge.waited_ms)
        return Prediction(quota, admission.accepted, left_ms)

    def _retain(self, tags: _Tags, used: Rate | MutationQuota) -> None:
        if len(self._used) >= self._most:
            del self._used[next(iter(self._used))]
            self.dropped += 1
        self._used[tags] = used


def _shapes(quotas: ClientQuotas, key: str) -> frozenset[tuple[bool, bool]]:
    """For what the quotas of a kind are: whether for a user, and whether for a client-id."""
    return frozenset(
        (entity.user is not None, entity.client_id is not None)
        for entity, limits in quotas.items()
        if key in limits
    )


def _shaped(shapes: frozenset[tuple[bool, bool]], user: str, client_id: str) -> tuple[str, str]:
    """The tags of a client that is under no quota."""
    by_user, by_client = next(iter(shapes)) if len(shapes) == 1 else (False, True)
    return (user if by_user else "", client_id if by_client else "")
