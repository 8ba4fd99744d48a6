"""How many bytes certainly come after an offset, and about how many come before it."""

from sidecar.throttle.partition_track import MOST_APART_S, MOST_MARKS, Sight, Track, next_track

ID = (b"id", 1, 1)


def tracked(*sights: tuple[int, int, int], lineage: tuple[bytes, int, int] = ID) -> Track:
    """The track of readings of start, end and size, 10 s apart."""
    track = None
    for number, (start, end, size) in enumerate(sights):
        track = next_track(track, Sight(10.0 * number, lineage, start, end, size), 25.0)
    assert track is not None
    return track


def test_increases_bound_what_comes_after_an_offset() -> None:
    """A decrease by retention is not counted; equal to the bound is enough."""
    track = tracked((0, 1000, 50), (0, 1200, 80), (600, 1400, 60), (600, 1500, 90))
    assert 1000 == track.kept_from(60)
    assert None is track.kept_from(61)
    assert 1400 == track.kept_from(30)


def test_what_makes_earlier_sizes_meaningless() -> None:
    """Another leader epoch, an end that goes back, and a start that does."""
    before = tracked((10, 1000, 50), (10, 1200, 80))
    for sight in (
        Sight(20.0, (b"id", 1, 2), 10, 1300, 90),
        Sight(20.0, ID, 10, 1199, 90),
        Sight(20.0, ID, 9, 1300, 90),
    ):
        assert None is next_track(before, sight, 25.0).kept_from(1)


def test_readings_that_are_far_apart() -> None:
    """Compaction may have been on in between, which removes records in the middle."""
    before = tracked((10, 1000, 50), (10, 1200, 80))
    for at, expected in ((10.0 + MOST_APART_S, 1200), (10.1 + MOST_APART_S, None)):
        assert expected == next_track(before, Sight(at, ID, 10, 1300, 90), 25.0).kept_from(10)


def test_what_was_deleted_counts_with_a_new_leader() -> None:
    """So does what another sidecar deletes meanwhile; not that of a topic with the same name."""
    before = tracked((0, 1000, 100), (500, 1000, 100))
    found = next_track(before, Sight(20.0, (b"id", 2, 2), 600, 1000, 100), 25.0)
    assert (60.0, 60.0, None) == (found.pending_bytes, found.unremoved, found.kept_from(1))
    assert 0.0 == next_track(found, Sight(50.0, (b"id", 2, 2), 600, 1000, 40), 25.0).pending_bytes
    other = next_track(before, Sight(20.0, (b"new", 2, 2), 600, 1000, 100), 25.0)
    assert (0.0, 0.0) == (other.pending_bytes, other.unremoved)


def test_what_was_deleted_counts_while_a_reading_lacks_the_partition() -> None:
    """For as long as freeing takes; no bound holds over the gap."""
    before = tracked((0, 1000, 100), (500, 1000, 100), (500, 1100, 110))
    gone = before.interrupted(35.0, 25.0)
    assert 50.0 == gone.pending_bytes
    assert 0.0 == before.interrupted(35.1, 25.0).pending_bytes
    again = next_track(gone, Sight(35.0, ID, 500, 1200, 120), 25.0)
    assert (50.0, 50.0, None) == (again.pending_bytes, again.unremoved, again.kept_from(1))


def test_what_was_deleted_may_still_be_on_disk() -> None:
    """It is pending for a while; in the size, until that shrinks."""
    readings = [(0, 1000, 100), (500, 1000, 100)]
    track = tracked(*readings)
    assert (50.0, 25.0, 750) == (track.pending_bytes, track.about(750), track.offset_of(25.0))
    smaller = tracked(*readings, (500, 1000, 50))
    assert (50.0, 25.0) == (smaller.pending_bytes, smaller.about(750))
    assert 0.0 == tracked(*readings, *[(500, 1000, 50)] * 3).pending_bytes


def test_old_marks_are_thinned() -> None:
    """The bound gets coarser, and stays a bound."""
    track = tracked(*((0, at, at) for at in range(1, 1000)))
    assert len(track.marks) <= MOST_MARKS
    for nbytes in (1, 10, 100, 500):
        offset = track.kept_from(nbytes)
        assert offset is not None
        assert 999 - offset >= nbytes


def test_a_reading_without_a_deletion_costs_no_walk_over_the_marks() -> None:
    """2,500 partitions with 128 marks are read each second near a limit."""

    class Walked(Track):
        def about(self, offset: int) -> float:
            raise AssertionError("what is below the first offset is only needed once it moves")

    before = tracked((10, 1000, 50), (10, 1200, 80))
    known = Walked(before.last, before.increases, before.marks)
    after = next_track(known, Sight(20.0, ID, 10, 1300, 90), 25.0)
    assert () == after.moves
    assert 0.0 == after.unremoved
