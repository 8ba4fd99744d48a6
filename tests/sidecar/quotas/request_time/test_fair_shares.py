"""Equal and max-min fair shares, their rounding and their warnings."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.request_time.fair_shares import (
    MinimumNotMet,
    Shares,
    SmallShare,
    Tenant,
    equal_share,
    fair_shares,
)


def percent(capacity: float, *tenants: Tenant, reserve: float = 0.0) -> list[float]:
    """Returns only the shares, in the order of the tenants."""
    return list(fair_shares(capacity, tenants, reserve_percent=reserve).percent.values())


@pytest.mark.parametrize(
    ("capacity", "tenants", "share"),
    [(6400, 50, 128.0), (6400, 100, 64.0), (6400, 115, 55.7), (1100, 120, 9.2)],
)
def test_article(capacity: float, tenants: int, share: float) -> None:
    """The article's numbers, by the plain formula and as fair shares of tenants that are alike."""
    assert share == equal_share(capacity, tenants)
    alike = [Tenant(f"tenant-{number}") for number in range(tenants)]
    assert Shares({tenant.name: share for tenant in alike}, ()) == fair_shares(capacity, alike)


@pytest.mark.parametrize(
    ("capacity", "tenants", "share"), [(0.5, 2, 0.3), (0.3, 2, 0.2), (1.1, 2, 0.6), (100, 3, 33.3)]
)
def test_half_is_rounded_up(capacity: float, tenants: int, share: float) -> None:
    """A half of a tenth goes up, never to the even neighbour nor as its float happens to lie."""
    assert share == equal_share(capacity, tenants)


def test_nobody_is_left_without_a_quota() -> None:
    """What would be rounded to 0 is 0.1: Kafka can't divide by 0."""
    assert 0.1 == equal_share(1100, 30_000)


def test_weights() -> None:
    assert [100.0, 300.0] == percent(400, Tenant("a"), Tenant("b", 3))
    assert [1.0, 2.0, 7.0] == percent(10, Tenant("a", 0.1), Tenant("b", 0.2), Tenant("c", 0.7))


def test_what_a_maximum_leaves_is_shared_by_others() -> None:
    """The second may have 200 % at most, so the first gets the rest."""
    assert [200.0, 200.0] == percent(400, Tenant("a"), Tenant("b", 3, maximum_percent=200))
    two, three = Tenant("a", maximum_percent=2), Tenant("b", maximum_percent=3)
    assert [2.0, 3.0, 5.0] == percent(10, two, three, Tenant("c"))
    assert [6.0, 5.0] == percent(
        100, Tenant("a", maximum_percent=6), Tenant("b", maximum_percent=5)
    )


def test_minimum_is_taken_from_others() -> None:
    """A minimum above the fair share is met, and the others share what is left."""
    shares = percent(100, Tenant("a", minimum_percent=60), Tenant("b"), Tenant("c"))
    assert [60.0, 20.0, 20.0] == shares


def test_minimum_under_the_fair_share_changes_nothing() -> None:
    """A minimum is not added to a share."""
    assert [50.0, 50.0] == percent(100, Tenant("a", minimum_percent=10), Tenant("b"))


def test_minimums_beyond_the_capacity_are_shared_and_reported() -> None:
    """The small minimum is met, the large one isn't, and the tenant is named."""
    shares = fair_shares(
        100, [Tenant("a", minimum_percent=90), Tenant("b", minimum_percent=30), Tenant("c")]
    )
    assert {"a": 70.0, "b": 30.0, "c": 0.1} == shares.percent
    assert (MinimumNotMet("a", 90, 70.0), SmallShare("c", 0.1)) == shares.warnings
    assert ["a: 70 % is under its minimum of 90 %", "c: 0.1 % is under 1 %"] == [
        str(warning) for warning in shares.warnings
    ]


def test_minimum_above_the_whole_capacity() -> None:
    """One tenant can't have more than there is."""
    shares = fair_shares(100, [Tenant("a", minimum_percent=200)])
    assert Shares({"a": 100.0}, (MinimumNotMet("a", 200, 100.0),)) == shares


def test_bounds_are_rounded_inwards() -> None:
    """A share of whole tenths is neither under the minimum nor over the maximum."""
    shares = percent(
        100,
        Tenant("a", 0.001, minimum_percent=20.01),
        Tenant("b", 9, maximum_percent=30.09),
        Tenant("c"),
    )
    assert [20.1, 30.0, 49.9] == shares


def test_maximum_wins_where_no_tenth_lies_between() -> None:
    """Exactly 5.05 % is impossible: the share is 5.0, which is reported; others share the rest."""
    exactly = Tenant("a", minimum_percent=5.05, maximum_percent=5.05)
    shares = fair_shares(10, [exactly, Tenant("b")])
    assert Shares({"a": 5.0, "b": 5.0}, (MinimumNotMet("a", 5.05, 5.0),)) == shares


