"""Users whose producers are throttled for a while, whatever the volumes say.

A throttle is one user's factor 0.0 until a known time; it ends by itself, or by a release. Each
enforcer has throttles of its own, so that none ends another's: while a user has several, the one
that ends last is in force. A user whom an enforcer throttles anew retains the beginning, and has
the new end.

Example: alice is throttled for her producer ids at 100 s for 72 s, and by another enforcer until
200 s. The second releases her at 150 s: the first throttle is in force until 172 s.

Source: KIP-936, section "ProducerIdQuotaManager".
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sidecar.throttle.validity import is_valid


@dataclass(frozen=True, slots=True)
class UserThrottle:
    """One user's producers are throttled.

    Attributes:
        since: from when on, steady seconds.
        ends_at: the last moment at which it is in force, steady seconds.
        reason: one sentence for a person.
        enforcer: the name of the capability that throttles.
    """

    since: float
    ends_at: float
    reason: str
    enforcer: str


UserThrottles = Mapping[tuple[str, str], UserThrottle]
"""User name and enforcer -> throttle, which may have ended."""


def throttle_users(
    user_throttles: UserThrottles,
    enforcer: str,
    until: Mapping[str, tuple[float, str]],
    now: float,
) -> UserThrottles:
    """Adds an enforcer's throttles of some users; those that ended at ``now`` are left out.

    Args:
        user_throttles: those before.
        enforcer: whose the new ones are.
        until: user -> the end, steady seconds, and the reason.
        now: steady seconds.
    """
    throttles = dict(unexpired(user_throttles, now))
    for user, (ends_at, reason) in until.items():
        before = throttles.get((user, enforcer))
        since = now if before is None else before.since
        throttles[user, enforcer] = UserThrottle(since, ends_at, reason, enforcer)
    return throttles


def release(user_throttles: UserThrottles, enforcer: str, users: Collection[str]) -> UserThrottles:
    """Throttles without an enforcer's of some users."""
    return {
        key: each
        for key, each in user_throttles.items()
        if each.enforcer != enforcer or key[0] not in users
    }


def throttles_of(user_throttles: UserThrottles, enforcer: str) -> Mapping[str, UserThrottle]:
    """An enforcer's throttles by user, ended ones too."""
    return {user: each for (user, _), each in user_throttles.items() if each.enforcer == enforcer}


def unexpired(user_throttles: UserThrottles, now: float) -> UserThrottles:
    """Those that have not ended at ``now``, steady seconds."""
    return {key: each for key, each in user_throttles.items() if is_valid(each.ends_at, 0.0, now)}


def in_force(user_throttles: UserThrottles, now: float) -> Mapping[str, UserThrottle]:
    """User name -> the throttle in force at ``now``, steady seconds: the one that ends last."""
    found: dict[str, UserThrottle] = {}
    for (user, _), each in unexpired(user_throttles, now).items():
        if user not in found or each.ends_at > found[user].ends_at:
            found[user] = each
    return found


def next_end(user_throttles: UserThrottles, now: float) -> float | None:
    """When the next user is released, steady seconds; None when none is throttled."""
    return min((each.ends_at for each in in_force(user_throttles, now).values()), default=None)
