"""Ids count when they write and their owner is known, whichever is heard of first."""

from itertools import pairwise

import pytest

from sidecar.quotas.producer_ids import active_ids
from sidecar.quotas.producer_ids.active_ids import (
    FRESH_MS,
    WAIT_MS,
    ActiveIds,
    Attribution,
    WrittenSince,
)

HOUR_MS = 3_600_000
ORDERS = ("orders", 0)


def states(*written: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Producers by id and last sequence, of epoch 0."""
    return [(producer_id, 0, sequence) for producer_id, sequence in written]


def test_an_id_that_is_only_allocated_counts_for_nobody() -> None:
    """It counts when it writes, once."""
    ids = ActiveIds(HOUR_MS)
    assert ids.allocated("bob", 7, 0) is None
    assert Attribution(7, "bob") == ids.wrote(7, 0)
    assert ids.wrote(7, 1000) is None


def test_an_id_that_wrote_before_its_owner_was_reported_counts_then() -> None:
    """The module's example: it counts once, and is not one of unknown owner."""
    ids = ActiveIds(HOUR_MS)
    assert Attribution(7, None) == ids.wrote(7, 0)
    assert 1 == ids.unowned
    assert Attribution(7, "bob") == ids.allocated("bob", 7, 0)
    assert ids.allocated("bob", 7, 0) is None
    ids.tick(WAIT_MS)
    assert (0, 0) == (ids.unknown, ids.unowned)


def test_a_brokers_first_id_is_one() -> None:
    """0 is an id; what writes without idempotence has -1."""
    ids = ActiveIds(HOUR_MS)
    assert [Attribution(0, None), None] == [ids.wrote(0, 0), ids.wrote(-1, 0)]
    assert 1 == ids.unowned
    assert [Attribution(0, "bob"), None] == [
        ids.allocated("bob", 0, 0),
        ids.allocated("bob", -1, 0),
    ]


def test_an_id_whose_owner_is_reported_late_is_unknown_and_counts_then() -> None:
    """After the wait it is counted as unknown, once in a window however often it writes."""
    ids = ActiveIds(HOUR_MS)
    ids.wrote(8, 0)
    ids.tick(WAIT_MS - 1)
    assert 0 == ids.unknown
    for now_ms in range(WAIT_MS, HOUR_MS, HOUR_MS // 16):
        ids.tick(now_ms)
        reported = ids.wrote(8, now_ms)
        assert reported is None or reported.user is None
    assert (1, 1) == (ids.unknown, ids.unowned)
    assert Attribution(8, "eve") == ids.allocated("eve", 8, 0)
    assert 0 == ids.unowned


def test_an_unknown_id_is_forgotten_after_a_window() -> None:
    """It is counted again when it still writes then."""
    ids = ActiveIds(HOUR_MS)
    ids.wrote(8, 0)
    ids.tick(WAIT_MS)
    ids.tick(HOUR_MS)
    assert (1, 0) == (ids.unknown, ids.unowned)
    ids.wrote(8, HOUR_MS)
    ids.tick(HOUR_MS + WAIT_MS)
    assert 2 == ids.unknown
    ids.tick(2 * HOUR_MS)
    assert ids.allocated("eve", 8, 0) is None


def test_what_is_still_waited_for_keeps_nothing_else() -> None:
    """An id that is not due yet keeps neither an unknown id nor a reported one from its end."""
    ids = ActiveIds(HOUR_MS)
    ids.wrote(8, 0)
    ids.tick(WAIT_MS)
    ids.wrote(9, HOUR_MS - 1)
    ids.tick(HOUR_MS)
    assert (1, 1) == (ids.unknown, ids.unowned)
    ids.tick(HOUR_MS - 1 + WAIT_MS)
    assert (2, 1) == (ids.unknown, ids.unowned)
    ids.tick(2 * HOUR_MS - 2 + WAIT_MS)
    assert ids.wrote(8, 2 * HOUR_MS - 2 + WAIT_MS) == Attribution(8, None)


def test_an_id_that_continues_to_write_is_reported_a_few_times_in_a_window() -> None:
    """It is reported at least four times, so that who forgets it after a window counts it again."""
    ids = ActiveIds(HOUR_MS)
    ids.allocated("bob", 7, 0)
    reported = [now_ms for now_ms in range(0, HOUR_MS, 2000) if ids.wrote(7, now_ms)]
    gaps = [after - before for before, after in pairwise(reported)]
    assert HOUR_MS // 8 <= min(gaps)
    assert max(gaps) <= HOUR_MS // 4 + 2000


def test_owners_are_bounded_and_those_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id that was neither allocated nor wrote for the longest is forgotten."""
    monkeypatch.setattr(active_ids, "MOST_OWNERS", 2)
    ids = ActiveIds(HOUR_MS)
    ids.allocated("ann", 1, 0)
    ids.allocated("bob", 2, 0)
    ids.wrote(1, 0)
    ids.allocated("eve", 3, 0)
    assert Attribution(2, None) == ids.wrote(2, 0)
    assert Attribution(3, "eve") == ids.wrote(3, 0)
    assert Attribution(1, "ann") == ids.wrote(1, HOUR_MS)


def test_ids_without_an_owner_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of them are counted as unknown before their wait is over."""
    monkeypatch.setattr(active_ids, "MOST_UNOWNED", 2)
    ids = ActiveIds(HOUR_MS)
    for producer_id in range(4):
        ids.wrote(producer_id, 0)
    assert (2, 2) == (ids.unowned, ids.unknown)
    assert ids.allocated("bob", 0, 0) is None
    assert Attribution(3, "bob") == ids.allocated("bob", 3, 0)


def test_the_first_scan_of_a_partition_counts_nobody() -> None:
    """Nothing says whether its producers wrote just now; those that write from then on do."""
    since = WrittenSince(HOUR_MS)
    assert [] == since.scan(ORDERS, states((1, 5), (2, 5)), 0, ())
    assert [2, 3] == since.scan(ORDERS, states((1, 5), (2, 6), (3, 0)), 0, ())
    assert [] == since.scan(ORDERS, states((1, 5), (2, 6), (3, 0)), 0, ())


def test_of_a_first_scan_only_ids_that_were_allocated_just_now_count() -> None:
    """The others may have written long ago: the sidecar may read the topic only now."""
    ids, since = ActiveIds(HOUR_MS), WrittenSince(HOUR_MS)
    for producer_id, at_ms in ((1, 0), (2, 1), (3, FRESH_MS), (2, 1)):
        ids.allocated("bob", producer_id, at_ms)
    now_ms = FRESH_MS + 1
    assert [2, 3] == since.scan(
        ORDERS, states((1, 0), (2, 0), (3, 0), (4, 0)), now_ms, ids.fresh(now_ms)
    )


@pytest.mark.parametrize(
    ("window_ms", "interval_ms", "expected_ms"),
    [
        (HOUR_MS, 2000, FRESH_MS),
        (HOUR_MS, 90_000, 180_000),
        (30_000, 2000, 15_000),
        (30_000, 90_000, 15_000),
    ],
)
def test_what_just_now_is_depends_on_the_interval_and_the_window(
    window_ms: int, interval_ms: int, expected_ms: int
) -> None:
    """A topic is new for up to an interval. An id that counted is known for half a window."""
    ids = ActiveIds(window_ms, interval_ms)
    ids.allocated("bob", 7, 0)
    assert 7 in ids.fresh(expected_ms)
    assert 7 not in ids.fresh(expected_ms + 1)


def test_ids_that_were_allocated_just_now_are_forgotten_without_a_scan() -> None:
    """Another sidecar scans."""
    ids = ActiveIds(HOUR_MS)
    fresh = ids.fresh(0)
    ids.allocated("bob", 7, 0)
    ids.tick(FRESH_MS)
    assert 7 in fresh
    ids.tick(FRESH_MS + 1)
    assert 7 not in fresh


def test_a_scan_that_comes_more_than_a_window_later_is_a_first_one() -> None:
    """What wrote in a day without answers does not count all at once."""
    since = WrittenSince(HOUR_MS)
    since.scan(ORDERS, states((1, 0)), 0, ())
    assert [1, 2] == since.scan(ORDERS, states((1, 1), (2, 0)), HOUR_MS, ())
    assert [4] == since.scan(ORDERS, states((1, 2), (3, 0), (4, 0)), 2 * HOUR_MS + 1, {4})


def test_the_ids_that_were_allocated_just_now_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The earliest of them no longer counts at a first scan."""
    monkeypatch.setattr(active_ids, "MOST_OWNERS", 2)
    ids = ActiveIds(HOUR_MS)
    for producer_id in (1, 2, 3):
        ids.allocated("bob", producer_id, 0)
    assert [False, True, True] == [each in ids.fresh(0) for each in (1, 2, 3)]


def test_a_partition_that_was_empty_has_been_scanned() -> None:
    """Its first producer wrote since."""
    since = WrittenSince(HOUR_MS)
    since.scan(ORDERS, [], 0, ())
    assert ORDERS in since
    assert [1] == since.scan(ORDERS, states((1, 0)), 0, ())


def test_a_new_epoch_wrote_too() -> None:
    """A transactional id that was opened again begins at the same sequence."""
    since = WrittenSince(HOUR_MS)
    since.scan(ORDERS, [(1, 0, 0)], 0, ())
    assert [1] == since.scan(ORDERS, [(1, 1, 0)], 0, ())


def test_partitions_that_are_scanned_no_more_are_forgotten() -> None:
    """One that comes back is scanned for the first time; the others are not."""
    since = WrittenSince(HOUR_MS)
    for index in (0, 1):
        since.scan(("orders", index), states((1, 0)), 0, ())
    since.retain([("orders", 1), ("clicks", 0)])
    assert [False, True, False] == [
        each in since for each in (ORDERS, ("orders", 1), ("clicks", 0))
    ]
    assert [] == since.scan(ORDERS, states((1, 9)), 0, ())
    assert [1] == since.scan(("orders", 1), states((1, 9)), 0, ())


def test_few_batches_are_missed() -> None:
    """Of ids that come in blocks at most some in a thousand are missed."""
    since = WrittenSince(HOUR_MS)
    since.scan(ORDERS, states(*((each, 0) for each in range(10_000))), 0, ())
    found = since.scan(ORDERS, states(*((each, 1) for each in range(10_000))), 0, ())
    assert 10_000 - 30 <= len(found)
