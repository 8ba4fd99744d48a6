"""Crossings, blindness and returns are worked out of the seconds of a run."""

from dataclasses import replace

import pytest

from sidecar.demo.series import Series
from tests.chaos.course import (
    Producer,
    blind_in,
    blindness,
    crossings,
    releases,
    returns,
    unseen_by_the_settled,
)
from tests.chaos.made import FAULT, FREE, MB, SEES, STOPPED, THROTTLES, course, sample

CALM = (-50, -50, -50)


def test_a_crossing_has_its_most_and_its_time() -> None:
    """Of each volume apart; one that has not ended ends with the run."""
    run = course(
        [
            sample(1.0),
            sample(2.0, (0, -9, -9)),
            sample(3.0, (7, -9, 3)),
            sample(4.0, (5, -9, 4)),
            sample(5.0, (-30, -30, 4)),
        ]
    )
    first, second = crossings(run)
    assert (0, 2.0, 5.0, 7 * MB, 3.0) == (
        first.broker_id,
        first.begin_s,
        first.end_s,
        first.past_bytes,
        first.past_at_s,
    )
    assert (2, 3.0, 5.0, 4 * MB) == (
        second.broker_id,
        second.begin_s,
        second.end_s,
        second.past_bytes,
    )
    assert 3.0 == first.violates_s


def test_a_volume_nobody_could_read_is_neither_crossed_nor_free() -> None:
    """Its crossing goes on until it is read again."""
    unread = replace(sample(2.0), available={}, least={})
    (crossing,) = crossings(course([sample(1.0, (5,)), unread, sample(3.0, (-5,))]))
    assert (1.0, 3.0) == (crossing.begin_s, crossing.end_s)


def test_what_was_between_two_samples_counts() -> None:
    """For the bytes past the limit; but nobody is blind to what is over when he is asked."""
    over = replace(sample(9.0), least={0: 93 * MB})
    run = course([*(sample(float(at), (1, -9, -9)) for at in range(8)), over, sample(10.0)])
    (crossing,) = crossings(run)
    assert (7 * MB, 10.0) == (crossing.past_bytes, crossing.end_s)
    assert [] == blindness(run)


def test_time_without_throttle_counts_beyond_the_delays() -> None:
    """Of brokers that run, until the volume is at its fullest; 2.5 s are the rules' own."""
    blind = [STOPPED, FREE, STOPPED]
    run = course(
        [
            *(sample(float(at), (at, -9, -9), callbacks=blind) for at in range(8)),
            sample(8.0, (3, -9, -9), callbacks=blind),
            sample(9.0),
        ]
    )
    (crossing,) = crossings(run)
    assert 7.0 - 2.5 == pytest.approx(crossing.unthrottled_s)
    away = [
        sample(float(at), (at, -9, -9), callbacks=[STOPPED, None, STOPPED], away=["broker 1"])
        for at in range(8)
    ]
    assert 0.0 == crossings(course(away))[0].unthrottled_s
    silent = [
        sample(float(at), (at, -9, -9), callbacks=[STOPPED, None, STOPPED]) for at in range(8)
    ]
    assert crossings(course(silent))[0].unthrottled_s > 4.0


def test_why_each_does_not_see() -> None:
    """A sidecar that is away, one that is silent, sources other than sight, and what was missed."""
    second = sample(
        9.0,
        (5, -9, -9),
        sidecars=[None, None, replace(SEES, source="fallback")],
        callbacks=[replace(FREE, source="FALLBACK"), None, replace(STOPPED, age_s=13.0)],
        away=["sidecar 0"],
    )
    assert {
        "sidecar 0": "away",
        "sidecar 1": "does not answer",
        "sidecar 2": "goes by fallback",
        "callback 0": "goes by FALLBACK",
        "callback 1": "JMX does not answer",
        "callback 2": "has heard nothing for 12 s",
    } == blind_in(second, {}, 3.0)
    unready = sample(9.0, sidecars=[replace(SEES, is_ready=False), SEES, SEES])
    assert {"sidecar 0": "not ready"} == blind_in(unready, {}, 3.0)


