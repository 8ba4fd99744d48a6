"""Shadow mode: all is decided as ever, and nothing of it is in force."""

from dataclasses import replace

from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import BudgetThrottle, Memory, Override
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, throttle_user, whole

RULES = VolumeLimit(Rules(MinAvailableBytes(30), 120.0, MinAvailableBytes(10)), 0.0)
SHADOW = replace(RULES, is_enforced=False)


def test_nothing_of_what_is_decided_is_in_force() -> None:
    """Neither the factor, nor the stop, nor a user's factor; the volumes are shown all the same."""
    memory = SHADOW.fold(Memory(), whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    memory = replace(memory, user_throttles=throttle_user({}, "bob", 60.0, "too many", 0.0))
    decision, would = SHADOW.decide(memory, 1.0), RULES.decide(memory, 1.0)
    assert (0.0, True, {"bob": 0.0}) == (would.factor, would.stop_line_reached, would.users)
    assert (1.0, Source.SHADOW, False, {}) == (
        decision.factor,
        decision.source,
        decision.stop_line_reached,
        decision.users,
    )
    assert would == decision.shadow == decision.decided
    assert would.violations == decision.violations
    assert decision.reason.endswith(f"the factor would be 0.0: {would.reason}")
    assert would == would.decided


def test_it_changes_when_what_is_decided_does() -> None:
    """With the validity, with the end of a user's or a budget's throttle, and of an override."""
    memory = SHADOW.fold(Memory(), whole(0.0, [reading(1, 0.0, {"/d": 50})]))
    assert 120.0 == SHADOW.decide(memory, 0.0).changes_after
    throttled = replace(memory, user_throttles=throttle_user({}, "bob", 60.0, "too many", 0.0))
    assert 60.0 == SHADOW.decide(throttled, 0.0).changes_after
    past_budget = {"etl": BudgetThrottle(0.0, ("t",), at=-30.0)}
    assert 90.0 == SHADOW.decide(replace(memory, budgets=past_budget), 0.0).changes_after
    overridden = replace(memory, override=Override(0.0, "by hand", 0.0, 30.0))
    decision = SHADOW.decide(overridden, 0.0)
    assert (1.0, None, 30.0) == (decision.factor, decision.override, decision.changes_after)
    assert (1.0, 0.0) == (decision.factor, decision.decided.factor)


def test_an_operator_can_forget_a_broker() -> None:
    """What counts no longer, would not throttle any more."""
    memory = SHADOW.fold(Memory(), whole(0.0, [reading(1, 0.0, {"/d": 5}), reading(2, 0.0)]))
    memory = SHADOW.fold(memory, whole(1.0, [reading(2, 1.0)], fenced=[1]))
    assert 0.0 == SHADOW.decide(memory, 1.0).decided.factor
    assert 1.0 == SHADOW.decide(SHADOW.forget(memory, 1), 1.0).decided.factor
