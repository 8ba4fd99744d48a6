"""The sentences that say why."""

from dataclasses import replace

import pytest

from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import Failure, FailureKind, Observation, Reading
from tests.sidecar.throttle.build import (
    TIMED_OUT,
    partial,
    reading,
    remembering,
    whole,
    with_rules,
)

MB = 1_000_000
factors = VolumeLimit(Rules(MinAvailableBytes(40 * MB), 120.0), fallback=1.0)
after = remembering(factors)


def why(memory: Memory, now: float = 0.0) -> str:
    return factors.decide(memory, now).reason


def mb(broker_id: int, *available: float) -> Reading:
    """Volumes of 64 MB, read at 0 s."""
    free = {f"/data/d{n}": round(each * MB) for n, each in enumerate(available)}
    return reading(broker_id, 0.0, free, total=64 * MB)


def test_within_the_limit() -> None:
    """The sentence counts volumes and brokers; one is singular."""
    memory = after(whole(0.0, [mb(1, 50, 60), mb(2, 50)]))
    assert "every volume has more than 40.0 MB available (3 volumes, 2 brokers)" == why(memory)
    memory = after(whole(0.0, [mb(1, 50)]))
    assert "every volume has more than 40.0 MB available (1 volume, 1 broker)" == why(memory)


def test_one_violation() -> None:
    """It names the volume, its numbers and the limit."""
    memory = after(whole(0.0, [mb(2, 50, 38.2)]))
    expected = (
        "broker 2 /data/d1 has 38.2 MB of 64.0 MB available (59.7%), at or below the limit of "
        "40.0 MB"
    )
    assert expected == why(memory)


def test_a_stop() -> None:
    """The sentence counts the volumes at or below the line, then those within its margin."""
    stopping = with_rules(factors, stop_line=MinAvailableBytes(20 * MB))
    memory = stopping.fold(Memory(), whole(0.0, [mb(2, 20, 21, 38.2)]))
    sentence = stopping.decide(memory, 0.0).reason
    below = "; 1 volume violates the stop line of 20.0 MB"
    assert sentence.endswith(f"the limit of 40.0 MB; 3 volumes violate it{below}")
    memory = stopping.fold(memory, whole(0.0, [mb(2, 21, 22, 38.2)]))
    margin = "2 volumes are not yet above the stop line of 20.0 MB by a tenth"
    assert stopping.decide(memory, 0.0).reason.endswith(f"; {margin}")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (MinAvailableBytes(10_000 * MB), "10.0 GB; the limit is more than the volume has, so it "),
        (MinAvailableBytes(64 * MB), "64.0 MB; the limit is all that the volume has, so it "),
        (MinAvailableBytes(64 * MB - 1), "64.0 MB"),
        (MinAvailableRatio(0.999_999), "100.0%"),
    ],
    ids=["more", "all", "less", "ratio"],
)
def test_a_limit_that_no_volume_of_its_size_is_above(limit: Limit, expected: str) -> None:
    """It is a mistake in the setting, which no deleting mends."""
    always = VolumeLimit(Rules(limit, 120.0), fallback=1.0)
    free = (64 * MB - 100) / MB
    memory = always.fold(Memory(), whole(0.0, [mb(2, free)]))
    reported = always.decide(memory, 0.0).reason
    assert "broker 2 /data/d0 has 64.0 MB of 64.0 MB available (100.0%)" in reported
    reported = reported.partition(" at or below the limit of ")[2]
    assert reported == (f"{expected}is always violated" if "; " in expected else expected)


def test_several_violations_name_the_worst() -> None:
    """The volume with the least room is named, the others are counted."""
    memory = after(whole(0.0, [mb(1, 30, 10, 20)]))
    expected = (
        "broker 1 /data/d1 has 10.0 MB of 64.0 MB available (15.6%), at or below the limit of "
        "40.0 MB; 3 volumes violate it"
    )
    assert expected == why(memory)


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (whole(10.0, [reading(1, 10.0)], fenced=[2]), "the broker is fenced"),
        (whole(10.0, [reading(1, 10.0)], fenced=None), "the broker is gone"),
        (whole(10.0, [reading(1, 10.0)], silent=[2]), "the broker does not answer"),
        (
            whole(10.0, [reading(1, 10.0), reading(2, 10.0, offline=["/data/d0"])]),
            "the log dir is offline",
        ),
        (
            whole(10.0, [reading(1, 10.0), reading(2, 10.0, unreadable=["/data/d0"])]),
            "its sizes can't be read",
        ),
    ],
    ids=["fenced", "gone", "silent", "offline", "unreadable"],
)
def test_retained_violation_says_why_it_is_not_of_now(then: Observation, reason: str) -> None:
    """A volume that was not read just now is named with the reason."""
    seen = whole(0.0, [reading(1, 0.0), mb(2, 10)])
    expected = (
        "broker 2 /data/d0 has 10.0 MB of 64.0 MB available (15.6%), at or below the limit of "
        f"40.0 MB when last read, and {reason}"
    )
    assert expected == why(after(seen, then), 10.0)


