"""The figures of runs that are made by hand, with each one's value known, and each goal."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.clients.clients import Client
from benchmarks.clients.figures import (
    GOALS,
    Figures,
    Loss,
    Verdict,
    disordered,
    figures,
    most,
    returned,
    slot_rates,
    verdicts,
)
from benchmarks.clients.run import Run
from benchmarks.harness.results import Results

pytestmark = pytest.mark.slow

BEGAN, RELEASED, ENDED = 1020.0, 1051.0, 1060.0


def _course() -> Run:
    """Returns 2 MB/s until a throttle of 31 s, then a record a second, and 2 MB/s 4 s after it."""
    course = Run("a", 31.0, BEGAN, RELEASED, ENDED, received=0, connections=3)
    at, number = 1000.0, 0
    while at < ENDED:
        flows = at < BEGAN or at >= RELEASED + 4.0
        course.sent.append((at, number))
        course.landed.append((round(at, 3), 0, number))
        course.acknowledged.append((at, number))
        number += 1
        at += 0.005 if flows else 1.0
    course.received = 10_000 * number + 700_000
    return course


def test_every_figure_of_a_course() -> None:
    """A record a second is 10 kB/s; 2 s bring 90 % from 0.2 s before the client is back."""
    found = figures(_course())

    assert 2_000_000 == pytest.approx(found.before)
    assert [10_000] * 3 == pytest.approx([found.least, found.most, found.mean])
    assert 3.8 == pytest.approx(found.back_s, abs=0.06)
    assert (700_000, 3) == (found.for_nothing, found.connections)
    assert (None, None, 0, 0, 0) == (
        found.first_error_s,
        found.lost,
        found.failed_but_landed,
        found.twice,
        found.disordered,
    )
    assert (30.0, 10_000, 0, None) == (
        found.counted_s,
        found.request,
        found.dialed,
        found.refused,
    )
    assert None is found.minute, "it lasted for half of one"
    # 200 records a second, 4 s after the release; the one of the throttle's pace is before.
    assert 2_000_000 == pytest.approx(found.peak, rel=0.01)
    assert 4.0 == pytest.approx(found.peak_s, abs=1.1)


def test_the_return_is_the_first_of_three_seconds_in_a_row() -> None:
    """By acknowledgements; a single full second, and one of less than 90 %, are no return."""
    counts = [*[100] * 8, *[0] * 31, 100, 0, 90, 89, 90, 95, 100, 100, 100]
    acknowledged = [
        (BEGAN - 8.0 + second + number / 100, number)
        for second, count in enumerate(counts)
        for number in range(count)
    ]
    course = Run("a", 31.0, BEGAN, RELEASED, ENDED, acknowledged=acknowledged)
    expected = [1e6, 0.0, 0.9e6, 0.89e6, 0.9e6, 0.95e6, 1e6, 1e6, 1e6]
    assert (1e6, expected, 4) == returned(course)
    course.acknowledged = acknowledged[:-1]
    assert 4 == returned(course)[2]
    course.acknowledged = acknowledged[:-300]
    assert None is returned(course)[2], "two seconds in a row are not enough"
    course.acknowledged = []
    assert None is returned(course)[2], "without a rate before there is no return"


def test_what_failed_is_lost_unless_it_landed() -> None:
    """Of two that failed one landed; one was acknowledged and did not; of one nothing is known."""
    course = _course()
    course.failed = [(BEGAN + 9.0, 900_000, "late"), (BEGAN + 5.0, course.landed[-1][2], "early")]
    course.acknowledged.append((BEGAN + 7.0, 900_001))
    course.sent += [(BEGAN, number) for number in (900_000, 900_001, 900_002)]

    found = figures(course)

    assert Loss(2, 1, 7.0) == found.lost
    assert (5.0, "early") == (found.first_error_s, found.first_error)
    assert (1, 1) == (found.failed_but_landed, found.unreported)


def test_copies_land_and_are_for_nothing() -> None:
    """They count as landed, as twice, and among the bytes that were sent for nothing."""
    course = _course()
    before = figures(course)
    course.landed += [(BEGAN + 5.5, 0, 7), (BEGAN + 5.6, 0, 7)]
    course.received += 20_000

    found = figures(course)

    assert (2, 0) == (found.twice, found.disordered)
    assert before.most + 2_000 == pytest.approx(found.most)
    assert before.for_nothing + 20_000 == found.for_nothing


def test_order_is_that_of_each_partition() -> None:
    """The 3 is behind the 4; a copy of a record, or another partition's, is behind nothing."""
    course = replace(_course(), landed=[(0.0, 0, n) for n in (1, 2, 4, 3, 4, 5)] + [(0.0, 1, 0)])
    assert 1 == disordered(course)


