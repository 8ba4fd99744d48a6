"""The throttle factor, rule by rule (docs/how-it-decides.md)."""

import math
from dataclasses import replace

import pytest

from sidecar.throttle.decision import Decision, Disabled, Source, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle, Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind, Observation, Reading
from tests.sidecar.throttle.build import TIMED_OUT, partial, reading, remembering, whole

VALIDITY_S = 120.0
FULL = {"/d0": 30}
ROOMY = {"/d0": 31}

factors = VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S), fallback=0.5)
after = remembering(factors)


def in_force(memory: Memory, now: float) -> tuple[float, Source]:
    decision = factors.decide(memory, now)
    return decision.factor, decision.source


def violating(decision: Decision) -> list[tuple[int, str]]:
    return [(state.volume.broker_id, state.volume.log_dir) for state in decision.violations]


OBSERVED_FULL = (0.0, Source.OBSERVATION)
OBSERVED_ROOMY = (1.0, Source.OBSERVATION)
FALLBACK = (0.5, Source.FALLBACK)


def test_nobody_is_throttled_besides() -> None:
    """No user is throttled without a user throttle, whatever the factor is."""
    overridden = replace(after(), override=Override(0.2, "a test", 0.0, 60.0))
    decisions = [
        Disabled().decide(Memory(), 0.0),
        *(
            factors.decide(memory, 0.0)
            for memory in (Memory(), overridden, after(whole(0.0, [reading(1, 0.0, FULL)])))
        ),
    ]
    assert [({}, {})] * 4 == [(each.users, each.user_throttles) for each in decisions]


def test_a_budget_applies_for_the_validity() -> None:
    """The first one that ends decides when it has to be looked at again."""
    budgets = {owner: BudgetThrottle(0.5, (), at) for owner, at in (("etl", 100.0), ("web", 130.0))}
    memory = replace(after(), budgets=budgets)
    both, one, none = (factors.decide(memory, now) for now in (220.0, 220.1, 250.1))
    assert [{"etl", "web"}, {"web"}, set()] == [set(each.budgets) for each in (both, one, none)]
    assert [220.0, 250.0, None] == [each.budgets_until for each in (both, one, none)]


# The factor's life.


def test_starts_with_fallback() -> None:
    """Before the first observation the fallback is in force, until there is news."""
    decision = factors.decide(Memory(), 0.0)
    assert (0.5, Source.FALLBACK) == (decision.factor, decision.source)
    assert decision.valid_until is None
    assert decision.computed_at is None
    assert () == decision.violations


def test_computed_factor_expires_just_after_validity() -> None:
    """The boundary itself is still valid, the next float is not, and the decision says so."""
    memory = after(whole(60.0, [reading(1, 60.0, ROOMY)]))
    assert OBSERVED_ROOMY == in_force(memory, 180.0)
    assert FALLBACK == in_force(memory, math.nextafter(180.0, math.inf))
    decision = factors.decide(memory, 100.0)
    assert 180.0 == decision.valid_until
    assert 60.0 == decision.computed_at


def test_disabled_is_always_one() -> None:
    """A check interval of PT0S means 1.0, over override and violations."""
    memory = replace(
        after(whole(0.0, [reading(1, 0.0, FULL)])), override=Override(0.2, "test", 0.0, 60.0)
    )
    decision = Disabled().decide(memory, 0.0)
    assert (1.0, Source.DISABLED) == (decision.factor, decision.source)
    assert decision.valid_until is None


def test_override_precedes_observation_and_ends_by_itself() -> None:
    """An override is in force to its end and hides neither violations nor when they were read."""
    override = Override(0.7, "maintenance", 0.0, 60.0)
    memory = replace(after(whole(0.0, [reading(1, 0.0, FULL)])), override=override)
    decision = factors.decide(memory, 60.0)
    assert (0.7, Source.OVERRIDE) == (decision.factor, decision.source)
    assert override == decision.override
    assert [(1, "/d0")] == violating(decision)
    assert 60.0 == decision.valid_until
    after_it = factors.decide(memory, math.nextafter(60.0, math.inf))
    assert OBSERVED_FULL == (after_it.factor, after_it.source)
    assert after_it.override is None


