"""Divides a capacity into equal or max-min fair shares, with warnings about them.

Shares are max-min fair if no tenant can get more without a loss for a tenant that has, relative to
its weight, no more. All shares rise together, each in proportion to its weight. A share starts at
its minimum and stops at its maximum. The shares stop rising when the capacity is spent or all
tenants have their maximum.

A share is rounded half up to a multiple of 0.1 %, so that the printed share is the one that is
applied. Rounding may make the sum of the shares exceed the capacity by up to 0.05 % per share. The
review of a plan (``sidecar.quotas.request_time.plan_review``) warns if the sum is higher.

Example: with 6,400 %, 50 tenants get 128 % each, 100 get 64 %, and 115 get 55.7 % (55.652). With
1,100 %, 120 tenants get 9.2 % (9.1667), 1,104 % in all. With 400 % and the weights 1 and 3, the
shares are 100 % and 300 %. If the second tenant has a maximum of 200 %, both get 200 %.

Source: the formula of equal shares is (num.io.threads + num.network.threads) x 100 / tenants
(KIP-124's unit); max-min fairness is Bertsekas and Gallager, "Data Networks", section 6.5.2.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

_TENTHS: Final = 10
SMALL_PERCENT: Final = 1.0
"""A smaller share gets a warning."""
_HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant and the terms of its share.

    Attributes:
        name: the name of a user or client-id.
        weight: the size of its share relative to other tenants, above 0.
        minimum_percent: the least that it gets, rounded up to 0.1.
        maximum_percent: the most that it gets, rounded down to 0.1; None means the whole capacity.

    Raises:
        ValueError: a number is out of its range, or the minimum is above the maximum.
    """

    name: str
    weight: float = 1.0
    minimum_percent: float = 0.0
    maximum_percent: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"{self.name}: a weight of {self.weight} is not more than 0")
        if not (math.isfinite(self.minimum_percent) and self.minimum_percent >= 0):
            raise ValueError(f"{self.name}: a minimum of {self.minimum_percent} % is not 0 or more")
        if self.maximum_percent is None:
            return
        if not (math.isfinite(self.maximum_percent) and self.maximum_percent >= 1 / _TENTHS):
            raise ValueError(
                f"{self.name}: a maximum of {self.maximum_percent} % is under 0.1 or endless"
            )
        if self.minimum_percent > self.maximum_percent:
            raise ValueError(
                f"{self.name}: a minimum of {self.minimum_percent} % is above the maximum of "
                f"{self.maximum_percent} %"
            )


@dataclass(frozen=True, slots=True)
class SmallShare:
    """A share that hardly has room for a request: 1 % of a 1 s window is 10 ms of work."""

    tenant: str
    share_percent: float

    def __str__(self) -> str:
        return f"{self.tenant}: {self.share_percent:g} % is under {SMALL_PERCENT:g} %"


@dataclass(frozen=True, slots=True)
class MinimumNotMet:
    """A minimum for which the capacity is too small."""

    tenant: str
    minimum_percent: float
    share_percent: float

    def __str__(self) -> str:
        return (
            f"{self.tenant}: {self.share_percent:g} % is under its minimum of "
            f"{self.minimum_percent:g} %"
        )


ShareWarning = SmallShare | MinimumNotMet


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each tenant.

    Attributes:
        percent: tenant's name -> its share, a multiple of 0.1, in the order of the tenants.
        warnings: what an operator should know before applying the shares.
    """

    percent: Mapping[str, float]
    warnings: tuple[ShareWarning, ...]


def equal_share(capacity_percent: float, tenants: int) -> float:
    """Return the share of each of a number of equal tenants, in percent of one thread.

    Raises:
        ValueError: there is no tenant, or no capacity.
    """
    if tenants < 1:
        raise ValueError(f"{tenants} tenants can't share a capacity")
    return _rounded(_capacity(capacity_percent, 0.0) / tenants)


def fair_shares(
    capacity_percent: float, tenants: Collection[Tenant], *, reserve_percent: float = 0.0
) -> Shares:
    """Return max-min fair shares.

    If the capacity is smaller than the sum of all minimums, the minimums themselves are shared in
    the same way: small minimums are met, and no tenant gets more than its minimum.

    Args:
        capacity_percent: the capacity of the smallest broker.
        tenants: the tenants; names must differ.
        reserve_percent: the reserve for internal users, who get no share here.

    Raises:
        ValueError: two tenants have the same name, or the reserve takes the whole capacity.
    """
    if len({tenant.name for tenant in tenants}) < len(tenants):
        raise ValueError("two tenants have the same name")
    capacity = _capacity(capacity_percent, reserve_percent)
    bounds = [_Bounds.of(tenant, capacity) for tenant in tenants]
    if sum(each.least for each in bounds) > capacity:
        bounds = [_Bounds(each.weight, Fraction(0), each.least) for each in bounds]
    level = _level(bounds, capacity)
    percent = {
        tenant.name: _rounded(each.at(level)) for tenant, each in zip(tenants, bounds, strict=True)
    }
    unmet = (
        MinimumNotMet(tenant.name, tenant.minimum_percent, percent[tenant.name])
        for tenant in tenants
        if percent[tenant.name] < tenant.minimum_percent
    )
    small = (SmallShare(name, share) for name, share in percent.items() if share < SMALL_PERCENT)
    return Shares(percent, (*unmet, *small))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A tenant's terms as exact fractions; floats of thousands of tenants do not add up."""

    weight: Fraction
    least: Fraction
    most: Fraction

    @classmethod
    def of(cls, tenant: Tenant, capacity: Fraction) -> "_Bounds":
        least = _tenths(math.ceil, tenant.minimum_percent)
        most = capacity
        if tenant.maximum_percent is not None:
            most = min(most, _tenths(math.floor, tenant.maximum_percent))
        return cls(_decimal(tenant.weight), min(least, most), most)

    def at(self, level: Fraction) -> Fraction:
        return min(self.most, max(self.least, self.weight * level))


def _level(bounds: Sequence[_Bounds], capacity: Fraction) -> Fraction:
    """Return the share of weight 1 at which the capacity is spent or all have their maximum."""
    spent = sum((each.least for each in bounds), Fraction(0))
    slope = level = Fraction(0)
    for turn, change in sorted(_turns(bounds)):
        if spent + slope * (turn - level) >= capacity:
            break
        spent += slope * (turn - level)
        level, slope = turn, slope + change
    return level + (capacity - spent) / slope if slope > 0 else level


def _turns(bounds: Iterable[_Bounds]) -> Iterable[tuple[Fraction, Fraction]]:
    for each in bounds:
        yield each.least / each.weight, each.weight
        yield each.most / each.weight, -each.weight


def _capacity(percent: float, reserve_percent: float) -> Fraction:
    if not (math.isfinite(percent) and percent > 0):
        raise ValueError(f"a capacity of {percent} % can't be shared")
    if not 0 <= reserve_percent < percent:
        raise ValueError(f"a reserve of {reserve_percent} % leaves nothing of {percent} %")
    return _decimal(percent) - _decimal(reserve_percent)


def _decimal(number: float) -> Fraction:
    """Return the number as it was written: 0.3 is three tenths, not the nearest float."""
    return Fraction(str(number))


def _tenths(rounding: Callable[[Fraction], int], percent: float) -> Fraction:
    return Fraction(rounding(_decimal(percent) * _TENTHS), _TENTHS)


def _rounded(share: Fraction) -> float:
    # Kafka's throttle time divides by the quota.
    return max(1, math.floor(share * _TENTHS + _HALF)) / _TENTHS