def test_a_return_that_was_not_seen() -> None:
    """The figure is None, with how long was watched."""
    course = _course()
    course.landed = [each for each in course.landed if each[0] < RELEASED]
    found = figures(course)
    assert (None, 9.0) == (found.back_s, found.watched_s)


def test_a_short_throttle_is_one_slot() -> None:
    """Slots are of 10 s; what is left of the time has none of its own."""
    times = [0.5 + second for second in range(25)]
    assert [5_000] == slot_rates([1.0, 3.0], 0.0, 4.0)
    assert [10_000, 10_000] == slot_rates(times, 0.0, 25.0)


def test_a_minute_counts_from_when_a_client_dials_anew() -> None:
    """What it landed while it still waited is no part of it."""
    course = replace(_course(), released_at=BEGAN + 81.0, ended_at=BEGAN + 120.0)
    course.landed = [(BEGAN + 1.5 + second, 0, second) for second in range(80)]
    course.landed += [(BEGAN + 5.0, 0, 800_000 + number) for number in range(100)]
    assert 160 * 10_000 / 60 == pytest.approx(figures(course).minute)

    course.dialed = [(BEGAN + 1.0, 2), (BEGAN + 4.0, 2), (BEGAN + 20.5, 3), (BEGAN + 78.0, 9)]
    found = figures(course)

    assert 7 == found.dialed
    assert 60 * 10_000 / 60 == pytest.approx(found.minute)

    course.dialed = [(BEGAN + 1.0, 2), (BEGAN + 21.5, 3)]
    assert None is figures(course).minute, "59.5 s are no minute"


def test_a_request_is_what_the_broker_stamped_at_once() -> None:
    """Of those in the throttle the largest counts, and none of the time before."""
    course = _course()
    course.landed += [(BEGAN - 1.0, 0, 700_000 + number) for number in range(50)]
    course.landed += [(BEGAN + 7.123, 0, 800_000 + number) for number in range(20)]
    assert 200_000 == figures(course).request


def test_the_most_is_in_a_window_that_begins_with_a_record() -> None:
    """The docstring's example; the window's end is not in it, and nothing is after the time."""
    times = [0.1, 0.9, 1.0, 1.5]
    assert (30_000, 0.1) == most(times, 0.0, 2.0, 1.0)
    assert (20_000, 0.9) == most(times, 0.2, 1.5, 1.0)
    assert (10_000, 0.1) == most([0.1, 1.1], 0.0, 2.0, 1.0)
    assert (0.0, 7.0) == most(times, 7.0, 9.0, 1.0)


def test_what_a_program_reports_goes_to_a_file_and_back(tmp_path: Path) -> None:
    """A line that was cut by the program's end is left out, as are others' lines."""
    course = Run("a", 31.0, BEGAN, RELEASED, ENDED)
    course.add_reports(
        [
            b'{"at": 1.5, "sent": 7}\n',
            b"a warning\n",
            b'{"at": 1.6, "acknowledged": 7}\n',
            b'{"at": 1.7, "failed": 8, "error": "no"}\n',
            b'{"at": 1.8, "sen',
        ]
    )
    course.dialed = [(1.5, 2)]
    Results(tmp_path).save("short.callback.a", course)

    assert ([(1.5, 7)], [(1.6, 7)], [(1.7, 8, "no")]) == (
        course.sent,
        course.acknowledged,
        course.failed,
    )
    assert [course] == Results(tmp_path).load(Run, "short.*.*")


CLIENT = Client("a", "A", "go", "a")
WAITED = Figures(
    before=2_000_000,
    least=18_000,
    most=19_000,
    mean=18_000,
    counted_s=74.0,
    minute=18_500,
    request=10_000,
    first_error_s=None,
    first_error="",
    lost=None,
    failed_but_landed=0,
    unreported=0,
    twice=0,
    disordered=0,
    for_nothing=0,
    connections=3,
    dialed=0,
    refused=0,
    back_s=2.0,
    watched_s=40.0,
    peak=2_400_000,
    peak_s=3.0,
)
DIALED = replace(WAITED, dialed=7, refused=40, request=1_000_000)


def _goal(
    name: str,
    found: Figures,
    arm: str = "authorizer",
    client: Client = CLIENT,
    without: Figures | None = None,
) -> Verdict:
    (verdict,) = [
        each
        for each, of in zip(verdicts(client, arm, found, without), GOALS, strict=True)
        if of.startswith(name)
    ]
    return verdict


def test_a_client_that_does_well_reaches_each_goal() -> None:
    """A peak of 1.2 times of before is one of them, and so is a return after 10 s."""
    for found in (WAITED, replace(WAITED, back_s=10.0)):
        assert [True] * 5 == [each.met for each in verdicts(CLIENT, "authorizer", found, None)]