def test_override_precedes_fallback() -> None:
    """An override needs no observation."""
    memory = Memory(override=Override(0.7, "maintenance", 0.0, 60.0))
    assert (0.7, Source.OVERRIDE) == in_force(memory, 0.0)
    assert FALLBACK == in_force(memory, 60.5)


def test_override_is_valid_until_the_violations_under_it_expire() -> None:
    """The set of violating volumes is part of what is published, so its expiry is a change."""
    override = Override(0.7, "maintenance", 0.0, 3600.0)
    memory = replace(after(whole(0.0, [reading(1, 0.0, FULL)])), override=override)
    decision = factors.decide(memory, 0.0)
    assert VALIDITY_S == decision.valid_until
    expired = factors.decide(memory, math.nextafter(VALIDITY_S, math.inf))
    assert [] == violating(expired)
    assert 3600.0 == expired.valid_until


def test_override_outlasts_a_computed_factor_without_violations() -> None:
    """Nothing that is published changes when a hidden 1.0 expires."""
    override = Override(0.7, "maintenance", 0.0, 3600.0)
    memory = replace(after(whole(0.0, [reading(1, 0.0, ROOMY)])), override=override)
    assert 3600.0 == factors.decide(memory, 0.0).valid_until


# Partial sight.


def test_any_seen_violation_is_enough() -> None:
    """A violation that was seen makes the factor 0.0, whatever else failed."""
    memory = after(whole(0.0, [reading(1, 0.0, {"/d0": 99, "/d1": 30})], silent=[2, 3]))
    decision = factors.decide(memory, 0.0)
    assert OBSERVED_FULL == (decision.factor, decision.source)
    assert [(1, "/d1")] == violating(decision)
    assert 0 == memory.failed_polls


def test_violations_of_all_brokers_are_reported() -> None:
    """Every violating volume is reported, by broker and log dir."""
    first = reading(2, 0.0, {"/d1": 1, "/d0": 1, "/d2": 99})
    memory = after(whole(0.0, [first, reading(1, 0.0, FULL)]))
    expected = [(1, "/d0"), (2, "/d0"), (2, "/d1")]
    assert expected == violating(factors.decide(memory, 0.0))


def test_member_never_seen_makes_observation_incomplete() -> None:
    """No violation and a member neither seen nor remembered: the poll counts as failed."""
    memory = after(whole(0.0, [reading(1, 0.0, ROOMY)], silent=[2]))
    assert FALLBACK == in_force(memory, 0.0)
    assert 1 == memory.failed_polls
    assert memory.failure is not None
    assert FailureKind.INCOMPLETE == memory.failure.kind
    expected = "neither seen nor remembered: broker 2 (no answer within 2 s)"
    assert expected == memory.failure.message


def test_incomplete_observation_keeps_the_computed_factor() -> None:
    """An incomplete observation renews nothing and takes nothing away."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY)]), whole(60.0, [reading(1, 60.0, ROOMY)], silent=[2])
    )
    assert 120.0 == factors.decide(memory, 60.0).valid_until


def test_silent_member_counts_with_last_volumes_for_validity() -> None:
    """A healthy silent member is remembered up to the boundary, and not after it.

    Meanwhile it renews nothing, so the fallback follows the validity (proposal 047).
    """
    at_boundary = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, ROOMY)]),
        whole(120.0, [reading(1, 120.0, ROOMY)], silent=[2]),
    )
    assert 0 == at_boundary.failed_polls
    assert 0.0 == factors.decide(at_boundary, 120.0).computed_at
    assert FALLBACK == in_force(at_boundary, 120.5)
    later = after(whole(120.5, [reading(1, 120.5, ROOMY)], silent=[2]), memory=at_boundary)
    assert 1 == later.failed_polls


def test_silent_member_is_counted_from_its_own_reading() -> None:
    """The validity of a member's answer runs from the answer, not from the end of the poll."""
    memory = after(
        whole(1.0, [reading(1, 1.0, ROOMY), reading(2, 0.0, ROOMY)]),
        whole(120.5, [reading(1, 120.5, ROOMY)], silent=[2]),
    )
    assert 1 == memory.failed_polls


