"""Stops and claims are worked out of a run's looks."""

import pytest

from tests.chaos.bound import FLOOD, OVERHEAD
from tests.chaos.claims import Claim
from tests.stop_line.course import Arm, Course, Figures, Look, Stop, judge, stops
from tests.stop_line.made import BOUND, MB


def run(*available: float, arm: Arm = Arm.AUTHORIZER) -> Course:
    """A look a second, megabytes each; a line of 100 MB."""
    looks = [Look(float(at), int(each * MB), lives=True) for at, each in enumerate(available)]
    return Course(arm, 60.0, 150 * MB, 100 * MB, BOUND, looks)


def broken(course: Course) -> list[Claim]:
    return [claim for claim in judge(course) if not claim.holds]


def test_the_bound_is_rate_times_delays_and_requests() -> None:
    """6 MB/s, a fifth and 5 % more, for 1.5 s, and 1 MB of each of four threads."""
    assert 6e6 * FLOOD * OVERHEAD == pytest.approx(BOUND.rate)
    assert BOUND.rate * 1.5 + 4e6 * OVERHEAD == pytest.approx(BOUND.bytes)
    words = "7.6 MB/s x 1.5 s + 4.2 MB of requests past the authorizer = 15.5 MB"
    assert words == str(BOUND)


def test_a_stop_is_from_the_line_to_above_it() -> None:
    """At the line is below it; the last one ends with the run."""
    course = run(120, 100, 97, 99, 101, 120, 98)
    assert [Stop(1.0, 4.0, 97 * MB), Stop(6.0, 6.0, 98 * MB)] == stops(course)
    assert (3 * MB, 97 * MB) == (course.below_bytes, course.least)
    assert (0, None) == (run().below_bytes, run().least)
    assert 0 == run(101).below_bytes


def test_all_claims_hold_of_a_good_run() -> None:
    """Within the bound, with a broker that lives."""
    course = run(120, 99, 120, 85, 120)
    assert [] == broken(course)
    assert "15.0 MB, between 0:03 and 0:04" == judge(course)[1].detail


def test_a_volume_too_far_below_the_line() -> None:
    """By more than the bound."""
    (claim,) = broken(run(120, 84, 120))
    assert (2.0, "16.0 MB, between 0:01 and 0:02") == (claim.at_s, claim.detail)


def test_a_run_that_never_was_at_the_line_shows_nothing() -> None:
    """So it is no good run."""
    (claim,) = broken(run(120, 101))
    assert ("0 times", 1.0) == (claim.detail, claim.at_s)


def test_a_broker_that_ended() -> None:
    """By the first look at which it lived no more; pauses alone claim nothing of it."""
    course = run(120, 90, 0)
    course.looks[2] = Look(2.0, 0, lives=False)
    assert ["it ended at 0:02"] == [each.detail for each in broken(course) if "lives" in each.text]
    course.arm = Arm.CALLBACK
    assert [] == broken(course)
    assert course.full == course.ended == course.looks[2]


def test_lines_of_logs() -> None:
    """Whatever keeps producers from the volume."""
    course = run(120, arm=Arm.CALLBACK)
    course.errors = ["sidecar: KeyError: 3"]
    (claim,) = broken(course)
    assert "1: sidecar: KeyError: 3" == claim.detail


def test_refusals_are_those_of_the_last_figures() -> None:
    """They are counted since the broker's start."""
    course = run(120)
    assert {0} == set(course.refused.values())
    for at_s, count in ((1.0, 3), (2.0, 5)):
        refused = {"RefusedNewConnections": count}
        course.figures.append(Figures(at_s, 4.0, emergency=False, refused=refused))
    assert 5 == course.refused["RefusedNewConnections"]
    assert 0 == course.refused["RefusedAfterRelease"]
