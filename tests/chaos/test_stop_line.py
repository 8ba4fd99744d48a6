"""Stops and claims at the stop line follow from a run's samples; the table has both arms."""

from dataclasses import replace

import pytest

from kafka_lab.series import Series
from tests.chaos.bound import FLOOD, OVERHEAD
from tests.chaos.claims import Claim
from tests.chaos.course import Producer
from tests.chaos.made import FREE, MB, THROTTLES
from tests.chaos.samples import CallbackSight, Sample
from tests.chaos.stop_line import Stop, StopBound, StopCourse, judge, report, stops

BOUND = StopBound(bytes_per_s=6e6, delays_s=1.5, request_threads=4, request_bytes=MB)
"""7.56 MB/s x 1.5 s + 4.2 MB."""


def run(*available: float, refuses: bool = True) -> StopCourse:
    """A sample a second, megabytes each; a line of 100 MB."""
    return StopCourse(
        seed=1,
        duration_s=60.0,
        limit_bytes=150 * MB,
        refuses=refuses,
        line_bytes=100 * MB,
        bound=BOUND,
        samples=[sample(float(at), each) for at, each in enumerate(available)],
    )


def sample(at_s: float, available: float, sight: CallbackSight | None = None) -> Sample:
    """A second."""
    left = {0: int(available * MB)}
    return Sample(at_s, left, left, {0: THROTTLES}, {0: sight}, {"broker 0": 60.0})


def broken(course: StopCourse) -> list[Claim]:
    return [claim for claim in judge(course) if not claim.holds]


def test_the_bound_is_rate_times_delays_and_requests() -> None:
    """6 MB/s, 42 % and 5 % more, for 1.5 s, and 1 MB of each of four threads."""
    assert 6e6 * FLOOD * OVERHEAD == pytest.approx(BOUND.rate)
    assert BOUND.rate * 1.5 + 4e6 * OVERHEAD == pytest.approx(BOUND.bytes)
    words = "8.9 MB/s x 1.5 s + 4.2 MB of requests past the authorizer = 17.6 MB"
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
    (claim,) = broken(run(120, 82, 120))
    assert (2.0, "18.0 MB, between 0:01 and 0:02") == (claim.at_s, claim.detail)


def test_a_run_that_never_was_at_the_line_shows_nothing() -> None:
    """So it is no good run."""
    (claim,) = broken(run(120, 101))
    assert ("0 times", 1.0) == (claim.detail, claim.at_s)


def test_a_broker_that_ended() -> None:
    """At the first sample after that; pauses alone claim nothing of it."""
    course = run(120, 90, 0)
    course.ended = [(2.0, "broker 0 ended by itself")]
    assert ["it ended at 0:02"] == [each.detail for each in broken(course) if "lives" in each.text]
    course.refuses = False
    assert [] == broken(course)
    assert course.full is course.samples[2]


def test_lines_of_logs() -> None:
    """Whatever keeps producers from the volume."""
    course = run(120, refuses=False)
    course.tracebacks = ["sidecar: KeyError: 3"]
    (claim,) = broken(course)
    assert "1: sidecar: KeyError: 3" == claim.detail
    course.ended = [(1.0, "sidecar: the task poller ended by itself")]
    (claim,) = broken(course)
    assert "2: sidecar: KeyError: 3" == claim.detail


def test_refusals_are_those_of_the_last_sample() -> None:
    """They are counted since the broker's start."""
    course = run(120)
    assert {0} == set(course.refused.values())
    for at_s, count in ((1.0, 3), (2.0, 5)):
        sight = replace(FREE, refused={"RefusedNewConnections": count})
        course.samples.append(sample(at_s, 120, sight))
    assert 5 == course.refused["RefusedNewConnections"]
    assert 0 == course.refused["RefusedAfterRelease"]


def test_two_arms_side_by_side() -> None:
    """With the authorizer the volume was kept, without it it was full."""
    names = ("RefusedNewConnections", "RefusedBelowStopLine", "RefusedAfterRelease")
    refused = dict(zip(names, (1200, 34, 5), strict=True))
    kept, full = run(), run(refuses=False)
    last = replace(FREE, longest_pause_s=4.0, refused=refused)
    kept.samples = [sample(1.0, 120), sample(2.0, 97), sample(9.0, 120, last)]
    urgent = replace(FREE, longest_pause_s=65.25, emergency=True)
    full.samples = [sample(1.0, 120), sample(40.0, 120, urgent), sample(61.0, 0)]
    full.ended = [(61.0, "broker 0 ended by itself")]
    for course in (kept, full):
        course.producers = [Producer("Java", 2e6, Series([(9.0, 3.0 * MB)]), 4.0, 4)]
    rows = {
        cells[0]: cells[1:]
        for line in report([kept, full]).splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 3
    }
    assert ["with the authorizer", "the callback alone"] == rows["what"]
    assert ["3.0 MB, where 17.6 MB may be", "100.0 MB"] == rows["below the stop line, at most"]
    assert "0:09 of 1:00 minutes" == rows["lasted"][0]
    assert "1:01 of 1:00 minutes; full at 1:01; the broker ended at 1:01" == rows["lasted"][1]
    assert ["7 s, at once 7 s at most", "0 s, at once 0 s at most"] == rows["at or below it"]
    assert ["34", "0"] == rows["requests refused: at the stop line"]
    assert ["4.0 s", "65.2 s, longer ones allowed from 0:40 on"] == rows["longest pause"]
    assert ["3.0 MB, 4", "3.0 MB, 4"] == rows["Java: acknowledged, given up"]


def test_claims_are_listed() -> None:
    """Those of pauses alone are fewer."""
    text = report([run(), run(refuses=False)])
    assert "NO" in text
    assert 1 == sum(line.startswith("| the callback alone") for line in text.splitlines())