def test_silent_violating_member_counts_for_validity() -> None:
    """A silent member that violated makes the factor 0.0 for the validity, others missing too."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]),
        whole(120.0, [reading(1, 120.0, ROOMY)], silent=[2, 3]),
    )
    assert OBSERVED_FULL == in_force(memory, 120.0)
    memory = after(whole(120.5, [reading(1, 120.5, ROOMY)], silent=[2]), memory=memory)
    assert 1 == memory.failed_polls
    assert FALLBACK == in_force(memory, 120.5)


def test_members_that_answer_in_turn_renew_the_computed_factor() -> None:
    """No poll sees all brokers, yet each broker was read within the validity."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, ROOMY)]),
        whole(60.0, [reading(1, 60.0, ROOMY)], silent=[2]),
        whole(100.0, [reading(2, 100.0, ROOMY)], silent=[1]),
    )
    assert OBSERVED_ROOMY == in_force(memory, 180.0)
    assert FALLBACK == in_force(memory, 180.5)


def test_unreadable_log_dir_is_not_seen() -> None:
    """The answer of its broker renews nothing, although the other log dir has room."""
    broken = reading(1, 60.0, {"/d1": 99}, unreadable=["/d0"])
    memory = after(whole(0.0, [reading(1, 0.0, {"/d0": 99, "/d1": 99})]), whole(60.0, [broken]))
    failure = memory.brokers[1].failure
    assert failure is not None
    assert FailureKind.UNREADABLE_LOG_DIR == failure.kind
    assert "broker 1: the sizes of /d0 can't be read: error 999" in failure.message
    assert OBSERVED_ROOMY == in_force(memory, 120.0)
    assert FALLBACK == in_force(memory, 120.5)
    memory = after(whole(121.0, [replace(broken, read_at=121.0)]), memory=memory)
    assert 1 == memory.failed_polls
    assert FALLBACK == in_force(memory, 121.0)
    assert FALLBACK == in_force(after(whole(0.0, [replace(broken, read_at=0.0)])), 0.0)


def test_unreadable_log_dir_keeps_its_violation() -> None:
    """It throttles while its broker answers, and another violation counts beside it."""
    broken = reading(1, 600.0, {"/d1": 99}, unreadable=["/d0"])
    memory = after(whole(0.0, [reading(1, 0.0, {"/d0": 30, "/d1": 99})]), whole(600.0, [broken]))
    assert [(1, "/d0")] == violating(factors.decide(memory, 600.0))
    full = reading(1, 0.0, {"/d1": 30}, unreadable=["/d0"])
    assert OBSERVED_FULL == in_force(after(whole(0.0, [full])), 0.0)


def test_fenced_broker_never_makes_an_observation_incomplete() -> None:
    """A dead healthy broker, or one that was never seen, blocks nothing."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, ROOMY)]),
        whole(60.0, [reading(1, 60.0, ROOMY)], fenced=[2, 3]),
    )
    assert OBSERVED_ROOMY == in_force(memory, 180.0)
    assert 0 == memory.failed_polls


def test_fenced_broker_retains_its_violation() -> None:
    """A fenced broker's violating reading counts far past the validity."""
    memory = after(whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]))
    for now in (60.0, 600.0, 6000.0):
        memory = after(whole(now, [reading(1, now, ROOMY)], fenced=[2]), memory=memory)
        decision = factors.decide(memory, now)
        assert OBSERVED_FULL == (decision.factor, decision.source)
        assert [(2, "/d0")] == violating(decision)


