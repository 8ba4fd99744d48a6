"""Users that are throttled for a while."""

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Computed, Memory
from sidecar.throttle.rules import Rules
from sidecar.throttle.user_throttles import (
    UserThrottle,
    current_throttles,
    release,
    throttle_users,
    throttles_of,
)
from tests.sidecar.throttle.build import throttle_user

IDS = "producer_ids"
WHY = "551 ids"
BOTH = throttle_users({}, IDS, {"alice": (172.0, WHY), "bob": (110.0, WHY)}, 100.0)


def test_a_user_throttle_lasts_until_its_end_and_not_longer() -> None:
    """At the end itself it is still in force."""
    user_throttles = throttle_user({}, "alice", 172.0, WHY, 100.0)
    assert {"alice": UserThrottle(100.0, 172.0, WHY, IDS)} == current_throttles(
        user_throttles, 172.0
    )
    assert {} == current_throttles(user_throttles, 172.001)


def test_a_user_throttle_is_prolonged_and_shortened() -> None:
    """It retains its beginning, and has the newest reason."""
    user_throttles = throttle_user(
        throttle_user({}, "alice", 172.0, WHY, 100.0), "alice", 200.0, "552 ids", 110.0
    )
    assert {"alice": UserThrottle(100.0, 200.0, "552 ids", IDS)} == throttles_of(
        user_throttles, IDS
    )
    user_throttles = throttle_user(user_throttles, "alice", 150.0, "the quota is larger now", 120.0)
    assert {"alice": UserThrottle(100.0, 150.0, "the quota is larger now", IDS)} == throttles_of(
        user_throttles, IDS
    )


def test_a_user_throttle_that_ended_begins_anew() -> None:
    """Those of others that ended are forgotten."""
    assert {"alice": UserThrottle(180.0, 190.0, WHY, IDS)} == throttles_of(
        throttle_user(BOTH, "alice", 190.0, WHY, 180.0), IDS
    )


def test_a_user_throttle_can_be_taken_back() -> None:
    """One user's is taken back, and no other's."""
    assert {"bob"} == set(throttles_of(release(BOTH, IDS, {"alice"}), IDS))
    assert BOTH == release(BOTH, IDS, {"carol"})


def test_many_are_throttled_at_once() -> None:
    """It is as one after the other: a throttled user's beginning stays, others are unchanged."""
    expected = throttle_user(
        throttle_user(BOTH, "alice", 200.0, "more", 105.0), "carol", 150.0, WHY, 105.0
    )
    assert expected == throttle_users(
        BOTH, IDS, {"alice": (200.0, "more"), "carol": (150.0, WHY)}, 105.0
    )
    assert {"alice": 100.0, "bob": 100.0, "carol": 105.0} == {
        user: each.since for user, each in throttles_of(expected, IDS).items()
    }


def test_a_decision_throttles_users_beside_the_factor_for_all() -> None:
    """The volumes let all write; alice may not, until an end before that of the validity."""
    factors = VolumeLimit(Rules(MinAvailableBytes(30), 120.0), fallback=0.5)
    user_throttles = throttle_user(
        throttle_user({}, "alice", 60.0, WHY, 0.0), "bob", 70.0, WHY, 0.0
    )
    memory = Memory(computed=Computed(1.0, 0.0, ()), user_throttles=user_throttles)
    decision = factors.decide(memory, 60.0)
    assert (1.0, {"alice": 0.0, "bob": 0.0}) == (decision.factor, decision.users)
    assert (120.0, 60.0) == (decision.valid_until, decision.changes_after)
    decision = factors.decide(memory, 65.0)
    assert ({"bob": 0.0}, 70.0) == (decision.users, decision.changes_after)
    decision = factors.decide(memory, 71.0)
    assert ({}, 120.0) == (decision.users, decision.changes_after)


def test_no_enforcer_ends_or_shortens_anothers_throttle() -> None:
    """The module's example: the throttle that ends last is in force; without it the other is.

    With one slot for each user the second enforcer's would have replaced the first's.
    """
    other = "request_time"
    both = throttle_users(
        throttle_user({}, "alice", 172.0, WHY, 100.0), other, {"alice": (200.0, "slow")}, 110.0
    )
    longest = UserThrottle(110.0, 200.0, "slow", other)
    assert {"alice": longest} == current_throttles(both, 172.0)
    left = release(both, other, {"alice"})
    assert {"alice": UserThrottle(100.0, 172.0, WHY, IDS)} == current_throttles(left, 150.0)
    assert {"alice": longest} == current_throttles(release(both, IDS, {"alice"}), 150.0)
    shorter = throttle_user(both, "alice", 120.0, "few", 115.0)
    assert {"alice": longest} == current_throttles(shorter, 115.0)
