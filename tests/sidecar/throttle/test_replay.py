"""Decisions over a recorded history: when, for how long and for what they would have throttled."""

from dataclasses import replace

import pytest

from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.replay import Replay
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, whole
from tests.support.examples import mostly_rare

RULES = VolumeLimit(Rules(MinAvailableBytes(30), 100.0, MinAvailableBytes(10)), 0.0)
FREE = VolumeLimit(Rules(MinAvailableBytes(30), 100.0), 1.0)


def replayed(rules: VolumeLimit, *course: tuple[float, int]) -> Replay:
    """One volume that has so much available at these times."""
    replay = Replay(rules)
    for at, available in course:
        replay.see(whole(at, [reading(1, at, {"/d": available})]))
    return replay


def test_a_throttle_has_its_volume_and_lasts_until_there_is_space() -> None:
    """With the least that was left, and for how long nothing would have been admitted."""
    course = ((0.0, 50), (60.0, 30), (120.0, 9), (180.0, 20), (240.0, 31))
    (episode,) = replayed(RULES, *course).episodes()
    assert (60.0, 240.0, 0.0, 60.0) == (
        episode.began_at,
        episode.ended_at,
        episode.factor,
        episode.stop_line_s,
    )
    assert episode.worst is not None
    assert (1, "/d", 9) == (
        episode.worst.volume.broker_id,
        episode.worst.volume.log_dir,
        episode.worst.volume.available_bytes,
    )
    assert "has 30 B of 100 B available" in episode.reason


def test_the_fullest_volume_is_the_worst() -> None:
    """Whichever of them was read first."""
    replay = Replay(RULES)
    replay.see(whole(0.0, [reading(1, 0.0, {"/d1": 20, "/d2": 15})]))
    (episode,) = replay.episodes()
    assert episode.worst is not None
    assert "/d2" == episode.worst.volume.log_dir


def test_the_last_one_may_still_be_open() -> None:
    """Its end is not known."""
    replay = replayed(FREE, (0.0, 30), (10.0, 50), (20.0, 30), (30.0, 25))
    assert [(0.0, 10.0), (20.0, None)] == [
        (each.began_at, each.ended_at) for each in replay.episodes()
    ]
    assert (0.0, 30.0, 4) == (replay.first_at, replay.last_at, replay.observations)


def test_a_gap_is_a_fallback_from_the_validity_on() -> None:
    """A factor that expires between two observations changes when it expires."""
    (episode,) = replayed(RULES, (0.0, 50), (300.0, 50)).episodes()
    assert (Source.FALLBACK, None) == (episode.source, episode.worst)
    assert (100.0, 300.0) == (round(episode.began_at, 1), episode.ended_at)
    assert [] == replayed(FREE, (0.0, 50), (300.0, 50)).episodes()


def test_times_without_readings_are_no_part_of_a_duration() -> None:
    """Neither of a throttle's, nor of its stop line's, nor of the whole."""
    replay = Replay(RULES, [(100.0, 150.0), (160.0, 170.0), (190.0, 400.0)])
    for at, available in ((0.0, 50), (60.0, 9), (155.0, 9), (175.0, 9), (185.0, 50), (400.0, 50)):
        replay.see(whole(at, [reading(1, at, {"/d": available})]))
    (episode,) = replay.episodes()
    assert (60.0, 185.0, 65.0, 65.0) == (
        episode.began_at,
        episode.ended_at,
        episode.lasted_s,
        episode.stop_line_s,
    )
    assert 130.0 == replay.known_s


def test_a_throttle_lasts_over_a_missing_time_after_which_the_volume_still_violates() -> None:
    """Two readings are a second further apart than the validity, which is no release."""
    replay = Replay(FREE, [(160.0, 161.0), (300.0, 301.0)])
    for at, available in ((0.0, 50), (60.0, 20), (161.0, 9), (200.0, 20), (301.0, 50)):
        replay.see(whole(at, [reading(1, at, {"/d": available})]))
    (episode,) = replay.episodes()
    assert (60.0, 300.0, 239.0) == (
        episode.began_at,
        round(episode.ended_at or 0.0, 1),
        episode.lasted_s,
    )
    assert episode.worst is not None
    assert 9 == episode.worst.volume.available_bytes


def test_throttles_that_readings_ended_stay_apart_whatever_is_missing() -> None:
    """Readings of another broker are missing all the time."""
    replay = Replay(FREE, [(0.0, 400.0)])
    for at, available in ((0.0, 20), (50.0, 50), (90.0, 50), (140.0, 20), (180.0, 50)):
        replay.see(whole(at, [reading(1, at, {"/d": available})]))
    assert [(0.0, 50.0), (140.0, 180.0)] == [
        (each.began_at, each.ended_at) for each in replay.episodes()
    ]


def test_a_fallback_for_want_of_readings_is_left_out() -> None:
    """The history has a gap, which the sidecar need not have had."""
    replay = Replay(RULES, [(100.0, 300.0)])
    for at in (0.0, 300.0):
        replay.see(whole(at, [reading(1, at, {"/d": 50})]))
    assert ([], 100.0) == (replay.episodes(), replay.known_s)


def test_a_sidecar_that_only_observed_is_replayed_as_if_it_had_not() -> None:
    """What it would have done is the question."""
    course = ((0.0, 50), (60.0, 30), (120.0, 50))
    assert (
        replayed(RULES, *course).episodes()
        == replayed(replace(RULES, is_enforced=False), *course).episodes()
    )


@pytest.mark.slow
@pytest.mark.parametrize("throttled_at", mostly_rare([19_998, 7000, 7001, 19_997]))
def test_a_long_history_has_a_picture_of_bounded_size(throttled_at: int) -> None:
    """It is thinned, and no throttle is lost by that."""
    course = ((float(at), 30 if at == throttled_at else 50) for at in range(20_000))
    points = replayed(FREE, *course).points
    assert len(points) <= 4000
    assert [(0.0, 0.0)] == [
        (each.factor, each.headroom_bytes) for each in points if each.factor < 1.0
    ]
    assert sorted(point.at for point in points) == [point.at for point in points]