def test_fenced_broker_retains_what_was_read_long_before() -> None:
    """A reading older than the validity is retained too when its broker is found fenced."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]),
        whole(600.0, [reading(1, 600.0, ROOMY)], silent=[2]),
    )
    assert FALLBACK == in_force(memory, 600.0)
    memory = after(whole(660.0, [reading(1, 660.0, ROOMY)], fenced=[2]), memory=memory)
    assert OBSERVED_FULL == in_force(memory, 660.0)


def retained() -> Memory:
    """Broker 2 was fenced while it violated, and long ago."""
    return after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]),
        whole(600.0, [reading(1, 600.0, ROOMY)], fenced=[2]),
    )


@pytest.mark.parametrize(
    "then",
    [
        [whole(660.0, [reading(1, 660.0, ROOMY)], silent=[2])],
        # While brokers are upgraded some list the fenced ones and some can't.
        [
            whole(660.0, [reading(1, 660.0, ROOMY)], fenced=None),
            whole(720.0, [reading(1, 720.0, ROOMY)], silent=[2], fenced=None),
        ],
    ],
    ids=["silent return", "a list without fenced brokers"],
)
def test_what_a_retained_violation_outlasts(then: list[Observation]) -> None:
    """A broker that is active again but does not answer still violates, past the last validity."""
    assert OBSERVED_FULL == in_force(after(*then, memory=retained()), 730.0)


def test_answer_with_room_ends_a_retained_violation() -> None:
    """The broker is back, and fenced once more: what it answered counts."""
    answers = [reading(1, 660.0, ROOMY), reading(2, 660.0, ROOMY)]
    memory = after(whole(660.0, answers), memory=retained())
    assert OBSERVED_ROOMY == in_force(memory, 660.0)
    memory = after(whole(720.0, [reading(1, 720.0, ROOMY)], fenced=[2]), memory=memory)
    assert OBSERVED_ROOMY == in_force(memory, 720.0)


def test_unregistered_broker_is_forgotten_after_the_validity() -> None:
    """A list without it may also come from a broker that lags behind."""
    memory = after(whole(660.0, [reading(1, 660.0, ROOMY)]), memory=retained())
    assert OBSERVED_FULL == in_force(memory, 660.0)
    memory = after(whole(780.0, [reading(1, 780.0, ROOMY)]), memory=memory)
    assert OBSERVED_FULL == in_force(memory, 780.0)
    memory = after(whole(780.5, [reading(1, 780.5, ROOMY)]), memory=memory)
    assert OBSERVED_ROOMY == in_force(memory, 780.5)


@pytest.mark.parametrize("fenced", [[2], []], ids=["fenced", "active"])
def test_lists_that_differ_forget_nothing(fenced: list[int]) -> None:
    """Two observers ask two brokers, one of which does not know broker 2."""
    memory = after(whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]))
    for at in range(10, 400, 20):
        now = float(at)
        memory = after(whole(now, [reading(1, now, ROOMY)]), memory=memory)
        assert OBSERVED_FULL == in_force(memory, now)
        now += 10.0
        answers = [reading(1, now, ROOMY), *([] if fenced else [reading(2, now, FULL)])]
        memory = after(whole(now, answers, fenced=fenced), memory=memory)
        assert OBSERVED_FULL == in_force(memory, now)


def test_fenced_volume_that_had_room_is_not_remembered() -> None:
    """Of a fenced broker only what violated is retained."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, {"/d0": 30, "/d1": 99})]),
        whole(60.0, [reading(1, 60.0, ROOMY)], fenced=[2]),
    )
    assert ["/d0"] == [known.volume.log_dir for known in memory.brokers[2].volumes]


def test_departed_brokers_violation_counts_for_validity() -> None:
    """Where the fenced can't be listed, a violating reading counts for the validity only."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)], fenced=None),
        whole(120.0, [reading(1, 120.0, ROOMY)], fenced=None),
    )
    assert OBSERVED_FULL == in_force(memory, 120.0)
    memory = after(whole(120.5, [reading(1, 120.5, ROOMY)], fenced=None), memory=memory)
    assert OBSERVED_ROOMY == in_force(memory, 120.5)
    assert 2 not in memory.brokers


def test_departed_brokers_violation_counts_no_longer_between_whole_polls() -> None:
    """A partial observation does not count what a departed broker reported too long ago."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)], fenced=None),
        whole(119.0, [reading(1, 119.0, ROOMY)], fenced=None),
        partial(121.0, [reading(1, 121.0, ROOMY)]),
    )
    assert OBSERVED_ROOMY == in_force(memory, 121.0)


