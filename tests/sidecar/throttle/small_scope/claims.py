"""The claims of docs/reliability.md, of each decision in the search.

A decision is compared with the ghost alone: with what was shown, when, and what was forgotten.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.memory import Override
from tests.sidecar.throttle.small_scope.ghost import Ghost, is_fresh
from tests.sidecar.throttle.small_scope.key import Key, Keys
from tests.sidecar.throttle.small_scope.scopes import (
    FALLBACK,
    LOG_DIRS,
    SIZES,
    STOP_LINE,
    VALIDITY_S,
    Scope,
)
from tests.sidecar.throttle.small_scope.state import State, remembered

OVERRIDE: Final = 0.25


def check_edge(before: State, after: State, factors: VolumeLimit, scope: Scope) -> None:
    """The claims about what an event may change.

    Raises:
        AssertionError: a claim does not hold.
    """
    now, event = after.now, after.event
    kind = event.kind
    decision, named, violating = after.decision, after.named, after.violating
    check_moment(after, scope)
    if kind in {"fail", "expire"}:
        was = factors.decide(before.memory, now)
        assert identity(was) == identity(decision), "only time changes a decision without news"
        return
    was, was_named = before.decision, before.named
    if kind == "forget":
        # What counted when the factor was computed, and was not read with room since.
        still = set(after.ghost.violating(now if was.computed_at is None else was.computed_at))
        assert named == was_named or named <= still, "a volume that has room is not named"
        if decision.computed_at is not None:
            # Where the forgotten violation was the only one, the factor is as old as the rest,
            # which may be younger than the violation was.
            oldest = was.computed_at if decision.violations else after.ghost.whole_at
            assert oldest is not None, "forgetting begins no throttle"
            assert decision.computed_at <= oldest, "forgetting renews nothing"
        assert (
            all(
                (broker == event.broker and event.log_dir in {None, log_dir})
                or (broker, log_dir) not in still
                for broker, log_dir in was_named - named
            )
            or decision.source is Source.FALLBACK
        ), "forgetting drops no other violation"
        return
    if decision.computed_at is not None and was.computed_at is not None:
        # Without a violation the time is that of the oldest reading, so a broker that joined
        # with an older one may set it back.
        assert not (
            decision.computed_at < was.computed_at and was.violations and named == was_named
        ), "the time of the factor goes back while the same volumes violate"
    is_whole = is_fresh(after.ghost.sight(), now)
    if violating:
        assert all(
            name in named or not is_fresh(shown_at, now) for name, shown_at in violating.items()
        ), "each violation that counts is published"
    elif is_whole:
        assert decision.source is Source.OBSERVATION, "a whole sight ends the fallback"
        assert not decision.violations, "a whole sight without a violation releases"
        assert scope.soft_limit or decision.factor == 1.0, "a whole sight releases"
    if decision.factor > was.factor:
        assert is_whole, "the factor rises without a sight of every active broker"
        assert not violating, "the factor rises while a violation counts"
    if scope.soft_limit and was.source is decision.source is Source.OBSERVATION:
        on_slope = any(
            broker.was_fenced and volume.size == "soft"
            for old, broker in zip(before.ghost.brokers, after.ghost.brokers, strict=True)
            if old.volumes == broker.volumes
            for volume in broker.volumes
        )
        assert not (on_slope and decision.factor > was.factor > 0.0), (
            "the factor rises while a broker on the slope is fenced"
        )
    if scope.stop_line:
        check_stop(was, decision, violating, after.ghost)


def check_moment(state: State, scope: Scope) -> None:
    """The claims about a decision at one moment."""
    now, ghost, decision = state.now, state.ghost, state.decision
    if any(is_fresh(at, now) for at in state.violating.values()):
        assert decision.factor == 0.0, "a violation that counts throttles"
        assert decision.source is Source.OBSERVATION, "a violation that counts is the source"
    if decision.source is Source.FALLBACK:
        assert decision.factor == FALLBACK, "the fallback is the one that is set"
        assert not decision.violations, "the fallback has no violations"
        return
    assert decision.computed_at is not None, "an observation has its time"
    if decision.violations:
        assert decision.factor == 0.0, "a published violation throttles"
        # Until all active brokers are seen, the last factor stays for its validity.
        assert all(
            ghost.brokers[broker - 1].volumes[LOG_DIRS.index(log_dir)].violates
            for broker, log_dir in state.named
        ) or not is_fresh(ghost.sight(), now), "no volume throttles that was seen otherwise"
    else:
        assert is_fresh(ghost.whole_at, now), "without a whole sight the fallback applies"
        assert decision.factor == 1.0 or (scope.soft_limit and decision.factor > 0.0), (
            "only a violation throttles"
        )
    assert all(each in decision.violations for each in decision.at_stop_line), (
        "the stop line implies the limit"
    )


def check_stop(
    was: Decision, decision: Decision, violating: Mapping[tuple[int, str], float], ghost: Ghost
) -> None:
    """The claims about the stop line after an observation."""
    sizes = [
        SIZES[ghost.brokers[broker - 1].volumes[LOG_DIRS.index(log_dir)].size or "roomy"]
        for broker, log_dir in violating
    ]
    if not violating or decision.source is not Source.OBSERVATION:
        return
    at_line = any(size <= STOP_LINE for size in sizes)
    within_margin = any(size <= 1.1 * STOP_LINE for size in sizes)
    if was.stop_line_reached:
        assert decision.stop_line_reached == within_margin, "a stop ends above the margin alone"
    else:
        assert decision.stop_line_reached == at_line, "a stop begins at the line alone"


def check_state(state: State, factors: VolumeLimit) -> None:
    """The claims about what follows from a state without news, and about an override."""
    memory, now = state.memory, state.now
    for known in (
        memory,
        replace(memory, override=Override(OVERRIDE, "work", now, now + VALIDITY_S / 2)),
    ):
        decision = factors.decide(known, now)
        until = decision.valid_until
        if until is None:
            until = now + 1000 * VALIDITY_S
        else:
            after = factors.decide(known, math.nextafter(until, math.inf))
            assert identity(after) != identity(decision), "the decision ends when it says"
        for moment in ((now + until) / 2, until):
            assert identity(factors.decide(known, moment)) == identity(decision), (
                "the decision lasts as long as it says"
            )
    plain, decision = state.decision, factors.decide(known, now)
    assert (decision.factor, decision.source) == (OVERRIDE, Source.OVERRIDE), "an override applies"
    assert not decision.stop_line_reached, "an override lifts a stop"
    assert decision.violations == plain.violations, "an override hides no violation"


def check_override(
    before: State, after: State, name: Key, factors: VolumeLimit, keys: Keys
) -> None:
    """An override changes nothing that is remembered, so each decision after it is as without."""
    override = Override(OVERRIDE, "work", before.now, before.now + VALIDITY_S)
    with_override = replace(before.memory, override=override)
    memory = remembered(with_override, after.event, after.now, factors)
    assert memory.override == override, "only an operator ends an override"
    assert keys.key(memory, after.ghost, after.now)[0] == name, (
        "an override changes nothing that is remembered"
    )


def identity(decision: Decision) -> tuple[object, ...]:
    """What makes two decisions differ."""
    violating, stopping = decision.violations, decision.at_stop_line
    return decision.factor, decision.source, decision.override, violating, stopping
