"""Which ids were seen lately: how long they are remembered, how often wrongly, at which size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rbloom import Bloom

from sidecar.quotas.producer_ids.seen_ids import FilterTerms, Noted, Room, SeenIds

WINDOW_MS = 1000
TERMS = FilterTerms(WINDOW_MS, expected_ids=100, false_positive_rate=0.01)
MIB = 1 << 20


def seen_ids(terms: FilterTerms = TERMS, most_bytes: int = 64 * MIB) -> SeenIds:
    """No id was seen yet."""
    return SeenIds(terms, Room(most_bytes))


def blocks(count: int, first: int = 0) -> list[int]:
    """So many ids as a cluster allocates them: 1,000 in a row, then another broker's."""
    return [first + 7000 * (number // 1000) + number % 1000 for number in range(count)]


@pytest.mark.parametrize("producer_id", [0, (1 << 63) - 1, 1 << 62])
def test_all_ids_of_kafka_can_be_noted(producer_id: int) -> None:
    """The smallest and the largest id are ids like others."""
    seen = seen_ids()
    assert [Noted.NEW, Noted.KNOWN] == [seen.note(producer_id, 0) for _ in range(2)]


def test_id_is_remembered_until_its_filter_is_over() -> None:
    """An id counts as seen to the end of its filter's window; being seen does not renew it."""
    seen = seen_ids()
    assert Noted.NEW is seen.note(1, 0)
    assert Noted.NEW is seen.note(2, WINDOW_MS // 2)
    assert [Noted.KNOWN, Noted.KNOWN] == [seen.note(each, WINDOW_MS) for each in (1, 2)]
    assert [Noted.NEW, Noted.NEW] == [seen.note(each, WINDOW_MS + 1) for each in (1, 2)]


def test_second_filter_is_opened_after_half_the_window() -> None:
    """An id of the second half is remembered for a window from then, without the first filter."""
    seen = seen_ids()
    half = WINDOW_MS // 2 + 1
    assert [Noted.NEW, Noted.NEW] == [seen.note(1, 0), seen.note(2, half)]
    assert 2 * TERMS.layer_bytes(0) == seen.bytes
    assert Noted.KNOWN is seen.note(2, WINDOW_MS + 1)
    assert TERMS.layer_bytes(0) == seen.bytes
    assert Noted.KNOWN is seen.note(2, half + WINDOW_MS)
    assert Noted.NEW is seen.note(2, half + WINDOW_MS + 1)


def test_known_id_opens_no_filter() -> None:
    """In the second half, too, an id that was seen costs nothing."""
    seen = seen_ids()
    seen.note(1, 0)
    seen.note(1, WINDOW_MS)
    assert TERMS.layer_bytes(0) == seen.bytes


def test_window_that_is_skipped_wholly() -> None:
    """After a long silence both filters are gone and their room is free."""
    room = Room(MIB)
    seen = SeenIds(TERMS, room)
    seen.note(1, 0)
    seen.note(2, WINDOW_MS)
    assert not seen.forget(9 * WINDOW_MS)
    assert (0, 0) == (seen.bytes, room.taken_bytes)
    assert Noted.NEW is seen.note(2, 9 * WINDOW_MS)


def test_never_more_than_two_filters() -> None:
    """New ids at every moment open a filter after each half window, and no third is there."""
    seen = seen_ids()
    most = 0
    for now_ms in range(10 * WINDOW_MS):
        seen.note(now_ms // 10, now_ms)
        most = max(most, seen.bytes)
    assert 2 * TERMS.layer_bytes(0) == most


@given(steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 700)), max_size=60))
def test_never_forgotten_too_soon_nor_remembered_too_long(steps: list[tuple[int, int]]) -> None:
    """An id counts again after more than half a window and within one, from when it was new."""
    # So rarely wrong that it would not be seen.
    seen = seen_ids(FilterTerms(WINDOW_MS, 1000, 1e-12))
    new_at: dict[int, int] = {}
    now_ms = 0
    for producer_id, passed_ms in steps:
        now_ms += passed_ms
        noted = seen.note(producer_id, now_ms)
        since_ms = now_ms - new_at[producer_id] if producer_id in new_at else None
        if since_ms is None or since_ms > WINDOW_MS:
            assert Noted.NEW is noted
        elif since_ms <= WINDOW_MS // 2:
            assert Noted.KNOWN is noted
        if noted is Noted.NEW:
            new_at[producer_id] = now_ms


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expected", "ids"),
    [(20_000, 20_000), (1000, 20_000), (100, 2000)],
    ids=["one full layer", "three layers", "small"],
)
def test_false_positive_rate_is_met(expected: int, ids: int) -> None:
    """With both filters full of ids in blocks, 1 % at most of other ids look seen."""
    seen = seen_ids(FilterTerms(WINDOW_MS, expected, 0.01))
    for producer_id in blocks(ids):
        seen.note(producer_id, 0)
    for producer_id in blocks(ids, first=10**9):
        seen.note(producer_id, WINDOW_MS // 2 + 1)
    others = blocks(20_000, first=10**12)
    wrong = sum(producer_id in seen for producer_id in others)
    assert 0 < wrong <= 0.01 * len(others)


def test_blocks_are_mixed() -> None:
    """Python's own hash takes more of a block for seen than the 1 % that was set; mixing helps."""
    block, others = range(1000), range(10**9, 10**9 + 50_000)
    unmixed = Bloom(len(block), 0.01)
    # One layer of one filter is made for a quarter of what is set.
    mixed = seen_ids(FilterTerms(WINDOW_MS, len(block), 0.04))
    for producer_id in block:
        unmixed.add(producer_id)
        mixed.note(producer_id, 0)
    wrong = [sum(each in seen for each in others) / len(others) for seen in (unmixed, mixed)]
    assert 0.012 < wrong[0]
    assert 0.009 < wrong[1] < 0.011


def test_growing_forgets_nothing() -> None:
    """What was noted before a layer was opened is known after it, and takes no more room."""
    seen = seen_ids()
    ids = [each for each in blocks(1000) if seen.note(each, 0) is Noted.NEW]
    grown = seen.bytes
    assert sum(TERMS.layer_bytes(layer) for layer in range(3)) == grown
    assert {Noted.KNOWN} == {seen.note(each, WINDOW_MS // 2) for each in ids}
    assert grown == seen.bytes


def test_docstring_example() -> None:
    """1,000 ids take 1,559 bytes, one more needs a second layer: 8,516 in all, up to 5,000."""
    seen = seen_ids(FilterTerms(3_600_000, 1000, 0.01))
    for producer_id in range(1000):
        seen.note(producer_id, 0)
    assert 1559 == seen.bytes
    while seen.bytes == 1559:
        producer_id += 1
        seen.note(producer_id, 0)
    assert producer_id <= 1010
    for each in range(producer_id, 4950):
        seen.note(each, 0)
    assert 8516 == seen.bytes


@pytest.mark.parametrize("layer", range(5))
def test_what_is_counted_is_what_is_taken(layer: int) -> None:
    """The bytes of a layer are those of the filter, to the rounding of its bits."""
    actual = Bloom(TERMS.ids(layer), TERMS.wrong(layer)).size_in_bits / 8
    assert TERMS.layer_bytes(layer) - 1 <= actual <= TERMS.layer_bytes(layer)


def test_all_layers_of_two_filters_are_wrong_as_often_as_set() -> None:
    """The rates of any number of layers, twice, add up to what was set, and not to more."""
    total = 2 * sum(TERMS.wrong(layer) for layer in range(20))
    assert 0.0099 < total < TERMS.false_positive_rate


def test_no_room() -> None:
    """What can't be remembered is neither new nor known, and what is remembered stays so."""
    room = Room(TERMS.layer_bytes(0))
    seen = SeenIds(TERMS, room)
    noted = [seen.note(producer_id, 0) for producer_id in range(200)]
    assert 99 <= noted.count(Noted.NEW) <= 100
    assert noted.count(Noted.NO_ROOM) >= 95
    assert Noted.KNOWN is seen.note(0, 0)
    assert Noted.NO_ROOM is seen.note(199, 0)


def test_memory_is_shared_and_freed() -> None:
    """What one user's filters take another can't have, until they are over."""
    room = Room(TERMS.layer_bytes(0))
    one, other = SeenIds(TERMS, room), SeenIds(TERMS, room)
    assert Noted.NEW is one.note(1, 0)
    assert Noted.NO_ROOM is other.note(1, 0)
    assert not one.forget(WINDOW_MS + 1)
    assert Noted.NEW is other.note(1, WINDOW_MS + 1)


@pytest.mark.parametrize(
    ("window_ms", "expected", "rate", "message"),
    [
        (1, 1, 0.01, "1 ms has no halves"),
        (1000, 0, 0.01, "0 expected ids"),
        (1000, 1, 0.0, "rate of 0.0"),
        (1000, 1, 1.0, "rate of 1.0"),
        (1000, 1, float("nan"), "rate of nan"),
    ],
)
def test_terms_that_cannot_be(window_ms: int, expected: int, rate: float, message: str) -> None:
    """A number out of its range is refused."""
    with pytest.raises(ValueError, match=message):
        FilterTerms(window_ms, expected, rate)


def test_repr_shows_sizes() -> None:
    """It shows filters and bytes, not ids."""
    seen = seen_ids()
    assert "SeenIds(0 filters of 0 bytes)" == repr(seen)
    seen.note(1, 0)
    assert f"SeenIds(1 filters of {TERMS.layer_bytes(0)} bytes)" == repr(seen)