@pytest.mark.parametrize("arm", ["callback", "authorizer"])
def test_a_waiting_client_may_land_a_request_in_each_pause(arm: str) -> None:
    """1 MB in 4 s are 250 kB/s, and 14 more by a request in 74 s; small ones have the budget."""
    large = replace(WAITED, request=1_000_000, mean=263_000)
    assert (True, "waits, 263 of 264 kB/s") == (
        _goal("lands", large, arm).met,
        _goal("lands", large, arm).why,
    )
    assert False is _goal("lands", replace(large, mean=265_000), arm).met
    small = replace(WAITED, mean=20_000)
    assert True is _goal("lands", small, arm).met
    assert False is _goal("lands", replace(small, mean=20_200), arm).met


def test_a_client_that_dials_anew_may_land_the_budget_in_each_minute() -> None:
    """The reason says when one request is too large, and what connections that wait may land."""
    assert Verdict(True, "18 of 20 kB/s in a minute") == _goal("lands", DIALED)
    once = _goal("lands", replace(DIALED, minute=33_000))
    assert Verdict(False, "33 of 20 kB/s in a minute, by less than one request of 1,000 kB") == once
    much = "dialed 7 times, 50 of 20 kB/s in a minute; if by connections that wait, {} of 264 kB/s"
    assert Verdict(None, much.format(18)) == _goal("lands", replace(DIALED, minute=50_000))
    more = replace(DIALED, minute=50_000, mean=300_000)
    assert Verdict(False, much.format(300)) == _goal("lands", more)


def test_connections_that_nobody_refused_are_no_matter() -> None:
    """Some clients dial for metadata: by the count of refusals they have waited."""
    found = replace(DIALED, refused=0, mean=240_000, minute=250_000)
    assert Verdict(True, "waits, 240 of 264 kB/s") == _goal("lands", found)


def test_less_than_a_minute_is_not_judged_as_one() -> None:
    """A client that dialed late may have waited until then, unless it landed more than that."""
    found = replace(DIALED, mean=240_000, minute=None)
    late = "dialed 7 times, less than a minute before the release, 240 of 264 kB/s"
    assert Verdict(None, late) == _goal("lands", found)
    assert False is _goal("lands", replace(found, mean=300_000)).met


def test_pauses_alone_do_not_stop_new_connections() -> None:
    """That is why they do not reach the goal; it is no fault of the client's."""
    found = replace(DIALED, mean=900_000, minute=1_000_000)
    assert Verdict(False, "dialed 7 times, which no pause stops, 900 of 264 kB/s") == _goal(
        "lands", found, "callback"
    )
    assert True is _goal("lands", replace(found, mean=200_000), "callback").met


def test_a_client_that_sleeps_longer_cannot_be_back() -> None:
    """A client whose own wait is longer than 10 s can't; another one did not."""
    late, never = replace(WAITED, back_s=10.1), replace(WAITED, back_s=None)
    sleeper = replace(CLIENT, longest_wait_s=30.0, wait="`x`")
    assert Verdict(False, "10.1 s") == _goal("back", late)
    assert Verdict(False, "> 40 s") == _goal("back", never)
    assert Verdict(None, "> 40 s; it tries again after up to 30 s (`x`)") == _goal(
        "back", never, client=sleeper
    )
    assert Verdict(True) == _goal("back", WAITED, client=sleeper)


def test_a_flood_is_none_below_a_fifth_more() -> None:
    """A client without a rate before can't be judged."""
    assert Verdict(False, "1.3 x") == _goal("no second", replace(WAITED, peak=2_600_000))
    assert Verdict(True) == _goal("no second", replace(WAITED, peak=2_600_000, request=200_000))
    assert None is _goal("no second", replace(WAITED, before=0.0)).met


def test_what_was_not_acknowledged_may_be_lost() -> None:
    """With acks=0 no broker acknowledges what the client calls written."""
    failed, lost = replace(WAITED, lost=Loss(7, 0, 3.0)), replace(WAITED, lost=Loss(7, 2, 3.0))
    assert Verdict(True) == _goal("nothing ack", failed)
    assert Verdict(False, "2") == _goal("nothing ack", lost)
    blind = replace(CLIENT, is_acknowledged=False)
    assert None is _goal("nothing ack", lost, client=blind).met


def test_what_is_twice_without_us_may_be_twice() -> None:
    """No more than under Kafka's own quota; where that was not measured it can't be told."""
    found = replace(WAITED, twice=4)
    assert Verdict(None, "4; without us it was not measured") == _goal("nothing twice", found)
    for count, met in ((3, False), (4, True)):
        without = replace(WAITED, twice=count)
        assert Verdict(met, f"4, and {count} without us") == _goal(
            "nothing twice", found, without=without
        )


def test_a_verdict_is_a_word_and_its_reason() -> None:
    """What has no reason is the word alone."""
    cells = [str(each) for each in (Verdict(True), Verdict(False, "7"), Verdict(None, "7"))]
    assert ["yes", "no: 7", "-: 7"] == cells
