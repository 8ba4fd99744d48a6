"""Who fills a volume: whatever happens between two readings, the parts add up to it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.growth import (
    MOST,
    Kind,
    LogDirReading,
    Part,
    Placement,
    Split,
    grows,
    largest,
    near_limit,
    split,
    unthrottled,
    with_reserve,
)
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, remembering, whole

Sizes = Mapping[str, Mapping[int, int | tuple[int, bool]]]
"""Topic -> partition -> its size, and whether it is a copy of a log-dir move."""

LEADERS = {("orders", 0): 1, ("orders", 1): 2, ("clicks", 3): 2}
TOTAL = 100_000_000


def seen(used_bytes: int, sizes: Sizes, read_at: float = 0.0) -> LogDirReading:
    """A reading of a log dir."""
    replicas = {
        topic: [
            (index, *(size if isinstance(size, tuple) else (size, False)))
            for index, size in partitions.items()
        ]
        for topic, partitions in sizes.items()
    }
    return LogDirReading(used_bytes, replicas, read_at)


def parts(
    before: LogDirReading | None, after: LogDirReading, placement: Placement | None = None
) -> Split:
    """The volume of broker 1 in parts."""
    named = largest(before, after)
    return split(before, after, 1, named, placement or Placement(LEADERS, {}))


def test_leaders_replicas_and_the_rest() -> None:
    """Leaders and replicas of a topic are apart, and the rest of the used bytes is of no topic.

    Of parts that grow alike, the larger one comes first.
    """
    before = seen(100, {"orders": {0: 50, 1: 20}})
    after = seen(195, {"orders": {0: 90, 1: 60}}, 60.0)
    assert (
        Part(Kind.LEADER, "orders", 90, 40),
        Part(Kind.REPLICA, "orders", 60, 40),
        Part(Kind.NO_PARTITION, "", 45, 15),
    ) == parts(before, after).parts


def test_the_first_reading_has_sizes_only() -> None:
    """Nothing is said about growth before a second reading."""
    found = parts(None, seen(100, {"orders": {0: 90}}))
    assert (None, None, None) == (found.growth_bytes, found.seconds, found.parts[0].growth_bytes)
    assert "" == grows(found, {}) == unthrottled(found, None, TOTAL)


def test_what_arrives_is_apart() -> None:
    """A copy of a log-dir move and a replica that a reassignment adds are no topic's leaders."""
    arriving = Placement(LEADERS, {("clicks", 3): (1, 2)})
    after = seen(100, {"orders": {0: (60, True)}, "clicks": {3: 30}})
    assert (
        Part(Kind.MOVE, "orders", 60, 60),
        Part(Kind.REASSIGNMENT, "clicks", 30, 30),
        Part(Kind.NO_PARTITION, "", 10, 5),
    ) == parts(seen(5, {}), after, arriving).parts


def test_a_move_that_ended_meanwhile_is_no_growth() -> None:
    """The copy has become the partition, and has not grown by its own size."""
    before = seen(100, {"orders": {0: (90, True)}})
    after = seen(103, {"orders": {0: 93}}, 60.0)
    assert Part(Kind.MOVE, "orders", 93, 3) == parts(before, after).parts[0]


def test_unknown_leaders() -> None:
    """Without metadata a topic's partitions are one part."""
    found = parts(None, seen(100, {"orders": {0: 50, 1: 20}}), Placement())
    assert Part(Kind.TOPIC, "orders", 70, None) == found.parts[0]


def test_partitions_without_a_leader() -> None:
    """Metadata has -1 for them, which is no broker elsewhere."""
    leaders = {("orders", 0): -1, ("orders", 1): -1}
    found = parts(None, seen(100, {"orders": {0: 50, 1: 20}}), Placement(leaders, {}))
    assert Part(Kind.TOPIC, "orders", 70, None) == found.parts[0]


def test_most_topics_are_one_part() -> None:
    """Ten are named, those that grow most among them; arriving replicas stay apart."""
    many = {f"t{number:02}": {0: 1000} for number in range(30)}
    before = seen(30_000, many)
    after = seen(30_700, {**many, "t29": {0: 1500}, "t28": {0: 1200}}, 60.0)
    found = parts(before, after, Placement(arriving={(f"t{n:02}", 0): (1,) for n in range(20)}))
    kinds = [(part.kind, part.topic, part.growth_bytes) for part in found.parts]
    assert [(Kind.TOPIC, "t29", 500), (Kind.TOPIC, "t28", 200)] == kinds[:2]
    assert {(Kind.OTHERS, "", 0), (Kind.REASSIGNMENT, "", 0)} <= set(kinds)
    assert MOST == len({topic for _, topic, _ in kinds if topic})


