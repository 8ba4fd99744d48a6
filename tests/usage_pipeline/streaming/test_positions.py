"""Lines that a shipper sends again are taken once, and no other line is dropped."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.streaming.positions import (
    NO_TIME,
    Lines,
    Positions,
    State,
    log_of,
    merged,
)

LOG = "/logs/kafka-request.log"


class Line(NamedTuple):
    """A line of a file, at a second."""

    file: int
    offset: int
    length: int
    at_s: float


def file_of(file: int, lines: Iterable[tuple[int, float]]) -> list[Line]:
    """A file of lines of these lengths at these seconds."""
    made, offset = [], 0
    for length, at_s in lines:
        made.append(Line(file, offset, length, at_s))
        offset += length
    return made


def sent(state: State, lines: Sequence[Line], log: str = LOG) -> tuple[list[Line], State]:
    """Returns the lines that a task takes, and the state after its batch."""
    positions = Positions(msgspec.json.decode(msgspec.json.encode(state), type=State))
    offsets = np.array([line.offset for line in lines], np.int64)
    lengths = np.array([line.length for line in lines], np.int64)
    times = np.array(
        [NO_TIME if line.at_s < 0 else int(line.at_s * 1e6) for line in lines], np.int64
    )
    new = positions.are_new("p 3", log, Lines(offsets, offsets + lengths, times))
    assert len(lines) == positions.resent + np.count_nonzero(new)
    return [line for line, is_new in zip(lines, new, strict=True) if is_new], merged(
        state, [positions.changed()]
    )


def taken(*batches: Sequence[Line]) -> list[list[Line]]:
    """Returns the lines that are taken from each batch."""
    state = State()
    found = []
    for batch in filter(None, batches):
        some, state = sent(state, batch)
        found.append(some)
    return found


OLD = file_of(0, ((1000, number / 10) for number in range(1000)))
NEW = file_of(1, ((1000, 100 + number / 10) for number in range(1000)))


def test_lines_since_the_last_checkpoint_are_sent_again() -> None:
    """A shipper begins again at an earlier position, in the middle of a batch or not."""
    assert [OLD[:600], OLD[600:], []] == taken(OLD[:600], OLD[300:], OLD)
    assert [[*OLD[:600], *OLD[600:]]] == taken([*OLD[:600], *OLD[300:700], *OLD])


def test_a_file_of_the_same_name_is_another_one() -> None:
    """Its lines have old offsets and later times. Lines sent again after it are not new."""
    assert [OLD, NEW[:500], NEW[500:]] == taken(OLD, NEW[:500], [*OLD[900:], *NEW])
    assert [OLD[:900], [*OLD[900:], *NEW], []] == taken(
        OLD[:900], [*OLD[800:], *NEW], [*OLD[500:], *NEW]
    )


def test_a_file_whose_start_was_never_seen() -> None:
    """A stream that began late still recognizes lines, including those of the next file."""
    assert [OLD[500:], [], NEW[300:], [*NEW[:300]]] == taken(OLD[500:], OLD[700:], NEW[300:], NEW)
    assert [OLD[500:], OLD[:500]] == taken(OLD[500:], OLD)


def test_the_end_of_the_old_file_between_lines_of_the_new() -> None:
    """Some shippers read both files at once. Each line is recognized when it is sent again."""
    between = [each for pair in zip(NEW[:100], OLD[900:], strict=True) for each in pair]
    assert [OLD[:900], between, NEW[100:], []] == taken(
        OLD[:900], between, [*between, *NEW[100:]], [*OLD, *NEW]
    )


def test_both_files_within_a_second() -> None:
    """If the times are nearly the same, offsets decide which file a line belongs to."""
    old = file_of(0, ((1000, 5 + number / 1000) for number in range(1000)))
    new = file_of(1, ((1000, 6 + number / 1000) for number in range(1000)))
    between = [each for pair in zip(new[:100], old[900:], strict=True) for each in pair]
    assert [old[:900], between, new[100:], []] == taken(old[:900], between, new[100:], [*old, *new])


def test_a_file_that_is_older_than_what_was_taken() -> None:
    """A shipper that sends a rotated file late loses no line."""
    assert [NEW, OLD, []] == taken(NEW, OLD, [*OLD, *NEW])


def test_lines_that_are_logged_out_of_order() -> None:
    """Threads write lines a moment after they stamp them, so such lines belong to one stretch."""
    lines = [
        line._replace(at_s=line.at_s + 0.9 * (number % 3 == 0)) for number, line in enumerate(OLD)
    ]
    some, state = sent(State(), lines)
    assert lines == some
    assert 1 == len(state.lines["p 3"])
    assert [] == sent(state, lines[500:])[0]


def test_a_line_that_was_passed_over_is_new() -> None:
    """A late line was not sent again, because it had never arrived."""
    assert [[*OLD[:500], *OLD[520:]], OLD[500:520], []] == taken(
        [*OLD[:500], *OLD[520:]], OLD[400:600], OLD
    )


def test_a_length_that_is_wrong_drops_no_line() -> None:
    """A shipper may replace invalid UTF-8 with more bytes."""
    longer = [line._replace(length=1200) for line in OLD]
    assert [longer, []] == taken(longer, longer)
    one_by_one = [[line] for line in longer[:40]]
    assert [*one_by_one, []] == taken(*one_by_one, longer[:40])


def test_lines_that_cannot_be_read_have_their_neighbours_time() -> None:
    """Each such line is in the quarantine once, even if there are no other lines."""
    lines = [line._replace(at_s=-1.0) if line.offset % 3000 == 0 else line for line in OLD]
    torn = [line for line in lines if line.at_s < 0]
    assert [lines, []] == taken(lines, lines)
    assert [torn, []] == taken(torn, torn)


def test_a_line_that_cannot_be_read_before_a_shipper_begins_again() -> None:
    """It has the time of the line before, not of the one from which it is all sent again.

    It may be the first of a batch, and go back to the file before.
    """
    torn = [*NEW[:49], NEW[49]._replace(at_s=-1), *NEW[50:100]]
    once = [OLD, torn, []]
    assert once == taken(OLD, [*torn[:50], *torn[40:]], torn)
    assert once == taken(OLD, [*torn[:50], *torn], torn)
    assert [OLD, torn[:49], torn[49:], []] == taken(OLD, torn[:49], [torn[49], *torn[40:]], torn)
    assert once == taken(OLD, [*torn[:50], *OLD[900:], *torn], torn)
    assert once == taken(OLD, [*torn[:50], *torn[49:]], torn)
    assert [OLD, torn[:50], torn[50:], []] == taken(OLD, torn[:50], torn[49:], torn)
    assert [OLD, torn[:50], torn[50:], []] == taken(OLD, torn[:50], torn[30:], torn)


def test_other_logs_and_partitions_have_positions_of_their_own() -> None:
    """A rotated file's name does not stand for another log."""
    assert LOG == log_of(f"{LOG}.2026-11-20-10") == log_of(f"{LOG}.1.gz") == log_of(LOG)
    assert "/logs/a.log/b" == log_of("/logs/a.log/b")
    _, state = sent(State(), OLD)
    assert OLD == sent(state, OLD, "/logs/other.log")[0]
    positions = Positions(state)
    one = Lines(*(np.array([number]) for number in (0, 1000, 0)))
    assert [True] == positions.are_new("q 3", LOG, one).tolist()
    assert ["q 3"] == list(positions.changed().lines)


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    """After many rotations, gaps and bytes, the state takes a few kilobytes."""
    state = State()
    hour: list[Line] = []
    for file in range(100):
        hour = file_of(file, ((1000, 1000 * file + number) for number in range(999)))
        some, state = sent(state, hour[::2])
        assert hour[::2] == some
    assert 30_000 > len(msgspec.json.encode(state))
    assert [] == sent(state, hour[::2])[0]

    long = file_of(0, ((1 << 20, number) for number in range(5000)))
    some, state = sent(State(), long)
    assert long == some
    assert 500 > len(msgspec.json.encode(state))


