"""What a plan deletes, and what it never does."""

from dataclasses import replace
from typing import Any

import pytest

from sidecar.throttle.partition_track import Mark, Sight, Track
from sidecar.throttle.relief import (
    NOTHING,
    Expendable,
    ReliefClass,
    Room,
    View,
    class_of,
    deletable_to,
    plan,
)

MB = 1_000_000
D1, D2 = (1, "/d"), (2, "/d")
LOGS = ReliefClass(("logs*",), keep_bytes=100 * MB)


def partition(topic: str = "logs", index: int = 0, **more: Any) -> Expendable:
    """Offsets 0 to 1000 with 1 MB each, all seen being written."""
    sight = Sight(0.0, (b"id", 1, 1), 0, 1000, 1000 * MB)
    marks = tuple(Mark(end, end * MB) for end in range(0, 1001, 10))
    track = Track(sight, 1000 * MB, marks)
    return replace(Expendable(topic, index, 1, frozenset({D1}), track, 10 * MB), **more)


def room(available: int = 210, log_dir: tuple[int, str] = D1) -> Room:
    """A volume of 4,200 MB with a limit of 200 MB that grows by 1 MB/s, in MB available."""
    return Room(log_dir, 4200 * MB, available * MB, 200 * MB, 1.0 * MB)


def view(*partitions: Expendable, **more: Any) -> View:
    """Freeing takes 35 s, so a relief begins at 300 MB and ends at 400 MB."""
    return replace(View([room()], partitions, [LOGS], 35.0, 150 * MB), **more)


@pytest.mark.parametrize(
    ("of", "more", "unknown", "expected", "why"),
    [
        (LOGS, {}, "", 900, "100.0 MB of each partition are kept"),
        (replace(LOGS, keep_bytes=1001 * MB), {}, "", 0, "1.0 GB were not seen"),
        (ReliefClass(("l",)), {}, "", 1000, "all of it may go, but that is less than a segment"),
        (LOGS, {"commits": {"etl": 40}}, "", 40, "group etl has read no further"),
        (LOGS, {"commits": {"etl": NOTHING}}, "", 0, "group etl has read no further"),
        (LOGS, {}, "the groups are not known", 0, "the groups are not known"),
        (replace(LOGS, ignores_groups=True), {"commits": {"etl": 40}}, "x", 900, "100.0 MB of"),
        (ReliefClass(("l",), keep_s=60.0), {"young_from": 700}, "", 700, "its records of the"),
        (ReliefClass(("l",), keep_s=60.0), {}, "", 0, "the age of its records is not known"),
        (replace(LOGS, keep_s=60.0), {"young_from": 950}, "", 900, "100.0 MB of each"),
    ],
)
def test_the_lowest_bound_holds(
    of: ReliefClass, more: dict[str, Any], unknown: str, expected: int, why: str
) -> None:
    """Floors, groups, and what is not known."""
    offset, reason = deletable_to(partition(**more), of, unknown)
    assert expected == offset
    assert reason.startswith(why)


def test_a_step_is_bounded_and_ends_with_a_margin() -> None:
    """From 210 MB to 400 MB: 150 MB a step; and only from 300 MB on, unless it goes on."""
    (deletion,) = plan(view(partition())).deletions
    assert (0, 150, 150 * MB) == (deletion.start, deletion.to, deletion.about_bytes)
    (less,) = plan(view(partition(), rooms=[room(290)])).deletions
    assert 110 == less.to
    rooms = [room(301)]
    assert None is plan(view(partition(), rooms=rooms)).room
    (on,) = plan(view(partition(), rooms=rooms, relieving=frozenset({D1}))).deletions
    assert 99 == on.to


def test_what_was_deleted_counts_as_free() -> None:
    """Of whatever partition, and from whatever log dir on the same file system."""
    assert None is plan(view(partition(), pending={D1: 100.0 * MB})).room
    other = (1, "/e")
    for available, total, expected in (
        (210, 4200, None),
        (211, 4200, D1),
        (210, 4201, D1),
    ):
        rooms = [room(), replace(room(available, other), total=total * MB)]
        found = plan(view(partition(), rooms=rooms, pending={other: 100.0 * MB})).room
        assert expected == (found and found.log_dir)
    elsewhere = view(partition(), rooms=[room(), room(210, D2)], pending={D2: 100.0 * MB})
    assert plan(elsewhere).deletions