def test_who_says_all_is_well_is_blind_to_a_violation() -> None:
    """Once it could have been seen, and only who says so."""
    second = sample(
        9.0, (5, -9, -9), sidecars=[SEES, THROTTLES, THROTTLES], callbacks=[FREE, STOPPED, STOPPED]
    )
    assert {} == blind_in(second, {0: 3.0}, 3.0)
    assert {
        "sidecar 0": "does not see the volume of broker 0",
        "callback 0": "does not throttle",
    } == blind_in(second, {0: 3.1}, 3.0)


def test_a_broker_that_is_away_has_no_blind_callback() -> None:
    """It takes nothing."""
    second = sample(9.0, callbacks=[None, FREE, FREE], away=["broker 0"])
    assert {} == blind_in(second, {}, 3.0)


def test_blindness_lasts_from_its_first_to_its_last_second() -> None:
    """With what got further past the limit meanwhile; another reason is another row."""
    gone = [None, THROTTLES, THROTTLES]
    run = course(
        [
            sample(1.0),
            sample(2.0, (3, 0, 0), sidecars=gone, away=["sidecar 0"]),
            sample(3.0, (9, 0, 0), sidecars=gone, away=["sidecar 0"]),
            sample(4.0, (9, 0, 0), sidecars=gone),
            sample(5.0, (9, 0, 0)),
        ]
    )
    away, silent = blindness(run)
    assert ("sidecar 0", 2.0, 3.0, "away", 6 * MB) == (
        away.who,
        away.begin_s,
        away.end_s,
        away.why,
        away.past_bytes,
    )
    assert ("does not answer", 4.0, 4.0, 0) == (
        silent.why,
        silent.begin_s,
        silent.end_s,
        silent.past_bytes,
    )


def test_only_a_settled_sidecar_has_no_excuse() -> None:
    """Nor does a violation count that a broker just back has."""
    sidecars = [SEES, THROTTLES, THROTTLES]

    def run(steady_s: float) -> list[tuple[float, str]]:
        return unseen_by_the_settled(
            course(
                [
                    sample(float(at), (5, -9, -9), sidecars=sidecars, steady_s=steady_s)
                    for at in range(10)
                ]
            )
        )

    assert [] == run(4.0)
    assert [] == run(6.0), "the sidecar came back with the broker"
    assert (4.0, "sidecar 0 does not see the volume of broker 0") == run(60.0)[0]


def test_a_broker_just_back_has_the_time_to_be_read() -> None:
    """Its volume may have filled while nobody could ask it."""
    second = sample(0.0, (5, -9, -9), sidecars=[SEES, SEES, SEES])
    back = [
        replace(second, at_s=float(at), steady_s={**second.steady_s, "broker 0": float(at)})
        for at in range(20)
    ]
    assert 5.0 + 4.0 == unseen_by_the_settled(course(back))[0][0]


def test_a_release_is_when_no_volume_violates_any_more() -> None:
    """It lasts until the next crossing, or the end."""
    run = course(
        [
            sample(1.0),
            sample(2.0, (5, 5, -9)),
            sample(3.0, (-9, 5, -9)),
            sample(4.0),
            sample(5.0),
            sample(6.0, (-9, -9, 5)),
            sample(7.0),
            sample(8.0),
        ]
    )
    assert [(4.0, 6.0), (7.0, 8.0)] == releases(run)


def test_back_is_the_first_two_seconds_at_nine_tenths() -> None:
    """From the release; and whether a fault was near."""
    run = course(
        [sample(0.0, (5, 5, 5)), *(sample(float(at)) for at in range(10, 31))], faults=[FAULT]
    )
    quick = Series([(0.0, 0.0), (10.0, 0.0), (13.0, 0.0), (40.0, 27e6)])
    never = Series([(0.0, 0.0), (40.0, 1.0)])
    run.producers = [Producer("quick", 1e6, quick, 0.0, 0), Producer("never", 1e6, never, 0.0, 0)]
    first, second = returns(run)
    assert ("quick", 10.0, False) == (first.name, first.release_s, first.disturbed)
    assert 3.0 == pytest.approx(first.back_s, abs=0.3)
    assert (None, True) == (second.back_s, second.disturbed)
    just_over = replace(run.plan, faults=(replace(FAULT, begin_s=2.0, end_s=6.0),))
    assert [True, True] == [each.disturbed for each in returns(replace(run, plan=just_over))]
    long_over = replace(run.plan, faults=(replace(FAULT, begin_s=2.0, end_s=4.0),))
    assert [False, False] == [each.disturbed for each in returns(replace(run, plan=long_over))]
