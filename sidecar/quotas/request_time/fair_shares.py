"""Who gets how much of a capacity: equal and max-min fair shares, and what to say of them.

Max-min fair: nobody can get more without taking it from someone who has no more than they, by
weight. All shares rise together, each as fast as its weight, none above its maximum and none
starting below its minimum, until the capacity is spent or everybody has their maximum.

A share is a multiple of 0.1 %, the nearest one (a half goes up), so that what is printed is what is
applied. Shares that were all rounded up add up to more than there is, by at most 0.05 % each; that
is what rounding does, and no warning.

Example: 50 tenants on 6,400 % have 128 % each, 100 have 64 %, 115 have 55.7 % (55.652). 120 on
1,100 % have 9.2 % (9.1667), 1,104 % in all. With weights 1 and 3 on 400 %: 100 % and 300 %; and
when the second may have 200 % at most, the first gets the other 200 %.

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
"""A share under it is a warning."""
_HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who gets a share, and on what terms.

    Attributes:
        name: of a user or client-id.
        weight: how much of what is shared, relative to others; more than 0.
        minimum_percent: what it is to have whatever others have; rounded up to 0.1.
        maximum_percent: what it is to have at most; rounded down to 0.1; None: all there is.

    Raises:
        ValueError: a number out of its range, or a minimum above the maximum.
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
    """A share so small that hardly a request fits: at 1 % of a 1 s window, 10 ms of work."""

    tenant: str
    share_percent: float

    def __str__(self) -> str:
        return f"{self.tenant}: {self.share_percent:g} % is under {SMALL_PERCENT:g} %"


@dataclass(frozen=True, slots=True)
class MinimumNotMet:
    """A minimum that the capacity has no room for."""

    tenant: str
    minimum_percent: float
    share_percent: float

    def __str__(self) -> str:
        return (
            f"{self.tenant}: {self.share_percent:g} % is under its minimum of "
            f"{self.minimum_percent:g} %"
        )


@dataclass(frozen=True, slots=True)
class OverCapacity:
    """Shares that add up to more than there is, beyond what rounding does.

    Attributes:
        tenant: the one with the largest share, the first by name.
        share_percent: what that one has.
        sum_percent: what all have together.
        capacity_percent: what there is for them.
    """

    tenant: str
    share_percent: float
    sum_percent: float
    capacity_percent: float

    def __str__(self) -> str:
        return (
            f"{self.tenant}: its {self.share_percent:g} % and all other shares are "
            f"{self.sum_percent:,.1f} %, over the capacity of {self.capacity_percent:,g} %"
        )


ShareWarning = SmallShare | MinimumNotMet | OverCapacity


@dataclass(frozen=True, slots=True)
class Shares:
    """What each tenant gets.

    Attributes:
        percent: tenant's name -> its share, a multiple of 0.1, in the order of the tenants.
        warnings: what a person should know before it is applied.
    """

    percent: Mapping[str, float]
    warnings: tuple[ShareWarning, ...]


def equal_share(capacity_percent: float, tenants: int) -> float:
    """The share of each of so many tenants that are alike, in percent of one thread.

    Raises:
        ValueError: no tenant, or no capacity.
    """
    if tenants < 1:
        raise ValueError(f"{tenants} tenants can't share anything")
    return _rounded(_capacity(capacity_percent, 0.0) / tenants)


def fair_shares(
    capacity_percent: float, tenants: Collection[Tenant], *, reserve_percent: float = 0.0
) -> Shares:
    """Max-min fair shares.

    Where the capacity has no room for all minimums, those are shared in the same way: the small
    ones are met, and nobody gets more than their minimum.

    Args:
        capacity_percent: of the smallest broker.
        tenants: each with a name of its own.
        reserve_percent: reserved for internal users, who get no share here.

    Raises:
        ValueError: two tenants of one name, or nothing left beside the reserve.
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
    return Shares(percent, (*unmet, *review(percent, float(capacity))))


def review(percent: Mapping[str, float], capacity_percent: float) -> tuple[ShareWarning, ...]:
    """What to say of shares, whoever made them: those under 1 %, and a sum over the capacity.

    The capacity is what there is for them, without what is reserved.
    """
    small = (SmallShare(name, share) for name, share in percent.items() if share < SMALL_PERCENT)
    total = math.fsum(percent.values())
    if Fraction(total) - Fraction(capacity_percent) <= len(percent) * _HALF / _TENTHS:
        return tuple(small)
    largest = min(percent, key=lambda name: (-percent[name], name))
    return (*small, OverCapacity(largest, percent[largest], total, capacity_percent))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A tenant's terms, exact: floats of thousands of tenants would not add up."""

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
    """The share of weight 1 at which all is spent, or everybody has their most."""
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
    """As a person wrote it: 0.3 is three tenths, not the float next to it."""
    return Fraction(str(number))


def _tenths(rounding: Callable[[Fraction], int], percent: float) -> Fraction:
    return Fraction(rounding(_decimal(percent) * _TENTHS), _TENTHS)


def _rounded(share: Fraction) -> float:
    # Kafka's throttle time divides by the quota.
    return max(1, math.floor(share * _TENTHS + _HALF)) / _TENTHS