@st.composite
def shippings(draw: st.DrawFn) -> tuple[list[Line], list[list[Line]]]:
    """Files with lines that a filter leaves out, and batches of a shipper that is killed."""
    lines: list[Line] = []
    at_s = 1.0
    for file in range(draw(st.integers(1, 4))):
        at_s += 0.001
        steps = draw(st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.5, 30.0]), max_size=12))
        times = [at_s := at_s + step for step in steps]
        for here in range(1, len(times)):
            # Lines that two threads log at once.
            if times[here] - times[here - 1] < 0.9 and draw(st.booleans()):
                times[here - 1 : here + 1] = times[here], times[here - 1]
        lengths = draw(st.lists(st.integers(1, 40_000), min_size=len(times), max_size=len(times)))
        lines += file_of(file, zip(lengths, times, strict=True))
    shipped = [line for line in lines if line.length % 7]
    order: list[Line] = []
    begin = draw(st.integers(0, len(shipped)))
    first, end = begin, begin
    for _ in range(draw(st.integers(1, 5))):
        # From a checkpoint, which is never after what was sent.
        begin = draw(st.integers(first, end))
        end = max(end, draw(st.integers(begin, len(shipped))))
        order += shipped[begin : draw(st.integers(begin, end))]
        order += shipped[begin:end]
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=6)))
    batches = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    return shipped[first:end], [batch for batch in batches if batch]


@pytest.mark.slow
@given(shippings())
def test_each_line_is_taken_once(shipping: tuple[list[Line], list[list[Line]]]) -> None:
    """This holds for any resent lines, across rotations and for any start of a stream."""
    lines, batches = shipping
    assert Counter(lines) == Counter(line for batch in taken(*batches) for line in batch)


@pytest.mark.slow
@given(st.permutations(range(30)), st.integers(0, 30))
def test_lines_in_any_order_are_taken_once(order: list[int], cut: int) -> None:
    """A shipper whose requests overtake each other loses no line."""
    lines = [OLD[number] for number in order]
    assert Counter(lines) == Counter(
        line for batch in taken(lines[:cut], lines[cut:]) for line in batch
    )
