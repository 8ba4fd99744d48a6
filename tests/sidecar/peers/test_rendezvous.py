"""The order in which sidecars observe is the same everywhere, and moves for nobody else."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sidecar.peers.rendezvous import in_order

names = st.lists(st.text(max_size=5), unique=True, min_size=1, max_size=20)


@given(names, st.randoms())
def test_it_is_the_same_however_they_are_listed(ids: list[str], chance: object) -> None:
    """Each is there once."""
    shuffled = sorted(ids, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert in_order(ids) == in_order(shuffled + ids)
    assert set(ids) == set(in_order(ids))


@given(names)
def test_who_goes_moves_nobody_else(ids: list[str]) -> None:
    """The others keep their order."""
    order = in_order(ids)
    for gone in ids:
        assert [each for each in order if each != gone] == in_order(set(ids) - {gone})


def test_it_is_spread() -> None:
    """Of a hundred lists of 30 the first is not always near the beginning."""
    firsts = {
        in_order(f"http://kafka-{cluster}-{number}" for number in range(30))[0].rpartition("-")[2]
        for cluster in range(100)
    }
    assert len(firsts) > 15


zoned = st.dictionaries(st.text(max_size=5), st.sampled_from(["", "a", "b", "c"]), min_size=1)


@given(zoned)
def test_no_zone_has_two_while_another_has_none(zones: dict[str, str]) -> None:
    """However many observers there are; those without a zone count as one."""
    known = {name: zone for name, zone in zones.items() if zone}
    order = in_order(zones, known)
    assert sorted(zones) == sorted(order)
    for count in range(len(order) + 1):
        chosen = Counter(zones[name] for name in order[:count])
        if max(chosen.values(), default=0) > 1:
            assert set(zones.values()) == set(chosen)


@given(zoned, st.randoms())
def test_zones_are_the_same_however_they_are_listed(zones: dict[str, str], chance: object) -> None:
    """Neither the order of ids nor that of zones counts."""
    shuffled = sorted(zones, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert in_order(zones, zones) == in_order(shuffled, {name: zones[name] for name in shuffled})


@given(zoned)
def test_of_one_zone_the_order_is_that_without_zones(zones: dict[str, str]) -> None:
    """So nothing changes where no rack is set."""
    assert in_order(zones) == in_order(zones, dict.fromkeys(zones, "a"))


@given(zoned, st.integers(1, 5))
def test_who_goes_is_replaced_and_moves_nobody_else(zones: dict[str, str], count: int) -> None:
    """Of the first k the others stay, and one comes; who is not among them changes nothing."""
    first = in_order(zones, zones)[:count]
    for gone in zones:
        left = set(in_order(zones.keys() - {gone}, zones)[:count])
        assert left >= set(first) - {gone}
        assert gone in first or left == set(first)