def test_departed_healthy_broker_blocks_nothing() -> None:
    """A broker that has left is no member."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, ROOMY)], fenced=None),
        whole(60.0, [reading(1, 60.0, ROOMY)], fenced=None),
    )
    assert 60.0 == factors.decide(memory, 60.0).computed_at
    assert {1} == set(memory.brokers)


@pytest.mark.parametrize(
    ("available", "expected"), [(30, OBSERVED_FULL), (31, OBSERVED_ROOMY)], ids=["full", "roomy"]
)
def test_offline_log_dir_keeps_its_last_state(
    available: int, expected: tuple[float, Source]
) -> None:
    """-1 is neither empty nor full: the last state reported counts, however long ago it was."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d0": available, "/d1": 99})]),
        whole(600.0, [reading(1, 600.0, {"/d1": 99}, offline=["/d0"])]),
        whole(6000.0, [reading(1, 6000.0, {"/d1": 99}, offline=["/d0"])]),
    )
    assert expected == in_force(memory, 6000.0)
    state = memory.brokers[1].volumes[0]
    assert ("/d0", False, 0.0) == (state.volume.log_dir, state.online, state.read_at)
    assert ["/d0"] == [each.log_dir for each in memory.brokers[1].offline]


def test_offline_log_dir_never_seen_blocks_nothing() -> None:
    """Its broker answered, and there is no last state to retain."""
    memory = after(whole(0.0, [reading(1, 0.0, {"/d1": 99}, offline=["/d0"])]))
    assert OBSERVED_ROOMY == in_force(memory, 0.0)


def test_log_dir_no_longer_reported_is_gone() -> None:
    """A log dir that is no longer reported is gone, and stays so when it is offline later."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d0": 30, "/d1": 99})]),
        whole(60.0, [reading(1, 60.0, {"/d1": 99})]),
    )
    assert OBSERVED_ROOMY == in_force(memory, 60.0)
    offline = whole(120.0, [reading(1, 120.0, {"/d1": 99}, offline=["/d0"])])
    assert OBSERVED_ROOMY == in_force(after(offline, memory=memory), 120.0)


def test_fenced_broker_retains_an_offline_violation() -> None:
    """A log dir that violated before it was offline is retained like any other."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]),
        whole(60.0, [reading(1, 60.0, ROOMY), reading(2, 60.0, offline=["/d0"])]),
        whole(600.0, [reading(1, 600.0, ROOMY)], fenced=[2]),
    )
    assert [(2, "/d0")] == violating(factors.decide(memory, 600.0))


def test_broker_without_log_dirs_is_seen() -> None:
    """An answer without volumes is an answer."""
    assert OBSERVED_ROOMY == in_force(after(whole(0.0, [reading(1, 0.0)])), 0.0)


def test_cluster_without_active_brokers_counts_as_failed() -> None:
    """A poll that saw no volume does not show that none violates."""
    memory = after(whole(0.0, fenced=[1, 2]))
    assert FALLBACK == in_force(memory, 0.0)
    expected = Failure(FailureKind.INCOMPLETE, "the cluster has no active broker")
    assert expected == memory.failure


def test_all_brokers_fenced_retain_a_violation() -> None:
    """The violations of fenced brokers count without any active one."""
    memory = after(whole(0.0, [reading(1, 0.0, FULL)]), whole(600.0, fenced=[1]))
    assert OBSERVED_FULL == in_force(memory, 600.0)


def test_another_cluster_is_not_sight() -> None:
    """Addresses that lead to another cluster release nobody, and renew nothing."""
    memory = after(
        whole(0.0, [reading(1, 0.0, FULL), reading(2, 0.0, ROOMY)]),
        whole(60.0, [reading(1, 60.0, ROOMY)], cluster_id="B"),
    )
    assert OBSERVED_FULL == in_force(memory, 120.0)
    assert FALLBACK == in_force(memory, 120.5)
    assert 1 == memory.failed_polls
    assert memory.failure is not None
    assert FailureKind.OTHER_CLUSTER == memory.failure.kind
    assert "belong to cluster B" in memory.failure.message
    assert "If cluster A is gone, forget brokers 1, 2, or restart" in memory.failure.message
    assert {memory.failure} == {state.failure for state in memory.brokers.values()}
    # However long it takes, the full volume was not seen with room.
    memory = after(whole(999.0, [reading(1, 999.0, ROOMY)], cluster_id="B"), memory=memory)
    assert FALLBACK == in_force(memory, 999.0)
    memory = factors.forget(memory, 1)
    memory = after(whole(1000.0, [reading(1, 1000.0, ROOMY)], cluster_id="B"), memory=memory)
    assert FALLBACK == in_force(memory, 1000.0)
    memory = factors.forget(memory, 2)
    memory = after(whole(1001.0, [reading(1, 1001.0, ROOMY)], cluster_id="B"), memory=memory)
    assert OBSERVED_ROOMY == in_force(memory, 1001.0)