_SIZES = st.dictionaries(
    st.sampled_from([f"t{number}" for number in range(14)]),
    st.dictionaries(
        st.integers(0, 3), st.tuples(st.integers(0, 1 << 40), st.booleans()), max_size=3
    ),
    max_size=14,
)
_PARTITIONS = st.tuples(st.sampled_from(["t0", "t1", "t2"]), st.integers(0, 3))
_PLACEMENTS = st.builds(
    Placement,
    st.dictionaries(_PARTITIONS, st.integers(0, 2)),
    st.none() | st.dictionaries(_PARTITIONS, st.just((1, 2))),
)


@given(_SIZES, _SIZES, st.integers(0, 1 << 45), st.integers(0, 1 << 45), _PLACEMENTS)
def test_the_parts_add_up(
    former: Sizes, sizes: Sizes, was_bytes: int, used_bytes: int, placement: Placement
) -> None:
    """Sizes and growths do, whatever was created, deleted, moved or truncated meanwhile.

    Only the part of no partition has a negative size, shares are at most 1 together, and the number
    of parts is bounded.
    """
    found = parts(seen(was_bytes, former), seen(used_bytes, sizes, 60.0), placement)
    assert used_bytes == sum(part.size_bytes for part in found.parts)
    assert used_bytes - was_bytes == sum(part.growth_bytes or 0 for part in found.parts)
    assert Kind.NO_PARTITION == found.parts[-1].kind
    assert all(part.size_bytes >= 0 for part in found.parts[:-1])
    assert len({(part.kind, part.topic) for part in found.parts}) == len(found.parts)
    assert MOST >= len({part.topic for part in found.parts if part.topic})
    assert sum(found.share(part) for part in found.parts) <= 1.0 + 1e-9
    for total_bytes in (used_bytes, 1 << 60):
        unthrottled(found, found, total_bytes)


def grown(sizes: Sizes, after: Sizes, used: tuple[int, int], **placed: object) -> Split:
    """The parts after a minute."""
    placement = Placement(LEADERS, placed.get("arriving", {}))  # type: ignore[arg-type]
    return parts(seen(used[0], sizes), seen(used[1], after, 60.0), placement)


MB = 1_000_000
REASSIGNED = grown({}, {"clicks": {3: 6 * MB}}, (0, 6 * MB), arriving={("clicks", 3): (1, 2)})
FOREIGN = grown({}, {}, (0, 6 * MB))
PRODUCED = grown({}, {"orders": {0: 6 * MB}}, (0, 6 * MB))
DELETED = grown({"orders": {0: 6 * MB}}, {"orders": {0: 0}}, (6 * MB, 7 * MB))


@pytest.mark.parametrize(
    ("now", "before", "by"),
    [
        (REASSIGNED, None, "replicas of clicks that a reassignment moves here"),
        (grown({}, {"orders": {0: (6 * MB, True)}}, (0, 6 * MB)), None, "copies of orders"),
        (grown({}, {"__consumer_offsets": {0: 6 * MB}}, (0, 6 * MB)), None, "__consumer_offsets"),
        (FOREIGN, FOREIGN, "files of no partition"),
    ],
)
def test_what_a_throttle_does_not_stop(now: Split, before: Split | None, by: str) -> None:
    """It is what producers don't write."""
    text = unthrottled(now, before, TOTAL)
    assert text.startswith("Throttling producers does not stop its growth by 100.0 kB/s: 100 % of")
    assert by in text


@pytest.mark.parametrize(
    ("now", "before", "total_bytes"),
    [
        (PRODUCED, PRODUCED, TOTAL),
        # A file that was written and deleted within a minute looks the same once.
        (FOREIGN, None, TOTAL),
        (FOREIGN, PRODUCED, TOTAL),
        # Segments were deleted, and their files are not gone yet.
        (DELETED, FOREIGN, TOTAL),
        (FOREIGN, DELETED, TOTAL),
        # It empties, or takes longer than a week.
        (grown({"orders": {0: 9}}, {}, (9, 0)), None, TOTAL),
        (REASSIGNED, None, 1 << 50),
    ],
)
def test_no_doubtful_claim(now: Split, before: Split | None, total_bytes: int) -> None:
    """Nothing is said where producers write it, or where that can't be known."""
    assert "" == unthrottled(now, before, total_bytes)


