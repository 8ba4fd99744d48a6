"""The order in which sidecars observe is the same everywhere, and moves for nobody else."""

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