def test_another_cluster_never_takes_over_by_itself() -> None:
    """Volumes that had room are remembered too, however long ago that was: they may be full now."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY)]),
        *(whole(at, [reading(1, at, ROOMY)], cluster_id="B") for at in (60.0, 121.0, 9e9)),
    )
    assert FALLBACK == in_force(memory, 9e9)
    assert memory.failure is not None
    assert FailureKind.OTHER_CLUSTER == memory.failure.kind


def test_own_cluster_is_seen_again_after_another() -> None:
    """The next answer of the own cluster counts as ever."""
    memory = after(
        whole(0.0, [reading(1, 0.0, FULL)]),
        whole(60.0, [reading(1, 60.0, ROOMY)], cluster_id="B"),
        whole(70.0, [reading(1, 70.0, FULL)]),
    )
    assert OBSERVED_FULL == in_force(memory, 190.0)
    assert (0, None) == (memory.failed_polls, memory.brokers[1].failure)


def test_another_cluster_takes_over_when_all_is_forgotten() -> None:
    """The operator forgot all brokers: only the override and what capabilities keep stay."""
    override = Override(0.7, "maintenance", 0.0, 130.0)
    memory = after(whole(0.0, [reading(1, 0.0, ROOMY)]))
    memory = replace(memory, override=override, retained={"a": 1})
    other = whole(120.0, silent=[1], cluster_id="B")
    assert 0.0 == after(other, memory=memory).brokers[1].read_at
    memory = after(replace(other, observed_at=121.0), memory=factors.forget(memory, 1))
    assert {"a": 1} == memory.retained
    assert (0.7, Source.OVERRIDE) == in_force(memory, 130.0)
    assert FALLBACK == in_force(memory, 131.0)
    assert memory.brokers[1].read_at is None


@pytest.mark.parametrize("reported", ["A", None])
def test_same_or_unknown_cluster_forgets_nothing(reported: str | None) -> None:
    """A cluster id that was not reported is not another one."""
    memory = after(
        whole(0.0, [reading(1, 0.0, FULL)]), whole(60.0, silent=[1], cluster_id=reported)
    )
    assert OBSERVED_FULL == in_force(memory, 120.0)
    assert TIMED_OUT == memory.brokers[1].failure


def test_another_cluster_is_known_after_an_unknown_one() -> None:
    """An observation without a cluster id does not hide that it has changed."""
    memory = after(
        whole(0.0, [reading(1, 0.0, FULL)]),
        whole(10.0, silent=[1], cluster_id=None),
        whole(20.0, [reading(1, 20.0, ROOMY)], cluster_id="B"),
    )
    assert OBSERVED_FULL == in_force(memory, 20.0)


# Partial observations.


@pytest.mark.parametrize(
    ("before", "answer", "expected", "computed_at"),
    [
        (ROOMY, reading(2, 10.0, FULL), OBSERVED_FULL, 10.0),
        (FULL, reading(2, 10.0, ROOMY), OBSERVED_ROOMY, 0.0),
        (FULL, reading(1, 10.0, ROOMY), OBSERVED_FULL, 0.0),
    ],
    ids=["sees a violation", "sees none", "does not see the violation"],
)
def test_partial_observation_renews_only_a_violation_that_it_sees(
    before: dict[str, int], answer: Reading, expected: tuple[float, Source], computed_at: float
) -> None:
    """What other brokers answered is no newer than the last whole observation."""
    first = whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, before)])
    memory = after(first, partial(10.0, [answer]))
    assert expected == in_force(memory, 10.0)
    assert computed_at == factors.decide(memory, 10.0).computed_at


def test_computed_at_never_runs_backwards_while_the_same_volumes_violate() -> None:
    """Broker 2 was seen full at 50 s; asking broker 1 alone at 51 s makes that no older."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, ROOMY)]),
        partial(50.0, [reading(2, 50.0, FULL)]),
        partial(51.0, [reading(1, 51.0, ROOMY)]),
    )
    assert 50.0 == factors.decide(memory, 51.0).computed_at
    memory = after(whole(60.0, silent=[1, 2]), memory=memory)
    assert 50.0 == factors.decide(memory, 60.0).computed_at