@pytest.mark.parametrize(
    ("beside", "is_said"),
    [(PRODUCED, False), (REASSIGNED, True), (FOREIGN, True), (DELETED, True)],
)
def test_another_log_dir_on_the_file_system(beside: Split, is_said: bool) -> None:
    """What producers write there is no growth of files that have no partition."""
    assert is_said == bool(unthrottled(FOREIGN, FOREIGN, TOTAL, [beside]))


def test_what_grows_most() -> None:
    """A sentence names the topic, its rate, its share, and who writes to it."""
    found = grown({}, {"orders": {0: 6 * MB, 1: 2 * MB}}, (0, 8 * MB))
    assert (
        "topic orders (partitions led here) grows by 100.0 kB/s, 75 % of the growth; written by etl"
        == grows(found, {"orders": ("etl",)})
    )
    assert "nothing grows there" == grows(grown({}, {}, (5, 5)), {})
    many = {f"t{number}": {0: MB} for number in range(4 * MOST)}
    others = "all other topics grow by 500.0 kB/s, 75 % of the growth"
    assert others == grows(grown({}, many, (0, 4 * MOST * MB)), {})


@pytest.mark.parametrize(
    ("old", "text"),
    [
        # The topic is gone, and its files are there for another minute.
        ({}, "topic orders (partitions led here) grows by 100.0 kB/s, 100 % of the growth"),
        # Its oldest segment is gone; it may have been larger, as clicks was written to meanwhile.
        (
            {"clicks": {3: MB}},
            "files of no partition grow by 200.0 kB/s, 67 % of the growth; segments were deleted "
            "meanwhile, and may count there",
        ),
    ],
)
def test_what_was_deleted_is_no_growth(old: Sizes, text: str) -> None:
    """Its size went from a partition to what no partition has."""
    used = (40 * MB, 58 * MB if old else 46 * MB)
    found = grown(
        {"orders": {0: 5 * MB}, "clicks": {3: 30 * MB}}, {"orders": {0: 11 * MB}, **old}, used
    )
    assert text == grows(found, {})
    assert found.growth_bytes == sum(part.growth_bytes or 0 for part in found.parts)


def test_foreign_files_while_retention_deletes() -> None:
    """One partition lost a segment as large as what others got, and other files grow by 6 MB."""
    before, after = {0: 100 * MB, 1: 10 * MB}, {0: 90 * MB, 1: 20 * MB}
    found = grown({"clicks": before}, {"clicks": after}, (120 * MB, 126 * MB))
    text = "files of no partition grow by 100.0 kB/s, 100 % of the growth; segments were deleted "
    assert f"{text}meanwhile, and may count there" == grows(found, {})


def test_a_reserve_is_apart() -> None:
    """It does not grow, and is no part of a volume that has fewer bytes besides its topics."""
    found = grown({}, {"orders": {0: 6}}, (90, 100))
    assert (Part(Kind.RESERVE, "", 80, 0), Part(Kind.NO_PARTITION, "", 14, 4)) == (
        with_reserve(found, 80).parts[-2:]
    )
    first = with_reserve(parts(None, seen(100, {})), 80)
    assert Part(Kind.RESERVE, "", 80, None) == first.parts[0]
    assert [found, found] == [with_reserve(found, nbytes) for nbytes in (0, 95)]


def test_the_words_of_the_api() -> None:
    """Programs read them."""
    words = "leader replica topic reassignment log_dir_move other_topics reserve no_partition"
    assert words.split() == [each.value for each in Kind]


def test_which_volumes_are_near() -> None:
    """They violate the limit, or reach it within an hour; the worst comes first."""
    factors = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)
    observations = [
        whole(at, [reading(1, at, {"/full": 9, "/fills": left, "/still": 500}, total=3000)])
        for at, left in ((0.0, 2000), (60.0, 1950))
    ]
    memory = remembering(factors)(*observations)
    near = near_limit(memory, factors.rules)
    assert ["/full", "/fills"] == [each.volume.log_dir for each in near]
