"""Predicts the throttle times of one node from the charges of its requests.

The input is the charges of one broker or controller in the order of time, because each node
enforces quotas by itself. A charge counts against all clients with the same tags. The throttle time
of a request is the longest one of its charges.

The wait for produce and fetch has no bound; the wait for request time is at most one window. If a
fetch is throttled, its charge is taken back, because the broker sends an empty answer. Mutations
use a token bucket, or the spread rate of KIP-599 as first proposed. A rejected strict mutation is
not counted. The answer to a mutation has the wait that remains when it is sent.

Example with 11 samples of 1 s and 100 bytes a second for client-id etl: 1,500 bytes at once are 150
a second over 10 s, so the throttle time is 5,000 ms. With 500 more bytes a second later there are
2,000 in the same 10 s, so it is 10,000 ms.

As on a broker, nothing is recorded while no quota of that kind exists. As soon as one exists,
clients without a quota are recorded too. They are recorded by user, by client-id or by both if all
quotas of the kind are for that kind of entity, and by client-id otherwise. A client that gets a
quota later may therefore find it used up already.

At the start there are no quotas and nothing is recorded. At most ``most`` tags are kept; the least
recently used make room. Kafka forgets tags after an hour without use. The difference is visible
only with a bucket that takes longer than that to refill.

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
"""How many tags are kept; with all samples of a rate each takes about 2 kB."""

MakeQuota = Callable[[float, int], MutationQuota]
"""(limit per second, time in ms) -> a new mutation quota without any charge."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of a request or of one of its operations.

    Attributes:
        at_ms: the time of the charge, in milliseconds since any fixed time.
        key: the kind of quota.
        user: the principal's name without "User:", not sanitised.
        client_id: the client's id.
        amount: bytes; percent of a second (``request_percentage.percent``); partitions.
        strict: for mutations, whether to reject what comes while the quota is used up.
        checked: False only counts the charge, as a broker does with network threads' time.
        waited_ms: for mutations, the time from the charge to the answer. The answer's throttle time
            is shorter by this time, because a controller answers when the change is committed.
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
    """The result of a charge.

    Attributes:
        quota: the quota that applies to the client; None if there is none.
        accepted: False for a strict mutation that was rejected and not counted.
        throttle_ms: the answer's throttle time, in milliseconds.
        rate: the rate per second, including this charge, that is compared with the limit; None for
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
"""The kinds that a rate limits -> whether their throttle time has a bound."""

_Tags = tuple[QuotaKey, str, str]


class Predictor:
    """The quotas of one node.

    Attributes:
        dropped: how many tags made room for others; their records are forgotten.
    """

    def __init__(
        self,
        window: QuotaWindow,
        *,
        mutations: MakeQuota | None = None,
        most: int = MOST_TAGS,
    ) -> None:
        """Start without quotas.

        Args:
            window: Kafka's quota.window.num and quota.window.size.seconds.
            mutations: makes the quota for mutations; None means a token bucket over ``window``.
            most: how many tags are kept, above 0.

        Raises:
            ValueError: ``most`` is not positive.
        """
        if most <= 0:
            raise ValueError("at least one tag must be named")
        self.dropped = 0
        self._window = window
        self._make = mutations or (lambda limit, now_ms: TokenBucket(limit, window, now_ms))
        self._most = most
        self._quotas: ClientQuotas = {}
        self._shapes: dict[str, frozenset[tuple[bool, bool]]] = {}
        # In the order of their last use, the least recently used first.
        self._used: dict[_Tags, Rate | MutationQuota] = {}

    def __repr__(self) -> str:
        return f"Predictor({len(self._used)} tags, {self.dropped} dropped)"

    def set_quotas(self, quotas: ClientQuotas) -> None:
        """Replace all quotas of the cluster from the next charge on; records stay."""
        self._quotas = {entity: dict(limits) for entity, limits in quotas.items()}
        self._shapes = {key: _shapes(self._quotas, key) for key in QuotaKey}

    def charge(self, charge: Charge) -> Prediction:
        """Count a charge. It is not earlier than the last one, unless the node's clock went back.

        Raises:
            ValueError: there is no rule for quotas of this kind.
        """
        is_mutation = charge.key is QuotaKey.CONTROLLER_MUTATION
        if not is_mutation and charge.key not in _LONGEST_IS_A_WINDOW:
            raise ValueError(f"the throttle times of {charge.key} are not predicted")
        shapes = self._shapes.get(charge.key)
        if not shapes:
            return _FREE
        quota = resolve(self._quotas, charge.key, charge.user, charge.client_id)
        # Brokers reject a limit that is not above 0; an infinite limit has no effect.
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
            # A bucket without a limit is full at once, so it does not have to be kept.
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
    """Return which parts the entities of a kind's quotas have: (user, client-id)."""
    return frozenset(
        (entity.user is not None, entity.client_id is not None)
        for entity, limits in quotas.items()
        if key in limits
    )


def _shaped(shapes: frozenset[tuple[bool, bool]], user: str, client_id: str) -> tuple[str, str]:
    """Return the tags of a client without a quota."""
    by_user, by_client = next(iter(shapes)) if len(shapes) == 1 else (False, True)
    return (user if by_user else "", client_id if by_client else "")
