"""Crossings, blindness and returns are worked out of the seconds of a run."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kafka_lab.series import Series
from tests.chaos.course import (
    Producer,
    SourceUse,
    blind_in,
    blindness,
    crossings,
    releases,
    returns,
    unseen_by_the_settled,
    unthrottled,
)
from tests.chaos.made import (
    BOUND,
    FAULT,
    FREE,
    LOCAL,
    MB,
    SEES,
    THROTTLED,
    THROTTLES,
    course,
    sample,
)
from tests.chaos.samples import CallbackSight, Sample

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


def returned(at_s: float, past: Sequence[int], ran_s: float | None) -> Sample:
    """A second in which broker 0 has run for so long; None: it is away."""
    whole = sample(at_s, past, away=["broker 0"] if ran_s is None else [])
    more = {} if ran_s is None else {"broker 0": ran_s}
    return replace(whole, steady_s={**whole.steady_s, **more})


def test_what_a_broker_fetches_that_was_away_is_not_its_clients() -> None:
    """It is past by 20 MB while it catches up, after 7 s away at most, and by 7 MB when it has."""
    run = course(
        [
            sample(40.0),
            *(returned(40.0 + at, CALM, None) for at in range(1, 7)),
            returned(47.0, (20, 1, 1), 1.0),
            returned(56.0, (7, 1, 1), 10.0),
            sample(57.0),
        ]
    )
    crossing = crossings(run)[0]
    assert (20 * MB, 47.0, 7 * MB) == (
        crossing.past_bytes,
        crossing.past_at_s,
        crossing.clients_bytes,
    )
    assert (7.0, 2) == (crossing.behind_s, crossing.moves)
    assert BOUND.bytes(10.0, 2, 7.0) == crossing.allowed(BOUND)


def test_a_broker_away_at_the_limit_is_behind_since_it_went() -> None:
    """And one that was always there never is, nor at the beginning of a run."""
    run = course(
        [sample(40.0, (1, 1, 1)), *(returned(40.0 + at, (5, 1, 1), None) for at in (1, 2))]
    )
    assert [1.0, 0.0, 0.0] == [each.behind_s for each in crossings(run)]
    assert [1 * MB] * 3 == [each.clients_bytes for each in crossings(run)]
    young = course([returned(3.0, (4, 1, 1), 3.0), sample(4.0)])
    assert (0.0, 4 * MB, 0) == (
        crossings(young)[0].behind_s,
        crossings(young)[0].clients_bytes,
        crossings(young)[0].moves,
    )


def test_a_crossing_has_what_throttled_and_what_released() -> None:
    """Each source once, in order; of the volume's own broker."""
    run = course(
        [
            sample(1.0, (1, -9, -9), callbacks=[FREE, FREE, FREE]),
            sample(2.0, (2, -9, -9), callbacks=[LOCAL, FREE, FREE]),
            sample(3.0, (3, -9, -9), callbacks=[LOCAL, THROTTLED, THROTTLED]),
            sample(4.0, (3, -9, -9)),
            sample(5.0, callbacks=[THROTTLED, FREE, FREE]),
            sample(6.0),
        ]
    )
    (crossing,) = crossings(run)
    assert (SourceUse("LOCAL", 2.0), SourceUse("SIDECAR", 4.0)) == crossing.throttled
    assert SourceUse("SIDECAR", 6.0) == crossing.released
    again = course([*run.samples[:5], sample(6.0, (1, -9, -9))])
    assert [None, None] == [each.released for each in crossings(again)]


def test_a_broker_that_does_not_throttle_at_its_own_limit() -> None:
    """Within 1.5 s by the rules, and 1.5 s more to be seen; its silence says nothing."""

    def found(sight: CallbackSight | None, steady_s: float = 60.0) -> list[tuple[float, str]]:
        callbacks = [THROTTLED, sight, THROTTLED]
        return unthrottled(
            course(
                [
                    sample(float(at), (-9, 5, -9), callbacks=callbacks, steady_s=steady_s)
                    for at in range(6)
                ]
            )
        )

    assert [4.0, 5.0] == [at_s for at_s, _ in found(FREE)]
    assert "broker 1, going by SIDECAR" == found(FREE)[0][1]
    assert [] == found(LOCAL)
    assert [] == found(None)
    assert [] == found(FREE, steady_s=4.0)


def test_why_each_does_not_see() -> None:
    """A sidecar that is away, one that is silent, sources other than sight, and what was missed."""
    second = sample(
        9.0,
        (5, -9, -9),
        sidecars=[None, None, replace(SEES, source="fallback")],
        callbacks=[replace(FREE, source="FALLBACK"), None, replace(THROTTLED, age_s=13.0)],
        away=["sidecar 0"],
    )
    assert {
        "sidecar 0": "away",
        "sidecar 1": "does not answer",
        "sidecar 2": "goes by fallback",
        "callback 0": "goes by FALLBACK",
        "callback 1": "JMX does not answer",
        "callback 2": "had no answer for 12 s",
    } == blind_in(second, {}, 3.0)
    unready = sample(9.0, sidecars=[replace(SEES, is_ready=False), SEES, SEES])
    assert {"sidecar 0": "not ready"} == blind_in(unready, {}, 3.0)
    own = sample(9.0, (5, -9, -9), callbacks=[LOCAL, THROTTLED, THROTTLED])
    assert {} == blind_in(own, {0: 9.0}, 3.0), "the broker's own volumes count"


def test_who_says_all_is_well_is_blind_to_a_violation() -> None:
    """Once it could have been seen, and only who says so."""
    second = sample(
        9.0,
        (5, -9, -9),
        sidecars=[SEES, THROTTLES, THROTTLES],
        callbacks=[FREE, THROTTLED, THROTTLED],
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
