"""Throttles of single users, which do not depend on volumes.

A throttle of a user is factor 0.0 for that user until a known time. It ends then, or by a release.
Each enforcer (a capability) has its own throttles. When a user has several, the one that ends last
applies.

Example: alice is throttled for her producer ids at 100 s for 72 s, and by another enforcer until
200 s. That enforcer releases her at 150 s: the first throttle applies until 172 s.

Source: KIP-936, section "ProducerIdQuotaManager".
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sidecar.throttle.validity import is_valid


@dataclass(frozen=True, slots=True)
class UserThrottle:
    """The throttle of one user's producers.

    Attributes:
        since: when it began, steady seconds.
        ends_at: the last moment at which it applies, steady seconds.
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
    """Adds an enforcer's throttles of some users, and drops throttles that have ended.

    Args:
        user_throttles: the throttles before.
        enforcer: the enforcer of the new ones.
        until: user -> the end, steady seconds, and the reason.
        now: steady seconds.
    """
    throttles = dict(unexpired(user_throttles, now))
    for user, (ends_at, reason) in until.items():
        # A longer throttle is the same throttle with another end, so people see when it began.
        before = throttles.get((user, enforcer))
        since = now if before is None else before.since
        throttles[user, enforcer] = UserThrottle(since, ends_at, reason, enforcer)
    return throttles


def release(user_throttles: UserThrottles, enforcer: str, users: Collection[str]) -> UserThrottles:
    """The throttles without those of one enforcer for some users."""
    # The throttles of other enforcers stay: none of them knows why another one throttles.
    return {
        (user, owner): throttle
        for (user, owner), throttle in user_throttles.items()
        if owner != enforcer or user not in users
    }


def throttles_of(user_throttles: UserThrottles, enforcer: str) -> Mapping[str, UserThrottle]:
    """An enforcer's throttles by user, including throttles that have ended."""
    return {
        user: throttle for (user, owner), throttle in user_throttles.items() if owner == enforcer
    }


def unexpired(user_throttles: UserThrottles, now: float) -> UserThrottles:
    """The throttles that have not ended at ``now``, steady seconds."""
    return {key: each for key, each in user_throttles.items() if is_valid(each.ends_at, 0.0, now)}


def current_throttles(user_throttles: UserThrottles, now: float) -> Mapping[str, UserThrottle]:
    """User name -> the throttle that applies at ``now``, steady s: the one that ends last."""
    last_to_end: dict[str, UserThrottle] = {}
    for (user, _), throttle in unexpired(user_throttles, now).items():
        if user not in last_to_end or throttle.ends_at > last_to_end[user].ends_at:
            last_to_end[user] = throttle
    return last_to_end