@pytest.mark.parametrize("others", [{}, {"/d1": 30}], ids=["the same", "one more"])
@pytest.mark.parametrize("offline", [[], ["/d0"]], ids=["full", "offline"])
def test_computed_at_never_runs_backwards_when_a_fenced_broker_answers_late(
    others: dict[str, int], offline: list[str]
) -> None:
    """It was asked at 30 s, and answers after the list of 40 s, which still kept its violation.

    The validity begins at 40 s for the later observations too, and is not renewed by them.
    """
    sizes = {**({} if offline else FULL), **others}
    late = reading(2, 30.0, sizes, offline=offline)
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL)]),
        whole(20.0, [reading(1, 20.0, ROOMY)], fenced=[2]),
        whole(30.0, [reading(1, 30.0, ROOMY)], silent=[2]),
        whole(40.0, [reading(1, 40.0, ROOMY)], silent=[2]),
    )
    assert 40.0 == factors.decide(memory, 40.0).computed_at
    memory = after(whole(50.0, [reading(1, 50.0, ROOMY), late]), memory=memory)
    assert 40.0 == factors.decide(memory, 50.0).computed_at
    memory = after(whole(60.0, [reading(1, 60.0, ROOMY)], silent=[2]), memory=memory)
    assert 40.0 == factors.decide(memory, 60.0).computed_at
    assert OBSERVED_FULL == in_force(memory, 160.0)
    assert FALLBACK == in_force(memory, 160.5)


def test_partial_observation_of_a_late_answer_renews_from_when_it_was_asked_for() -> None:
    """An answer that came too late for its poll is old news."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY)], silent=[2]), partial(50.0, [reading(2, 40.0, FULL)])
    )
    assert 40.0 == factors.decide(memory, 50.0).computed_at


def test_partial_observation_completes_an_incomplete_one() -> None:
    """What was missing may be reported later, and the others are not asked again."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY)], silent=[2]), partial(1.0, [reading(2, 1.0, ROOMY)])
    )
    assert OBSERVED_ROOMY == in_force(memory, 120.0)
    assert FALLBACK == in_force(memory, 120.5)


def test_partial_observation_never_counts_as_failed() -> None:
    """One that does not suffice changes nothing."""
    memory = after(whole(0.0, [reading(1, 0.0, ROOMY)], silent=[2]))
    again = after(partial(1.0, silent=[1, 2]), memory=memory)
    assert FALLBACK == in_force(again, 1.0)
    assert 1 == again.failed_polls


def test_partial_observation_before_any_whole_one_changes_nothing() -> None:
    """Without a list of brokers there is nothing that it could complete."""
    assert Memory() == after(partial(0.0, [reading(1, 0.0, FULL)]))


def test_partial_observation_can_not_outlive_the_list_of_brokers() -> None:
    """Once the list is older than the validity, some brokers do not stand for the cluster."""
    memory = after(
        whole(0.0, [reading(1, 0.0, FULL)]),
        partial(100.0, [reading(1, 100.0, FULL)]),
        partial(121.0, [reading(1, 121.0, ROOMY)]),
    )
    assert OBSERVED_FULL == in_force(memory, 220.0)


# Forgetting, failing.


def test_forgetting_a_fenced_broker_releases_at_once() -> None:
    """An operator's request is enough; the validity still runs from the last observation."""
    memory = factors.forget(retained(), 2)
    decision = factors.decide(memory, 610.0)
    assert OBSERVED_ROOMY == (decision.factor, decision.source)
    assert 600.0 == decision.computed_at


def test_forgetting_one_of_two_leaves_the_other() -> None:
    """The other violation still counts, without being renewed."""
    answers = [reading(1, 0.0, FULL), reading(2, 0.0, FULL), reading(3, 0.0, ROOMY)]
    memory = after(whole(0.0, answers), whole(10.0, [reading(3, 10.0, ROOMY)], fenced=[1, 2]))
    decision = factors.decide(factors.forget(memory, 2), 20.0)
    assert [(1, "/d0")] == violating(decision)
    assert (0.0, 10.0) == (decision.factor, decision.computed_at)