def test_classes_go_in_their_order_and_nothing_else_goes() -> None:
    """The first class that has a topic decides; Kafka's own topics are in none."""
    first = ReliefClass(("debug",), keep_bytes=MB)
    classes = [first, LOGS]
    found = plan(view(partition(), partition("debug"), partition("orders"), classes=classes))
    assert {"debug"} == {each.topic for each in found.deletions}
    assert None is class_of("__logs", [ReliefClass(("*",), keep_bytes=MB)])
    nothing = plan(view(partition("orders")))
    assert ((), True) == (nothing.deletions, nothing.is_short)
    assert nothing.why.endswith("no declared topic is there")


def test_a_later_class_waits_until_the_first_has_nothing_to_give() -> None:
    """A step may have no room left for another segment of the first class."""

    def debug(index: int, committed: int, segment: int) -> Expendable:
        commits = {"etl": committed}
        return partition("debug", index, segment_bytes=segment * MB, commits=commits)

    first = debug(0, 110, 100)
    for others, expected in (
        ([debug(1, 109, 100)], [("debug", 0, 110)]),
        ([debug(1, 109, 100), debug(2, 108, 40)], [("debug", 0, 110), ("debug", 2, 40)]),
        # These give nothing in any step.
        ([debug(1, 99, 100)], [("debug", 0, 110), ("logs", 0, 40)]),
        ([debug(1, 900, 151)], [("debug", 0, 110), ("logs", 0, 40)]),
    ):
        classes = [ReliefClass(("debug",), keep_bytes=MB), LOGS]
        found = plan(view(first, *others, partition(), classes=classes))
        assert expected == [(each.topic, each.index, each.to) for each in found.deletions]


def test_less_than_a_segment_is_left_alone() -> None:
    """Deleting it frees nothing; and a step is never less than one."""
    held = plan(view(partition(commits={"etl": 9})))
    assert "nothing may go from /d of broker 1: logs: group etl has read no further" == held.why
    assert held.is_short
    (deletion,) = plan(view(partition(), rooms=[room(299)], relieving=frozenset())).deletions
    assert 101 == deletion.to
    both = [partition(index=index, commits={"etl": 10}) for index in range(2)]
    assert [10] == [each.to for each in plan(view(*both, step_bytes=15 * MB)).deletions]
    large = plan(view(partition(segment_bytes=200 * MB)))
    assert large.why.endswith("logs: its segments are larger than a step")


def test_the_most_urgent_volume_that_can_be_relieved() -> None:
    """One volume a step; one that gains nothing is left alone, and the reason told."""
    rooms = [room(250), room(220, D2)]
    here, there = partition(), partition("logs2", homes=frozenset({D2}))
    assert ["logs2"] == [each.topic for each in plan(view(here, there, rooms=rooms)).deletions]
    in_vain = view(here, there, rooms=rooms, in_vain=frozenset({D2}))
    assert ["logs"] == [each.topic for each in plan(in_vain).deletions]
    found = plan(view(here, in_vain=frozenset({D1})))
    text = "/d of broker 1 was relieved 3 times without gaining space: something else fills it"
    assert ((), text) == (found.deletions, found.why)


def test_a_volume_that_is_smaller_than_the_limit_is_left_alone() -> None:
    """Everything down to the floors would go, in vain."""
    assert None is plan(view(partition(), rooms=[replace(room(), threshold=4200.0 * MB)])).room


def test_a_refusal_stops_everything() -> None:
    """Such as an observation that is not whole."""
    found = plan(view(partition(), refusal="broker 3 did not report its volumes"))
    assert ((), True) == (found.deletions, found.is_short)
    assert "broker 3 did not report its volumes" == found.why