def test_the_smallest_maximum() -> None:
    """It is the smallest share, a tenth of a percent."""
    assert [0.1, 0.9] == percent(1, Tenant("a", maximum_percent=0.1), Tenant("b"))


def test_reserve_is_not_shared() -> None:
    """Of 1,100 % with 100 % for internal users, 1,000 % are shared."""
    assert [500.0, 500.0] == percent(1100, Tenant("a"), Tenant("b"), reserve=100)


def test_one_percent_is_not_small() -> None:
    """The warning begins under 1 %."""
    assert () == fair_shares(1, [Tenant("a")]).warnings
    assert (SmallShare("a", 0.9),) == fair_shares(0.9, [Tenant("a")]).warnings


def test_nobody_shares() -> None:
    assert Shares({}, ()) == fair_shares(1100, [])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"weight": 0.0}, "a weight of 0.0"),
        ({"weight": float("inf")}, "a weight of inf"),
        ({"weight": float("nan")}, "a weight of nan"),
        ({"minimum_percent": -1.0}, "a minimum of -1.0 %"),
        ({"minimum_percent": float("inf")}, "a minimum of inf %"),
        ({"maximum_percent": 0.09}, "a maximum of 0.09 %"),
        ({"maximum_percent": float("nan")}, "a maximum of nan %"),
        ({"maximum_percent": float("inf")}, "a maximum of inf %"),
        ({"minimum_percent": 3.0, "maximum_percent": 2.0}, "above the maximum of 2.0 %"),
    ],
)
def test_terms_that_cannot_be(terms: dict[str, float], message: str) -> None:
    """Terms that mean nothing are refused by the tenant's name."""
    with pytest.raises(ValueError, match=f"ann: .*{message}"):
        Tenant("ann", **terms)


def test_sharing_that_cannot_be() -> None:
    """No tenant, no capacity, a reserve of everything and a duplicate name are refused."""
    with pytest.raises(ValueError, match="0 tenants"):
        equal_share(1100, 0)
    with pytest.raises(ValueError, match="a capacity of 0 %"):
        equal_share(0, 1)
    with pytest.raises(ValueError, match="a capacity of nan %"):
        fair_shares(float("nan"), [])
    with pytest.raises(ValueError, match="a reserve of 1100 % leaves nothing"):
        fair_shares(1100, [], reserve_percent=1100)
    with pytest.raises(ValueError, match="a reserve of -1 %"):
        fair_shares(1100, [], reserve_percent=-1)
    with pytest.raises(ValueError, match="the same name"):
        fair_shares(1100, [Tenant("a"), Tenant("a", 2)])


_tenths = st.integers(1, 5000).map(lambda tenths: tenths / 10)


@st.composite
def tenants(draw: st.DrawFn) -> list[Tenant]:
    """Generates tenants of any terms."""
    made = []
    for number in range(draw(st.integers(1, 8))):
        least, most = sorted((draw(_tenths), draw(_tenths)))
        bounded = draw(st.booleans())
        made.append(
            Tenant(
                f"tenant-{number}",
                draw(st.integers(1, 50)) / 10,
                least if draw(st.booleans()) else 0.0,
                most if bounded else None,
            )
        )
    return made


@given(capacity=_tenths, all_tenants=tenants())
def test_shares_are_max_min_fair(capacity: float, all_tenants: list[Tenant]) -> None:
    """Bounds are met, the capacity is spent, and nobody has more by weight needlessly.

    The last is what max-min fairness means: where one has more than another by weight, the one is
    at its minimum or the other at its maximum.
    """
    shares = fair_shares(capacity, all_tenants).percent
    if sum(tenant.minimum_percent for tenant in all_tenants) > capacity:
        # Then minimums are what is shared; that has a test of its own.
        assert all(
            shares[each.name] <= max(0.1, each.minimum_percent + 1e-9) for each in all_tenants
        )
        return
    most = {each.name: min(capacity, each.maximum_percent or capacity) for each in all_tenants}
    for each in all_tenants:
        assert each.minimum_percent <= shares[each.name] <= max(0.1, most[each.name])
    # Nobody is rounded by more than 0.05, or by 0.1 when it was lifted from 0.
    slack = 0.1 * len(all_tenants)
    assert min(capacity, sum(most.values())) == pytest.approx(sum(shares.values()), abs=slack)
    for one in all_tenants:
        for other in all_tenants:
            levels = [
                (Fraction(str(shares[each.name])) - sign * Fraction(1, 10)) / Fraction(each.weight)
                for each, sign in ((one, 1), (other, -1))
            ]
            if levels[0] > levels[1]:
                yields_nothing = shares[one.name] <= one.minimum_percent
                takes_nothing = shares[other.name] >= most[other.name]
                assert yields_nothing or takes_nothing