def test_forgetting_one_of_two_needs_no_whole_sight() -> None:
    """The other violation is enough by itself, also with a member that was never seen."""
    memory = after(
        whole(0.0, [reading(1, 0.0, FULL), reading(2, 0.0, FULL)]),
        whole(10.0, [reading(1, 10.0, FULL)], silent=[3], fenced=[2]),
    )
    assert OBSERVED_FULL == in_force(factors.forget(memory, 2), 20.0)


def test_forgetting_ages_nothing() -> None:
    """What was remembered when the factor was computed still counts for it."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, FULL), reading(3, 0.0, ROOMY)]),
        whole(119.0, [reading(1, 119.0, ROOMY)], silent=[3], fenced=[2]),
    )
    decision = factors.decide(factors.forget(memory, 2), 120.0)
    assert OBSERVED_ROOMY == (decision.factor, decision.source)
    assert 0.0 == decision.computed_at


def test_forgetting_a_live_violating_member_brings_the_fallback() -> None:
    """Without its reading the member is neither seen nor remembered: the fallback is in force."""
    memory = factors.forget(after(whole(0.0, [reading(1, 0.0, FULL)])), 1)
    assert FALLBACK == in_force(memory, 1.0)


def test_forgetting_an_offline_log_dir_of_a_live_broker() -> None:
    """It throttles for as long as it is offline; forgotten, it is not seen again until it is read.

    The broker's other volumes, and those of others at the same path, still count.
    """
    dark = reading(1, 600.0, {"/d1": 99}, offline=["/d0"])
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d0": 30, "/d1": 99}), reading(2, 0.0, ROOMY)]),
        whole(600.0, [dark, reading(2, 600.0, ROOMY)]),
    )
    assert OBSERVED_FULL == in_force(memory, 600.0)
    for broker_id, log_dir in ((1, "/d1"), (2, "/d0"), (1, "/d")):
        assert OBSERVED_FULL == in_force(factors.forget(memory, broker_id, log_dir), 600.0)
    memory = factors.forget(memory, 1, "/d0")
    decision = factors.decide(memory, 600.0)
    assert OBSERVED_ROOMY == (decision.factor, decision.source)
    assert 600.0 == decision.computed_at
    again = whole(700.0, [replace(dark, read_at=700.0), reading(2, 700.0, ROOMY)])
    memory = after(again, memory=memory)
    assert OBSERVED_ROOMY == in_force(memory, 700.0)
    back = whole(800.0, [reading(1, 800.0, {"/d0": 30, "/d1": 99}), reading(2, 800.0, ROOMY)])
    assert OBSERVED_FULL == in_force(after(back, memory=memory), 800.0)


def test_forgetting_is_no_failed_poll() -> None:
    """To forget a broker that violates nothing leaves a valid factor in force."""
    memory = after(
        whole(0.0, [reading(1, 0.0, ROOMY), reading(2, 0.0, ROOMY)]),
        whole(119.0, [reading(1, 119.0, ROOMY)], silent=[2]),
    )
    for broker_id in (1, 2, 3):
        assert OBSERVED_ROOMY == in_force(factors.forget(memory, broker_id), 120.0)


def test_forgetting_before_the_first_observation_changes_nothing() -> None:
    """There is nothing to forget."""
    assert Memory() == factors.forget(Memory(), 1)


def test_failed_polls_are_counted_in_a_row() -> None:
    """A whole observation that suffices ends the row; a partial one does not."""
    memory = after(whole(0.0, [reading(1, 0.0, ROOMY)]))
    refused = Failure(FailureKind.CONNECT, "nothing listens")
    memory = fail(fail(memory, TIMED_OUT), refused)
    assert (2, refused) == (memory.failed_polls, memory.failure)
    memory = after(partial(1.0, [reading(1, 1.0, ROOMY)]), memory=memory)
    assert 2 == memory.failed_polls
    memory = after(whole(2.0, [reading(1, 2.0, ROOMY)]), memory=memory)
    assert (0, None) == (memory.failed_polls, memory.failure)
