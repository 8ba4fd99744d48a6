"""The figures of a storm that is made by hand, with each one's value known beforehand."""

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.mutations.course import Course, Operation, Request
from benchmarks.mutations.figures import Figures, Waits, created_so_far, figures, slower_s


def _course() -> Course:
    """Returns a storm of 2 s: two requests are answered; others wait until 4 s for records."""
    return Course(
        "kafka",
        storm_s=2.0,
        watched_until=10.0,
        operations=[
            Operation(-3.0, -2.9, -2.8),
            Operation(-2.0, -1.9, -1.6),
            Operation(-1.0, -0.7, -0.8),
            Operation(0.0, 0.5, 4.0),
            Operation(1.0, 1.25, 4.5),
            Operation(1.9, 2.0, 4.0),
            Operation(3.5, 3.6, 4.5),
            Operation(5.0, 5.1, 5.5),
        ],
        requests=[
            Request(0.0, 50, admitted=50, created=50, answered=0.5),
            Request(0.1, 50, admitted=50, created=5, throttled=45, answered=0.4),
            Request(0.2, 50, answered=0.25),
            Request(0.3, 50, admitted=1, error="no answer"),
        ],
    )


def test_every_figure_of_a_course() -> None:
    """They are medians before and in the storm's time, the longest after it began, and counts."""
    expected = Figures(
        answer=Waits(0.1, 0.25, 0.5, unseen=False),
        record=Waits(0.2, 3.5, 4.0, unseen=False),
        over_s=3.5,
        failed=0,
        sent=3,
        created=55,
        rejected=45,
        kept=50,
        own_s=0.4,
        asking_s=0.05,
        errors=1,
    )
    found = asdict(figures(_course()))
    for name, value in asdict(expected).items():
        assert pytest.approx(value) == found[name], name


def test_what_was_not_seen_counts_with_what_was_seen_of_it() -> None:
    """One came at 6 s and had no record when the watching ended; one failed likewise."""
    course = _course()
    course.operations += [Operation(6.0, 6.1), Operation(7.0, error="no leader")]
    found = figures(course)
    assert (4.0, True) == (found.record.longest, found.record.unseen)
    assert (3.0, True) == (found.answer.longest, found.answer.unseen)
    assert (7.0, 1) == (found.over_s, found.failed)


def test_a_storm_that_nobody_notices_is_never_over() -> None:
    """Nobody waited longer than three times the wait before it and a quarter of a second."""
    course = _course()
    course.operations = [Operation(at, at + 0.1, at + 0.2) for at in (-3.0, -2.0, 0.5, 1.5)]
    course.operations.insert(2, Operation(-1.0, -0.9, 4.0))
    assert figures(course).over_s is None
    assert pytest.approx(0.6) == slower_s(0.2)
    assert 0.25 == slower_s(0.05)


@pytest.mark.parametrize("part", [slice(0, 3), slice(3, None)])
def test_without_others_there_are_no_figures(part: slice) -> None:
    """There are none before the storm and none in its time."""
    course = _course()
    course.operations = course.operations[part]
    with pytest.raises(ValueError, match="no operations"):
        figures(course)


def test_topics_are_there_when_their_answers_are() -> None:
    """The answers' order counts, not the requests'; those without topics change nothing."""
    assert [(0.0, 0.0), (0.4, 5.0), (0.5, 55.0)] == created_so_far(_course())


def test_a_course_goes_to_a_file_and_back(tmp_path: Path) -> None:
    """It comes back whole."""
    course = _course()
    course.notes.append("broker 1 ended itself")
    course.save(tmp_path / "kafka.0.json")
    assert course == Course.load(tmp_path / "kafka.0.json")