@pytest.mark.parametrize(
    ("then", "has"),
    [
        ([whole(130.0, [reading(1, 130.0, {"/data/d0": 50 * MB})], silent=[2])], "has more space"),
        (
            [
                whole(130.0, [reading(1, 130.0, {"/data/d0": 50 * MB})], silent=[2]),
                whole(140.0, silent=[1, 2]),
            ],
            "has more space",
        ),
        ([partial(130.0, [reading(1, 130.0, {"/data/d0": 50 * MB})])], "has more space"),
        ([whole(130.0, [reading(1, 130.0, {"/data/d9": 50 * MB})], silent=[2])], "is gone"),
    ],
    ids=["seen", "then silent", "seen alone", "gone"],
)
def test_violation_that_is_over_is_not_told_as_of_now(then: list[Observation], has: str) -> None:
    """The last reading of another broker is too old for a release."""
    full = reading(1, 125.0, {"/data/d0": 10 * MB}, total=64 * MB)
    memory = after(whole(0.0, [mb(1, 50), mb(2, 50)]), whole(125.0, [full], silent=[2]), *then)
    expected = (
        "broker 1 /data/d0 has 10.0 MB of 64.0 MB available (15.6%), at or below the limit of "
        f"40.0 MB when the factor was computed (the volume {has} now, but a release needs readings "
        "of every broker)"
    )
    assert expected == why(memory, 140.0)


def test_before_the_first_observation() -> None:
    """Nothing was seen yet; once a poll has failed, the sentence says why."""
    assert "no observation yet" == why(Memory())
    memory = fail(Memory(), TIMED_OUT)
    assert "no observation yet: no answer within 2 s" == why(memory)


def test_expired() -> None:
    """It says how old the last observation is, and why there is no newer one."""
    memory = after(whole(0.0, [reading(1, 0.0)]))
    assert "the last valid observation is 200 s old" == why(memory, 200.0)
    memory = fail(memory, TIMED_OUT)
    assert "the last valid observation is 200 s old: no answer within 2 s" == why(memory, 200.0)


def test_override() -> None:
    """It has the operator's words, and what the override hides."""
    override = Override(1.0, "moving partitions", 0.0, 60.0)
    seen = after(whole(0.0, [mb(1, 10, 10)]))
    assert "set by an operator: moving partitions" == why(Memory(override=override))
    named = replace(override, by="user alice from 10.0.0.7")
    expected = "set by an operator (user alice from 10.0.0.7): moving partitions"
    assert expected == why(Memory(override=named))
    expected = "set by an operator: moving partitions (while 2 volumes violate the limit)"
    assert expected == why(replace(seen, override=override))


def test_disabled() -> None:
    """It says why nothing is polled."""
    expected = "disabled: the check interval is PT0S, so nothing is polled and nobody is throttled"
    assert expected == Disabled().decide(Memory(), 0.0).reason


@pytest.mark.parametrize(
    ("silent", "named"), [([4, 2, 3, 1, 5], "1, 2, 3 and 2 more"), ([2, 3, 1], "1, 2, 3")]
)
def test_unseen_names_three(silent: list[int], named: str) -> None:
    """The first three members that were neither seen nor remembered are named, and why once."""
    memory = after(whole(0.0, [reading(9, 0.0)], silent=silent))
    assert memory.failure is not None
    expected = f"neither seen nor remembered: brokers {named} (no answer within 2 s)"
    assert expected == memory.failure.message


def test_unseen_for_various_reasons() -> None:
    """Equal failures are reported once, whether brokers are named by id or by address."""
    refused = "error 31 (CLUSTER_AUTHORIZATION_FAILED): grant it"
    seen = whole(0.0, silent=[1, 2, 3, 4, 5, 6])
    assert seen.membership is not None
    says = {
        1: f"broker 1: {refused}",
        2: f"{seen.membership.active[2]}: refused while connecting",
        3: f"broker 3: {refused}",
        4: "broker 4: of its own",
        5: "broker 5: another",
        6: f"{seen.membership.active[6]}: refused while connecting",
    }
    answers = {broker: Failure(FailureKind.CONNECT, text) for broker, text in says.items()}
    memory = after(replace(seen, answers=answers))
    assert memory.failure is not None
    expected = (
        f"neither seen nor remembered: brokers 1, 3 ({refused}), brokers 2, 6 (refused while "
        "connecting), broker 4 (of its own) and 1 more"
    )
    assert expected == memory.failure.message


def test_unseen_without_an_answer() -> None:
    """A member that an observation does not mention was not asked."""
    seen = whole(0.0, silent=[1])
    memory = after(replace(seen, answers={}))
    assert memory.failure is not None
    assert "neither seen nor remembered: broker 1 (not asked)" == memory.failure.message


def test_nothing_is_said_of_now_after_a_failed_poll() -> None:
    """The factor is still valid, but nobody has read a volume since."""
    refused = Failure(FailureKind.AUTHENTICATION, "the login was refused")
    expected = (
        "every volume had more than 40.0 MB available when last read, and the last poll failed: "
        "the login was refused"
    )
    assert expected == why(fail(after(whole(0.0, [mb(1, 50)])), refused))
    full = why(fail(after(whole(0.0, [mb(1, 38.2)])), refused))
    assert full.endswith("the limit of 40.0 MB when last read, and the last poll failed")


def test_volumes_of_silent_brokers_are_told_apart() -> None:
    """They count as last read while the others are read."""
    memory = after(
        whole(0.0, [mb(1, 50), mb(2, 50), mb(3, 50)]),
        whole(60.0, [replace(mb(1, 50), read_at=60.0)], silent=[2, 3]),
    )
    expected = (
        "every volume has more than 40.0 MB available (3 volumes, 3 brokers); those of brokers 2, "
        "3 when last read"
    )
    assert expected == why(memory, 60.0)


def test_only_old_readings_are_told_as_old() -> None:
    """No broker answers any more, or a log dir with room can't be read."""
    first = whole(0.0, [mb(1, 50), mb(2, 50)])
    silent = after(first, whole(60.0, [], silent=[1, 2]))
    assert (
        "every volume had more than 40.0 MB available when last read (2 volumes, 2 brokers), and "
        "no broker answers"
    ) == why(silent, 60.0)
    offline = whole(60.0, [reading(1, 60.0, offline=["/data/d0"])], silent=[2])
    assert why(after(first, offline), 60.0).endswith(
        "2 brokers); those of broker 2 and of 1 unreadable log dir when last read"
    )


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (
            10,
            "broker 1 /data/d1 has 10.0 MB of 64.0 MB available (15.6%), at or below the limit of "
            "40.0 MB",
        ),
        (
            50,
            "every volume has more than 40.0 MB available (2 volumes, 1 broker); those of 1 "
            "unreadable log dir when last read",
        ),
    ],
    ids=["full", "room"],
)
def test_a_broker_without_all_sizes_answers(left: int, expected: str) -> None:
    """Only the log dir without sizes is as last read; the one beside it was read now."""
    beside = reading(1, 10.0, {"/data/d1": left * MB}, total=64 * MB, unreadable=["/data/d0"])
    assert expected == why(after(whole(0.0, [mb(1, 50, 50)]), whole(10.0, [beside])), 10.0)


def test_some_volumes_are_known() -> None:
    """The fallback applies, since one broker was never read."""
    partly = after(whole(0.0, [mb(1, 50)], silent=[2]))
    begins = "not every volume of the cluster is known: neither seen nor remembered: broker 2 ("
    assert why(partly).startswith(begins)


def test_a_volume_that_is_not_read_holds_the_slope() -> None:
    """The factor does not fall by itself, and the sentence says for how long it stays."""
    sloped = with_rules(factors, slope=SlopeRules(MinAvailableBytes(60 * MB)))
    sees = remembering(sloped)
    now = [replace(mb(1, 63), read_at=10.0)]
    low = whole(0.0, [mb(1, 63), mb(2, 41)])
    assert ": the factor falls until the limit of 40.0 MB" in sloped.decide(sees(low), 0.0).reason
    held = sloped.decide(sees(low, whole(10.0, now, fenced=[2])), 10.0)
    assert held.is_sloped
    assert held.reason.endswith(
        "at or below the soft limit of 60.0 MB when last read, and the broker is fenced: the "
        "factor follows that reading until the volume is read again or forgotten"
    )


@pytest.mark.parametrize(
    ("silent", "old"), [((), ""), ((2,), "; those of broker 2 when last read")], ids=["all", "some"]
)
def test_a_slope_that_waits_for_its_rise(silent: tuple[int, ...], old: str) -> None:
    """Above the soft limit the factor rises in one step; old readings are told as such."""
    sloped = with_rules(factors, slope=SlopeRules(MinAvailableBytes(60 * MB)))
    sees = remembering(sloped)
    room = [replace(mb(each, 63), read_at=10.0) for each in (1, 2) if each not in silent]
    memory = sees(whole(0.0, [mb(1, 41), mb(2, 63)]), whole(10.0, room, silent=silent))
    held = sloped.decide(memory, 10.0)
    assert held.is_sloped
    assert held.reason == (
        f"every volume has more than 60.0 MB available{old}; the factor rises to 1.0 a minute "
        "after it began to fall"
    )
